"""Experiments of the paper, benchmarks and the figures of the documentation."""
