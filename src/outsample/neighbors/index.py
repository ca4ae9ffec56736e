"""Neighbour search: by an exact tree, or among candidates whose distances are recomputed.

Search libraries and matrix products round distances differently from batch to batch. Here the
distances of candidates are recomputed from the coordinates and ties are broken by index. If the
candidates of a query could miss a neighbour, more are requested, or the query is compared with
every training row. So all exact indexes and batch sizes return bit-identical neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np
from scipy import sparse

from outsample._compiled import search
from outsample._compiled import tree as trees
from outsample._parallel import over_rows
from outsample.neighbors.approximate import (
    COUNTED,
    LEAST_ROWS,
    TARGET,
    WIDTHS,
    Codes,
    sample_rows,
    share_found,
    warn_if_poor,
)
from outsample.neighbors.backends import FAR_AWAY, Products, Tree, share_looked_at
from outsample.neighbors.truncation import first_columns
from outsample.points import Points, kernel_rows, largest_entry, largest_in_rows
from outsample.records import Neighbors

# Batches of up to this many queries are compared with every row, without start-up cost.
MAX_SCANNED_QUERIES = 4
# Smaller normalised distances have squares that lost digits in a search library.
SMALLEST_DISTANCE = 1e-140
# Points are not scaled if the binary exponent of the largest entry is at most this.
MAX_UNSCALED_EXPONENT = 64
# Up to this many columns a k-d tree is chosen without a trial.
MAX_TREE_COLUMNS = 10
# Otherwise a tree of at most this many rows and entries searches the neighbours of a few queries.
# It is chosen if it compares them with at most this share of its points: at a third it takes a
# third to a half of the time of matrix products, at 40 to 60 % a half to the same time (synthetic
# sets of intrinsic dimension 3 to 14 in 14 to 300 columns; MNIST with 11 to 50 components agrees).
MAX_TRIAL_ROWS, MAX_TRIAL_ENTRIES = 10_000, 2**20
TRIAL_QUERIES = 128
MAX_TREE_SHARE = 0.35
CHUNK_ENTRIES = 2**21


INDEXES: dict[str, Callable[[Points, int | None], Any]] = {"kd_tree": Tree, "brute": Products}
KINDS = (*INDEXES, "codes")
# The approximate index for each exact one.
APPROXIMATE_KINDS = {"kd_tree": "kd_tree", "brute": "codes"}
CHOICES = ("auto", *INDEXES, "approximate")
# One thread builds a backend while the others wait.
_BUILDING = Lock()


class NeighborIndex:
    """Index of training rows (n, D) for neighbour queries.

    ``kind="auto"`` chooses the tree in few dimensions, and otherwise if it compares queries with
    few points; points are counted, not timed, so that the choice is deterministic. It changes the
    time only, never the result. ``"approximate"`` with many rows is a tree that opens fewer boxes,
    or product quantisation codes instead of matrix products. ``width`` is the effort of an
    approximate search (`neighbors.approximate`), 0 if it is exact; ``recall`` is the share of true
    neighbours that it returned for a sample.

    >>> index = NeighborIndex(np.array([[0.0], [1.0], [3.0]]))
    >>> index.nearest(np.array([[0.9]]), 2).indices
    array([1, 0])
    >>> index.ball(np.array([[9.0]]), radius=1.0, at_least=1).inside
    array([0])
    >>> index.rows_searched
    2
    """

    # Queries of `nearest` and `ball` so far, for tests. No result depends on it, copies start at 0,
    # and it is not exact with several threads.
    rows_searched: int = 0
    width: int = 0
    recall: float = 1.0
    _built: Any = None

    def __init__(
        self,
        X: Points,
        kind: str = "auto",
        n_jobs: int | None = None,
        width: int = 0,
        recall: float = 1.0,
    ) -> None:
        self.X = X if sparse.issparse(X) else np.ascontiguousarray(X, dtype=np.float64)
        self.rows = kernel_rows(self.X)
        self.n_jobs = n_jobs
        largest = largest_entry(self.X)
        # A power of two scales without rounding; points of normal size are not copied.
        exponent = int(np.frexp(largest)[1])
        is_scaled = abs(exponent) > MAX_UNSCALED_EXPONENT
        self.scale = float(2.0 ** min(-exponent, 1000)) if is_scaled else 1.0
        self.kind, self.width, self.recall = kind, width, recall
        if kind in ("auto", "approximate"):
            self.kind = self._fastest(self._normalised())
        if kind == "approximate" and self.X.shape[0] >= LEAST_ROWS:
            exact = NeighborIndex(self.X, self.kind, n_jobs)
            self.kind = APPROXIMATE_KINDS[self.kind]
            if self.kind == "kd_tree":  # the exact and the approximate search share the tree
                self._built = exact._backend
            self._measure(exact)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the backend, which can be rebuilt from the points."""
        state = vars(self).copy()
        for name in ("rows_searched", "rows", "_built"):
            state.pop(name, None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.rows = kernel_rows(self.X)

    @property
    def _backend(self) -> Any:
        """Return the backend, built at first use: a loaded model may never need it."""
        if self._built is None:
            with _BUILDING:
                if self._built is None:
                    build = INDEXES.get(self.kind, Codes)
                    self._built = build(self._normalised(), self.n_jobs)
        return self._built

    def _measure(self, exact: NeighborIndex) -> None:
        """Increase the width until the recall of a sample of rows reaches the target."""
        rows = self.X[sample_rows(self.X.shape[0])]
        true = exact._nearest(rows, COUNTED).indices
        for width in WIDTHS[self.kind]:
            self.width = width
            self.recall = share_found(self._nearest(rows, COUNTED).indices, true)
            if self.recall >= TARGET:
                return
        if self.kind == "kd_tree":
            self.width, self.recall = 0, 1.0
        warn_if_poor(self.recall)

    def build(self) -> None:
        """Build the backend now instead of at the first query."""
        _ = self._backend

    def _normalised(self) -> Points:
        """Return points whose squares cannot overflow: the points themselves, or a scaled copy."""
        return self.X if self.scale == 1 else self.X * self.scale

    def _fastest(self, normalised: Points) -> str:
        """Return the faster backend, by the work of a tree on a sample of the training rows."""
        n, columns = normalised.shape
        if sparse.issparse(normalised):
            return "brute"
        if columns <= MAX_TREE_COLUMNS or n <= TRIAL_QUERIES:
            return "kd_tree"
        m = min(n, MAX_TRIAL_ROWS, max(TRIAL_QUERIES, MAX_TRIAL_ENTRIES // columns))
        rows, queries = (
            normalised[np.linspace(0, n - 1, c).astype(int)] for c in (m, TRIAL_QUERIES)
        )
        share = share_looked_at(rows, queries, min(m, COUNTED), self.n_jobs)
        return "kd_tree" if share <= MAX_TREE_SHARE else "brute"

    def nearest(self, Q: Points, k: int) -> Neighbors:
        """Return the k nearest training rows of each query (q, D); k is at most n."""
        self.rows_searched += Q.shape[0]
        return self._nearest(Q, k)

    def _nearest(self, Q: Points, k: int) -> Neighbors:
        q, least = Q.shape[0], min(COUNTED, self.X.shape[0]) if self.width else 0
        if q and k < least:  # so that the first k do not depend on k
            return first_columns(self._nearest(Q, least), k)
        indices = np.empty((q, k), dtype=np.int64)
        distances = np.empty((q, k))
        chunk = max(256, CHUNK_ENTRIES // (k + 1))
        for start in range(0, q, chunk):
            rows = slice(start, start + chunk)
            self._nearest_chunk(Q[rows], k, indices[rows], distances[rows])
        indptr = np.arange(0, q * k + 1, k) if q else np.zeros(1, dtype=np.int64)
        return Neighbors(indptr, indices.ravel(), distances.ravel(), np.full(q, k))

    def _nearest_chunk(self, Q: Points, k: int, indices: np.ndarray, distances: np.ndarray) -> None:
        if self.kind == "kd_tree":
            share, Q = self.width / 100 if self.width else 1.0, np.ascontiguousarray(Q)
            order = self._backend.order(Q, self.scale, self.n_jobs)
            self._in_tree(trees.nearest_in_tree, Q, share, order, indices, distances)
            return
        n, open_rows = self.X.shape[0], np.arange(Q.shape[0])
        if self.width:
            open_rows = self._guess(Q, k, indices, distances)
            if not len(open_rows):
                return
        elif Q.shape[0] > MAX_SCANNED_QUERIES:
            # Ties at the last place are common on grids and among duplicates: if the last
            # candidate is not farther than the k-th neighbour, more candidates are requested.
            for width in (k + 1, 2 * k + 16):
                open_rows = self._propose(Q, k, min(width, n), open_rows, indices, distances)
                if not len(open_rows):
                    return
        q, queries = len(open_rows), kernel_rows(Q[open_rows])
        nearest, lengths = np.empty((q, k), dtype=np.int64), np.empty((q, k))
        over_rows(search.scan_nearest, q, self.n_jobs, self.rows, n, queries, nearest, lengths)
        indices[open_rows], distances[open_rows] = nearest, lengths

    def _in_tree(self, kernel: Callable[..., None], Q: np.ndarray, *arguments: object) -> None:
        arrays = (self.rows, *self._backend.arrays, self.scale, np.ascontiguousarray(Q))
        over_rows(kernel, Q.shape[0], self.n_jobs, *arrays, *arguments)

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
        scaled = Q[rows] * self.scale
        if not len(rows):
            return beyond
        candidates = self._backend.query(scaled, width, self.n_jobs).astype(np.int64)
        nearest, lengths = self._nearest_of(candidates, Q[rows], width)
        indices[rows], distances[rows] = nearest[:, :k], lengths[:, :k]
        if width == self.X.shape[0]:
            return beyond
        last, kth = lengths[:, -1] * self.scale, lengths[:, k - 1] * self.scale
        gap = last**2 - kth**2
        rounding = 2 * self._backend.square_error(scaled, last)
        is_settled = (gap > rounding) & (last > SMALLEST_DISTANCE)
        return np.concatenate([rows[~is_settled], beyond])

    def _guess(self, Q: Points, k: int, indices: np.ndarray, distances: np.ndarray) -> np.ndarray:
        """Write the nearest of approximate candidates; return the rows that have to be scanned."""
        width = min(max(self.width, 2 * k), self.X.shape[0])
        with np.errstate(over="ignore"):  # such a row is scanned
            scaled = Q * self.scale
        is_settled = self._backend.is_near(scaled)
        candidates = self._backend.query(scaled[is_settled], width, self.n_jobs)
        is_complete = (candidates >= 0).all(axis=1)
        is_settled[is_settled] = is_complete
        candidates = np.ascontiguousarray(candidates[is_complete])
        indices[is_settled], distances[is_settled] = self._nearest_of(candidates, Q[is_settled], k)
        return np.flatnonzero(~is_settled)

    def _nearest_of(
        self, candidates: np.ndarray, Q: Points, k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the k nearest (q, k) of candidates (q, c), and their exact distances (q, k)."""
        q = len(candidates)
        indices, distances = np.empty((q, k), dtype=np.int64), np.empty((q, k))
        arrays = self.rows, kernel_rows(Q), candidates, indices, distances
        over_rows(search.nearest_candidates, q, self.n_jobs, *arrays)
        return indices, distances

    def ball(self, Q: Points, radius: float, at_least: int) -> Neighbors:
        """Return the training rows within ``radius`` of each query (Eq. 4.1), the paper's epsilon.

        A ball with fewer than ``at_least`` rows is replaced by that many nearest rows; ``inside``
        is the number of rows in the ball itself.
        """
        self.rows_searched += Q.shape[0]
        inside = np.minimum(self.ball_sizes(Q, radius), self.X.shape[0])
        taken = np.maximum(inside, at_least)
        indptr = np.concatenate([[0], np.cumsum(taken)])
        indices = np.empty(indptr[-1], dtype=np.int64)
        distances = np.empty(indptr[-1])
        # Queries with balls of similar size share a search, so that one large ball does not slow
        # down all queries.
        level = np.ceil(np.log2(taken)).astype(int)
        for size in np.unique(level):
            rows = np.flatnonzero(level == size)
            nearest = self._nearest(Q[rows], int(taken[rows].max()))
            width = nearest.indptr[1]
            is_kept = np.arange(width) < taken[rows][:, None]
            target = indptr[rows][:, None] + np.arange(width)
            indices[target[is_kept]] = nearest.indices.reshape(is_kept.shape)[is_kept]
            distances[target[is_kept]] = nearest.distances.reshape(is_kept.shape)[is_kept]
        return Neighbors(indptr, indices, distances, inside)

    def ball_sizes(self, Q: Points, radius: float) -> np.ndarray:
        """Return the number of rows within the radius of each query, by exact distances."""
        sizes = np.empty(Q.shape[0], dtype=np.int64)
        if self.kind == "kd_tree":
            self._in_tree(trees.counts_in_tree, Q, float(radius), sizes)
        else:
            rows, queries = (self.rows, self.X.shape[0]), kernel_rows(Q)
            over_rows(
                search.scan_ball_counts, len(sizes), self.n_jobs, *rows, queries, radius, sizes
            )
        return sizes
