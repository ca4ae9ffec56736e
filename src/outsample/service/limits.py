"""Bounds on everything that a client could make large."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What a service takes at most.

    Attributes
    ----------
    body_bytes : int
        Bytes of a body; more is refused with 413 before the rest is read.
    rows : int
        Rows of a request; more is refused with 422.
    waiting : int
        Requests that wait for the model at most, in a burst; one more is refused with 429. Fewer
        are let in when the queue stands: see `admission`.
    concurrent : int
        Requests under way, from when their body is there until their answer is made; one more is
        refused with 503.
    transfers : int
        Bodies that come and large answers that go at a time; for one more the slowest client is
        let go.
    held_bytes : int
        Bytes of bodies and large answers that are held at a time; likewise.
    listeners : int
        Open event streams; one more is refused with 503.
    seconds : float
        Time to send a body, to get the answer, or to take a piece of it.
    round_rows : int
        Rows that are placed in one call. A larger request goes through in pieces, between which
        others have their turn.
    """

    body_bytes: int = 2**25
    rows: int = 100_000
    waiting: int = 512
    concurrent: int = 512
    transfers: int = 256
    held_bytes: int = 2**28
    listeners: int = 64
    seconds: float = 30.0
    round_rows: int = 512
