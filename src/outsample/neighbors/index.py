"""Neighbour search: one index, and the protocol that its backends implement.

Every backend returns distances computed from the coordinates, and breaks ties by row number. So all
exact backends and batch sizes return bit-identical neighbours. A new backend is a class with the
methods of `SearchBackend`, and a line in `EXACT_BACKENDS`.
"""

from __future__ import annotations

from threading import Lock
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from outsample.chunks import map_chunks
from outsample.neighbors.approximate import (
    APPROXIMATE_KINDS,
    MIN_APPROXIMATE_ROWS,
    RECALL_NEIGHBORS,
    Codes,
    adjust_width,
)
from outsample.neighbors.brute_force import MAX_SCANNED_QUERIES, BruteForce
from outsample.neighbors.kd_tree import KdTree, share_looked_at
from outsample.points import Points
from outsample.records import Neighbors

# Up to this many columns a k-d tree is chosen without a trial.
MAX_TREE_COLUMNS = 10
# Otherwise a tree of at most this many rows and entries searches the neighbours of a few queries.
# It is chosen if it compares them with at most this share of its points: at a third it takes a
# third to a half of the time of matrix products, at 40 to 60 % a half to the same time (synthetic
# sets of intrinsic dimension 3 to 14 in 14 to 300 columns; MNIST with 11 to 50 components agrees).
MAX_TRIAL_ROWS, MAX_TRIAL_ENTRIES = 10_000, 2**20
TRIAL_QUERIES = 128
MAX_TREE_SHARE = 0.35
# Neighbours that a backend returns at once, and the smallest chunk of queries.
CHUNK_NEIGHBORS, MIN_SEARCH_ROWS = 2**21, 256

EXACT_BACKENDS: dict[str, Any] = {"kd_tree": KdTree, "brute": BruteForce}
KINDS = (*EXACT_BACKENDS, "codes")
CHOICES = ("auto", *EXACT_BACKENDS, "approximate")
# One thread builds a backend while the others wait.
_BUILDING = Lock()


class SearchBackend(Protocol):
    """Search structure over training rows (n, D): k-d tree, brute force, codes, or growing."""

    def nearest(self, Q: Points, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the k nearest rows of each query and their distances, both (q, k)."""

    def ball_sizes(self, Q: Points, radius: float) -> np.ndarray:
        """Return the number of rows (q,) within the radius of each query."""


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
    _built: SearchBackend | None = None

    def __init__(
        self,
        X: Points,
        kind: str = "auto",
        n_jobs: int | None = None,
        width: int = 0,
        recall: float = 1.0,
        backend: SearchBackend | None = None,
    ) -> None:
        self.X = X if sparse.issparse(X) else np.ascontiguousarray(X, dtype=np.float64)
        self.kind, self.n_jobs, self.width, self.recall = kind, n_jobs, width, recall
        self._built = backend
        if kind in ("auto", "approximate"):
            self.kind = self._fastest()
        if kind == "approximate" and self.X.shape[0] >= MIN_APPROXIMATE_ROWS:
            exact = self._backend
            self.kind = APPROXIMATE_KINDS[self.kind]
            self._built = Codes(self.X, n_jobs) if self.kind == "codes" else exact
            self.width, self.recall = adjust_width(self._built, self.kind, exact)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the backend, which can be rebuilt from the points."""
        return {k: v for k, v in vars(self).items() if k not in ("rows_searched", "_built")}

    @property
    def _backend(self) -> SearchBackend:
        """Return the backend, built at first use: a loaded model may never need it."""
        if self._built is None:
            with _BUILDING:
                if self._built is None:
                    build = EXACT_BACKENDS.get(self.kind, Codes)
                    self._built = build(self.X, self.n_jobs, self.width)
        return self._built

    def build(self) -> None:
        """Build the backend now instead of at the first query."""
        self.search(self.X[: MAX_SCANNED_QUERIES + 1], 1)

    def _fastest(self) -> str:
        """Return the faster backend, by the work of a tree on a sample of the training rows."""
        n, columns = self.X.shape
        if sparse.issparse(self.X):
            return "brute"
        if columns <= MAX_TREE_COLUMNS or n <= TRIAL_QUERIES:
            return "kd_tree"
        m = min(n, MAX_TRIAL_ROWS, max(TRIAL_QUERIES, MAX_TRIAL_ENTRIES // columns))
        rows, queries = (self.X[np.linspace(0, n - 1, c).astype(int)] for c in (m, TRIAL_QUERIES))
        share = share_looked_at(rows, queries, min(m, RECALL_NEIGHBORS), self.n_jobs)
        return "kd_tree" if share <= MAX_TREE_SHARE else "brute"

    def nearest(self, Q: Points, k: int) -> Neighbors:
        """Return the k nearest training rows of each query (q, D); k is at most n."""
        q = Q.shape[0]
        self.rows_searched += q
        indices, distances = self.search(Q, k)
        return Neighbors(np.arange(q + 1) * k, indices.ravel(), distances.ravel(), np.full(q, k))

    def search(self, Q: Points, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the k nearest rows of each query and their distances, both (q, k)."""
        if not Q.shape[0]:
            return np.empty((0, k), dtype=np.int64), np.empty((0, k))
        # An approximate search for fewer neighbours would find others among the first k.
        width = max(k, min(RECALL_NEIGHBORS, self.X.shape[0])) if self.width else k
        max_rows = max(MIN_SEARCH_ROWS, CHUNK_NEIGHBORS // (width + 1))
        answer = self._backend.nearest
        indices, distances = map_chunks(lambda rows: answer(rows, width), Q, max_rows)
        return (indices, distances) if width == k else (indices[:, :k], distances[:, :k])

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
            width = int(taken[rows].max())
            nearest, lengths = self.search(Q[rows], width)
            is_kept = np.arange(width) < taken[rows][:, None]
            target = (indptr[rows][:, None] + np.arange(width))[is_kept]
            indices[target], distances[target] = nearest[is_kept], lengths[is_kept]
        return Neighbors(indptr, indices, distances, inside)

    def ball_sizes(self, Q: Points, radius: float) -> np.ndarray:
        """Return the number of rows (q,) within the radius of each query, by exact distances."""
        return self._backend.ball_sizes(Q, float(radius))
