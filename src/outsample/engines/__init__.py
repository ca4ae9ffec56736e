"""Rows by the million and on many machines: batches of any kind, saved models, shards."""
