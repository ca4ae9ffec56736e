"""Abnormality score of a point, from lengths in its ambient neighbourhood.

The lengths are the distance of the nearest training points, and the distances from the soft planes
of 10, 20 and 40 neighbours. Their mean logarithm is compared with that of training points in two
ways. The plain comparison subtracts a part of the logarithm of the point's width, its distance from
the 40th neighbour. The relative comparison subtracts the mean logarithm of the widths of its ten
nearest neighbours, which detects a point next to a dense group. Each is divided by the mean excess
of the most unusual tenth of the training points, and the larger one is the score, the relative one
with a third of the weight. Widths are those of distinct points, so that duplicate rows and discrete
values do not make them 0.

Beyond the most isolated training point only the nearest distance counts, since neighbours carry no
information so far away. Neighbours tied with the last one all count.

The constants were chosen once, by areas under ROC curves on the 20 outlier sets of the benchmark,
the digits, and synthetic sets; a user's data need no labels. The guide reports the effect on the
figures.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from outsample.neighbors.duplicates import Duplicates
from outsample.neighbors.index import NeighborIndex
from outsample.neighbors.ties import tied_sizes, with_ties
from outsample.neighbors.truncation import first_counts, without_self
from outsample.points import Points, largest_entry
from outsample.records import Neighbors
from outsample.trust import planes

# Numbers of neighbours of the soft planes, and the ridge of each.
PLANE_SIZES = (10, 20, 40)
PLANE_RIDGES = (0.1, 0.03, 0.01)
# Neighbours whose widths a point is compared with, and the weight of its own width.
COMPARED_NEIGHBORS = 10
OWN_WIDTH_WEIGHT = 0.3
# Share of training points in the tail, whose mean excess is the unit of a comparison, and the
# smallest unit. The comparisons have weights 1 and 1 / 3.
TAIL_SHARE = 0.1
MIN_TAIL_SPREAD = 0.02
RELATIVE_PENALTY = float(np.log(3))
# Shorter distances, in units of the typical nearest one, are raised to this.
MIN_DISTANCE = 1e-3
SCORE_CHUNK_ROWS = 4096
LARGEST_LOG = float(np.log(np.finfo(np.float64).max))


class Distances(NamedTuple):
    """Lengths measured around points, each (q,).

    The mean distance of the two nearest training points, the geometric mean of the distances from
    the soft planes of 10, 20 and 40 neighbours, and the distance of the 40th neighbour.
    """

    nearest_distance: np.ndarray
    plane_distance: np.ndarray
    width: np.ndarray


class Tail(NamedTuple):
    """Start of the most unusual tenth of the training points, and its mean excess."""

    start: float
    spread: float


class TrainingScores(NamedTuple):
    """Leave-one-out reference values of the training points.

    ``distances``, ``counts`` of duplicates, logarithms of ``widths`` and ``relative_distance`` are
    (m,) for distinct points; ``scores`` (n,) are the abnormalities of all rows. ``unit`` is the
    typical and ``farthest`` the largest nearest distance, ``tails`` those of the two comparisons,
    ``middle`` and ``highest`` the median and maximum of the scores before they are centred. A query
    without training points within ``radius`` scores above ``full_ball``, all others below.
    """

    distances: Distances
    counts: np.ndarray
    widths: np.ndarray
    relative_distance: np.ndarray
    scores: np.ndarray
    unit: float
    farthest: float
    tails: tuple[Tail, Tail]
    middle: float
    highest: float
    radius: float
    full_ball: float

    def scores_of_rows(self, groups: np.ndarray) -> np.ndarray:
        """Abnormalities (n,) in the order of rows, of which ``groups`` (n,) are the points."""
        return self.scores[np.cumsum(self.counts) - self.counts][groups]


def neighbors_needed(m: int) -> int:
    """Return the number of neighbours used among m distinct training points, one left out."""
    return min(PLANE_SIZES[-1], m - 1)


def measured(
    X: Points, Q: Points, neighbors: Neighbors, copies: np.ndarray, n_jobs: int | None
) -> Distances:
    """Return the lengths around queries with `neighbors_needed` neighbours each, ties included.

    ``copies`` (q,) is the number of duplicate rows of the nearest point.
    """
    # Not the number of neighbours in the batch, which depends on ties.
    starts, k = neighbors.indptr[:-1], neighbors_needed(X.shape[0])
    sizes = np.column_stack([tied_sizes(neighbors, min(size, k)) for size in PLANE_SIZES])
    plane_distances = planes.soft_plane_distances(X, Q, neighbors, sizes, PLANE_RIDGES, n_jobs)
    with np.errstate(divide="ignore"):  # on a plane: the logarithm is minus infinity, the mean 0
        plane_distances = np.exp(np.log(plane_distances).mean(axis=1))
    first = neighbors.distances[starts]
    second = np.where(copies > 1, first, neighbors.distances[starts + min(1, k - 1)])
    return Distances((first + second) / 2, plane_distances, neighbors.distances[starts + k - 1])


def training_scores(
    index: NeighborIndex,
    distinct: Duplicates,
    radius: float | None = None,
    n_jobs: int | None = None,
) -> TrainingScores:
    """Return the reference values of at least two distinct training points.

    Each point is compared with the others. A row with duplicates has them as neighbours, and
    counts as often as it occurs.
    """
    m, counts = index.X.shape[0], distinct.counts
    k = neighbors_needed(m)
    distance_chunks, neighbor_chunks, nearest = [], [], np.empty(m)
    for start in range(0, m, SCORE_CHUNK_ROWS):
        rows = np.arange(start, min(start + SCORE_CHUNK_ROWS, m))
        held_out = np.where(counts[rows] == 1, rows, -1)
        wide = without_self(index.nearest(index.X[rows], min(k + 2, m)), held_out)
        neighbors, _ = with_ties(index, index.X[rows], wide, k, held_out)
        first = neighbors.indices[neighbors.indptr[:-1]]
        copies = counts[first] - (first == rows)
        distance_chunks.append(measured(index.X, index.X[rows], neighbors, copies, n_jobs))
        # Only the compared neighbours are kept: a quarter of the memory.
        n_compared = tied_sizes(neighbors, min(COMPARED_NEIGHBORS, k))
        neighbor_chunks.append(first_counts(neighbors, n_compared))
        nearest[rows] = neighbors.distances[neighbors.indptr[:-1]]
    distances = Distances(*(np.concatenate(field) for field in zip(*distance_chunks, strict=True)))
    nearest_distances = np.repeat(distances.nearest_distance, counts)
    positive = nearest_distances[nearest_distances > 0]
    # If all points coincide, every other point is far away.
    unit = float(np.median(positive)) if len(positive) else largest_entry(index.X) * 1e-9 or 1.0
    widths = _logs(distances.width, unit)
    local_widths = np.concatenate([_local_mean(widths, neighbors) for neighbors in neighbor_chunks])
    comparisons = _comparisons(distances, unit, local_widths)
    tails = _tail(np.repeat(comparisons[0], counts)), _tail(np.repeat(comparisons[1], counts))
    raw = _weighted(comparisons, tails).max(axis=0)
    middle, highest = float(np.median(np.repeat(raw, counts))), float(raw.max())
    # The product may underflow to 0.
    farthest = max(float(nearest_distances.max()), MIN_DISTANCE * unit) or unit
    ball = np.inf if radius is None else radius
    reach = _diameter(index.X) + (radius or 0.0)
    full_ball = highest + 1.0 + float(np.log(max(float(_in_units(reach, farthest)), 1.0)))
    training = TrainingScores(
        distances=distances, counts=counts, widths=widths,
        relative_distance=_exp(comparisons[1]), scores=raw, unit=unit, farthest=farthest,
        tails=tails, middle=middle, highest=highest, radius=ball, full_ball=full_ball,
    )  # fmt: skip
    return training._replace(scores=np.repeat(_score(training, distances, raw, nearest), counts))


def _tail(values: np.ndarray) -> Tail:
    """Return the start of the upper tenth of the values (n,), and the mean excess over it.

    If the tail is exponential, a value one unit higher is e times rarer; for logarithms of lengths
    the mean excess is Hill's estimator.

    References
    ----------
    B. M. Hill, "A simple general approach to inference about the tail of a distribution", Ann.
    Stat. 3 (1975).
    """
    start = float(np.quantile(values, 1 - TAIL_SHARE))
    excess = float(np.maximum(values - start, 0.0).mean()) / TAIL_SHARE
    return Tail(start, max(excess, MIN_TAIL_SPREAD))


def _comparisons(
    distances: Distances, unit: float, local_widths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the plain and the relative comparison (q,) of the mean logarithm of both distances."""
    near_logs, plane_logs, width_logs = (_logs(lengths, unit) for lengths in distances)
    mean = (near_logs + plane_logs) / 2
    return mean - OWN_WIDTH_WEIGHT * width_logs, mean - local_widths


