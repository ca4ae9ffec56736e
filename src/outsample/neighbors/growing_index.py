"""Exact search among frozen rows and those learned since.

What was fitted keeps its index for ever. Learned rows come behind its rows: most of them in an
index of their own, the last few compared one by one, until they are so many that the index is made
anew. All three find the same neighbours at the same distances as one index over all rows, bit for
bit, so that no answer depends on when that happens.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from outsample._compiled import search
from outsample._parallel import over_rows
from outsample.neighbors.index import NeighborIndex
from outsample.points import Points, kernel_rows
from outsample.records import Neighbors

# Learned rows that are compared one by one: no more than this, or than this part of them all.
SCANNED, SCANNED_PART = 1024, 32
# Rows that there is room for at least.
ROOM = 256


class LearnedIndex(NeighborIndex):
    """Neighbours among the rows of an index and those behind them in X (n + l, D).

    >>> base = NeighborIndex(np.array([[0.0], [1.0], [3.0]]))
    >>> index = learned_index(base, np.array([[0.0], [1.0], [3.0], [0.8], [1.0]]))
    >>> index.nearest(np.array([[0.95]]), 3).indices
    array([1, 4, 3])
    """

    def __init__(self, base: NeighborIndex, X: Points, tree: NeighborIndex | None) -> None:
        self.X, self.base, self.tree = X, base, tree
        self.rows = kernel_rows(X)
        self.kind, self.n_jobs, self.scale = base.kind, base.n_jobs, base.scale
        self.recall = base.recall
        indexed = 0 if tree is None else tree.X.shape[0]
        self.scanned_from = base.X.shape[0] + indexed

    def _nearest(self, Q: Points, k: int) -> Neighbors:
        """Merge what the parts find: the first of those at one distance are the first rows."""
        q, n, total = Q.shape[0], self.base.X.shape[0], self.X.shape[0]
        found = [self._of(self.base, Q, k, 0)]
        if self.tree is not None:
            found.append(self._of(self.tree, Q, k, n))
        left = total - self.scanned_from
        if left:
            shape = q, min(k, left)
            indices, distances = np.empty(shape, dtype=np.int64), np.empty(shape)
            rows, asked = kernel_rows(self.X[self.scanned_from :]), kernel_rows(Q)
            over_rows(search.scan_nearest, q, self.n_jobs, rows, left, asked, indices, distances)
            found.append((indices + self.scanned_from, distances))
        indices, distances = (np.hstack(part) for part in zip(*found, strict=True))
        order = np.argsort(distances, axis=1, kind="stable")[:, :k]
        indices = np.take_along_axis(indices, order, axis=1)
        distances = np.take_along_axis(distances, order, axis=1)
        indptr = np.arange(0, q * k + 1, k) if q else np.zeros(1, dtype=np.int64)
        return Neighbors(indptr, indices.ravel(), distances.ravel(), np.full(q, k))

    def ball_sizes(self, Q: Points, radius: float) -> np.ndarray:
        """Count the rows within the radius, by exact distances."""
        sizes = self.base.ball_sizes(Q, radius)
        if self.tree is not None:
            sizes = sizes + self.tree.ball_sizes(Q, radius)
        left = self.X.shape[0] - self.scanned_from
        if not left:
            return sizes
        counts = np.empty(Q.shape[0], dtype=np.int64)
        rows, asked = kernel_rows(self.X[self.scanned_from :]), kernel_rows(Q)
        over_rows(
            search.scan_ball_counts, len(counts), self.n_jobs, rows, left, asked, radius, counts
        )
        return sizes + counts

    @staticmethod
    def _of(
        index: NeighborIndex, Q: Points, k: int, first: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows, from ``first`` on, and distances (q, k) that an index finds, or all it has."""
        k = min(k, index.X.shape[0])
        near = index._nearest(Q, k)
        return near.indices.reshape(-1, k) + first, near.distances.reshape(-1, k)


def learned_index(
    base: NeighborIndex, X: Points, tree: NeighborIndex | None = None
) -> NeighborIndex:
    """Index over the rows of ``base`` and those behind them in X; it is ready to be asked.

    ``tree`` is the index of learned rows so far, the first of them.
    """
    n, total = base.X.shape[0], X.shape[0]
    if total == n:
        return base
    left = total - n - (0 if tree is None else tree.X.shape[0])
    if left > max(SCANNED, (total - n) // SCANNED_PART):
        # Exact beside an approximate one: it grows, and its width would have to be measured anew.
        tree = NeighborIndex(X[n:], "auto" if base.width else base.kind, base.n_jobs)
        tree.build()
    return LearnedIndex(base, X, tree)


def are_new(Q: Points, rows: Points) -> np.ndarray:
    """Which points (q,) equal none of the rows and no point before them, dense or sparse.

    >>> are_new(np.array([[1.0], [2.0], [1.0]]), np.array([[2.0], [3.0]]))
    array([ True, False, False])
    """
    # Equal rows have the same first number, or the same sum, and hardly any others do.
    marks = [X @ np.ones(X.shape[1]) if sparse.issparse(X) else X[:, 0] for X in (rows, Q)]
    seen, new = set(_row_keys(rows[np.isin(*marks)])), np.zeros(Q.shape[0], dtype=bool)
    for row, key in enumerate(_row_keys(Q)):
        new[row] = key not in seen
        seen.add(key)
    return new


def _row_keys(X: Points) -> Iterator[tuple[bytes, bytes]]:
    """Yield the bytes of each row: equal ones for equal rows, whatever the sign of a zero."""
    if not sparse.issparse(X):
        yield from ((row.tobytes(), b"") for row in X + 0.0)
        return
    for start, stop in pairwise(X.indptr):
        inside = start + np.flatnonzero(X.data[start:stop])
        yield X.indices[inside].astype(np.int64).tobytes(), X.data[inside].tobytes()


class GrowingTable:
    """Columns of one length, to whose ends rows are added without copying what is there.

    Columns that were handed out stay as they are: new rows are written behind them. One thread
    adds, others may read. Sparse rows are copied.

    >>> table = GrowingTable([np.zeros((2, 1))], room=1)
    >>> first = table.with_rows(2, [np.ones((1, 1))])[0]
    >>> table.with_rows(3, [np.full((2, 1), 2.0)])[0].ravel()
    array([0., 0., 1., 2., 2.])
    >>> first.ravel()
    array([0., 0., 1.])
    """

    def __init__(self, columns: list[Points], room: int = ROOM) -> None:
        self.columns = [self._roomy(column, column.shape[0], room) for column in columns]

    def first_rows(self, length: int) -> list[Points]:
        """Return the columns up to a length."""
        return [column[:length] for column in self.columns]

    def with_rows(self, length: int, rows: list[Points]) -> list[Points]:
        """Return columns of that length with rows behind them."""
        added = rows[0].shape[0]
        for at, (column, new) in enumerate(zip(self.columns, rows, strict=True)):
            if sparse.issparse(column):
                self.columns[at] = sparse.vstack([column[:length], new], format="csr")
                continue
            if len(column) < length + added:
                room = max(ROOM, added, length // 8)
                self.columns[at] = column = self._roomy(column, length, added + room)
            column[length : length + added] = new
        return self.first_rows(length + added)

    @staticmethod
    def _roomy(column: Any, length: int, room: int) -> Any:
        """Copy of a column with room behind it."""
        if sparse.issparse(column):
            return column
        roomy = np.empty((length + room, *column.shape[1:]), dtype=column.dtype)
        roomy[:length] = column[:length]
        return roomy
