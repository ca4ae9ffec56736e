"""Benchmark of accuracy: hold-out errors of this and other libraries on many maps."""
