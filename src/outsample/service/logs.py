"""The log: one JSON object per line on the standard error, by Python's logging.

Lines go through a queue to a thread, so that a full pipe delays no request. The thread looks for
lines a few times per second, so that a request does not pay for waking it.
"""

from __future__ import annotations

import logging
import queue
import time
from datetime import UTC, datetime
from logging.handlers import QueueHandler, QueueListener
from typing import Any

from outsample.service.row_formats import write_json

MAX_WAITING_LINES = 10_000
PAUSE_SECONDS = 0.05
FLUSH_SECONDS = 5.0
_LINES: queue.Queue[Any] = queue.Queue()


class JsonFormatter(logging.Formatter):
    """Formats a record's ``fields``, or its level and message."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        line: dict[str, Any] = {"time": datetime.fromtimestamp(record.created, UTC)}
        fields = getattr(record, "fields", None)
        if fields is None:
            fields = {"level": record.levelname.lower(), "message": record.getMessage()}
        if record.exc_info:
            fields = {**fields, "traceback": self.formatException(record.exc_info)}
        return write_json(line | fields).decode()


class _DroppingHandler(QueueHandler):
    """Drops lines when nobody reads them."""

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        return record  # it stays in this process

    def enqueue(self, record: logging.LogRecord) -> None:
        lines: Any = self.queue
        if lines.qsize() < MAX_WAITING_LINES:
            lines.put_nowait(record)


class _PausingListener(QueueListener):
    def dequeue(self, block: bool) -> Any:
        lines: Any = self.queue
        while True:
            try:
                return lines.get_nowait()
            except queue.Empty:
                time.sleep(PAUSE_SECONDS)


def start_log() -> QueueListener:
    """Send the records of the service and of uvicorn to the standard error."""
    output = logging.StreamHandler()
    output.setFormatter(JsonFormatter())
    listener = _PausingListener(_LINES, output)
    for name, level in (("outsample.service", logging.INFO), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [_DroppingHandler(_LINES)], False
        logger.setLevel(level)
    listener.start()
    return listener


def flush_log() -> None:
    """Wait until the lines so far are written: uvicorn ends the process by the signal it got."""
    end = time.monotonic() + FLUSH_SECONDS
    while _LINES.unfinished_tasks and time.monotonic() < end:
        time.sleep(PAUSE_SECONDS / 5)


def log_event(**fields: Any) -> None:
    """Write a line with these fields."""
    logging.getLogger("outsample.service").info("", extra={"fields": fields})
