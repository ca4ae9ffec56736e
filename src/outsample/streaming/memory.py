"""What a model file keeps of a stream: learned points, latest scores, states of the drift tests."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from outsample.points import Points
from outsample.records import Frames
from outsample.streaming.drift_tests import DriftTests
from outsample.streaming.model import Arrivals, StreamModel
from outsample.streaming.stream_columns import StreamColumns
from outsample.trust import conformal
from outsample.trust.calibration_window import RUN_P_VALUE, latest, refreshing

# When the window is full, this fraction of it (1 / 8) is removed at once.
REMOVED_FRACTION = 8


class Memory(NamedTuple):
    """What a stream has learned; with the original model it determines the current model.

    Of the l learned points: points (l, D) in the metric, images (l, d), frames, widths (l,)
    (`StreamColumns`), ``gaps`` (l,), their distances from the original map, and ``seen_at`` (l,),
    the latest arrival that coincided with each. Of the latest arrivals: ``distances`` from the
    original map, and ``scores`` of those that count for p-values. ``n_seen`` arrived, ``n_scored``
    counted, ``n_learned`` were learned, the latest ``in_a_row`` were unusual. The last
    ``n_waiting`` learned points are not neighbours yet. The last ``n_new_scores`` scores belong to
    an unfinished step and are not in the calibration yet. Without a detector, widths and scores are
    empty.
    """

    points: Points
    images: np.ndarray
    frames: tuple[Frames, ...]
    widths: np.ndarray
    gaps: np.ndarray
    seen_at: np.ndarray
    scores: np.ndarray
    distances: np.ndarray
    n_seen: int
    n_scored: int
    n_learned: int
    in_a_row: int
    tests: DriftTests
    n_waiting: int = 0
    n_new_scores: int = 0

    def columns(self, has_scores: bool) -> StreamColumns:
        """Return the columns of the learned points, with widths if there is a detector."""
        columns = StreamColumns(self.points, self.images, self.frames)
        if not has_scores:
            return columns
        ones = np.ones(columns.n_rows, dtype=np.int64)
        return columns._replace(widths=self.widths, counts=ones)

    def with_learned(
        self, columns: StreamColumns, gaps: np.ndarray, seen_at: np.ndarray, n_waiting: int
    ) -> Memory:
        """Return the memory with these learned points, the last ``n_waiting`` of which wait."""
        return self._replace(
            points=columns.points, images=columns.images, frames=columns.frames,
            widths=self.widths if columns.widths is None else columns.widths,
            gaps=gaps, seen_at=seen_at, n_waiting=n_waiting,
        )  # fmt: skip


def empty_memory(model: StreamModel) -> Memory:
    """Return the memory of a stream before any arrival."""
    columns = model.original_columns().rows(slice(0))
    points = columns.points if sparse.issparse(columns.points) else np.array(columns.points)
    no_rows, no_numbers = np.empty(0), np.empty(0, np.int64)
    return Memory(
        points=points, images=columns.images, frames=columns.frames, widths=no_rows, gaps=no_rows,
        seen_at=no_numbers, scores=no_rows, distances=no_rows, n_seen=0, n_scored=0, n_learned=0,
        in_a_row=0, tests=DriftTests(),
    )  # fmt: skip


def latest_seen(seen_at: np.ndarray, window: int) -> np.ndarray:
    """Return the rows to keep of a full window: those seen latest, in order.

    >>> latest_seen(np.array([5, 1, 4, 2]), 3)
    array([0, 2, 3])
    """
    n_kept = max(window - window // REMOVED_FRACTION, 1)
    return np.sort(np.argsort(seen_at, kind="stable")[-n_kept:])


def with_arrivals(
    memory: Memory, arrivals: Arrivals, originals: np.ndarray | None, m_current: int, window: int
) -> Memory:
    """Return the memory after arrivals, before any of them is accepted.

    ``originals`` (m,) are the ascending calibration scores of the detector; ``m_current`` is the
    number of scores that the p-values of the placement are based on.
    """
    memory = memory._replace(
        n_seen=memory.n_seen + len(arrivals.gaps),
        distances=latest(memory.distances, arrivals.gaps, window),
    )
    if originals is None:
        return memory
    p_original = conformal.p_values(arrivals.original_scores, originals)
    tests = memory.tests.after(p_original, arrivals.placed.p_value, len(originals), m_current)
    counts, in_a_row = refreshing(arrivals.placed.p_value <= RUN_P_VALUE, memory.in_a_row)
    new_scores = arrivals.placed.abnormality[counts]
    return memory._replace(
        scores=np.concatenate([memory.scores, new_scores]),
        n_scored=memory.n_scored + len(new_scores),
        n_new_scores=memory.n_new_scores + len(new_scores), in_a_row=in_a_row, tests=tests,
    )  # fmt: skip
