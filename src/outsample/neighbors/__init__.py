"""Who is near: exact search, neighbourhoods, graphs of neighbours, local PCA."""
