"""Training points without copies, in an order that does not depend on the rows' numbers.

Copies say the same thing: they are carried as one point with a count and the mean of their images.
The others are sorted by what they are, so that whoever breaks a tie by index, or takes a sample,
does the same however the rows were shuffled: first by the distance from the mean of all, which
turning and shifting leave alone, then by a number made of the entries.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from outsample._compiled.distinct import ordered_sums, row_hashes
from outsample._parallel import over_rows
from outsample.points import Points, largest_entry, row_norms, some_rows

# Largest entries within two to this power, or minus it, are squared as they are.
PLAIN = 64


class Distinct(NamedTuple):
    """Distinct points among n rows.

    ``rows`` (m,) is the first row of each, ``counts`` (m,) how many there are, ``groups`` (n,)
    which one a row is. If all rows are equal, two points stand for them, so that leaving one out
    leaves one: row 0 and the others. Both have row 0 as their first and the mean image of all.
    """

    rows: np.ndarray
    counts: np.ndarray
    groups: np.ndarray

    @property
    def is_one_point(self) -> bool:
        """Whether all rows are equal."""
        return bool(self.rows[0] == self.rows[-1])

    @property
    def n_equal(self) -> np.ndarray:
        """Number of rows (m,) that are equal to each point."""
        return np.full(2, len(self.groups)) if self.is_one_point else self.counts

    def means(self, Y: np.ndarray) -> np.ndarray:
        """Mean images (m, d) of the copies; exact where these agree."""
        anchors = some_rows(Y, self.rows)
        if len(self.rows) == len(Y) and not self.is_one_point:
            return anchors
        sums = np.zeros_like(anchors)
        np.add.at(sums, self.groups, (Y - anchors[self.groups]) / self.n_equal[self.groups, None])
        return anchors + (sums.sum(axis=0) if self.is_one_point else sums)


def distinct_points(X: Points, n_jobs: int | None = None) -> Distinct:
    """Find copies among rows (n, D), and put the distinct points in order."""
    n = X.shape[0]
    hashes = np.empty(n, dtype=np.uint64)
    bits: tuple[np.ndarray, ...]
    if sparse.issparse(X):
        bits = X.data.view(np.uint64), X.indices.astype(np.int64), X.indptr.astype(np.int64)
    else:
        bits = (np.ascontiguousarray(X).view(np.uint64),)
    over_rows(row_hashes, n, n_jobs, bits, hashes)
    by_hash = np.argsort(hashes)
    is_new = np.r_[True, np.diff(hashes[by_hash]) > 0]
    groups = np.empty(n, dtype=np.int64)
    groups[by_hash] = np.cumsum(is_new) - 1
    rows = np.minimum.reduceat(by_hash, np.flatnonzero(is_new))  # the first of each
    if not _same(X, rows[groups]):  # two points with one number: as good as never
        dense = X.toarray() if sparse.issparse(X) else X + 0.0
        groups = np.unique(dense, axis=0, return_inverse=True)[1].ravel()
        rows = np.unique(groups, return_index=True)[1]
    if len(rows) == 1:
        rows, groups = np.array([0, 0]), np.minimum(np.arange(n), 1)
    outwards = _outwards(X, rows, n_jobs)
    order = np.argsort(outwards)
    if (np.diff(outwards[order]) == 0).any():
        order = np.lexsort((hashes[rows], outwards))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return Distinct(rows[order], np.bincount(groups)[order], rank[groups])


class Copies(NamedTuple):
    """Rows that have copies, left out: which points they are, and the errors of the copies' mean.

    ``points`` (c,) are among the distinct ones, ``images`` (c, d) the means without the row,
    ``errors`` (c,) their distances from its own; ``has_copies`` (m,) tells such points, ``share``
    is that of their rows among all.
    """

    points: np.ndarray
    images: np.ndarray
    errors: np.ndarray
    has_copies: np.ndarray
    share: float


def left_out_copies(distinct: Distinct, Y: np.ndarray, most: int = 1000) -> Copies:
    """Place rows with copies by the mean of these: some of them, whatever their row numbers."""
    if distinct.n_equal.max() == 1:
        nobody = np.empty(0, dtype=np.int64)
        return Copies(nobody, Y[:0], np.empty(0), distinct.counts > 1, 0.0)
    counts = distinct.n_equal[distinct.groups]
    rows = np.flatnonzero(counts > 1)
    share = len(rows) / len(Y)
    rows = rows[np.lexsort((*Y[rows].T[::-1], distinct.groups[rows]))]
    rows = rows[np.random.default_rng(0).permutation(len(rows))[:most]]
    groups, means = distinct.groups[rows], distinct.means(Y)
    away = (means[groups] - Y[rows]) * (counts[rows] / np.maximum(counts[rows] - 1, 1))[:, None]
    errors = np.hypot.reduce(away, axis=1)
    return Copies(groups, Y[rows] + away, errors, distinct.n_equal > 1, share)


def _same(X: Points, first: np.ndarray) -> bool:
    """Tell whether every row equals the one that stands for it."""
    copies = np.flatnonzero(first != np.arange(len(first)))
    if not len(copies):
        return True
    if sparse.issparse(X):
        return bool((X[copies] != X[first[copies]]).nnz == 0)
    return bool((X[copies] == X[first[copies]]).all())


def _outwards(X: Points, rows: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """Distance (m,) of distinct points from their mean; sparse ones, from the origin."""
    exponent = int(np.frexp(largest_entry(X))[1])
    if abs(exponent) > PLAIN:  # squares must neither overflow nor vanish
        X = X * 2.0 ** -np.clip(exponent, -1000, 1000)
    if sparse.issparse(X):
        return row_norms(X[rows])
    center, norms = _mean(X, rows), np.empty(X.shape[0])

    def fill(start: int, stop: int) -> None:
        norms[start:stop] = row_norms(X[start:stop], center)

    over_rows(fill, len(norms), n_jobs)
    return norms[rows]


def _mean(X: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Mean (D,) of rows, summed in their order, as NumPy does where there is more than a column."""
    if X.shape[1] == 1:
        return X[rows].mean(axis=0)
    sums = np.empty(X.shape[1])
    ordered_sums(np.ascontiguousarray(X), rows, sums)
    return sums / len(rows)
