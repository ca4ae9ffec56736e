"""The last rows that were placed or learned, by number: what pages watch and ask about.

A ring bounded in rows and bytes. Watchers have a place in it and nothing else, so that a slow one
costs nothing and holds nobody up: what it has not read when it falls off the end is gone.
"""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any, NamedTuple

import numpy as np

# Columns beside those of answers.
ROWS, TIME, REQUEST, KIND, ACCEPTED = "rows", "time", "request", "kind", "accepted"
PLACED, LEARNED = "placed", "learned"


class Arrivals(NamedTuple):
    """Rows of one request: ids from ``first`` on, when, what was done, rows and answers."""

    first: int
    time: float
    kind: str
    rows: np.ndarray
    answer: dict[str, Any]

    @property
    def stop(self) -> int:
        """Id after the last."""
        return self.first + len(self.rows)


class Ring:
    """The last arrivals; ids go on for ever, from 1.

    Rows are in arrays that are written round and round: memory is the same from the first
    arrival to the last.

    Parameters
    ----------
    most_rows, most_bytes : int
        What is kept at most.
    """

    def __init__(self, most_rows: int = 200_000, most_bytes: int = 2**26) -> None:
        self.most_rows, self.most_bytes = most_rows, most_bytes
        self.columns: dict[str, np.ndarray] = {}
        self.next_id = 1
        self.n_requests = 0
        self.lock = threading.Lock()
        self.watchers: set[asyncio.Event] = set()
        self.loop: asyncio.AbstractEventLoop | None = None

    @property
    def first_id(self) -> int:
        """Oldest id that is kept, or the next one."""
        return max(1, self.next_id - self.capacity)

    @property
    def capacity(self) -> int:
        """Rows that are kept."""
        return len(self.columns[ROWS]) if self.columns else 0

    def add(self, kind: str, rows: np.ndarray, answer: dict[str, Any]) -> int:
        """Keep rows with their answers; return the id of the first."""
        with self.lock:
            first = self.next_id
            self.n_requests += 1
            about = {TIME: time.time(), REQUEST: self.n_requests, KIND: kind == LEARNED}
            if not self.columns:
                self._begin({ROWS: rows, **answer, **about})
            skipped = max(0, len(rows) - self.capacity)
            at = (first + skipped + np.arange(len(rows) - skipped)) % self.capacity
            for name, column in self.columns.items():
                if name in about:
                    column[at] = about[name]
                else:
                    given = rows if name == ROWS else answer.get(name)
                    column[at] = 0 if given is None else given[skipped:]
            self.next_id = first + len(rows)
        if self.watchers and self.loop is not None:
            try:
                self.loop.call_soon_threadsafe(self.wake)
            except RuntimeError:  # the loop has ended
                pass
        return first

    def wake(self) -> None:
        """Tell those who wait that there is something new, or that all ends."""
        for watcher in self.watchers:
            watcher.set()

    def after(self, last: int, most_rows: int) -> Arrivals | None:
        """Return arrivals of one request with ids above ``last``, as many as that at most."""
        with self.lock:
            start = max(last + 1, self.first_id)
            if start >= self.next_id:
                return None
            ids = np.arange(start, min(self.next_id, start + most_rows))
            of = self.columns[REQUEST][ids % self.capacity]
            return self._copied(ids[of == of[0]])

    def one(self, number: int) -> Arrivals | None:
        """Return the arrival with an id, None if it is gone or has not been."""
        with self.lock:
            if not self.first_id <= number < self.next_id:
                return None
            return self._copied(np.array([number]))

    def _begin(self, told: dict[str, Any]) -> None:
        """Make the arrays, for answers such as this; learned rows have one column more."""
        shapes = {name: np.asarray(values) for name, values in {ACCEPTED: [False], **told}.items()}
        row_bytes = sum(one.itemsize * int(np.prod(one.shape[1:])) for one in shapes.values())
        capacity = max(1, min(self.most_rows, self.most_bytes // row_bytes))
        for name, one in shapes.items():
            self.columns[name] = np.zeros((capacity, *one.shape[1:]), one.dtype)
            self.columns[name].fill(0)  # takes the memory now, not bit by bit

    def _copied(self, ids: np.ndarray) -> Arrivals:
        at = ids % self.capacity
        found = {name: column[at] for name, column in self.columns.items()}
        when, learned = float(found.pop(TIME)[0]), bool(found.pop(KIND)[0])
        rows, accepted = found.pop(ROWS), found.pop(ACCEPTED)
        del found[REQUEST]
        if learned:
            found[ACCEPTED] = accepted
        return Arrivals(int(ids[0]), when, LEARNED if learned else PLACED, rows, found)
