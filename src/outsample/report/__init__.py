"""Self-contained HTML pages and terminal tables."""
