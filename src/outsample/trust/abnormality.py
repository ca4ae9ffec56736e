"""One number for how strange a point is, from lengths in its ambient neighbourhood.

They are how far the nearest training points are, and how far the point is from the soft planes that
10, 20 and 40 neighbours span. Their mean logarithm is compared with those of training points in two
ways. Plainly: less a part of the logarithm of the point's width, its distance from the 40th
neighbour. Relatively: less the mean logarithm of the widths of its ten nearest neighbours, which
tells a point beside a dense group. Each is put in units of how far the strangest tenth of the
training points goes, and the larger one counts, the second with a third of the weight. Widths are
those of distinct points: where rows repeat or values are discrete they are gaps, and not 0.

Beyond the most isolated training point only the nearest distance counts: the neighbours say nothing
of a place so far away. Neighbours as far as the last one all count.

The constants were chosen by the areas under ROC curves on the 20 outlier sets of the benchmark, the
digits, and sets made from these or made up, once for all; a user's data need no labels. The guide
says what that does to the figures.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from outsample.neighbors.cuts import first_counts, without_self
from outsample.neighbors.distinct import Distinct
from outsample.neighbors.index import NeighborIndex
from outsample.neighbors.ties import tied_sizes, with_ties
from outsample.points import Points, largest_entry
from outsample.records import Neighbors
from outsample.trust import planes

# Neighbours whose mean distance counts.
NEAREST = 2
# Neighbours that span the soft planes, and the ridge of each.
SIZES = (10, 20, 40)
RIDGES = (0.1, 0.03, 0.01)
# Neighbours whose widths a point is compared with, and the weight of its own.
LOCAL = 10
OWN_SHARE = 0.3
# Share of training points that tell the unit of a comparison, and the least unit: lengths that
# differ by so little are alike. Weights of the two comparisons are 1 and 1 / 3.
TAIL = 0.1
LEAST_SPREAD = 0.02
DOUBT = float(np.log(3))
# A distance counts for no less than this share of the typical nearest one.
FLOOR = 1e-3
CHUNK_ROWS = 4096
LARGEST_LOG = float(np.log(np.finfo(np.float64).max))


class Distances(NamedTuple):
    """What is measured around points, each (q,).

    The mean distance of the two nearest training points, the geometric mean of the distances from
    the soft planes of 10, 20 and 40 neighbours, and the distance of the 40th neighbour.
    """

    nearest_distance: np.ndarray
    plane_distance: np.ndarray
    width: np.ndarray


class Tail(NamedTuple):
    """Where the strangest tenth of the training points begins, and how far it goes on average."""

    start: float
    spread: float


class TrainingScores(NamedTuple):
    """What strangeness is measured against: the training points, each left out of the others.

    Their distances, counts of copies, logarithms of widths and relative distances, each (m,) for
    distinct points, and the abnormalities (n,) of all rows; the typical and the largest nearest
    distance; the tails of the two comparisons; median and largest of the scores before they are
    centred. A query with no training point within ``radius`` scores above ``full_ball``, which no
    other query can exceed.
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


def neighbors_needed(m: int) -> int:
    """Neighbours to look at among m distinct training points, one of them left out."""
    return min(SIZES[-1], m - 1)


def measured(
    X: Points, Q: Points, near: Neighbors, copies: np.ndarray, n_jobs: int | None
) -> Distances:
    """Distances around queries with `neighbors_needed` neighbours each, and those tied with them.

    ``copies`` (q,) tells how many rows the nearest point stands for.
    """
    # Of this many, not of those that all rows of a batch happen to have, ties among them.
    starts, k = near.indptr[:-1], neighbors_needed(X.shape[0])
    sizes = np.column_stack([tied_sizes(near, min(size, k)) for size in SIZES])
    off = planes.soft_plane_distances(X, Q, near, sizes, RIDGES, n_jobs)
    with np.errstate(divide="ignore"):  # on a plane: the logarithm is minus infinity, the mean 0
        off = np.exp(np.log(off).mean(axis=1))
    first = near.distances[starts]
    second = np.where(copies > 1, first, near.distances[starts + min(1, k - 1)])
    return Distances((first + second) / 2, off, near.distances[starts + k - 1])


def training_scores(
    index: NeighborIndex,
    distinct: Distinct,
    radius: float | None = None,
    n_jobs: int | None = None,
) -> TrainingScores:
    """Measure each of at least two distinct training points against the others.

    A row with copies sees these; what it measures counts as often as there are such rows.
    """
    m, counts = index.X.shape[0], distinct.counts
    k = neighbors_needed(m)
    parts, local_of, nearest = [], [], np.empty(m)
    for at in range(0, m, CHUNK_ROWS):
        rows = np.arange(at, min(at + CHUNK_ROWS, m))
        alone = np.where(counts[rows] == 1, rows, -1)
        wide = without_self(index.nearest(index.X[rows], min(k + 2, m)), alone)
        near, _ = with_ties(index, index.X[rows], wide, k, alone)
        first = near.indices[near.indptr[:-1]]
        copies = counts[first] - (first == rows)
        parts.append(measured(index.X, index.X[rows], near, copies, n_jobs))
        local_of.append(first_counts(near, tied_sizes(near, min(LOCAL, k))))  # 10 of 40: memory
        nearest[rows] = near.distances[near.indptr[:-1]]
    distances = Distances(*(np.concatenate(field) for field in zip(*parts, strict=True)))
    apart = np.repeat(distances.nearest_distance, counts)
    positive = apart[apart > 0]
    # Points that all coincide have no length of their own; any other is far away then.
    unit = float(np.median(positive)) if len(positive) else largest_entry(index.X) * 1e-9 or 1.0
    widths = _logs(distances.width, unit)
    local = np.concatenate([_local_mean(widths, near) for near in local_of])
    compared = _compared(distances, unit, local)
    tails = _tail(np.repeat(compared[0], counts)), _tail(np.repeat(compared[1], counts))
    raw = _weighed(compared, tails).max(axis=0)
    middle, highest = float(np.median(np.repeat(raw, counts))), float(raw.max())
    farthest = max(float(apart.max()), FLOOR * unit) or unit  # a part of the smallest double is 0
    ball = np.inf if radius is None else radius
    reach = _diameter(index.X) + (radius or 0.0)
    full_ball = highest + 1.0 + float(np.log(max(float(_times(reach, farthest)), 1.0)))
    known = TrainingScores(
        distances, counts, widths, _exp(compared[1]), raw, unit, farthest, tails, middle,
        highest, ball, full_ball,
    )  # fmt: skip
    return known._replace(scores=np.repeat(_score(known, distances, raw, nearest), counts))


