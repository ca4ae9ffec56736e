"""Points, dense or sparse, as the kernels take them; lengths of rows and the size of a map."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

# A float64 array (n, D), or a CSR matrix of that shape with sorted columns.
Points: TypeAlias = Any
# Entries at once, in what needs room for as many again: they stay in a processor's cache.
BLOCK_ENTRIES = 2**14
# NumPy sums rows of fewer entries one after the other: column by column it is faster, and the same.
NARROW = 8


def kernel_rows(X: Points) -> np.ndarray | tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Arrays that a kernel reads rows from: X itself, or (data, columns, starts) if sparse."""
    if sparse.issparse(X):
        return X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return np.ascontiguousarray(X)


def float64_rows(X: Points, copy: bool = False) -> Points:
    """Points as kernels read them: float64 rows in C order, or CSR with sorted columns."""
    if sparse.issparse(X):
        X = X.astype(np.float64, copy=True)
        X.sum_duplicates()
        return X
    return np.array(X, dtype=np.float64, order="C", copy=copy or None)


def largest_entry(X: Points) -> float:
    """Largest absolute value, 0 for no entries at all."""
    values = X.data if sparse.issparse(X) else X
    return max(abs(float(values.max())), abs(float(values.min()))) if values.size else 0.0


def largest_in_rows(X: Points) -> np.ndarray:
    """Largest absolute value (n,) of every row."""
    if sparse.issparse(X):
        return abs(X).max(axis=1).toarray().ravel()
    return np.abs(X).max(axis=1)


def some_rows(X: Points, rows: np.ndarray) -> Points:
    """Copy of some rows; of an array, faster than by brackets."""
    return X[rows] if sparse.issparse(X) else X.take(rows, axis=0)


def row_norms(X: Points, center: np.ndarray | None = None) -> np.ndarray:
    """Euclidean length (n,) of every row, or of a dense one its distance from a center."""
    if sparse.issparse(X):
        return np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    squares = _row_squares(X, 0.0 if center is None else center, 1.0)
    return np.sqrt(squares, out=squares)


def _row_squares(X: np.ndarray, center: np.ndarray | float, unit: float) -> np.ndarray:
    """Square (n,) of the distance of every row from a center, in units."""
    squares, size = np.empty(X.shape[0]), max(1, BLOCK_ENTRIES // X.shape[1])
    for at in range(0, len(squares), size):
        rows = X[at : at + size] - center
        rows /= unit
        rows *= rows
        if X.shape[1] < NARROW:
            squares[at : at + size] = sum(rows.T[1:], start=rows.T[0])
        else:
            rows.sum(axis=1, out=squares[at : at + size])
    return squares


def root_mean_square(rows: np.ndarray) -> float:
    """Root mean square length of the rows.

    >>> root_mean_square(np.array([[3.0, 4.0], [0.0, 5.0]]))
    5.0
    """
    return float(np.sqrt((rows**2).sum(axis=1).mean()))


def map_size(Y: np.ndarray) -> float:
    """Root mean square distance of the images (n, d) from their mean; 1 for a constant map."""
    # Sums of short rows: the same numbers in a quarter of the time, but for a single column.
    center = np.einsum("ij->j", Y) / len(Y) if Y.shape[1] > 1 else Y.mean(axis=0)
    columns = np.ascontiguousarray(Y.T)  # down the rows of Y, a range takes ten times as long
    largest = float(max((columns.max(axis=1) - center).max(), (center - columns.min(axis=1)).max()))
    if largest == 0:
        return 1.0
    return largest * float(np.sqrt(_row_squares(Y, center, largest).mean()))  # none overflows


def relative_error(placed: np.ndarray, truth: np.ndarray, size: float) -> float:
    """Mean distance of places from true images, both (q, d), over the size of the map."""
    return float(np.hypot.reduce((placed - truth) / size, axis=1).mean())


def unit_rows(X: Points) -> Points:
    """Every row scaled to length 1: the chord c stands for the cosine distance s, ``c^2 = 2 s``.

    A row of zeros has no direction and stays at the origin: s = 1/2 from all that have one.
    """
    sizes = _or_one(largest_in_rows(X))
    if sparse.issparse(X):
        # By a power of two first: one over the smallest sizes is beyond a double.
        units = np.ldexp(1.0, np.clip(np.frexp(sizes)[1], -1000, 1000))
        X = _times_rows(_times_rows(X, 1 / units), units / sizes)
        return _times_rows(X, 1 / _or_one(row_norms(X)))
    X = X / sizes[:, None]
    return X / _or_one(row_norms(X))[:, None]


def _or_one(lengths: np.ndarray) -> np.ndarray:
    return np.where(lengths > 0, lengths, 1.0)


def _times_rows(X: Points, factors: np.ndarray) -> Points:
    """Sparse rows times a factor each; a product of matrices could leave the columns unsorted."""
    X = X.copy()
    X.data *= np.repeat(factors, np.diff(X.indptr))
    return X


def in_metric(X: Points, metric: str) -> Points:
    """Points whose Euclidean distances are the metric's; for angles, unit vectors."""
    return unit_rows(X) if metric == "cosine" else X


def in_chords(radius: float | None, metric: str) -> float | None:
    """Radius between points `in_metric`, from one in the metric.

    >>> in_chords(0.5, "cosine")
    1.0
    """
    if radius is None or metric == "euclidean":
        return None if radius is None else float(radius)
    return float(np.sqrt(2 * float(radius)))
