"""Brute-force search: by comparing every row, or by matrix products, for data of high dimension.

Matrix products round distances differently from batch to batch. They only propose candidates, whose
distances are recomputed from the coordinates. If the candidates of a query could miss a neighbour,
more are requested, or the query is compared with every row.
"""

from __future__ import annotations

from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np
from scipy import sparse

from outsample._compiled import search as kernels
from outsample._parallel import openmp_threads, over_rows, thread_count
from outsample.points import Points, kernel_rows, largest_in_rows, row_norms, search_scale

# Batches of up to this many queries are compared with every row, without start-up cost.
MAX_SCANNED_QUERIES = 4
# Smaller normalised distances have squares that lost digits in a search library.
SMALLEST_DISTANCE = 1e-140
# Normalised training coordinates are far below this; larger queries are compared directly.
FAR_AWAY = 1e100
# One thread computes the products' norms while the others wait.
_BUILDING = Lock()


class RowScan:
    """Comparison of queries with every row (n, D)."""

    def __init__(self, X: Points, n_jobs: int | None = None) -> None:
        self.X, self.rows, self.n_jobs = X, kernel_rows(X), n_jobs

    def nearest(self, Q: Points, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the k nearest rows of each query and their distances, both (q, k)."""
        q, n = Q.shape[0], self.X.shape[0]
        indices, distances = np.empty((q, k), dtype=np.int64), np.empty((q, k))
        arrays = self.rows, n, kernel_rows(Q), indices, distances
        over_rows(kernels.scan_nearest, q, self.n_jobs, *arrays)
        return indices, distances

    def nearest_candidates(
        self, candidates: np.ndarray, Q: Points, k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the k nearest (q, k) of candidates (q, c), and their exact distances (q, k)."""
        q = len(candidates)
        indices, distances = np.empty((q, k), dtype=np.int64), np.empty((q, k))
        arrays = self.rows, kernel_rows(Q), candidates, indices, distances
        over_rows(kernels.nearest_candidates, q, self.n_jobs, *arrays)
        return indices, distances

    def ball_sizes(self, Q: Points, radius: float) -> np.ndarray:
        """Return the number of rows (q,) within the radius of each query."""
        sizes = np.empty(Q.shape[0], dtype=np.int64)
        arrays = self.rows, self.X.shape[0], kernel_rows(Q), radius, sizes
        over_rows(kernels.scan_ball_counts, len(sizes), self.n_jobs, *arrays)
        return sizes


class BruteForce(RowScan):
    """Exact search among candidates that matrix products (scikit-learn) propose."""

    def __init__(self, X: Points, n_jobs: int | None = None, width: int = 0) -> None:
        super().__init__(X, n_jobs)
        self.scale = search_scale(X)

    @cached_property
    def products(self) -> Any:
        """Return the products, prepared at first use: few queries never need them."""
        with _BUILDING:
            if "products" not in vars(self):
                vars(self)["products"] = Products(self.X * self.scale)
        return vars(self)["products"]

    def nearest(self, Q: Points, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the k nearest rows of each query and their distances, both (q, k)."""
        q, n = Q.shape[0], self.X.shape[0]
        if q <= MAX_SCANNED_QUERIES:
            return super().nearest(Q, k)
        indices, distances = np.empty((q, k), dtype=np.int64), np.empty((q, k))
        open_rows = np.arange(q)
        # Ties at the last place are common on grids and among duplicates: if the last candidate
        # is not farther than the k-th neighbour, more candidates are requested.
        for width in (k + 1, 2 * k + 16):
            open_rows = self._propose(Q, k, min(width, n), open_rows, indices, distances)
            if not len(open_rows):
                return indices, distances
        indices[open_rows], distances[open_rows] = super().nearest(Q[open_rows], k)
        return indices, distances

    def _propose(
        self,
        Q: Points,
        k: int,
        width: int,
        rows: np.ndarray,
        indices: np.ndarray,
        distances: np.ndarray,
    ) -> np.ndarray:
        """Write the neighbours that ``width`` candidates determine; return the other rows."""
        is_near = largest_in_rows(Q[rows]) < FAR_AWAY / self.scale
        rows, beyond = rows[is_near], rows[~is_near]
        if not len(rows):
            return beyond
        scaled = Q[rows] * self.scale
        candidates = self.products.query(scaled, width, self.n_jobs).astype(np.int64)
        nearest, lengths = self.nearest_candidates(candidates, Q[rows], width)
        indices[rows], distances[rows] = nearest[:, :k], lengths[:, :k]
        if width == self.X.shape[0]:
            return beyond
        last, kth = lengths[:, -1] * self.scale, lengths[:, k - 1] * self.scale
        gap = last**2 - kth**2
        rounding = 2 * self.products.square_error(scaled, last)
        is_settled = (gap > rounding) & (last > SMALLEST_DISTANCE)
        return np.concatenate([rows[~is_settled], beyond])


class Products:
    """Nearest rows by ``|x|^2 - 2xy + |y|^2``, and a bound of the rounding error."""

    def __init__(self, X: Points) -> None:
        from sklearn.neighbors import NearestNeighbors

        # The formula loses fewer digits near the origin; sparse rows are not centred.
        self.center = None if sparse.issparse(X) else X.mean(axis=0)
        centered = self._centered(X)
        self.search = NearestNeighbors(algorithm="brute").fit(centered)
        self.reach = float(row_norms(centered).max())
        self.rounding = (X.shape[1] + 8) * 2.0**-50

    def query(self, Q: Points, k: int, n_jobs: int | None) -> np.ndarray:
        """Return rows (q, k) that are approximately the nearest; all cores without ``n_jobs``."""
        centered = self._centered(Q)
        if n_jobs is None:
            return self.search.kneighbors(centered, k, return_distance=False)
        with openmp_threads(thread_count(n_jobs)):
            return self.search.kneighbors(centered, k, return_distance=False)

    def square_error(self, Q: Points, distances: np.ndarray) -> np.ndarray:
        """Return a bound (q,) of the rounding error in the squares of such distances (q,)."""
        size = row_norms(self._centered(Q)) + self.reach
        return self.rounding * (size**2 + distances * (1 + size))

    def _centered(self, X: Points) -> Points:
        return X if self.center is None else X - self.center
