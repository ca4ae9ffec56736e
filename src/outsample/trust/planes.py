"""How far queries are from the planes that their neighbours span in the ambient space."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from outsample._kernels import planes as kernels
from outsample._parallel import over_rows
from outsample.points import Points
from outsample.records import Neighbors


def plane_distances(
    X: Points, Q: Points, near: Neighbors, t: int, n_jobs: int | None = None
) -> np.ndarray:
    """Distance (q,) of queries from the t-dimensional local PCA plane of their k neighbours.

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
            few, x = _dense_columns(X, Q, i, rows)
            kernels.plane_distances(
                0, 1, few, x, np.array([0, len(rows)]), np.arange(len(rows)), t, distances[i:]
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
    """Distance (q, s) of queries from soft local planes: what a ridge regression leaves.

    With ``Z`` the k nearest neighbours, k one of the sizes, (s,) or (q, s), minus their mean
    ``m``, the root of

    ``min_w |x - m - Z'w|^2 + penalty |w|^2``.

    A principal direction of variance ``v`` is left out to the share ``penalty / (v + penalty)``:
    wide directions count as plane, narrow ones as distance, with no dimension to choose. The
    penalty is ``ridge |Z Z'|_F^2 / tr Z Z'``, so that scaling or rotating X scales the result.
    """
    q = len(near.inside)
    distances, shares = np.empty((q, len(ridges))), np.array(ridges)
    sizes = np.ascontiguousarray(np.broadcast_to(sizes, distances.shape), dtype=np.int64)
    if sparse.issparse(X):
        for i in range(q):
            few, x = _dense_columns(X, Q, i, near.indices[near.indptr[i] : near.indptr[i + 1]])
            ends, rows = np.array([0, len(few)]), np.arange(len(few))
            kernels.soft_plane_distances(
                0, 1, few, x, ends, rows, sizes[i : i + 1], shares, distances[i:]
            )
        return distances
    Q = np.ascontiguousarray(Q)
    over_rows(
        kernels.soft_plane_distances, q, n_jobs, X, Q, near.indptr, near.indices, sizes, shares,
        distances,
    )  # fmt: skip
    return distances


def _dense_columns(X: Points, Q: Points, i: int, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of X and row i of Q in the few columns where one of them is not zero."""
    both = sparse.vstack([X[rows], Q[i]]).tocsr()
    columns = np.unique(both.indices)
    dense = both[:, columns].toarray()
    return np.ascontiguousarray(dense[:-1]), np.ascontiguousarray(dense[-1:])
