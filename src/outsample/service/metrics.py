"""Counts and times for Prometheus, by its official client."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
# Where the workers of one service share their counts.
FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"


class Metrics:
    """Counters and a histogram of one service; gauges are computed when they are read."""

    def __init__(self) -> None:
        disable_created_metrics()
        self.registry = CollectorRegistry()
        self.requests = self._make(Counter, "requests", "Requests.", ["path", "status"])
        self.seconds = self._make(
            Histogram, "request_seconds", "Time of a request.", ["path"], buckets=BUCKETS
        )
        self.rows = self._make(Counter, "rows", "Rows placed, learned, or strange.", ["kind"])
        self.rounds = self._make(Counter, "rounds", "Calls of the model.")
        self.joined = self._make(Counter, "joined_requests", "Requests in calls of the model.")
        self._children: dict[Any, Any] = {}

    def add_gauge(self, name: str, help_text: str, function: Callable[[], float]) -> None:
        """Report the value of a function."""
        self._make(Gauge, name, help_text).set_function(function)

    def count_request(self, path: str, status: int, seconds: float | None) -> None:
        """Count a request and its time."""
        pair = self._children.get((path, status))
        if pair is None:  # looking up the children takes longer than counting
            pair = self.requests.labels(path, str(status)), self.seconds.labels(path)
            self._children[path, status] = pair
        pair[0].inc()
        if seconds is not None:
            pair[1].observe(seconds)

    def text(self) -> bytes:
        """Return everything in Prometheus' text format."""
        if FOLDER_VARIABLE not in os.environ:
            return generate_latest(self.registry)
        registry = CollectorRegistry()
        MultiProcessCollector(registry)
        return generate_latest(registry)

    def _make(self, kind: Any, name: str, help_text: str, labels: Any = (), **options: Any) -> Any:
        options |= {"namespace": "outsample", "registry": self.registry}
        return kind(name, help_text, labels, **options)
