"""Smoothing operators of Laplacian pyramids, on the training points and at queries."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from outsample._kernels import pyramid as kernels
from outsample._parallel import over_rows
from outsample.kernel import affinity
from outsample.neighbors.index import NeighborIndex
from outsample.points import Points, kernel_rows

# Rows whose weight has fallen below 1e-12 at this neighbour are summed over neighbours only.
NEIGHBORS = 64
CUT = np.log(1e12)
# Entries of the kernel held at once: few, so that they stay in the processor's cache.
CHUNK_ENTRIES = 2**18
# Distances of all pairs are kept up to so many, else computed again for every scale.
KEPT_PAIRS = 2**24


class Smoother:
    """The operators K_l of Eq. 7.4 on the training points, a row's weights summing to one."""

    def __init__(self, X: Points, n_jobs: int | None = None) -> None:
        self.X, self.n_jobs = X, n_jobs
        n = X.shape[0]
        near = NeighborIndex(X, n_jobs=n_jobs).nearest(X, min(n, NEIGHBORS + 1))
        self.indices = near.indices.reshape(n, -1)
        self.apart = near.distances.reshape(n, -1)
        self.complete = n <= NEIGHBORS + 1
        self.kept = None
        if not self.complete and n * n <= KEPT_PAIRS:
            self.kept = affinity.distances(X, n_jobs=n_jobs)
        own = self.indices == np.arange(n)[:, None]
        self.from_others = np.where(own, np.inf, self.apart)
        others = self.from_others.min(axis=1)
        typical = float(np.median(others[others > 0])) if (others > 0).any() else 1.0
        # Below this, every row sees its nearest neighbours only, or itself.
        self.finest = max((typical / 8) ** 2, 1e-290)

    def smooth(self, values: np.ndarray, scale: float, *, others_only: bool) -> np.ndarray:
        """Columns (n, c) smoothed at one scale sigma_l; ``others_only`` sets the diagonal to 0."""
        n, k = self.indices.shape
        root = np.sqrt(scale)
        near = self.from_others if others_only else self.apart
        least, last = near.min(axis=1), self.apart[:, -1]
        short = self.complete | (((last - least) / root) * ((last + least) / root) > CUT)
        rows = np.flatnonzero(short)
        weights = _row_weights(near[rows], root)
        starts = np.arange(0, len(rows) * k + 1, k)
        table = (weights.ravel(), self.indices[rows].ravel(), starts)
        smoothed = np.empty(values.shape)
        smoothed[rows] = sparse.csr_matrix(table, shape=(len(rows), n)) @ values
        for rows in _chunks(np.flatnonzero(~short), max(1, CHUNK_ENTRIES // n)):
            if self.kept is not None:
                apart = self.kept[rows]
            else:
                apart = affinity.distances(self.X, self.X[rows], self.n_jobs)
            if others_only:
                apart[np.arange(len(rows)), rows] = np.inf
            smoothed[rows] = _row_weights(apart, root) @ values
        return smoothed


def _row_weights(apart: np.ndarray, root: float) -> np.ndarray:
    """Gaussian weights of distances, each row summing to one, however far all are."""
    if not apart.size:
        return apart
    apart = apart / root
    np.minimum(apart, 1e150, out=apart)
    least = apart.min(axis=1, keepdims=True)
    weights = least - apart
    apart += least
    weights *= apart
    np.maximum(weights, -800.0, out=weights)  # exp is 0 there, and not slow
    np.exp(weights, out=weights)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def pyramid(
    X: Points, Q: Points, scales: np.ndarray, residuals: np.ndarray, n_jobs: int | None = None
) -> np.ndarray:
    """Sum (q, d) over the levels of smoothed residuals d_l (l, n, d) at the queries (Eq. 7.6)."""
    q, n, roots = Q.shape[0], X.shape[0], np.sqrt(scales)
    values = np.empty((q, residuals.shape[2]))
    rows, asked = kernel_rows(X), kernel_rows(Q)
    over_rows(kernels.pyramid, q, n_jobs, rows, n, asked, roots, residuals, values)
    return values


def _chunks(rows: np.ndarray, size: int) -> Iterator[np.ndarray]:
    for at in range(0, len(rows), size):
        yield rows[at : at + size]
