"""Exact neighbour search: libraries propose candidates, one kernel decides.

A search library rounds distances in its own way, and a matrix product rounds them differently
from batch to batch. Here the distances of the candidates are computed once more from the
coordinates, ties are broken by index, and a row whose candidates could miss a neighbour is asked
for more of them or compared with every training row. So every index and every batch size gives
the same neighbours and the same distances, bit for bit.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree

from outsample._kernels import search
from outsample._parallel import over_rows, thread_count
from outsample.points import Points, kernel_rows, largest_entry, largest_in_rows, row_norms
from outsample.records import Neighbors

# A batch this small is compared with every row directly: no start-up cost, no thread pool.
SCAN_ROWS = 4
# Normalised training coordinates are within 1; a query beyond this is only compared directly.
FAR_AWAY = 1e100
# Squares of normalised distances below this have lost digits in the search library.
VERY_NEAR = 1e-140
# Up to this many columns a k-d tree is the better choice without a trial.
TREE_COLUMNS = 10
TRIAL_ROWS = 128
CHUNK_ENTRIES = 2**21


class _Candidates(Protocol):
    """Proposes the nearest rows of normalised queries, with an error of the squared distances."""

    def nearest(self, Q: Points, k: int, n_jobs: int | None) -> np.ndarray: ...

    def square_error(self, Q: Points, distances: np.ndarray) -> np.ndarray: ...


class _Tree:
    """SciPy's k-d tree: best while the data's own dimension is low."""

    def __init__(self, X: Points) -> None:
        self.tree = cKDTree(X)
        self.rounding = (X.shape[1] + 8) * 2.0**-50

    def nearest(self, Q: Points, k: int, n_jobs: int | None) -> np.ndarray:
        found = self.tree.query(Q, k=np.arange(1, k + 1), workers=thread_count(n_jobs))
        return found[1]

    def square_error(self, Q: Points, distances: np.ndarray) -> np.ndarray:
        return self.rounding * distances**2

    def ball_sizes(self, Q: Points, radius: float, n_jobs: int | None) -> np.ndarray:
        return self.tree.query_ball_point(
            Q, radius, return_length=True, workers=thread_count(n_jobs)
        )


class _Products:
    """Distances by matrix products, through scikit-learn: best for images and the like."""

    def __init__(self, X: Points) -> None:
        from sklearn.neighbors import NearestNeighbors

        # |x|^2 - 2xy + |y|^2 cancels less near the origin; sparse rows stay where they are.
        self.center = None if sparse.issparse(X) else X.mean(axis=0)
        centered = self._centered(X)
        self.search = NearestNeighbors(algorithm="brute").fit(centered)
        self.reach = float(row_norms(centered).max())
        self.rounding = (X.shape[1] + 8) * 2.0**-50

    def nearest(self, Q: Points, k: int, n_jobs: int | None) -> np.ndarray:
        return self.search.kneighbors(self._centered(Q), k, return_distance=False)

    def square_error(self, Q: Points, distances: np.ndarray) -> np.ndarray:
        size = row_norms(self._centered(Q)) + self.reach
        return self.rounding * (size**2 + distances * (1 + size))

    def _centered(self, X: Points) -> Points:
        return X if self.center is None else X - self.center


INDEXES: dict[str, Callable[[np.ndarray], _Candidates]] = {
    "kd_tree": _Tree,
    "brute": _Products,
}


class NeighborIndex:
    """Neighbours of queries among the training rows.

    Parameters
    ----------
    X : ndarray of shape (n, D), float64
        Training rows.
    kind : {"auto", "kd_tree", "brute"}, default="auto"
        Which library searches. ``"auto"`` takes the tree in few dimensions and otherwise tries
        both on a few rows. The choice changes the time only, never the answer.
    n_jobs : int or None, default=None
        Threads, as in scikit-learn. ``"brute"`` uses all cores on batches, as scikit-learn does.

    Examples
    --------
    >>> import numpy as np
    >>> index = NeighborIndex(np.array([[0.0], [1.0], [3.0]]))
    >>> index.nearest(np.array([[0.9]]), 2).indices
    array([1, 0])
    >>> index.ball(np.array([[9.0]]), radius=1.0, at_least=1).inside
    array([0])
    """

    def __init__(self, X: Points, kind: str = "auto", n_jobs: int | None = None) -> None:
        self.X = X if sparse.issparse(X) else np.ascontiguousarray(X, dtype=np.float64)
        self.rows = kernel_rows(self.X)
        self.n_jobs = n_jobs
        largest = largest_entry(self.X)
        # A power of two scales without rounding.
        self.scale = 2.0 ** -np.frexp(largest)[1] if largest > 0 else 1.0
        normalised = self.X * self.scale
        self.kind = self._fastest(normalised) if kind == "auto" else kind
        self._candidates: _Candidates = INDEXES[self.kind](normalised)

    def _fastest(self, normalised: Points) -> str:
        """Name the quicker library, by rule or by a trial on a few training rows."""
        n, columns = normalised.shape
        if sparse.issparse(normalised):
            return "brute"
        if columns <= TREE_COLUMNS or n <= TRIAL_ROWS:
            return "kd_tree"
        rows = normalised[np.linspace(0, n - 1, TRIAL_ROWS).astype(int)]
        seconds = {}
        for name, library in INDEXES.items():
            candidates = library(normalised)
            candidates.nearest(rows[:8], 8, self.n_jobs)  # thread pools start here
            begin = time.perf_counter()
            candidates.nearest(rows, min(n, 16), self.n_jobs)
            seconds[name] = time.perf_counter() - begin
        return min(seconds, key=seconds.__getitem__)

    def nearest(self, Q: Points, k: int) -> Neighbors:
        """Find the k nearest training rows of each query.

        Parameters
        ----------
        Q : ndarray of shape (q, D), float64
            Queries.
        k : int
            How many, at most n.

        Returns
        -------
        Neighbors
            Rows of k entries each.
        """
        q = Q.shape[0]
        indices = np.empty((q, k), dtype=np.int64)
        distances = np.empty((q, k))
        chunk = max(256, CHUNK_ENTRIES // (k + 1))
        for at in range(0, q, chunk):
            rows = slice(at, at + chunk)
            self._nearest_chunk(Q[rows], k, indices[rows], distances[rows])
        indptr = np.arange(0, q * k + 1, k) if q else np.zeros(1, dtype=np.int64)
        return Neighbors(indptr, indices.ravel(), distances.ravel(), np.full(q, k))

    def _nearest_chunk(self, Q: Points, k: int, indices: np.ndarray, distances: np.ndarray) -> None:
        n = self.X.shape[0]
        open_rows = np.arange(Q.shape[0])
        if Q.shape[0] > SCAN_ROWS or self.kind == "kd_tree":
            # Ties at the last place are common on grids and among duplicates, so a row whose
            # last candidate is no farther than its k-th neighbour is asked for more of them.
            for width in (k + 1, 2 * k + 16):
                open_rows = self._propose(Q, k, min(width, n), open_rows, indices, distances)
                if not len(open_rows):
                    return
        found = np.empty((len(open_rows), k), dtype=np.int64)
        apart = np.empty((len(open_rows), k))
        asked = kernel_rows(Q[open_rows])
        over_rows(
            search.scan_nearest, len(open_rows), self.n_jobs, self.rows, n, asked, found, apart
        )
        indices[open_rows], distances[open_rows] = found, apart

    def _propose(
        self,
        Q: Points,
        k: int,
        width: int,
        rows: np.ndarray,
        indices: np.ndarray,
        distances: np.ndarray,
    ) -> np.ndarray:
        """Settle the rows that ``width`` candidates settle; return the others."""
        asked = Q[rows] * self.scale
        near = largest_in_rows(asked) < FAR_AWAY
        rows, beyond, asked = rows[near], rows[~near], asked[near]
        if not len(rows):
            return beyond
        found = self._candidates.nearest(asked, width, self.n_jobs).astype(np.int64)
        apart = self._refine(Q[rows], found)
        indices[rows], distances[rows] = found[:, :k], apart[:, :k]
        if width == self.X.shape[0]:
            return beyond
        last, kth = apart[:, -1] * self.scale, apart[:, k - 1] * self.scale
        gap = last**2 - kth**2
        settled = (gap > 2 * self._candidates.square_error(asked, last)) & (last > VERY_NEAR)
        return np.concatenate([rows[~settled], beyond])

    def _refine(self, Q: Points, candidates: np.ndarray) -> np.ndarray:
        """Sort candidates in place by their own distances, which are returned."""
        apart = np.empty(candidates.shape)
        over_rows(
            search.refine_candidates,
            Q.shape[0],
            self.n_jobs,
            self.rows,
            kernel_rows(Q),
            candidates,
            apart,
        )
        return apart

    def ball(self, Q: Points, radius: float, at_least: int) -> Neighbors:
        """Find the training rows within ``radius`` of each query (Eq. 4.1).

        Parameters
        ----------
        Q : ndarray of shape (q, D), float64
            Queries.
        radius : float
            The paper's epsilon.
        at_least : int
            A ball with fewer rows is replaced by that many nearest ones.

        Returns
        -------
        Neighbors
            ``inside`` tells how many rows the ball itself holds.
        """
        inside = np.minimum(self._ball_sizes(Q, radius), self.X.shape[0])
        taken = np.maximum(inside, at_least)
        indptr = np.concatenate([[0], np.cumsum(taken)])
        indices = np.empty(indptr[-1], dtype=np.int64)
        distances = np.empty(indptr[-1])
        # Rows with balls of like size share a search, so that one crowded ball does not make
        # every row pay for it.
        level = np.ceil(np.log2(taken)).astype(int)
        for size in np.unique(level):
            rows = np.flatnonzero(level == size)
            found = self.nearest(Q[rows], int(taken[rows].max()))
            width = found.indptr[1]
            keep = np.arange(width) < taken[rows][:, None]
            target = indptr[rows][:, None] + np.arange(width)
            indices[target[keep]] = found.indices.reshape(keep.shape)[keep]
            distances[target[keep]] = found.distances.reshape(keep.shape)[keep]
        return Neighbors(indptr, indices, distances, inside)

    def _ball_sizes(self, Q: Points, radius: float) -> np.ndarray:
        """Count the rows within the radius, by exact distances."""
        sizes = np.empty(Q.shape[0], dtype=np.int64)
        unsure = np.ones(Q.shape[0], dtype=bool)
        normal = radius * self.scale
        if isinstance(self._candidates, _Tree) and VERY_NEAR < normal < FAR_AWAY:
            asked = np.clip(Q * self.scale, -FAR_AWAY, FAR_AWAY)
            least = self._candidates.ball_sizes(asked, normal * (1 - 1e-9), self.n_jobs)
            most = self._candidates.ball_sizes(asked, normal * (1 + 1e-9), self.n_jobs)
            unsure = (least != most) | (np.abs(asked).max(axis=1) >= FAR_AWAY)
            sizes[~unsure] = least[~unsure]
        rows = np.flatnonzero(unsure)
        counted = kernel_rows(Q[rows])
        counts = np.empty(len(rows), dtype=np.int64)
        over_rows(
            search.scan_ball_counts,
            len(rows),
            self.n_jobs,
            self.rows,
            self.X.shape[0],
            counted,
            radius,
            counts,
        )
        sizes[rows] = counts
        return sizes
