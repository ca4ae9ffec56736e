"""Benchmark of novelty detection: this and other detectors on many data sets."""
