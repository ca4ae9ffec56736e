"""Arrivals as server-sent events: from where the watcher stopped, as fast as it reads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import numpy as np

from outsample.service.arrivals import Arrivals
from outsample.service.json_rows import to_json
from outsample.service.service import Service

KEEP_ALIVE = 15.0
STATUS_EVERY = 1.0
# Rows in one message, and those of them that are given a reason.
MOST_ROWS, MOST_REASONS = 500, 20


async def events(service: Service, last: int | None) -> AsyncIterator[bytes]:
    """Tell arrivals with ids above ``last``, those to come if it is None, until the service ends.

    A watcher that is so slow that arrivals have left the ring before it read them is told of the
    gap; nobody waits for it.
    """
    ring, woken = service.ring, asyncio.Event()
    ring.watchers.add(woken)
    last = ring.next_id - 1 if last is None else min(last, ring.next_id - 1)
    told, told_at = await service.fresh_status(), time.monotonic()
    try:
        yield b"retry: 1000\n\n" + _message("status", told)
        while not service.is_ending:
            woken.clear()
            found = ring.after(last, MOST_ROWS)
            if found is not None:
                if found.first > last + 1:
                    gap = {"first_id": last + 1, "n_rows": found.first - last - 1}
                    yield _message("gap", gap)
                last = found.stop - 1
                yield _message("arrivals", await _told(service, found), last)
            if time.monotonic() >= told_at + STATUS_EVERY:
                now, told_at = await service.fresh_status(), time.monotonic()
                if now != told:
                    told = now
                    yield _message("status", told)
            if found is None:
                # What was learned a moment ago is judged soon, though nothing else arrives.
                stale = service.learning is not None and service.learning.is_stale
                try:
                    await asyncio.wait_for(woken.wait(), STATUS_EVERY if stale else KEEP_ALIVE)
                except TimeoutError:
                    yield b": alive\n\n"
    finally:
        ring.watchers.discard(woken)


def last_seen(header: str | None, query: str | None) -> int | None:
    """Return the id after which to begin; what is no number counts as nothing."""
    given = header or query or ""
    return int(given) if given.isascii() and given.isdigit() and len(given) < 16 else None


async def _told(service: Service, found: Arrivals) -> dict[str, Any]:
    """Rows of one message by column, fine enough to draw, and why the strange ones are so."""
    told = {
        name: values.astype(np.float32) if values.dtype.kind == "f" else values
        for name, values in found.answer.items()
        if name not in ("bound", "n_neighbors")
    }
    p = found.answer.get("p_value")
    strange = np.arange(0) if p is None else np.flatnonzero(p <= service.model.alpha)
    reasons = await service.main_reasons(found, strange[:MOST_REASONS])
    if "p_value" in told:  # to the last bit: they are compared with levels
        told["p_value"] = found.answer["p_value"]
    about = {"first_id": found.first, "time": found.time, "kind": found.kind}
    return {**about, "n_rows": len(found.rows), **told, "reasons": reasons}


def _message(event: str, told: Any, number: int | None = None) -> bytes:
    head = f"event: {event}\n" + (f"id: {number}\n" if number is not None else "")
    return head.encode() + b"data: " + to_json(told) + b"\n\n"