def _weighted(comparisons: tuple[np.ndarray, np.ndarray], tails: tuple[Tail, Tail]) -> np.ndarray:
    """Return both comparisons (2, q) in units of their tails; their maximum is the score.

    If the tails are exponential, the maximum corresponds to the smallest p-value of two tests with
    weights 1 and 1 / 3.
    """
    plain, relative = (
        (values - tail.start) / tail.spread for values, tail in zip(comparisons, tails, strict=True)
    )
    return np.stack([plain, relative - RELATIVE_PENALTY])


def _local_mean(logs: np.ndarray, neighbors: Neighbors) -> np.ndarray:
    """Return the mean (q,) of ``logs`` over the ten nearest neighbours, ties included."""
    starts, k = neighbors.indptr[:-1], min(COMPARED_NEIGHBORS, neighbors_needed(len(logs)))
    sizes = tied_sizes(neighbors, k)
    means = logs[neighbors.indices[starts[:, None] + np.arange(k)]].mean(axis=1)
    for i in np.flatnonzero(sizes > k):
        means[i] = logs[neighbors.indices[starts[i] : starts[i] + sizes[i]]].mean()
    return means


def _diameter(X: Points) -> float:
    """Return an upper bound of the distance of two training points."""
    around = X if sparse.issparse(X) else X - X.mean(axis=0)
    return 2 * largest_entry(around) * float(np.sqrt(X.shape[1]))


