"""Learning: how a stream gets from one state to the next."""

from __future__ import annotations

from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outsample.chunks import MAX_CHUNK_ROWS
from outsample.neighbors.growing_index import are_new
from outsample.points import Points
from outsample.streaming.memory import Memory, latest_seen, with_arrivals
from outsample.streaming.model import Arrivals, StreamModel
from outsample.streaming.stream_columns import GrowingTable, stacked
from outsample.trust import calibration_window

# A step is at most this fraction (1 / 100) of the window, and at least one arrival.
STEPS_PER_WINDOW = 100


class Learned(NamedTuple):
    """Placement of arrivals, and which of them were accepted.

    Attributes
    ----------
    placement : JudgedPlacement or Placement
        What `StreamingExtension.place` returned before the step to which each arrival belongs.
    accepted : ndarray of bool of shape (q,)
        Which of them become neighbours, after the delay.
    """

    placement: Any
    accepted: NDArray[np.bool_]


class Snapshot(NamedTuple):
    """State of a stream.

    ``model`` and ``calibration`` (ascending scores, None without a detector) are those after the
    last full step, ``memory`` covers all arrivals, ``table`` has the columns of all points.
    """

    model: StreamModel
    calibration: np.ndarray | None
    memory: Memory
    table: GrowingTable


