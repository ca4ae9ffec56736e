"""Benchmark of the service: single rows, batches, loads above capacity, unruly clients."""
