"""One number for how strange a point is, from lengths in its ambient neighbourhood.

Two kinds of length are measured: how far the nearest training points are (`isolation`), and how
far the point is from the soft planes that 10, 20 and 40 neighbours span (`off_manifold`). Their
logarithms are averaged, and a part of what the neighbours themselves have is taken off, so that
a length counts for more in a dense place. Beyond the most isolated training point only the
isolation counts: the neighbours say nothing of a place so far away.

The constants were chosen by the areas under ROC curves on the labelled sets of the benchmark, once
for all; a user's data need no labels. The guide says what that does to the figures.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from outsample.neighbors.index import NeighborIndex
from outsample.neighbors.neighborhoods import without_self
from outsample.points import Points, largest_entry
from outsample.records import Neighbors
from outsample.trust import planes

# Neighbours whose mean distance is the isolation.
NEAREST = 2
# Neighbours that span the soft planes, and the ridge of each.
SIZES = (10, 20, 40)
RIDGES = (0.1, 0.03, 0.01)
# Weight of the neighbours' own lengths, and how many of them.
LOCAL_SHARE = 0.2
LOCAL = 10
# A length counts for no less than this share of the typical isolation.
FLOOR = 1e-3
CHUNK_ROWS = 4096


class Lengths(NamedTuple):
    """What is measured around points.

    Attributes
    ----------
    isolation : ndarray of shape (q,)
        Mean distance of the two nearest training points.
    off_manifold : ndarray of shape (q,)
        Geometric mean of the distances from the soft planes of 10, 20 and 40 neighbours.
    """

    isolation: np.ndarray
    off_manifold: np.ndarray


class Yardstick(NamedTuple):
    """What strangeness is measured against: the training points, each left out of the others.

    Attributes
    ----------
    lengths : Lengths
        Of the training points.
    logs : ndarray of shape (n,)
        Their mean logarithms.
    scores : ndarray of shape (n,)
        Their abnormalities.
    unit : float
        Typical isolation.
    farthest : float
        Largest isolation.
    middle, highest : float
        Median and largest of the scores before they are centred.
    radius : float
        A query with no training point within it is stranger than any that has one; else infinite.
    brim : float
        Score that no query with a training point within the radius can exceed.
    """

    lengths: Lengths
    logs: np.ndarray
    scores: np.ndarray
    unit: float
    farthest: float
    middle: float
    highest: float
    radius: float
    brim: float


def widest(n: int) -> int:
    """Neighbours to search for among n training points, one of them left out.

    Parameters
    ----------
    n : int
        At least 2.

    Returns
    -------
    int
    """
    return min(SIZES[-1], n - 1)


def measure(index: NeighborIndex, Q: Points, near: Neighbors) -> Lengths:
    """Lengths around queries.

    Parameters
    ----------
    index : NeighborIndex
        Of the training points.
    Q : ndarray or CSR matrix of shape (q, D)
        Queries.
    near : Neighbors
        Their `widest` neighbourhoods.

    Returns
    -------
    Lengths
    """
    q = len(near.inside)
    apart = near.distances.reshape(q, -1)
    sizes = tuple(min(size, apart.shape[1]) for size in SIZES)
    off = planes.soft_plane_distances(index.X, Q, near, sizes, RIDGES, index.n_jobs)
    with np.errstate(divide="ignore"):  # on a plane: the logarithm is minus infinity, the mean 0
        off = np.exp(np.log(off).mean(axis=1))
    return Lengths(apart[:, :NEAREST].mean(axis=1), off)


def yardstick(index: NeighborIndex, radius: float | None = None) -> Yardstick:
    """Measure every training point against the others.

    Parameters
    ----------
    index : NeighborIndex
        Of at least two training points.
    radius : float, optional
        Ball in which a point that belongs has neighbours.

    Returns
    -------
    Yardstick
    """
    n = index.X.shape[0]
    k = widest(n)
    parts, close, nearest = [], np.empty((n, min(LOCAL, k)), dtype=np.int64), np.empty(n)
    for at in range(0, n, CHUNK_ROWS):
        rows = np.arange(at, min(at + CHUNK_ROWS, n))
        near = without_self(index.nearest(index.X[rows], k + 1), rows)
        parts.append(measure(index, index.X[rows], near))
        close[rows] = near.indices.reshape(len(rows), k)[:, :LOCAL]
        nearest[rows] = near.distances[near.indptr[:-1]]
    lengths = Lengths(*(np.concatenate(field) for field in zip(*parts, strict=True)))
    positive = lengths.isolation[lengths.isolation > 0]
    # Points that all coincide have no length of their own; any other is far away then.
    unit = float(np.median(positive)) if len(positive) else largest_entry(index.X) * 1e-9 or 1.0
    logs = mean_logs(lengths, unit)
    local = logs[close].mean(axis=1)
    raw = logs - LOCAL_SHARE * local
    middle, highest = float(np.median(raw)), float(raw.max())
    farthest = max(float(lengths.isolation.max()), FLOOR * unit)
    ball = np.inf if radius is None else radius
    reach = _diameter(index.X) + (radius or 0.0)
    brim = highest + 1.0 + float(np.log(max(reach / farthest, 1.0)))
    stick = Yardstick(lengths, logs, raw, unit, farthest, middle, highest, ball, brim)
    return stick._replace(scores=_score(stick, lengths, local, nearest))


def _diameter(X: Points) -> float:
    """Length that no distance of two training points exceeds."""
    around = X if sparse.issparse(X) else X - X.mean(axis=0)
    return 2 * largest_entry(around) * float(np.sqrt(X.shape[1]))


def mean_logs(lengths: Lengths, unit: float) -> np.ndarray:
    """Mean logarithm of the two lengths, in typical isolations.

    Parameters
    ----------
    lengths : Lengths
        As measured.
    unit : float
        Typical isolation.

    Returns
    -------
    ndarray of shape (q,)
    """
    return np.mean([np.log(np.maximum(length / unit, FLOOR)) for length in lengths], axis=0)


def abnormality(stick: Yardstick, lengths: Lengths, near: Neighbors) -> np.ndarray:
    """How strange queries are; 0 is typical.

    With C the difference of mean logarithms, and C* the largest of a training point: C up to C*,
    a value below C* + 1 beyond it, ``C* + 1 + log(isolation / farthest)`` for a query more
    isolated than any training point, and more than all these for one with an empty ball.

    Parameters
    ----------
    stick : Yardstick
        Of the training points.
    lengths : Lengths
        Of the queries.
    near : Neighbors
        Their neighbourhoods.

    Returns
    -------
    ndarray of shape (q,)
    """
    close = near.indices.reshape(len(near.inside), -1)[:, :LOCAL]
    nearest = near.distances[near.indptr[:-1]]
    return _score(stick, lengths, stick.logs[close].mean(axis=1), nearest)


def _score(
    stick: Yardstick, lengths: Lengths, local: np.ndarray, nearest: np.ndarray
) -> np.ndarray:
    raw = mean_logs(lengths, stick.unit) - LOCAL_SHARE * local
    beyond = np.maximum(raw - stick.highest, 0.0)
    raw = np.where(beyond > 0, stick.highest - np.expm1(-beyond), raw)
    times = lengths.isolation / stick.farthest
    far = stick.highest + 1.0 + np.log(np.maximum(times, 1.0))
    score = np.where(times > 1.0, far, raw)
    empty = stick.brim + np.log1p(times)
    return np.where(nearest > stick.radius, empty, score) - stick.middle
