"""Smoothing operators of Laplacian pyramids, at the training points and at queries."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from outsample._compiled import affinity as kernels
from outsample._parallel import over_rows
from outsample.neighbors.index import NeighborIndex
from outsample.points import Points, kernel_rows
from outsample.spectral import affinity

# Rows whose weight is below 1e-12 at this neighbour are summed over these neighbours only.
SUMMED_NEIGHBORS = 64
MAX_LOG_WEIGHT = np.log(1e12)
# Entries of the kernel per chunk, few enough for the processor's cache.
KERNEL_CHUNK_ENTRIES = 2**18
# Up to this many pairs, all distances are stored instead of recomputed for every scale.
MAX_STORED_PAIRS = 2**24


class Smoother:
    """Operators K_l of Eq. 7.4 on the training points, with rows that sum to one."""

    def __init__(self, X: Points, n_jobs: int | None = None) -> None:
        self.X, self.n_jobs = X, n_jobs
        n = X.shape[0]
        near = NeighborIndex(X, n_jobs=n_jobs).nearest(X, min(n, SUMMED_NEIGHBORS + 1))
        self.indices = near.indices.reshape(n, -1)
        self.distances = near.distances.reshape(n, -1)
        self.complete = n <= SUMMED_NEIGHBORS + 1
        self.stored = None
        if not self.complete and n * n <= MAX_STORED_PAIRS:
            self.stored = affinity.distances(X, n_jobs=n_jobs)
        own = self.indices == np.arange(n)[:, None]
        self.from_others = np.where(own, np.inf, self.distances)
        others = self.from_others.min(axis=1)
        typical = float(np.median(others[others > 0])) if (others > 0).any() else 1.0
        # Below this scale, only a row's nearest neighbours or the row itself have weight.
        self.finest = max((typical / 8) ** 2, 1e-290)

    def smooth(self, values: np.ndarray, scale: float, *, others_only: bool) -> np.ndarray:
        """Return columns (n, c) smoothed at scale sigma_l; ``others_only`` sets a diagonal of 0."""
        n, k = self.indices.shape
        root = np.sqrt(scale)
        near = self.from_others if others_only else self.distances
        nearest, last = near.min(axis=1), self.distances[:, -1]
        log_weights = ((last - nearest) / root) * ((last + nearest) / root)
        is_short = self.complete | (log_weights > MAX_LOG_WEIGHT)
        rows = np.flatnonzero(is_short)
        weights = _row_weights(near[rows], root)
        starts = np.arange(0, len(rows) * k + 1, k)
        table = (weights.ravel(), self.indices[rows].ravel(), starts)
        smoothed = np.empty(values.shape)
        smoothed[rows] = sparse.csr_matrix(table, shape=(len(rows), n)) @ values
        for rows in _chunks(np.flatnonzero(~is_short), max(1, KERNEL_CHUNK_ENTRIES // n)):
            if self.stored is not None:
                pair_distances = self.stored[rows]
            else:
                pair_distances = affinity.distances(self.X, self.X[rows], self.n_jobs)
            if others_only:
                pair_distances[np.arange(len(rows)), rows] = np.inf
            smoothed[rows] = _row_weights(pair_distances, root) @ values
        return smoothed


def _row_weights(distances: np.ndarray, root: float) -> np.ndarray:
    """Return Gaussian weights of distances; each row sums to one, without underflow."""
    if not distances.size:
        return distances
    distances = distances / root
    np.minimum(distances, 1e150, out=distances)
    smallest = distances.min(axis=1, keepdims=True)
    weights = smallest - distances
    distances += smallest
    weights *= distances
    np.maximum(weights, -800.0, out=weights)  # exp is 0 there, without slow denormal numbers
    np.exp(weights, out=weights)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def pyramid(
    X: Points, Q: Points, scales: np.ndarray, residuals: np.ndarray, n_jobs: int | None = None
) -> np.ndarray:
    """Return the sum (q, d) of the smoothed residuals d_l (l, n, d) at the queries (Eq. 7.6)."""
    q, n, roots = Q.shape[0], X.shape[0], np.sqrt(scales)
    values = np.empty((q, residuals.shape[2]))
    rows, queries = kernel_rows(X), kernel_rows(Q)
    over_rows(kernels.pyramid, q, n_jobs, rows, n, queries, roots, residuals, values)
    return values


def _chunks(rows: np.ndarray, size: int) -> Iterator[np.ndarray]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]