class StreamWriter:
    """Makes snapshots, in one thread at a time: the one that holds the lock.

    Learning goes in steps of ``window // STEPS_PER_WINDOW`` arrivals, counted from the first
    arrival of the stream. The arrivals of a step are placed and scored by the state before it, so
    that the state depends on the arrivals and their order, not on how they are divided into calls
    of `learn`.

    ``originals`` (m,) are the ascending calibration scores of a detector, None without one. The
    table of a snapshot has the columns of original and learned points, waiting ones last; rows of a
    snapshot are never overwritten.
    """

    def __init__(self, originals: np.ndarray | None, window: int, delay: int, guard: float) -> None:
        self.originals, self.window, self.delay, self.guard = originals, window, delay, guard
        self.has_scores = originals is not None
        self.step = max(window // STEPS_PER_WINDOW, 1)
        self.order = calibration_window.leaving_order(0 if originals is None else len(originals))
        self.lock = Lock()

    def started(self, model: StreamModel, memory: Memory) -> Snapshot:
        """Return the snapshot of a model and the memory of what it has learned."""
        learned = memory.columns(self.has_scores)
        table = GrowingTable(model.original_columns().combine(stacked, learned))
        calibration, n_new = self.originals, memory.n_new_scores
        if calibration is not None and memory.n_scored:
            scores = memory.scores[: len(memory.scores) - n_new]
            calibration = calibration_window.calibration_of(
                calibration, scores, memory.n_scored - n_new, self.window
            )
        n_neighbors = model.n_originals + len(memory.seen_at) - memory.n_waiting
        model = model.with_columns(table.first_rows(n_neighbors), appends=False)
        return Snapshot(model, calibration, memory, table)

    def after(self, now: Snapshot, Q: Points, dtype: np.dtype) -> tuple[Snapshot, Learned]:
        """Return the snapshot after arrivals Q (q, D), and their placement."""
        results, start = [], 0
        max_rows = min(MAX_CHUNK_ROWS, now.model.model.search.max_rows(Q))
        while start < Q.shape[0]:
            stop = start + min(self.step - now.memory.n_seen % self.step, max_rows)
            now, learned = self._after_part(now, Q[start:stop], dtype)
            results.append(learned)
            start = stop
        placements, accepted = zip(*results, strict=True)
        fields = (np.concatenate(field) for field in zip(*placements, strict=True))
        return now, Learned(type(placements[0])(*fields), np.concatenate(accepted))

    def _after_part(self, now: Snapshot, Q: Points, dtype: np.dtype) -> tuple[Snapshot, Learned]:
        """Return the snapshot after arrivals of one step, or of a part of it."""
        arrivals = now.model.arrive(Q, dtype, now.calibration)
        accepted = self._accepted(now.memory, Q, arrivals)
        m_current = 0 if now.calibration is None else len(now.calibration)
        memory = with_arrivals(now.memory, arrivals, self.originals, m_current, self.window)
        memory = self._with_waiting(now, memory, arrivals, accepted)
        now = now._replace(memory=memory)
        if memory.n_seen % self.step == 0:
            now = self._grown(self._recalibrated(now))
        return now, Learned(arrivals.placed, accepted)

    def _accepted(self, memory: Memory, Q: Points, arrivals: Arrivals) -> np.ndarray:
        """Return which arrivals (q,) will be neighbours: above the guard, without duplicates."""
        accepted = ~arrivals.coincides
        if self.has_scores:
            accepted &= arrivals.placed.p_value > self.guard
        rows = np.flatnonzero(accepted)
        waiting = memory.points[memory.points.shape[0] - memory.n_waiting :]
        accepted[rows] = are_new(Q[rows], waiting)
        return accepted

    def _recalibrated(self, now: Snapshot) -> Snapshot:
        """Return the snapshot with the scores of a step exchanged for the oldest ones."""
        memory, calibration, n_new = now.memory, now.calibration, now.memory.n_new_scores
        if calibration is None or self.originals is None or not n_new:
            return now
        m, window, n_leaving = len(self.originals), self.window, len(memory.scores) - self.window
        n_scored = memory.n_scored - n_new, memory.n_scored
        gone = slice(*(calibration_window.originals_gone(m, n, window) for n in n_scored))
        oldest = memory.scores[: max(n_leaving, 0)]
        removed = np.concatenate([self.originals[self.order[gone]], oldest])
        added = memory.scores[len(memory.scores) - n_new :]
        memory = memory._replace(scores=memory.scores[-window:], n_new_scores=0)
        calibration = calibration_window.exchanged(calibration, removed, added)
        return now._replace(calibration=calibration, memory=memory)

    def _with_waiting(
        self, now: Snapshot, memory: Memory, arrivals: Arrivals, accepted: np.ndarray
    ) -> Memory:
        """Return the memory with accepted arrivals, which wait to become neighbours."""
        n, rows, before = now.model.n_originals, np.flatnonzero(accepted), now.memory
        seen_at, is_repeated = before.seen_at, arrivals.coincides & (arrivals.nearest >= n)
        if is_repeated.any():
            seen_at = seen_at.copy()
            arrival_numbers = before.n_seen + 1 + np.flatnonzero(is_repeated)
            seen_at[arrivals.nearest[is_repeated] - n] = arrival_numbers
        if not len(rows):
            return memory._replace(seen_at=seen_at)
        columns = now.table.with_rows(n + len(seen_at), arrivals.columns.rows(rows))
        seen_at = np.concatenate([seen_at, before.n_seen + 1 + rows])
        gaps = np.concatenate([before.gaps, arrivals.gaps[rows]])
        memory = memory._replace(n_learned=memory.n_learned + len(rows))
        n_waiting = memory.n_waiting + len(rows)
        return memory.with_learned(columns.rows(slice(n, None)), gaps, seen_at, n_waiting)

    def _grown(self, now: Snapshot) -> Snapshot:
        """Return the snapshot in which points that waited are neighbours; the oldest may leave."""
        model, _, memory, table = now
        n, seen_at, gaps = model.n_originals, memory.seen_at, memory.gaps
        n_neighbors = len(seen_at) - memory.n_waiting
        # Waiting points are in order: `seen_at` of a point changes only once it is a neighbour.
        n_new = int(np.sum(seen_at[n_neighbors:] <= memory.n_seen - self.delay))
        n_neighbors += n_new
        # The next step must fit, so that there are never more points than the window.
        is_full = len(seen_at) > self.window - self.step + 1
        if not n_new and not is_full:
            return now
        if is_full:
            kept = latest_seen(seen_at, self.window)
            seen_at, gaps, n_neighbors = seen_at[kept], gaps[kept], int(np.sum(kept < n_neighbors))
            learned = memory.columns(self.has_scores).rows(kept)
            table = GrowingTable(model.original_columns().combine(stacked, learned))
        model = model.with_columns(table.first_rows(n + n_neighbors), appends=not is_full)
        columns = table.first_rows(n + len(seen_at)).rows(slice(n, None))
        memory = memory.with_learned(columns, gaps, seen_at, len(seen_at) - n_neighbors)
        return Snapshot(model, now.calibration, memory, table)
