"""The most recent arrivals, placed or learned, by number: what pages watch and ask about.

The ring is bounded in rows and bytes. A watcher only keeps a position in it, so a slow watcher
delays nobody: arrivals that it has not read in time are gone.
"""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any, NamedTuple

import numpy as np

PLACED, LEARNED = "placed", "learned"
KEPT = ("rows", "time", "request", "is_learned")  # columns that are not part of the answer


class Arrivals(NamedTuple):
    """Rows of one request: the first id, the time, what was done, rows and answers."""

    first: int
    time: float
    kind: str
    rows: np.ndarray
    answer: dict[str, Any]


class Ring:
    """The most recent arrivals, in a structured array that is overwritten in turn.

    Ids count from 1 and are never used again.
    """

    def __init__(self, max_rows: int = 200_000, max_bytes: int = 2**26) -> None:
        self.max_rows, self.max_bytes = max_rows, max_bytes
        self.records: np.ndarray | None = None
        self.next_id = self.oldest_id = 1
        self.n_requests = self.capacity = 0
        self.lock = threading.Lock()
        self.watchers: set[asyncio.Event] = set()
        self.loop: asyncio.AbstractEventLoop | None = None

    @property
    def first_id(self) -> int:
        """Oldest id that is kept, or the next one."""
        return max(self.oldest_id, self.next_id - self.capacity)

    def add(self, kind: str, rows: np.ndarray, answer: dict[str, Any]) -> int:
        """Keep rows with their answers; return the id of the first row."""
        with self.lock:
            if self.records is None:
                self.records = self._allocate(rows, answer)
            first, self.n_requests = self.next_id, self.n_requests + 1
            self.next_id = first + len(rows)
            skipped = max(0, len(rows) - self.capacity)
            new = np.zeros(len(rows) - skipped, self.records.dtype)
            new["rows"], new["time"] = rows[skipped:], time.time()
            new["request"], new["is_learned"] = self.n_requests, kind == LEARNED
            for name in answer.keys() & set(new.dtype.names or ()):
                new[name] = answer[name][skipped:]
            self.records[np.arange(first + skipped, self.next_id) % self.capacity] = new
        self.wake()
        return first

    def clear(self) -> None:
        """Forget all arrivals; ids go on."""
        with self.lock:
            self.oldest_id = self.next_id
        self.wake()

    def wake(self) -> None:
        """Wake the watchers, from any thread."""
        if self.watchers and self.loop is not None and not self.loop.is_closed():
            for watcher in tuple(self.watchers):
                self.loop.call_soon_threadsafe(watcher.set)

    def after(self, last: int, max_rows: int) -> Arrivals | None:
        """Return at most ``max_rows`` arrivals of one request with ids above ``last``."""
        with self.lock:
            start = max(last + 1, self.first_id)
            if start >= self.next_id or self.records is None:
                return None
            ids = np.arange(start, min(self.next_id, start + max_rows))
            records = self.records[ids % self.capacity]
        records = records[records["request"] == records["request"][0]]
        names = [name for name in records.dtype.names if name not in KEPT]
        answer = {name: np.ascontiguousarray(records[name]) for name in names}
        is_learned = bool(records["is_learned"][0])
        if not is_learned:
            answer.pop("accepted")
        kind = LEARNED if is_learned else PLACED
        return Arrivals(start, float(records["time"][0]), kind, records["rows"], answer)

    def arrival(self, number: int) -> Arrivals | None:
        """Return the arrival with an id; None if it is gone or has not come yet."""
        return self.after(number - 1, 1) if number >= self.first_id else None

    def _allocate(self, rows: np.ndarray, answer: dict[str, Any]) -> np.ndarray:
        """Make records for answers like this one; learned rows have one more column."""
        columns = {"accepted": np.zeros(1, bool), **answer, "rows": rows}
        fields: list[Any] = [(name, part.dtype, part.shape[1:]) for name, part in columns.items()]
        dtype = np.dtype([*fields, ("time", "f8"), ("request", "i8"), ("is_learned", "?")])
        self.capacity = max(1, min(self.max_rows, self.max_bytes // dtype.itemsize))
        records = np.empty(self.capacity, dtype)
        records.view(np.uint8).fill(0)  # takes the memory now, not little by little
        return records
