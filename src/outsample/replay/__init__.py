"""Rows of a recording, sent to a running service as they happened."""
