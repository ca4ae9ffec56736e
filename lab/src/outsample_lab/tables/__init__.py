"""Real tables with categories, dates and gaps: errors of preparations, and p-values."""
