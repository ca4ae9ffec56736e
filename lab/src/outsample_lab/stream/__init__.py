"""Benchmark of streams: learners on days of network traffic, their alarms."""
