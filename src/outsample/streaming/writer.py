"""Learning: how a stream goes from one state to the next."""

from __future__ import annotations

from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from outsample.neighbors.growing_index import GrowingTable, are_new
from outsample.points import Points
from outsample.streaming.memory import Memory, staying, with_arrivals
from outsample.streaming.model import Arrivals, StreamModel, joined
from outsample.trust import calibration_window

# A step is this part of the window: at most a hundredth, and at least one arrival.
STEPS = 100


class Learned(NamedTuple):
    """What became of arrivals.

    Attributes
    ----------
    placement : JudgedPlacement or Placement
        What `StreamingExtension.place` answered before the step to which each arrival belongs.
    accepted : ndarray of bool of shape (q,)
        Which of them become neighbours, after a while.
    """

    placement: Any
    accepted: NDArray[np.bool_]


class Snapshot(NamedTuple):
    """State of a stream: what answers, the calibration scores, the memory, and its columns.

    ``model`` and ``calibration`` are those after the last full step, ``memory`` is of all arrivals.
    """

    model: StreamModel
    calibration: np.ndarray | None
    memory: Memory
    table: GrowingTable


class StreamWriter:
    """Makes snapshots, one thread at a time: the one that holds the lock.

    Learning goes in steps of ``window // STEPS`` arrivals, counted from the first arrival of the
    stream. The arrivals of a step are placed and judged by the state before it, so that the state
    depends on the arrivals and their order, not on the calls of `learn` in which they come.

    ``originals`` (m,) are the ascending calibration scores of a detector, None without one. The
    table of a snapshot has the columns of original and learned points, those that wait at its end;
    rows of a snapshot are never written to.
    """

    def __init__(
        self, originals: np.ndarray | None, window: int, delay: int, guard: float
    ) -> None:
        self.originals, self.window, self.delay, self.guard = originals, window, delay, guard
        self.step = max(window // STEPS, 1)
        self.order = calibration_window.leaving_order(0 if originals is None else len(originals))
        self.lock = Lock()

    def started(self, model: StreamModel, memory: Memory) -> Snapshot:
        """Snapshot of a model that has learned what is remembered."""
        pairs = zip(model.columns(), memory.columns(model.novelty is not None), strict=True)
        table = GrowingTable([stacked(original, learned) for original, learned in pairs])
        calibration, n_new = self.originals, memory.n_new_scores
        if calibration is not None and memory.n_scored:
            scores = memory.scores[: len(memory.scores) - n_new]
            calibration = calibration_window.calibration_of(
                calibration, scores, memory.n_scored - n_new, self.window
            )
        n_neighbors = model.n_originals + len(memory.seen_at) - memory.n_waiting
        model = model.with_columns(table.first_rows(n_neighbors), adds=False)
        return Snapshot(model, calibration, memory, table)

    def after(self, now: Snapshot, Q: Points, dtype: np.dtype) -> tuple[Snapshot, Learned]:
        """Snapshot after arrivals Q (q, D), and what became of them."""
        results, start = [], 0
        while start < Q.shape[0]:
            stop = start + self.step - now.memory.n_seen % self.step
            now, learned = self._after_part(now, Q[start:stop], dtype)
            results.append(learned)
            start = stop
        placements, accepted = zip(*results, strict=True)
        return now, Learned(joined(placements), np.concatenate(accepted))

    def _after_part(
        self, now: Snapshot, Q: Points, dtype: np.dtype
    ) -> tuple[Snapshot, Learned]:
        """Snapshot after arrivals of one step, or of a part of it."""
        arrivals = now.model.arrive(Q, dtype, now.calibration)
        accepted = self._accepted(now.memory, Q, arrivals)
        m_given = 0 if now.calibration is None else len(now.calibration)
        memory = with_arrivals(now.memory, arrivals, self.originals, m_given, self.window)
        memory = self._with_waiting(now, memory, Q, arrivals, accepted)
        now = now._replace(memory=memory)
        if memory.n_seen % self.step == 0:
            now = self._grown(self._recalibrated(now))
        return now, Learned(arrivals.placed, accepted)

    def _accepted(self, memory: Memory, Q: Points, arrivals: Arrivals) -> np.ndarray:
        """Which arrivals (q,) will be neighbours: above the guard, the first of their copies."""
        accepted = ~arrivals.known
        if hasattr(arrivals.placed, "p_value"):
            accepted &= arrivals.placed.p_value > self.guard
        rows = np.flatnonzero(accepted)
        waiting = memory.points[memory.points.shape[0] - memory.n_waiting :]
        accepted[rows] = are_new(Q[rows], waiting)
        return accepted

    def _recalibrated(self, now: Snapshot) -> Snapshot:
        """Snapshot with the scores of a step in the calibration, without those that leave."""
        memory, calibration, n_new = now.memory, now.calibration, now.memory.n_new_scores
        if calibration is None or self.originals is None or not n_new:
            return now
        m, window, n_leaving = len(self.originals), self.window, len(memory.scores) - self.window
        n_scored = memory.n_scored - n_new, memory.n_scored
        gone = slice(*(calibration_window.originals_gone(m, n, window) for n in n_scored))
        oldest = memory.scores[: max(n_leaving, 0)]
        out = np.concatenate([self.originals[self.order[gone]], oldest])
        new = memory.scores[len(memory.scores) - n_new :]
        memory = memory._replace(scores=memory.scores[-window:], n_new_scores=0)
        calibration = calibration_window.exchanged(calibration, out, new)
        return now._replace(calibration=calibration, memory=memory)

    def _with_waiting(
        self, now: Snapshot, memory: Memory, Q: Points, arrivals: Arrivals, accepted: np.ndarray
    ) -> Memory:
        """Return the memory with accepted arrivals, which wait to become neighbours."""
        n, rows, before = now.model.n_originals, np.flatnonzero(accepted), now.memory
        seen_at, again = before.seen_at, arrivals.known & (arrivals.nearest >= n)
        if again.any():
            seen_at = seen_at.copy()
            seen_at[arrivals.nearest[again] - n] = before.n_seen + 1 + np.flatnonzero(again)
        if not len(rows):
            return memory._replace(seen_at=seen_at)
        columns = now.table.with_rows(n + len(seen_at), self._columns(Q, arrivals, rows))
        seen_at = np.concatenate([seen_at, before.n_seen + 1 + rows])
        gaps = np.concatenate([before.gaps, arrivals.gaps[rows]])
        memory = memory._replace(n_learned=memory.n_learned + len(rows))
        n_waiting = memory.n_waiting + len(rows)
        return memory.with_learned([column[n:] for column in columns], gaps, seen_at, n_waiting)

    def _grown(self, now: Snapshot) -> Snapshot:
        """Snapshot in which points that have waited are neighbours; the oldest may leave."""
        model, _, memory, table = now
        n, seen_at, gaps = model.n_originals, memory.seen_at, memory.gaps
        n_neighbors = len(seen_at) - memory.n_waiting
        # Those that wait are in their order: nobody has seen them again.
        n_new = int(np.sum(seen_at[n_neighbors:] <= memory.n_seen - self.delay))
        n_neighbors += n_new
        # There is room for another step, so that no moment has more than a window.
        leaves = len(seen_at) > self.window - self.step + 1
        if not n_new and not leaves:
            return now
        if leaves:
            kept = staying(seen_at, self.window)
            seen_at, gaps, n_neighbors = seen_at[kept], gaps[kept], int(np.sum(kept < n_neighbors))
            columns = memory.columns(self.originals is not None)
            pairs = zip(model.columns(), columns, strict=True)
            table = GrowingTable([stacked(old, learned[kept]) for old, learned in pairs])
        model = model.with_columns(table.first_rows(n + n_neighbors), adds=not leaves)
        columns = [column[n:] for column in table.first_rows(n + len(seen_at))]
        memory = memory.with_learned(columns, gaps, seen_at, len(seen_at) - n_neighbors)
        return Snapshot(model, now.calibration, memory, table)

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
