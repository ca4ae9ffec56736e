"""The log, one JSON object per line on the standard error, and the metrics for Prometheus.

Log lines go through a queue to a thread, so that a full pipe delays no request. The thread looks
for lines 20 times per second: on a busy machine, waking it for each request made one row a third
slower.
"""

from __future__ import annotations

import logging
import os
import queue
import time
from collections.abc import Callable
from datetime import UTC, datetime
from logging.handlers import QueueHandler, QueueListener
from typing import Any

import orjson
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

MAX_WAITING_LINES, PAUSE_SECONDS = 10_000, 0.05
# Where the workers of one service share their counts.
METRICS_FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
log = logging.getLogger("outsample.service")
_listener: QueueListener | None = None


class Metrics:
    """Counters and a histogram of one service; gauges are computed when they are read."""

    def __init__(self) -> None:
        disable_created_metrics()
        self.registry = CollectorRegistry()
        options: dict[str, Any] = {"namespace": "outsample", "registry": self.registry}
        self.requests = Counter("requests", "Requests.", ["path", "status"], **options)
        self.rows = Counter("rows", "Rows placed, learned, or unusual.", ["kind"], **options)
        self.rounds = Counter("rounds", "Calls of the model.", **options)
        self.joined = Counter("joined_requests", "Requests in calls of the model.", **options)
        self.seconds = Histogram(
            "request_seconds", "Time of a request.", ["path"], buckets=BUCKETS, **options
        )

    def add_gauge(self, name: str, help_text: str, function: Callable[[], float]) -> None:
        """Report the value of a function."""
        Gauge(f"outsample_{name}", help_text, registry=self.registry).set_function(function)

    def text(self) -> bytes:
        """Return all counts, of all workers, in Prometheus' text format."""
        registry = self.registry
        if METRICS_FOLDER_VARIABLE in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)
        return generate_latest(registry)


class JsonFormatter(logging.Formatter):
    """Formats the ``fields`` of a record, or its level and message."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        message = {"level": record.levelname.lower(), "message": record.getMessage()}
        fields = getattr(record, "fields", message)
        line = {"time": datetime.fromtimestamp(record.created, UTC), **fields}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return orjson.dumps(line).decode()


class _RecordHandler(QueueHandler):
    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        return record  # the thread formats it


class _PausingListener(QueueListener):
    def dequeue(self, block: bool) -> Any:
        lines: Any = self.queue
        while True:
            try:
                return lines.get_nowait()
            except queue.Empty:
                time.sleep(PAUSE_SECONDS)


def start_log() -> None:
    """Send the records of the service and of uvicorn to the standard error."""
    global _listener
    logging.raiseExceptions = False  # lines are dropped when nobody reads them
    lines: queue.Queue[Any] = queue.Queue(MAX_WAITING_LINES)
    handler, output = _RecordHandler(lines), logging.StreamHandler()
    output.setFormatter(JsonFormatter())
    for name, level in (("outsample.service", logging.INFO), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
    _listener = _PausingListener(lines, output)
    _listener.start()


def stop_log() -> None:
    """Write the lines that wait: uvicorn ends the process by the signal that it received."""
    global _listener
    if _listener is not None:
        _listener.stop()
        _listener = None


def log_event(**fields: Any) -> None:
    """Write a line with these fields."""
    log.info("", extra={"fields": fields})
