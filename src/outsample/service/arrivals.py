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

# Columns in addition to those of answers.
ROWS, TIME, REQUEST, KIND, ACCEPTED = "rows", "time", "request", "kind", "accepted"
PLACED, LEARNED = "placed", "learned"


class Arrivals(NamedTuple):
    """Rows of one request: the first id, the time, what was done, rows and answers."""

    first: int
    time: float
    kind: str
    rows: np.ndarray
    answer: dict[str, Any]

    @property
    def stop(self) -> int:
        """Id after the last one."""
        return self.first + len(self.rows)


class Ring:
    """The most recent arrivals; ids count from 1 and are never used again.

    The arrays are allocated once and overwritten in turn, so memory stays constant.

    Parameters
    ----------
    max_rows, max_bytes : int
        Bounds on what is kept.
    """

    def __init__(self, max_rows: int = 200_000, max_bytes: int = 2**26) -> None:
        self.max_rows, self.max_bytes = max_rows, max_bytes
        self.columns: dict[str, np.ndarray] = {}
        self.next_id = self.oldest_id = 1
        self.n_requests = 0
        self.lock = threading.Lock()
        self.watchers: set[asyncio.Event] = set()
        self.loop: asyncio.AbstractEventLoop | None = None

    @property
    def first_id(self) -> int:
        """Oldest id that is kept, or the next one."""
        return max(self.oldest_id, self.next_id - self.capacity)

    @property
    def capacity(self) -> int:
        """Number of rows that are kept."""
        return len(self.columns[ROWS]) if self.columns else 0

    def add(self, kind: str, rows: np.ndarray, answer: dict[str, Any]) -> int:
        """Keep rows with their answers; return the id of the first row."""
        with self.lock:
            first = self.next_id
            self.n_requests += 1
            shared = {TIME: time.time(), REQUEST: self.n_requests, KIND: kind == LEARNED}
            if not self.columns:
                self._allocate({ROWS: rows, **answer, **shared})
            skipped = max(0, len(rows) - self.capacity)
            at = (first + skipped + np.arange(len(rows) - skipped)) % self.capacity
            for name, column in self.columns.items():
                if name in shared:
                    column[at] = shared[name]
                else:
                    values = rows if name == ROWS else answer.get(name)
                    column[at] = 0 if values is None else values[skipped:]
            self.next_id = first + len(rows)
        self.wake()
        return first

    def clear(self) -> None:
        """Forget all arrivals; ids go on."""
        with self.lock:
            self.oldest_id = self.next_id
        self.wake()

    def wake(self) -> None:
        """Wake the watchers, from any thread."""
        if self.watchers and self.loop is not None:
            try:
                self.loop.call_soon_threadsafe(self._wake)
            except RuntimeError:  # the loop has ended
                pass

    def _wake(self) -> None:
        for watcher in self.watchers:
            watcher.set()

    def after(self, last: int, max_rows: int) -> Arrivals | None:
        """Return at most ``max_rows`` arrivals of one request with ids above ``last``."""
        with self.lock:
            start = max(last + 1, self.first_id)
            if start >= self.next_id:
                return None
            ids = np.arange(start, min(self.next_id, start + max_rows))
            requests = self.columns[REQUEST][ids % self.capacity]
            return self._copied(ids[requests == requests[0]])

    def arrival(self, number: int) -> Arrivals | None:
        """Return the arrival with an id; None if it is gone or has not come yet."""
        with self.lock:
            if not self.first_id <= number < self.next_id:
                return None
            return self._copied(np.array([number]))

    def _allocate(self, columns: dict[str, Any]) -> None:
        """Make arrays for answers like this one; learned rows have one more column."""
        arrays = {name: np.asarray(values) for name, values in columns.items()}
        arrays.setdefault(ACCEPTED, np.zeros(1, dtype=bool))
        row_bytes = sum(array.itemsize * int(np.prod(array.shape[1:])) for array in arrays.values())
        capacity = max(1, min(self.max_rows, self.max_bytes // row_bytes))
        for name, array in arrays.items():
            self.columns[name] = np.zeros((capacity, *array.shape[1:]), array.dtype)
            self.columns[name].fill(0)  # takes the memory now, not little by little

    def _copied(self, ids: np.ndarray) -> Arrivals:
        at = ids % self.capacity
        columns = {name: column[at] for name, column in self.columns.items()}
        arrived, is_learned = float(columns.pop(TIME)[0]), bool(columns.pop(KIND)[0])
        rows, accepted = columns.pop(ROWS), columns.pop(ACCEPTED)
        del columns[REQUEST]
        if is_learned:
            columns[ACCEPTED] = accepted
        kind = LEARNED if is_learned else PLACED
        return Arrivals(int(ids[0]), arrived, kind, rows, columns)
