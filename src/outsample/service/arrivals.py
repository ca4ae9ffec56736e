"""The most recent arrivals, placed or learned, by number: what pages watch and ask about.

The ring is bounded in rows and bytes. A watcher only keeps a position in it, so a slow watcher
delays nobody: arrivals that it has not read in time are gone.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
import numpy as np

from outsample.service.schemas import write_json

if TYPE_CHECKING:
    from outsample.service.service import Service

PLACED, LEARNED = "placed", "learned"
STATUS_SECONDS = 1.0
# Rows in one message, and how many of its unusual rows get a reason.
MAX_ROWS, MAX_EXPLAINED = 500, 20
OWN_COLUMNS = ("rows", "time", "request", "is_learned")  # not part of the answer


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
        self._wake()
        return first

    def clear(self) -> None:
        """Forget all arrivals; ids go on."""
        with self.lock:
            self.oldest_id = self.next_id
        self._wake()

    def after(self, last: int, max_rows: int) -> Arrivals | None:
        """Return at most ``max_rows`` arrivals of one request with ids above ``last``."""
        with self.lock:
            start = max(last + 1, self.first_id)
            if start >= self.next_id or self.records is None:
                return None
            ids = np.arange(start, min(self.next_id, start + max_rows))
            records = self.records[ids % self.capacity]
        records = records[records["request"] == records["request"][0]]
        names = [name for name in records.dtype.names if name not in OWN_COLUMNS]
        answer = {name: np.ascontiguousarray(records[name]) for name in names}
        is_learned = bool(records["is_learned"][0])
        if not is_learned:
            answer.pop("accepted")
        kind = LEARNED if is_learned else PLACED
        return Arrivals(start, float(records["time"][0]), kind, records["rows"], answer)

    def arrival(self, number: int) -> Arrivals | None:
        """Return the arrival with an id; None if it is gone or has not come yet."""
        return self.after(number - 1, 1) if number >= self.first_id else None

    def _wake(self) -> None:
        """Wake the watchers, from any thread."""
        if self.watchers and self.loop is not None and not self.loop.is_closed():
            for watcher in tuple(self.watchers):
                self.loop.call_soon_threadsafe(watcher.set)

    def _allocate(self, rows: np.ndarray, answer: dict[str, Any]) -> np.ndarray:
        """Make records for answers like this one; learned rows have one more column."""
        columns = {"accepted": np.zeros(1, bool), **answer, "rows": rows}
        fields: list[Any] = [(name, part.dtype, part.shape[1:]) for name, part in columns.items()]
        dtype = np.dtype([*fields, ("time", "f8"), ("request", "i8"), ("is_learned", "?")])
        self.capacity = max(1, min(self.max_rows, self.max_bytes // dtype.itemsize))
        records = np.empty(self.capacity, dtype)
        records.view(np.uint8).fill(0)  # takes the memory now, not little by little
        return records


async def watch(service: Service, last: int | None, end: anyio.Event) -> AsyncIterator[Any]:
    """Yield arrivals with ids above ``last``, or those to come if it is None, until the end.

    A watcher that is so slow that arrivals have left the ring gets an event about the gap.
    """
    ring, woken = service.ring, asyncio.Event()
    last = ring.next_id - 1 if last is None else min(last, ring.next_id - 1)
    status, status_time = None, -STATUS_SECONDS
    ring.watchers.add(woken)
    try:
        while not end.is_set():
            woken.clear()
            if time.monotonic() >= status_time + STATUS_SECONDS:
                status_time, latest = time.monotonic(), await asyncio.to_thread(service.status)
                if latest != status:
                    status = latest
                    yield {**_event("status", status), "retry": 1000}
            arrivals = ring.after(last, MAX_ROWS)
            if arrivals is None:
                with suppress(TimeoutError):
                    await asyncio.wait_for(woken.wait(), STATUS_SECONDS)
                continue
            if arrivals.first > last + 1:
                gap = {"first_id": last + 1, "n_rows": arrivals.first - last - 1}
                yield _event("gap", gap)
            last = arrivals.first + len(arrivals.rows) - 1
            payload = await asyncio.to_thread(_describe, service, arrivals)
            yield {**_event("arrivals", payload), "id": str(last)}
    finally:
        ring.watchers.discard(woken)


def _describe(service: Service, arrivals: Arrivals) -> dict[str, Any]:
    """Return arrivals by column, precise enough to draw, and why unusual rows are unusual."""
    columns = {
        name: values.astype(np.float32) if values.dtype.kind == "f" else values
        for name, values in arrivals.answer.items()
        if name not in ("bound", "n_neighbors")
    }
    reasons: dict[int, str] = {}
    p_values = arrivals.answer.get("p_value")
    if p_values is not None:
        columns["p_value"] = p_values  # exact, as it is compared with levels
        unusual = np.flatnonzero(p_values <= service.settings.alpha)[:MAX_EXPLAINED]
        explanations = service.model.explain(arrivals.rows[unusual]) if len(unusual) else []
        ids = (arrivals.first + unusual).tolist()
        reasons = {at: why.main_reason for at, why in zip(ids, explanations, strict=False)}
    head = {"first_id": arrivals.first, "time": arrivals.time, "kind": arrivals.kind}
    return {**head, "n_rows": len(arrivals.rows), **columns, "reasons": reasons}


def _event(name: str, payload: Any) -> dict[str, Any]:
    return {"event": name, "data": write_json(payload).decode()}
