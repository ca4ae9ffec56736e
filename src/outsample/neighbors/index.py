"""Neighbour search: a tree that is exact itself, or candidates among which a kernel decides.

A search library rounds distances in its own way, and a matrix product rounds them differently
from batch to batch. Here the distances of the candidates are computed once more from the
coordinates, ties are broken by index, and a row whose candidates could miss a neighbour is asked
for more of them or compared with every training row. So every index and every batch size gives
the same neighbours and the same distances, bit for bit. What approximate indexes do not look at is
left out.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np
from scipy import sparse

from outsample._kernels import search
from outsample._kernels import tree as trees
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
from outsample.neighbors.cuts import first_columns
from outsample.points import Points, kernel_rows, largest_entry, largest_in_rows
from outsample.records import Neighbors

# A batch this small is compared with every row directly: no start-up cost, no thread pool.
SCAN_ROWS = 4
# Squares of normalised distances below this have lost digits in a search library.
VERY_NEAR = 1e-140
# Largest entries within two to this power, or minus it, are searched as they are.
PLAIN = 64
# Up to this many columns a k-d tree is the better choice without a trial.
TREE_COLUMNS = 10
# A tree of so many rows, of no more than so many entries, is asked for the neighbours of a few, and
# has to find them by looking at no more than this share of its points: where it looks at a third it
# takes a third to half of the time of products, at 40 to 60 % half to once that (made-up sets of
# intrinsic dimension 3 to 14 in 14 to 300 columns; MNIST as 11 to 50 components agrees).
TREE_ROWS, TREE_ENTRIES = 10_000, 2**20
TRIAL_ROWS = 128
TREE_SHARE = 0.35
CHUNK_ENTRIES = 2**21


INDEXES: dict[str, Callable[[Points, int | None], Any]] = {"kd_tree": Tree, "brute": Products}
KINDS = (*INDEXES, "codes")
# The approximate search, by what the exact one would be.
GUESSES = {"kd_tree": "kd_tree", "brute": "codes"}
CHOICES = ("auto", *INDEXES, "approximate")
# One thread builds, the others wait for it.
_BUILDING = Lock()


class NeighborIndex:
    """Neighbours of queries among the training rows (n, D).

    ``kind="auto"`` takes the tree in few dimensions, and otherwise where it looks at few points to
    find neighbours: it is counted, not timed, so that the same data always get the same index. The
    choice changes the time only, never the answer. ``"approximate"`` of many rows is a tree that
    looks at fewer boxes, or codes where products would be taken; ``width`` tells how much they look
    at (`neighbors.approximate`), 0 if the search is exact, and ``recall`` is the share of
    neighbours that a sample found.

    >>> index = NeighborIndex(np.array([[0.0], [1.0], [3.0]]))
    >>> index.nearest(np.array([[0.9]]), 2).indices
    array([1, 0])
    >>> index.ball(np.array([[9.0]]), radius=1.0, at_least=1).inside
    array([0])
    >>> index.rows_searched
    2
    """

    # Rows ever asked of `nearest` and `ball`. For tests of how often the training set is
    # searched: no answer depends on it, no copy keeps it, and threads may lose a few.
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
        # A power of two scales without rounding; sizes that need none need no second copy.
        exponent = int(np.frexp(largest)[1])
        self.scale = float(2.0 ** min(-exponent, 1000)) if abs(exponent) > PLAIN else 1.0
        self.kind, self.width, self.recall = kind, width, recall
        if kind in ("auto", "approximate"):
            self.kind = self._fastest(self._normalised())
        if kind == "approximate" and self.X.shape[0] >= LEAST_ROWS:
            exact, self.kind = NeighborIndex(self.X, self.kind, n_jobs), GUESSES[self.kind]
            if self.kind == "kd_tree":  # with and without a width, it is the same tree
                self._built = exact._backend
            self._measure(exact)

    def __getstate__(self) -> dict[str, Any]:
        """Return what cannot be made again from the points: a backend holds them once more."""
        state = vars(self).copy()
        for name in ("rows_searched", "rows", "_built"):
            state.pop(name, None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.rows = kernel_rows(self.X)

    @property
    def _backend(self) -> Any:
        """What finds neighbours, built when first asked: a loaded model may never need it."""
        if self._built is None:
            with _BUILDING:
                if self._built is None:
                    build = INDEXES.get(self.kind, Codes)
                    self._built = build(self._normalised(), self.n_jobs)
        return self._built

    def _measure(self, exact: NeighborIndex) -> None:
        """Widen the search until a sample of the rows finds its neighbours."""
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
        """Make what proposes neighbours now, and not when it is first asked."""
        _ = self._backend

    def _normalised(self) -> Points:
        """Points whose squares cannot overflow: the points themselves, or a copy."""
        return self.X if self.scale == 1 else self.X * self.scale

    def _fastest(self, normalised: Points) -> str:
        """Name the quicker backend, by the work of a tree on some of the training rows."""
        n, columns = normalised.shape
        if sparse.issparse(normalised):
            return "brute"
        if columns <= TREE_COLUMNS or n <= TRIAL_ROWS:
            return "kd_tree"
        m = min(n, TREE_ROWS, max(TRIAL_ROWS, TREE_ENTRIES // columns))
        some, few = (normalised[np.linspace(0, n - 1, c).astype(int)] for c in (m, TRIAL_ROWS))
        share = share_looked_at(some, few, min(m, COUNTED), self.n_jobs)
        return "kd_tree" if share <= TREE_SHARE else "brute"

    def nearest(self, Q: Points, k: int) -> Neighbors:
        """Find the k nearest training rows, at most n, of each query (q, D)."""
        self.rows_searched += Q.shape[0]
        return self._nearest(Q, k)

    def _nearest(self, Q: Points, k: int) -> Neighbors:
        q, least = Q.shape[0], min(COUNTED, self.X.shape[0]) if self.width else 0
        if q and k < least:  # a wider search is to keep these
            return first_columns(self._nearest(Q, least), k)
        indices = np.empty((q, k), dtype=np.int64)
        distances = np.empty((q, k))
        chunk = max(256, CHUNK_ENTRIES // (k + 1))
        for at in range(0, q, chunk):
            rows = slice(at, at + chunk)
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
        elif Q.shape[0] > SCAN_ROWS:
            # Ties at the last place are common on grids and among duplicates, so a row whose
            # last candidate is no farther than its k-th neighbour is asked for more of them.
            for width in (k + 1, 2 * k + 16):
                open_rows = self._propose(Q, k, min(width, n), open_rows, indices, distances)
                if not len(open_rows):
                    return
        q, asked = len(open_rows), kernel_rows(Q[open_rows])
        found, apart = np.empty((q, k), dtype=np.int64), np.empty((q, k))
        over_rows(search.scan_nearest, q, self.n_jobs, self.rows, n, asked, found, apart)
        indices[open_rows], distances[open_rows] = found, apart

    def _in_tree(self, kernel: Callable[..., None], Q: np.ndarray, *arguments: object) -> None:
        parts = (self.rows, *self._backend.arrays, self.scale, np.ascontiguousarray(Q))
        over_rows(kernel, Q.shape[0], self.n_jobs, *parts, *arguments)

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
        near = largest_in_rows(Q[rows]) < FAR_AWAY / self.scale
        rows, beyond = rows[near], rows[~near]
        asked = Q[rows] * self.scale
        if not len(rows):
            return beyond
        found = self._backend.query(asked, width, self.n_jobs).astype(np.int64)
        apart = self._refine(Q[rows], found)
        indices[rows], distances[rows] = found[:, :k], apart[:, :k]
        if width == self.X.shape[0]:
            return beyond
        last, kth = apart[:, -1] * self.scale, apart[:, k - 1] * self.scale
        gap = last**2 - kth**2
        settled = (gap > 2 * self._backend.square_error(asked, last)) & (last > VERY_NEAR)
        return np.concatenate([rows[~settled], beyond])

    def _guess(self, Q: Points, k: int, indices: np.ndarray, distances: np.ndarray) -> np.ndarray:
        """Take the nearest of what is proposed; return the rows that have to be scanned."""
        width = min(max(self.width, 2 * k), self.X.shape[0])
        with np.errstate(over="ignore"):  # such a row is not near
            asked = Q * self.scale
        settled = self._backend.is_near(asked)
        found = self._backend.query(asked[settled], width, self.n_jobs)
        full = (found >= 0).all(axis=1)
        settled[settled] = full
        found, asked = np.ascontiguousarray(found[full]), kernel_rows(Q[settled])
        nearest, apart = np.empty((len(found), k), dtype=np.int64), np.empty((len(found), k))
        parts = (self.rows, asked, found, nearest, apart)
        over_rows(search.nearest_candidates, len(found), self.n_jobs, *parts)
        indices[settled], distances[settled] = nearest, apart
        return np.flatnonzero(~settled)

    def _refine(self, Q: Points, candidates: np.ndarray) -> np.ndarray:
        """Sort candidates in place by their own distances, which are returned."""
        q, asked, apart = Q.shape[0], kernel_rows(Q), np.empty(candidates.shape)
        over_rows(search.refine_candidates, q, self.n_jobs, self.rows, asked, candidates, apart)
        return apart

    def ball(self, Q: Points, radius: float, at_least: int) -> Neighbors:
        """Find the training rows within ``radius`` of each query (Eq. 4.1), the paper's epsilon.

        A ball with fewer than ``at_least`` rows is replaced by that many nearest ones; ``inside``
        tells how many rows the ball itself holds.
        """
        self.rows_searched += Q.shape[0]
        inside = np.minimum(self.ball_sizes(Q, radius), self.X.shape[0])
        taken = np.maximum(inside, at_least)
        indptr = np.concatenate([[0], np.cumsum(taken)])
        indices = np.empty(indptr[-1], dtype=np.int64)
        distances = np.empty(indptr[-1])
        # Rows with balls of like size share a search, so that one crowded ball does not make
        # every row pay for it.
        level = np.ceil(np.log2(taken)).astype(int)
        for size in np.unique(level):
            rows = np.flatnonzero(level == size)
            found = self._nearest(Q[rows], int(taken[rows].max()))
            width = found.indptr[1]
            keep = np.arange(width) < taken[rows][:, None]
            target = indptr[rows][:, None] + np.arange(width)
            indices[target[keep]] = found.indices.reshape(keep.shape)[keep]
            distances[target[keep]] = found.distances.reshape(keep.shape)[keep]
        return Neighbors(indptr, indices, distances, inside)

    def ball_sizes(self, Q: Points, radius: float) -> np.ndarray:
        """Count the rows within the radius, by exact distances."""
        sizes = np.empty(Q.shape[0], dtype=np.int64)
        if self.kind == "kd_tree":
            self._in_tree(trees.counts_in_tree, Q, float(radius), sizes)
        else:
            rows, asked = (self.rows, self.X.shape[0]), kernel_rows(Q)
            over_rows(
                search.scan_ball_counts, len(sizes), self.n_jobs, *rows, asked, radius, sizes
            )
        return sizes