def _tail(values: np.ndarray) -> Tail:
    """Upper tenth of the values (n,): its least value, and the mean excess over that.

    If the tail is exponential, a value one unit higher is e times rarer; of logarithms of lengths
    the mean excess is Hill's estimate.

    References
    ----------
    B. M. Hill, "A simple general approach to inference about the tail of a distribution", Ann.
    Stat. 3 (1975).
    """
    start = float(np.quantile(values, 1 - TAIL))
    excess = float(np.maximum(values - start, 0.0).mean()) / TAIL
    return Tail(start, max(excess, LEAST_SPREAD))


def _compared(
    distances: Distances, unit: float, local: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean logarithms (q,) of both distances, less a part of the own width; less the local one."""
    near, off, width = (_logs(lengths, unit) for lengths in distances)
    mean = (near + off) / 2
    return mean - OWN_SHARE * width, mean - local


def _weighed(compared: tuple[np.ndarray, np.ndarray], tails: tuple[Tail, Tail]) -> np.ndarray:
    """Two comparisons (2, q) in units of their tails; the larger one counts.

    It tells the smallest p-value of two tests with weights 1 and 1 / 3, if tails are exponential.
    """
    plain, relative = (
        (values - tail.start) / tail.spread for values, tail in zip(compared, tails, strict=True)
    )
    return np.stack([plain, relative - DOUBT])


def _local_mean(logs: np.ndarray, near: Neighbors) -> np.ndarray:
    """Mean (q,) of what the ten nearest neighbours have, and those tied with them."""
    starts, k = near.indptr[:-1], min(LOCAL, neighbors_needed(len(logs)))
    sizes = tied_sizes(near, k)
    means = logs[near.indices[starts[:, None] + np.arange(k)]].mean(axis=1)
    for i in np.flatnonzero(sizes > k):
        means[i] = logs[near.indices[starts[i] : starts[i] + sizes[i]]].mean()
    return means


def _diameter(X: Points) -> float:
    """Length that no distance of two training points exceeds."""
    around = X if sparse.issparse(X) else X - X.mean(axis=0)
    return 2 * largest_entry(around) * float(np.sqrt(X.shape[1]))


def _logs(lengths: np.ndarray, unit: float) -> np.ndarray:
    """Logarithms (q,) of lengths in units of the typical nearest distance."""
    return np.log(np.maximum(_times(lengths, unit), FLOOR))


def _exp(logs: np.ndarray) -> np.ndarray:
    """Exponentials (q,), the largest double for anything beyond it."""
    return np.exp(np.minimum(logs, LARGEST_LOG))


def _times(apart: Any, unit: float) -> Any:
    """How many units distances are; the largest double stands for anything beyond it."""
    with np.errstate(over="ignore"):
        return np.minimum(apart / unit, np.finfo(np.float64).max)


def log_widths(known: TrainingScores, distances: Distances) -> np.ndarray:
    """Logarithms (q,) of widths, in the unit of ``known.widths``."""
    return _logs(distances.width, known.unit)


def relative_distances(
    known: TrainingScores, distances: Distances, near: Neighbors
) -> tuple[np.ndarray, np.ndarray]:
    """Geometric means (q,) of both distances over the widths of the ten nearest neighbours.

    And whether it is they that make the score.
    """
    compared = _compared(distances, known.unit, _local_mean(known.widths, near))
    plain, relative = _weighed(compared, known.tails)
    inside = near.distances[near.indptr[:-1]] <= known.radius
    inside &= _times(distances.nearest_distance, known.farthest) <= 1.0
    return _exp(compared[1]), (relative > plain) & inside


def abnormality(known: TrainingScores, distances: Distances, near: Neighbors) -> np.ndarray:
    """How strange queries are (q,); 0 is typical.

    With C the stranger of the two comparisons, and C* the largest of a training point: C up to C*,
    a value below C* + 1 beyond it, ``C* + 1 + log(nearest / farthest)`` for a query more isolated
    than any training point, and more than all these for one with an empty ball.
    """
    nearest = near.distances[near.indptr[:-1]]
    compared = _compared(distances, known.unit, _local_mean(known.widths, near))
    return _score(known, distances, _weighed(compared, known.tails).max(axis=0), nearest)


def _score(
    known: TrainingScores, distances: Distances, raw: np.ndarray, nearest: np.ndarray
) -> np.ndarray:
    beyond = np.maximum(raw - known.highest, 0.0)
    raw = np.where(beyond > 0, known.highest + beyond / (1.0 + beyond), raw)
    times = _times(distances.nearest_distance, known.farthest)
    far = known.highest + 1.0 + np.log(np.maximum(times, 1.0))
    score = np.where(times > 1.0, far, raw)
    empty = known.full_ball + np.log1p(times)
    return np.where(nearest > known.radius, empty, score) - known.middle
