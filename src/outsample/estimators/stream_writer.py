"""Learning: how a stream goes from one state to the next."""

from __future__ import annotations

from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from outsample.estimators.stream_memory import Memory, accepted_rows, staying, with_arrivals
from outsample.estimators.stream_model import Arrivals, StreamModel
from outsample.neighbors.learned import GrowingTable, are_copies
from outsample.points import Points
from outsample.trust import recent


class Learned(NamedTuple):
    """What became of arrivals.

    Attributes
    ----------
    placement : JudgedPlacement or Placement
        What `StreamingExtension.place` answered before they were learned.
    accepted : ndarray of bool of shape (q,)
        Which of them become neighbours, after a while.
    """

    placement: Any
    accepted: NDArray[np.bool_]


class Snapshot(NamedTuple):
    """A moment of a stream: what answers, by which scores, and what is remembered."""

    model: StreamModel
    calibration: np.ndarray | None
    memory: Memory


class StreamWriter:
    """Makes snapshots, one thread at a time: who holds the lock.

    ``originals`` (m,) are the ascending calibration scores of a detector, None without one. The
    table has the columns of original and learned points, those that wait at its end; rows of a
    snapshot are never written to.
    """

    def __init__(self, originals: np.ndarray | None, window: int, delay: int) -> None:
        self.originals, self.window, self.delay = originals, window, delay
        self.order = recent.leaving_order(0 if originals is None else len(originals))
        self.lock = Lock()
        self.table: GrowingTable

    def started(self, model: StreamModel, memory: Memory) -> Snapshot:
        """Snapshot of a model that has learned what is remembered."""
        pairs = zip(model.columns(), memory.columns(model.novelty is not None), strict=True)
        columns = [stacked(original, learned) for original, learned in pairs]
        self.table = GrowingTable(columns)
        calibration = self.originals
        if calibration is not None and memory.n_scored:
            calibration = recent.calibration_of(
                calibration, memory.scores, memory.n_scored, self.window
            )
        n_neighbors = columns[0].shape[0] - memory.n_waiting
        model = model.with_columns(self.table.first_rows(n_neighbors), adds=False)
        return Snapshot(model, calibration, memory)

    def after(
        self, now: Snapshot, Q: Points, dtype: np.dtype, guard: float
    ) -> tuple[Snapshot, Learned]:
        """Snapshot after arrivals Q (q, D), and what became of them."""
        arrivals = now.model.arrive(Q, dtype, now.calibration)
        accepted = accepted_rows(Q, arrivals, guard) & ~self._wait(now, Q)
        m_given = 0 if now.calibration is None else len(now.calibration)
        memory, new = with_arrivals(now.memory, arrivals, self.originals, m_given, self.window)
        calibration = self._recalibrated(now, memory, new)
        model, memory = self._grown(now, memory, Q, arrivals, accepted)
        return Snapshot(model, calibration, memory), Learned(arrivals.placed, accepted)

    def _wait(self, now: Snapshot, Q: Points) -> np.ndarray:
        """Which arrivals (q,) are copies of one that waits."""
        points, n_jobs = now.memory.points, now.model.original.n_jobs
        return are_copies(Q, points[points.shape[0] - now.memory.n_waiting :], n_jobs)

    def _recalibrated(
        self, now: Snapshot, memory: Memory, new: np.ndarray
    ) -> np.ndarray | None:
        """Calibration after arrivals: without those whose time is over, with the new scores."""
        if now.calibration is None or self.originals is None:
            return None
        m, window, before = len(self.originals), self.window, now.memory
        gone = slice(*(recent.originals_gone(m, one.n_scored, window) for one in (before, memory)))
        new = new[-window:]
        more = max(len(before.scores) + len(new) - window, 0)
        out = np.concatenate([self.originals[self.order[gone]], before.scores[:more]])
        return recent.exchanged(now.calibration, out, new)

    def _grown(
        self, now: Snapshot, memory: Memory, Q: Points, arrivals: Arrivals, accepted: np.ndarray
    ) -> tuple[StreamModel, Memory]:
        """Return the model with accepted arrivals, and its memory; the oldest may leave."""
        n, rows, before = now.model.n_originals, np.flatnonzero(accepted), now.memory
        seen_at, again = before.seen_at, arrivals.known & (arrivals.nearest >= n)
        if again.any():
            seen_at = seen_at.copy()
            seen_at[arrivals.nearest[again] - n] = before.n_seen + 1 + np.flatnonzero(again)
        n_neighbors = len(seen_at) - before.n_waiting
        seen_at = np.concatenate([seen_at, before.n_seen + 1 + rows])
        # Those that wait are in their order: nobody has seen them again.
        n_new = int(np.sum(seen_at[n_neighbors:] <= memory.n_seen - self.delay))
        if not len(rows) and not n_new:
            return now.model, memory._replace(seen_at=seen_at)
        n_neighbors += n_new
        new = self._columns(Q, arrivals, rows)
        length, adds = n + len(before.seen_at), len(seen_at) <= self.window
        gaps = np.concatenate([before.gaps, arrivals.gaps[rows]])
        memory = memory._replace(n_learned=memory.n_learned + len(rows))
        if adds:
            columns = self.table.with_rows(length, new)
        else:
            kept = staying(seen_at, self.window)
            seen_at, gaps, n_neighbors = seen_at[kept], gaps[kept], int(np.sum(kept < n_neighbors))
            learned = before.columns(self.originals is not None)
            living = [stacked(old, more)[kept] for old, more in zip(learned, new, strict=True)]
            pairs = zip(now.model.columns(), living, strict=True)
            self.table = GrowingTable([stacked(old, more) for old, more in pairs])
            columns = self.table.first_rows(n + len(kept))
        model = now.model
        if n_new or not adds:
            model = model.with_columns([column[: n + n_neighbors] for column in columns], adds)
        learned = [column[n:] for column in columns]
        n_waiting = len(seen_at) - n_neighbors
        return model, memory.with_learned(learned, gaps, seen_at, n_waiting)

    def _columns(self, Q: Points, arrivals: Arrivals, rows: np.ndarray) -> list[Points]:
        """Return what is kept of some arrivals, in the order of `StreamModel.columns`."""
        images = arrivals.placed.coordinates[rows].astype(np.float64)
        found: list[Points] = [Q[rows], images]
        for frames in arrivals.frames:
            found += [part[rows] for part in frames]
        if self.originals is not None:
            found += [arrivals.widths[rows], np.ones(len(rows), dtype=np.int64)]
        return found


def stacked(first: Points, second: Points) -> Points:
    """Rows of two arrays, or of two sparse matrices."""
    if sparse.issparse(first):
        return sparse.vstack([first, second], format="csr")
    return np.concatenate([first, second])
