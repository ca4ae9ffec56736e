"""Benchmark of speed: this library, bare neighbour searches and other libraries."""
