"""One number for how strange a point is, from two distances in its ambient neighbourhood.

They are how far the nearest training points are, and how far the point is from the soft planes
that 10, 20 and 40 neighbours span. Their logarithms are averaged, and a part of what the neighbours
themselves have is taken off, so that a distance counts for more in a dense place. Beyond the most
isolated training point only the nearest distance counts: the neighbours say nothing of a place so
far away.

The constants were chosen by the areas under ROC curves on the labelled sets of the benchmark, once
for all; a user's data need no labels. The guide says what that does to the figures.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from outsample.neighbors.index import NeighborIndex
from outsample.neighbors.neighborhoods import without_self
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

    Their distances, mean logarithms (n,) and abnormalities (n,); the typical and the largest
    nearest distance; median and largest of the scores before they are centred. A query with no
    training point within ``radius`` scores above ``full_ball``, which no other query can exceed.
    """

    distances: Distances
    logs: np.ndarray
    scores: np.ndarray
    unit: float
    farthest: float
    middle: float
    highest: float
    radius: float
    full_ball: float


def neighbors_needed(n: int) -> int:
    """Neighbours to search for among n training points, one of them left out."""
    return min(SIZES[-1], n - 1)


def measured(X: Points, Q: Points, near: Neighbors, n_jobs: int | None) -> Distances:
    """Distances around queries with `neighbors_needed` neighbours each."""
    apart = near.distances.reshape(len(near.inside), -1)
    sizes = tuple(min(size, apart.shape[1]) for size in SIZES)
    off = planes.soft_plane_distances(X, Q, near, sizes, RIDGES, n_jobs)
    with np.errstate(divide="ignore"):  # on a plane: the logarithm is minus infinity, the mean 0
        off = np.exp(np.log(off).mean(axis=1))
    return Distances(apart[:, :NEAREST].mean(axis=1), off)


def training_scores(
    index: NeighborIndex, radius: float | None = None, n_jobs: int | None = None
) -> TrainingScores:
    """Measure each of at least two training points against the others."""
    n = index.X.shape[0]
    k = neighbors_needed(n)
    parts, close, nearest = [], np.empty((n, min(LOCAL, k)), dtype=np.int64), np.empty(n)
    for at in range(0, n, CHUNK_ROWS):
        rows = np.arange(at, min(at + CHUNK_ROWS, n))
        near = without_self(index.nearest(index.X[rows], k + 1), rows)
        parts.append(measured(index.X, index.X[rows], near, n_jobs))
        close[rows] = near.indices.reshape(len(rows), k)[:, :LOCAL]
        nearest[rows] = near.distances[near.indptr[:-1]]
    distances = Distances(*(np.concatenate(field) for field in zip(*parts, strict=True)))
    apart = distances.nearest_distance
    positive = apart[apart > 0]
    # Points that all coincide have no length of their own; any other is far away then.
    unit = float(np.median(positive)) if len(positive) else largest_entry(index.X) * 1e-9 or 1.0
    logs = mean_logs(distances, unit)
    local = logs[close].mean(axis=1)
    raw = logs - LOCAL_SHARE * local
    middle, highest = float(np.median(raw)), float(raw.max())
    farthest = max(float(apart.max()), FLOOR * unit) or unit  # a part of the smallest double is 0
    ball = np.inf if radius is None else radius
    reach = _diameter(index.X) + (radius or 0.0)
    full_ball = highest + 1.0 + float(np.log(max(_times(reach, farthest), 1.0)))
    known = TrainingScores(
        distances, logs, raw, unit, farthest, middle, highest, ball, full_ball
    )
    return known._replace(scores=_score(known, distances, local, nearest))


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
    close = near.indices.reshape(len(near.inside), -1)[:, :LOCAL]
    nearest = near.distances[near.indptr[:-1]]
    return _score(known, distances, known.logs[close].mean(axis=1), nearest)


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
