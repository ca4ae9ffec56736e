"""One JSON line a request: when, what, how it ended; no numbers of rows unless asked."""

from __future__ import annotations

import sys
import threading
from collections import deque
from datetime import UTC, datetime
from typing import IO, Any

from outsample.service.json_rows import to_json

MOST_WAITING = 10_000
EVERY_SECONDS = 0.05


class RequestLog:
    """Lines written by a thread of their own: a full pipe never holds a request up.

    It looks for lines a few times a second, so that a request does not pay for waking it.

    Parameters
    ----------
    stream : binary file, default=None
        Where to; None is the standard error.
    """

    def __init__(self, stream: IO[bytes] | None = None) -> None:
        self.stream = stream or sys.stderr.buffer
        self.lines: deque[dict[str, Any]] = deque()
        self.n_dropped = 0
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self._run, name="request log", daemon=True)
        self.thread.start()

    def add(self, **told: Any) -> None:
        """Write a line; it is dropped if nobody reads."""
        if len(self.lines) >= MOST_WAITING:
            self.n_dropped += 1
        else:
            self.lines.append({"time": datetime.now(UTC), **told})

    def end(self) -> None:
        """Write what waits, for a second at most."""
        self.ending.set()
        self.thread.join(1)

    def _run(self) -> None:
        is_last = False
        while not is_last:
            is_last = self.ending.wait(EVERY_SECONDS)
            text = b"".join(to_json(self.lines.popleft()) + b"\n" for _ in range(len(self.lines)))
            try:
                self.stream.write(text)
                self.stream.flush()
            except (OSError, ValueError):  # closed, or the disk is full: requests matter more
                self.n_dropped += text.count(b"\n")
