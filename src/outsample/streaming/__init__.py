"""Models that learn from arriving rows, and tests for drift."""
