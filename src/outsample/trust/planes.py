"""Distances of queries from the planes that their neighbours span in the ambient space."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from scipy import sparse

from outsample._compiled import planes as kernels
from outsample._parallel import over_rows
from outsample.points import Points
from outsample.records import Neighbors


def plane_distances(
    X: Points, Q: Points, neighbors: Neighbors, t: int, n_jobs: int | None = None
) -> np.ndarray:
    """Return the distance (q,) of queries from the local PCA plane of their k neighbours.

    With ``m`` the neighbours' mean and ``V`` the t leading principal directions around it, at most
    k - 1, ``|(I - V V')(x - m)|``. With more columns than neighbours the directions come from the
    k x k matrix of inner products.

    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    >>> near = Neighbors(np.array([0, 3]), np.array([0, 1, 2]), np.ones(3), np.array([3]))
    >>> plane_distances(X, np.array([[0.5, 3.0]]), near, t=1)
    array([3.])
    """
    distances = np.empty(len(neighbors.inside))
    if sparse.issparse(X):
        for i, arrays in enumerate(_dense_neighborhoods(X, Q, neighbors)):
            kernels.plane_distances(0, 1, *arrays, t, distances[i:])
        return distances
    arrays = X, np.ascontiguousarray(Q), neighbors.indptr, neighbors.indices
    over_rows(kernels.plane_distances, len(distances), n_jobs, *arrays, t, distances)
    return distances


def soft_plane_distances(
    X: Points,
    Q: Points,
    neighbors: Neighbors,
    sizes: np.ndarray | tuple[int, ...],
    ridges: tuple[float, ...],
    n_jobs: int | None = None,
) -> np.ndarray:
    """Return the distance (q, s) of queries from soft local planes: ridge regression residuals.

    With ``Z`` the k nearest neighbours, k one of the sizes, (s,) or (q, s), minus their mean
    ``m``, the root of

    ``min_w |x - m - Z'w|^2 + penalty |w|^2``.

    The share ``penalty / (v + penalty)`` of a principal direction of variance ``v`` counts as
    distance: wide directions belong to the plane, narrow ones do not, and no dimension has to be
    chosen. The penalty ``ridge |Z Z'|_F^2 / tr Z Z'`` makes the result equivariant to scaling and
    rotating X.
    """
    distances, shares = np.empty((len(neighbors.inside), len(ridges))), np.array(ridges)
    sizes = np.ascontiguousarray(np.broadcast_to(sizes, distances.shape), dtype=np.int64)
    kernel = kernels.soft_plane_distances
    if sparse.issparse(X):
        for i, arrays in enumerate(_dense_neighborhoods(X, Q, neighbors)):
            kernel(0, 1, *arrays, sizes[i : i + 1], shares, distances[i:])
        return distances
    arrays = X, np.ascontiguousarray(Q), neighbors.indptr, neighbors.indices
    over_rows(kernel, len(distances), n_jobs, *arrays, sizes, shares, distances)
    return distances


def _dense_neighborhoods(
    X: Points, Q: Points, neighbors: Neighbors
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Yield the first arguments of a kernel for each sparse query: X, Q, indptr, indices.

    Rows are dense, in the columns where the query or a neighbour is not zero.
    """
    for i, (start, stop) in enumerate(pairwise(neighbors.indptr)):
        rows = sparse.vstack([X[neighbors.indices[start:stop]], Q[i]]).tocsr()
        dense = rows[:, np.unique(rows.indices)].toarray()
        indptr, indices = np.array([0, stop - start]), np.arange(stop - start)
        yield np.ascontiguousarray(dense[:-1]), np.ascontiguousarray(dense[-1:]), indptr, indices
