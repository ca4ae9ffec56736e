"""Comparison of extensions on a map by hold-out errors."""
