"""Distances of queries from the planes that their neighbours span in the ambient space."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from outsample._compiled import planes as kernels
from outsample._parallel import over_rows
from outsample.points import Points
from outsample.records import Neighbors


def plane_distances(
    X: Points, Q: Points, near: Neighbors, t: int, n_jobs: int | None = None
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
    q = len(near.inside)
    distances = np.empty(q)
    if sparse.issparse(X):
        for i in range(q):
            rows = near.indices[near.indptr[i] : near.indptr[i + 1]]
            dense, x = _dense_columns(X, Q, i, rows)
            kernels.plane_distances(
                0, 1, dense, x, np.array([0, len(rows)]), np.arange(len(rows)), t, distances[i:]
            )
        return distances
    Q = np.ascontiguousarray(Q)
    over_rows(kernels.plane_distances, q, n_jobs, X, Q, near.indptr, near.indices, t, distances)
    return distances


def soft_plane_distances(
    X: Points,
    Q: Points,
    near: Neighbors,
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
    q = len(near.inside)
    distances, shares = np.empty((q, len(ridges))), np.array(ridges)
    sizes = np.ascontiguousarray(np.broadcast_to(sizes, distances.shape), dtype=np.int64)
    if sparse.issparse(X):
        for i in range(q):
            dense, x = _dense_columns(X, Q, i, near.indices[near.indptr[i] : near.indptr[i + 1]])
            ends, rows = np.array([0, len(dense)]), np.arange(len(dense))
            kernels.soft_plane_distances(
                0, 1, dense, x, ends, rows, sizes[i : i + 1], shares, distances[i:]
            )
        return distances
    Q = np.ascontiguousarray(Q)
    over_rows(
        kernels.soft_plane_distances, q, n_jobs, X, Q, near.indptr, near.indices, sizes, shares,
        distances,
    )  # fmt: skip
    return distances


def _dense_columns(X: Points, Q: Points, i: int, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of X and row i of Q, dense, in the columns where one of them is not zero."""
    both = sparse.vstack([X[rows], Q[i]]).tocsr()
    columns = np.unique(both.indices)
    dense = both[:, columns].toarray()
    return np.ascontiguousarray(dense[:-1]), np.ascontiguousarray(dense[-1:])
