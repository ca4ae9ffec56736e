"""Training points without duplicate rows, in an order that does not depend on row numbers.

Duplicate rows are one point with a count and the mean of their images. Points are sorted by
content, so that breaking ties by index and drawing samples give the same result however the rows
were shuffled: first by the distance from the mean of all points, which rotation and translation
preserve, then by a hash of the entries.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from outsample._compiled.distinct import ordered_sums, row_hashes
from outsample._parallel import over_rows
from outsample.points import Points, row_norms, search_scale, some_rows


class Duplicates(NamedTuple):
    """Duplicates points among n rows.

    ``rows`` (m,) is the first row of each point, ``counts`` (m,) its number of rows, ``groups``
    (n,) the point of each row. If all rows are equal, two points represent them, so that leaving
    one out leaves one: row 0 and the others. Both have row 0 as their first row and the mean image
    of all rows.
    """

    rows: np.ndarray
    counts: np.ndarray
    groups: np.ndarray

    @property
    def is_one_point(self) -> bool:
        """Return True if all rows are equal."""
        return bool(self.rows[0] == self.rows[-1])

    @property
    def n_equal(self) -> np.ndarray:
        """Return the number of rows (m,) that are equal to each point."""
        return np.full(2, len(self.groups)) if self.is_one_point else self.counts

    def means(self, Y: np.ndarray) -> np.ndarray:
        """Return the mean image (m, d) of each point's rows; exact where these agree."""
        anchors = some_rows(Y, self.rows)
        if len(self.rows) == len(Y) and not self.is_one_point:
            return anchors
        sums = np.zeros_like(anchors)
        np.add.at(sums, self.groups, (Y - anchors[self.groups]) / self.n_equal[self.groups, None])
        return anchors + (sums.sum(axis=0) if self.is_one_point else sums)


def find_duplicates(X: Points, n_jobs: int | None = None) -> Duplicates:
    """Return the distinct points among rows (n, D), in order."""
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
    if not _are_equal(X, rows[groups]):  # a hash collision: practically never
        dense = X.toarray() if sparse.issparse(X) else X + 0.0
        groups = np.unique(dense, axis=0, return_inverse=True)[1].ravel()
        rows = np.unique(groups, return_index=True)[1]
    if len(rows) == 1:
        rows, groups = np.array([0, 0]), np.minimum(np.arange(n), 1)
    distances = _distances_from_mean(X, rows, n_jobs)
    order = np.argsort(distances)
    if (np.diff(distances[order]) == 0).any():
        order = np.lexsort((hashes[rows], distances))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return Duplicates(rows[order], np.bincount(groups)[order], rank[groups])


class LeftOutDuplicates(NamedTuple):
    """Sampled rows that have duplicates, each placed at the mean image of the others.

    ``points`` (c,) are the distinct points of the rows, ``images`` (c, d) the means without the
    row, ``errors`` (c,) their distances from its own image. ``has_duplicates`` (m,) marks points
    with several rows, and ``share`` is the share of such rows among all.
    """

    points: np.ndarray
    images: np.ndarray
    errors: np.ndarray
    has_duplicates: np.ndarray
    share: float


def leave_out_duplicates(
    duplicates: Duplicates, Y: np.ndarray, max_rows: int = 1000
) -> LeftOutDuplicates:
    """Place a sample of the rows with duplicates by the mean of the others' images."""
    if duplicates.n_equal.max() == 1:
        no_rows = np.empty(0, dtype=np.int64)
        return LeftOutDuplicates(no_rows, Y[:0], np.empty(0), duplicates.counts > 1, 0.0)
    counts = duplicates.n_equal[duplicates.groups]
    rows = np.flatnonzero(counts > 1)
    share = len(rows) / len(Y)
    # Sorted by content, so that the sample does not depend on row numbers.
    rows = rows[np.lexsort((*Y[rows].T[::-1], duplicates.groups[rows]))]
    rows = rows[np.random.default_rng(0).permutation(len(rows))[:max_rows]]
    groups, means = duplicates.groups[rows], duplicates.means(Y)
    factors = counts[rows] / np.maximum(counts[rows] - 1, 1)
    differences = (means[groups] - Y[rows]) * factors[:, None]
    errors = np.hypot.reduce(differences, axis=1)
    is_repeated = duplicates.n_equal > 1
    return LeftOutDuplicates(groups, Y[rows] + differences, errors, is_repeated, share)


def _are_equal(X: Points, first: np.ndarray) -> bool:
    """Return True if every row equals the row ``first`` (n,) of its group."""
    repeated = np.flatnonzero(first != np.arange(len(first)))
    if not len(repeated):
        return True
    if sparse.issparse(X):
        return bool((X[repeated] != X[first[repeated]]).nnz == 0)
    return bool((X[repeated] == X[first[repeated]]).all())


def _distances_from_mean(X: Points, rows: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """Return the distance (m,) of points from their mean; for sparse ones, from the origin."""
    scale = search_scale(X)
    X = X if scale == 1 else X * scale
    if sparse.issparse(X):
        return row_norms(X[rows])
    center, norms = _mean(X, rows), np.empty(X.shape[0])

    def fill(start: int, stop: int) -> None:
        norms[start:stop] = row_norms(X[start:stop], center)

    over_rows(fill, len(norms), n_jobs)
    return norms[rows]


def _mean(X: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the mean (D,) of rows, summed in their order, as NumPy does for several columns."""
    if X.shape[1] == 1:
        return X[rows].mean(axis=0)
    sums = np.empty(X.shape[1])
    ordered_sums(np.ascontiguousarray(X), rows, sums)
    return sums / len(rows)
