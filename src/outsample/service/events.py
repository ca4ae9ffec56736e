"""Arrivals as server-sent events: from where a watcher stopped, as fast as it reads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import anyio
import numpy as np

from outsample.service.arrivals import Arrivals
from outsample.service.row_formats import write_json
from outsample.service.service import Service

STATUS_SECONDS = 1.0
# Rows in one message, and how many of its strange rows get a reason.
MAX_ROWS, MAX_EXPLAINED = 500, 20
Event = dict[str, Any]


async def watch(service: Service, last: int | None, end: anyio.Event) -> AsyncIterator[Event]:
    """Yield arrivals with ids above ``last``, or those to come if it is None, until the end.

    A watcher that is so slow that arrivals have left the ring gets an event about the gap.
    """
    ring, woken = service.ring, asyncio.Event()
    last = ring.next_id - 1 if last is None else min(last, ring.next_id - 1)
    ring.watchers.add(woken)
    service.n_listeners += 1
    try:
        status = await asyncio.to_thread(service.status)
        status_time = time.monotonic()
        yield {**_event("status", status), "retry": 1000}
        while not end.is_set():
            woken.clear()
            arrivals = ring.after(last, MAX_ROWS)
            if arrivals is not None:
                if arrivals.first > last + 1:
                    gap = {"first_id": last + 1, "n_rows": arrivals.first - last - 1}
                    yield _event("gap", gap)
                last = arrivals.first + len(arrivals.rows) - 1
                payload = await asyncio.to_thread(_describe, service, arrivals)
                yield {**_event("arrivals", payload), "id": str(last)}
            if time.monotonic() >= status_time + STATUS_SECONDS:
                status_time = time.monotonic()
                latest = await asyncio.to_thread(service.status)
                if latest != status:
                    status = latest
                    yield _event("status", status)
            if arrivals is None:
                try:
                    await asyncio.wait_for(woken.wait(), STATUS_SECONDS)
                except TimeoutError:
                    pass
    finally:
        ring.watchers.discard(woken)
        service.n_listeners -= 1


def parse_id(text: str | None) -> int | None:
    """Return an id; None for a text that is not a number.

    >>> [parse_id(text) for text in ("7", "-1", "x", None, "9" * 30)]
    [7, None, None, None, None]
    """
    is_number = text is not None and text.isascii() and text.isdigit() and len(text) < 16
    return int(text) if is_number and text is not None else None


def _describe(service: Service, arrivals: Arrivals) -> Event:
    """Return arrivals by column, precise enough to draw, and why the strange rows are strange."""
    columns = {
        name: values.astype(np.float32) if values.dtype.kind == "f" else values
        for name, values in arrivals.answer.items()
        if name not in ("bound", "n_neighbors")
    }
    reasons: dict[int, str] = {}
    p_values = arrivals.answer.get("p_value")
    if p_values is not None:
        columns["p_value"] = p_values  # exact, as it is compared with levels
        strange = np.flatnonzero(p_values <= service.settings.alpha)
        reasons = service.main_reasons(arrivals, strange[:MAX_EXPLAINED])
    head = {"first_id": arrivals.first, "time": arrivals.time, "kind": arrivals.kind}
    return {**head, "n_rows": len(arrivals.rows), **columns, "reasons": reasons}


def _event(name: str, payload: Any) -> Event:
    return {"event": name, "data": write_json(payload).decode()}
