"""All that a stream remembers: learned points, the latest scores, what the tests have seen."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from outsample.points import Points
from outsample.records import Frames
from outsample.streaming.drift_tests import DriftTests
from outsample.streaming.model import Arrivals, StreamModel
from outsample.trust import conformal
from outsample.trust.calibration_window import RUN_P_VALUE, latest, refreshing

# This part of the window leaves at once when it is full.
LEAVING = 8


class Memory(NamedTuple):
    """What was learned; with the original model it makes the model of now.

    Of l learned points: points (l, D) in the metric, images (l, d), frames of each part that keeps
    them, logarithms of widths (l,), distances from the original map (l,), and with which arrival
    each was last seen (l,). Of the latest r arrivals: distances from the original map (r,), and
    scores of the latest that count for p-values. How many arrived, how many counted and how many
    were learned ever, how many strange ones are in a row now, and the tests. The last ``n_waiting``
    learned points wait: they are no neighbours yet. The last ``n_new_scores`` scores are of a step
    that is not full: they are not in the calibration yet. Without a detector there are no widths
    and no scores.
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

    def columns(self, has_widths: bool) -> list[Points]:
        """Return what is known of the learned points, in the order of `StreamModel.columns`."""
        found: list[Points] = [self.points, self.images]
        for frames in self.frames:
            found += frames
        if has_widths:
            found += [self.widths, np.ones(len(self.widths), dtype=np.int64)]
        return found

    def with_learned(
        self, columns: list[Points], gaps: np.ndarray, seen_at: np.ndarray, n_waiting: int
    ) -> Memory:
        """Memory of the learned points in these columns, the last of which wait."""
        pairs, at = [], 2
        for _ in self.frames:
            pairs.append(Frames(*columns[at : at + 2]))
            at += 2
        widths = columns[at] if len(columns) > at else self.widths
        return self._replace(
            points=columns[0], images=columns[1], frames=tuple(pairs), widths=widths, gaps=gaps,
            seen_at=seen_at, n_waiting=n_waiting,
        )  # fmt: skip


def nothing_learned(model: StreamModel) -> Memory:
    """Memory at the start."""
    X, Y, *others = (column[:0] for column in model.columns())
    X = X if sparse.issparse(X) else np.empty((0, X.shape[1]))
    n_frames = (len(others) - 2 * (model.novelty is not None)) // 2
    frames = tuple(Frames(*others[2 * at : 2 * at + 2]) for at in range(n_frames))
    none, never = np.empty(0), np.empty(0, np.int64)
    return Memory(X, Y, frames, none, none, never, none, none, 0, 0, 0, 0, DriftTests())


def staying(seen_at: np.ndarray, window: int) -> np.ndarray:
    """Rows that stay when there are more than ``window``: those last seen, in their order.

    >>> staying(np.array([5, 1, 4, 2]), 3)
    array([0, 2, 3])
    """
    most = max(window - window // LEAVING, 1)
    return np.sort(np.argsort(seen_at, kind="stable")[-most:])


def with_arrivals(
    memory: Memory, arrivals: Arrivals, originals: np.ndarray | None, m_given: int, window: int
) -> Memory:
    """Memory after arrivals, before any of them is accepted.

    ``originals`` (m,) are the ascending calibration scores of the detector; ``m_given`` scores
    made the p-values.
    """
    memory = memory._replace(
        n_seen=memory.n_seen + len(arrivals.gaps),
        distances=latest(memory.distances, arrivals.gaps, window),
    )
    if originals is None:
        return memory
    p_original = conformal.p_values(arrivals.original_scores, originals)
    tests = memory.tests.after(p_original, arrivals.placed.p_value, len(originals), m_given)
    counts, in_a_row = refreshing(arrivals.placed.p_value <= RUN_P_VALUE, memory.in_a_row)
    new = arrivals.placed.abnormality[counts]
    return memory._replace(
        scores=np.concatenate([memory.scores, new]), n_scored=memory.n_scored + len(new),
        n_new_scores=memory.n_new_scores + len(new), in_a_row=in_a_row, tests=tests,
    )  # fmt: skip