def _logs(lengths: np.ndarray, unit: float) -> np.ndarray:
    """Return logarithms (q,) of lengths in units of the typical nearest distance."""
    return np.log(np.maximum(_in_units(lengths, unit), MIN_DISTANCE))


def _exp(logs: np.ndarray) -> np.ndarray:
    """Return exponentials (q,); the largest double instead of infinity."""
    return np.exp(np.minimum(logs, LARGEST_LOG))


def _in_units(distances: Any, unit: float) -> Any:
    """Return distances in the unit; the largest double instead of infinity."""
    with np.errstate(over="ignore"):
        return np.minimum(distances / unit, np.finfo(np.float64).max)


def log_widths(training: TrainingScores, distances: Distances) -> np.ndarray:
    """Return logarithms (q,) of widths, in the unit of ``training.widths``."""
    return _logs(distances.width, training.unit)


def relative_distances(
    training: TrainingScores, distances: Distances, neighbors: Neighbors
) -> tuple[np.ndarray, np.ndarray]:
    """Return geometric means (q,) of both distances over the widths of the nearest neighbours.

    The second array (q,) is true where the relative comparison determines the score.
    """
    comparisons = _comparisons(distances, training.unit, _local_mean(training.widths, neighbors))
    plain, relative = _weighted(comparisons, training.tails)
    inside = neighbors.distances[neighbors.indptr[:-1]] <= training.radius
    inside &= _in_units(distances.nearest_distance, training.farthest) <= 1.0
    return _exp(comparisons[1]), (relative > plain) & inside


def abnormality(training: TrainingScores, distances: Distances, neighbors: Neighbors) -> np.ndarray:
    """Return the abnormality scores of queries (q,); 0 is typical.

    With C the larger of the two comparisons and C* its maximum over the training points, the score
    is C up to C*, a value below C* + 1 beyond it, ``C* + 1 + log(nearest / farthest)`` for a query
    more isolated than any training point, and larger than all these for a query with an empty
    ball.
    """
    nearest = neighbors.distances[neighbors.indptr[:-1]]
    comparisons = _comparisons(distances, training.unit, _local_mean(training.widths, neighbors))
    return _score(training, distances, _weighted(comparisons, training.tails).max(axis=0), nearest)


def _score(
    training: TrainingScores, distances: Distances, raw: np.ndarray, nearest: np.ndarray
) -> np.ndarray:
    excess = np.maximum(raw - training.highest, 0.0)
    raw = np.where(excess > 0, training.highest + excess / (1.0 + excess), raw)
    isolation = _in_units(distances.nearest_distance, training.farthest)
    far_score = training.highest + 1.0 + np.log(np.maximum(isolation, 1.0))
    score = np.where(isolation > 1.0, far_score, raw)
    empty_score = training.full_ball + np.log1p(isolation)
    return np.where(nearest > training.radius, empty_score, score) - training.middle
