"""One number for how strange a point is, from two distances in its ambient neighbourhood.

They are how far the nearest training points are, and how far the point is from the soft planes
that 10, 20 and 40 neighbours span. Their logarithms are averaged, and a part of what the neighbours
themselves have is taken off, so that a distance counts for more in a dense place. Beyond the most
isolated training point only the nearest distance counts: the neighbours say nothing of a place so
far away. Neighbours as far as the last one all count, and copies of a point count once in a plane.

The constants were chosen by the areas under ROC curves on the labelled sets of the benchmark, once
for all; a user's data need no labels. The guide says what that does to the figures.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from outsample.neighbors.cuts import without_self
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
# Weight of the neighbours' own distances, and how many of them.
LOCAL_SHARE = 0.2
LOCAL = 10
# A distance counts for no less than this share of the typical nearest one.
FLOOR = 1e-3
CHUNK_ROWS = 4096


class Distances(NamedTuple):
    """What is measured around points, each (q,).

    The mean distance of the two nearest training points, and the geometric mean of the distances
    from the soft planes of 10, 20 and 40 neighbours.
    """

    nearest_distance: np.ndarray
    plane_distance: np.ndarray


class TrainingScores(NamedTuple):
    """What strangeness is measured against: the training points, each left out of the others.

    Their distances, counts of copies and mean logarithms, each (m,) for distinct points, and the
    abnormalities (n,) of all rows; the typical and the largest
    nearest distance; median and largest of the scores before they are centred. A query with no
    training point within ``radius`` scores above ``full_ball``, which no other query can exceed.
    """

    distances: Distances
    counts: np.ndarray
    logs: np.ndarray
    scores: np.ndarray
    unit: float
    farthest: float
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
    starts, most = near.indptr[:-1], int(np.diff(near.indptr).min())
    sizes = np.column_stack([tied_sizes(near, min(size, most)) for size in SIZES])
    off = planes.soft_plane_distances(X, Q, near, sizes, RIDGES, n_jobs)
    with np.errstate(divide="ignore"):  # on a plane: the logarithm is minus infinity, the mean 0
        off = np.exp(np.log(off).mean(axis=1))
    first = near.distances[starts]
    second = np.where(copies > 1, first, near.distances[starts + min(1, most - 1)])
    return Distances((first + second) / 2, off)


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
        local_of.append(near)
        nearest[rows] = near.distances[near.indptr[:-1]]
    distances = Distances(*(np.concatenate(field) for field in zip(*parts, strict=True)))
    apart = np.repeat(distances.nearest_distance, counts)
    positive = apart[apart > 0]
    # Points that all coincide have no length of their own; any other is far away then.
    unit = float(np.median(positive)) if len(positive) else largest_entry(index.X) * 1e-9 or 1.0
    logs = mean_logs(distances, unit)
    local = np.concatenate([_local_mean(logs, near) for near in local_of])
    raw = logs - LOCAL_SHARE * local
    middle, highest = float(np.median(np.repeat(raw, counts))), float(raw.max())
    farthest = max(float(apart.max()), FLOOR * unit) or unit  # a part of the smallest double is 0
    ball = np.inf if radius is None else radius
    reach = _diameter(index.X) + (radius or 0.0)
    full_ball = highest + 1.0 + float(np.log(max(float(_times(reach, farthest)), 1.0)))
    known = TrainingScores(
        distances, counts, logs, raw, unit, farthest, middle, highest, ball, full_ball
    )
    return known._replace(scores=np.repeat(_score(known, distances, local, nearest), counts))


def _local_mean(logs: np.ndarray, near: Neighbors) -> np.ndarray:
    """Mean (q,) of what the ten nearest neighbours have, and those tied with them."""
    starts, k = near.indptr[:-1], min(LOCAL, int(np.diff(near.indptr).min()))
    sizes = tied_sizes(near, k)
    means = logs[near.indices[starts[:, None] + np.arange(k)]].mean(axis=1)
    for i in np.flatnonzero(sizes > k):
        means[i] = logs[near.indices[starts[i] : starts[i] + sizes[i]]].mean()
    return means


def _diameter(X: Points) -> float:
    """Length that no distance of two training points exceeds."""
    around = X if sparse.issparse(X) else X - X.mean(axis=0)
    return 2 * largest_entry(around) * float(np.sqrt(X.shape[1]))


def mean_logs(distances: Distances, unit: float) -> np.ndarray:
    """Mean logarithm (q,) of the two distances, in units of the typical nearest one."""
    return np.mean([np.log(np.maximum(_times(apart, unit), FLOOR)) for apart in distances], axis=0)


def _times(apart: Any, unit: float) -> Any:
    """How many units distances are; the largest double stands for anything beyond it."""
    with np.errstate(over="ignore"):
        return np.minimum(apart / unit, np.finfo(np.float64).max)


def abnormality(known: TrainingScores, distances: Distances, near: Neighbors) -> np.ndarray:
    """How strange queries are (q,); 0 is typical.

    With C the difference of mean logarithms, and C* the largest of a training point: C up to C*,
    a value below C* + 1 beyond it, ``C* + 1 + log(nearest / farthest)`` for a query more isolated
    than any training point, and more than all these for one with an empty ball.
    """
    nearest = near.distances[near.indptr[:-1]]
    return _score(known, distances, _local_mean(known.logs, near), nearest)


def _score(
    known: TrainingScores, distances: Distances, local: np.ndarray, nearest: np.ndarray
) -> np.ndarray:
    raw = mean_logs(distances, known.unit) - LOCAL_SHARE * local
    beyond = np.maximum(raw - known.highest, 0.0)
    raw = np.where(beyond > 0, known.highest - np.expm1(-beyond), raw)
    times = _times(distances.nearest_distance, known.farthest)
    far = known.highest + 1.0 + np.log(np.maximum(times, 1.0))
    score = np.where(times > 1.0, far, raw)
    empty = known.full_ball + np.log1p(times)
    return np.where(nearest > known.radius, empty, score) - known.middle
