"""Search among the rows that were fitted and those learned since.

The fitted rows keep their index. Learned rows come after them: most of them in an index of their
own, the latest compared one by one, until there are so many that their index is rebuilt. Together
they return the same neighbours at the same distances as one index of all rows, bit for bit, so that
no result depends on when that happens.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from scipy import sparse

from outsample.neighbors.brute_force import RowScan
from outsample.neighbors.index import NeighborIndex
from outsample.points import Points

# Learned rows that are compared one by one: at most this number, or this fraction (1 / 32) of all.
MAX_SCANNED_ROWS, SCANNED_FRACTION = 1024, 32


class GrowingBackend:
    """Search in a base index, an index of learned rows (or None), and the latest learned rows."""

    def __init__(self, base: NeighborIndex, X: Points, learned: NeighborIndex | None) -> None:
        self.learned = learned
        self.parts = [base] if learned is None else [base, learned]
        latest = X[sum(part.X.shape[0] for part in self.parts) :]
        if latest.shape[0]:
            scan = RowScan(latest, base.n_jobs)
            self.parts.append(NeighborIndex(latest, "brute", base.n_jobs, backend=scan))
        sizes = [part.X.shape[0] for part in self.parts]
        self.starts = np.cumsum([0, *sizes[:-1]])

    def nearest(self, Q: Points, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the k nearest rows of each query and their distances, both (q, k)."""
        results = [part.search(Q, min(k, part.X.shape[0])) for part in self.parts]
        indices = np.hstack([rows + at for (rows, _), at in zip(results, self.starts, strict=True)])
        distances = np.hstack([lengths for _, lengths in results])
        # Stable: of rows at the same distance the first comes first.
        order = np.argsort(distances, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(indices, order, 1), np.take_along_axis(distances, order, 1)

    def ball_sizes(self, Q: Points, radius: float) -> np.ndarray:
        """Return the number of rows (q,) within the radius of each query."""
        return np.sum([part.ball_sizes(Q, radius) for part in self.parts], axis=0)


def growing_index(
    base: NeighborIndex, X: Points, previous: NeighborIndex | None = None
) -> NeighborIndex:
    """Return an index of X (n + l, D), whose first n rows are those of ``base``.

    ``previous`` is a growing index of the first rows of X, if there is one: its index of learned
    rows is reused until too many others came after it.

    >>> base = NeighborIndex(np.array([[0.0], [1.0], [3.0]]))
    >>> index = growing_index(base, np.array([[0.0], [1.0], [3.0], [0.8], [1.0]]))
    >>> index.nearest(np.array([[0.95]]), 3).indices
    array([1, 4, 3])
    """
    n, total = base.X.shape[0], X.shape[0]
    if total == n:
        return base
    learned = getattr(previous and previous._built, "learned", None)
    n_scanned = total - n - (0 if learned is None else learned.X.shape[0])
    if n_scanned > max(MAX_SCANNED_ROWS, (total - n) // SCANNED_FRACTION):
        # Exact, even after an approximate base: its width would have to be measured repeatedly.
        learned = NeighborIndex(X[n:], "auto" if base.width else base.kind, base.n_jobs)
        learned.build()
    kind = "brute" if base.kind == "codes" else base.kind
    backend = GrowingBackend(base, X, learned)
    return NeighborIndex(X, kind, base.n_jobs, recall=base.recall, backend=backend)


def are_new(Q: Points, rows: Points) -> np.ndarray:
    """Return which points (q,) differ from all rows and all previous points, dense or sparse.

    >>> are_new(np.array([[1.0], [2.0], [1.0]]), np.array([[2.0], [3.0]]))
    array([ True, False, False])
    """
    # Equal rows have equal first numbers, or equal sums; hardly any others do.
    marks = [X @ np.ones(X.shape[1]) if sparse.issparse(X) else X[:, 0] for X in (rows, Q)]
    seen, is_new = set(_row_keys(rows[np.isin(*marks)])), np.zeros(Q.shape[0], dtype=bool)
    for row, key in enumerate(_row_keys(Q)):
        is_new[row] = key not in seen
        seen.add(key)
    return is_new


def _row_keys(X: Points) -> Iterator[tuple[bytes, bytes]]:
    """Yield the bytes of each row: the same for equal rows, whatever the sign of a zero."""
    if not sparse.issparse(X):
        yield from ((row.tobytes(), b"") for row in X + 0.0)
        return
    for start, stop in pairwise(X.indptr):
        inside = start + np.flatnonzero(X.data[start:stop])
        yield X.indices[inside].astype(np.int64).tobytes(), X.data[inside].tobytes()
