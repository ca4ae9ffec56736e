"""Dense and sparse points: conversion for the kernels, row norms, metrics, size of a map."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

# A float64 array (n, D), or a CSR matrix of that shape with sorted columns.
Points: TypeAlias = Any
# Entries of a temporary chunk that stays in the processor's cache.
CACHED_ENTRIES = 2**14
# NumPy sums rows of fewer entries sequentially; a sum over columns is faster and bit-identical.
SEQUENTIAL_SUM_COLUMNS = 8
# Points are scaled for a search if their `unit_scale` is beyond this, or below one over it.
MAX_UNIT_SCALE = 2.0**64


def kernel_rows(X: Points) -> np.ndarray | tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the arrays that a kernel reads: X itself, or (data, columns, starts) if sparse."""
    if sparse.issparse(X):
        return X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return np.ascontiguousarray(X)


def float64_rows(X: Points, copy: bool = False) -> Points:
    """Return the points as float64 rows in C order, or as CSR with sorted columns."""
    if sparse.issparse(X):
        if X.dtype == np.float64 and X.has_canonical_format and not copy:
            return X
        X = X.astype(np.float64, copy=True)
        X.sum_duplicates()
        return X
    return np.array(X, dtype=np.float64, order="C", copy=copy or None)


def largest_entry(X: Points) -> float:
    """Return the largest absolute value; 0 without entries."""
    values = X.data if sparse.issparse(X) else X
    return max(abs(float(values.max())), abs(float(values.min()))) if values.size else 0.0


def unit_scale(X: Points) -> float:
    """Return the power of two that scales the largest entry to 1/2 ... 1; 1 if all are 0.

    A power of two does not round. In such units squares neither overflow nor vanish.

    >>> unit_scale(np.array([[3.0], [-5.0]]))
    0.125
    """
    largest = largest_entry(X)
    return float(2.0 ** -np.clip(np.frexp(largest)[1], -1000, 1000)) if largest > 0 else 1.0


def search_scale(X: Points) -> float:
    """Return the `unit_scale` of points with extreme entries; 1 for others, to save a copy."""
    scale = unit_scale(X)
    return 1.0 if 1 / MAX_UNIT_SCALE <= scale <= MAX_UNIT_SCALE else scale


def largest_in_rows(X: Points) -> np.ndarray:
    """Return the largest absolute value (n,) of each row."""
    if sparse.issparse(X):
        return abs(X).max(axis=1).toarray().ravel()
    return np.abs(X).max(axis=1)


def some_rows(X: Points, rows: np.ndarray) -> Points:
    """Return a copy of the rows; ``take`` is faster than indexing of an array."""
    return X[rows] if sparse.issparse(X) else X.take(rows, axis=0)


def row_norms(X: Points, center: np.ndarray | None = None) -> np.ndarray:
    """Return the Euclidean norm (n,) of each row, for dense rows after subtracting a center."""
    if sparse.issparse(X):
        return np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    squares = _row_squares(X, 0.0 if center is None else center, 1.0)
    return np.sqrt(squares, out=squares)


def _row_squares(X: np.ndarray, center: np.ndarray | float, unit: float) -> np.ndarray:
    """Return the squared distance (n,) of each row from a center, over the squared unit."""
    squares, chunk_rows = np.empty(X.shape[0]), max(1, CACHED_ENTRIES // X.shape[1])
    for start in range(0, len(squares), chunk_rows):
        rows = X[start : start + chunk_rows] - center
        rows /= unit
        rows *= rows
        if X.shape[1] < SEQUENTIAL_SUM_COLUMNS:
            squares[start : start + chunk_rows] = sum(rows.T[1:], start=rows.T[0])
        else:
            rows.sum(axis=1, out=squares[start : start + chunk_rows])
    return squares


def root_mean_square(rows: np.ndarray) -> float:
    """Return the root mean square norm of the rows.

    >>> root_mean_square(np.array([[3.0, 4.0], [0.0, 5.0]]))
    5.0
    """
    return float(np.sqrt((rows**2).sum(axis=1).mean()))


def map_size(Y: np.ndarray) -> float:
    """Return the root mean square distance of a map (n, d) from its mean; 1 if it is constant."""
    # einsum takes a quarter of the time of mean, with equal results for two or more columns.
    center = np.einsum("ij->j", Y) / len(Y) if Y.shape[1] > 1 else Y.mean(axis=0)
    columns = np.ascontiguousarray(Y.T)  # min and max along axis 0 of Y take ten times as long
    largest = float(max((columns.max(axis=1) - center).max(), (center - columns.min(axis=1)).max()))
    if largest == 0:
        return 1.0
    # In units of the largest distance, so that squares do not overflow.
    return largest * float(np.sqrt(_row_squares(Y, center, largest).mean()))


def relative_error(placed: np.ndarray, truth: np.ndarray, size: float) -> float:
    """Return the mean distance of coordinates (q, d) from the true ones, over the map size."""
    return float(np.hypot.reduce((placed - truth) / size, axis=1).mean())


def unit_rows(X: Points) -> Points:
    """Return the rows scaled to norm 1, where Euclidean and cosine distance have ``c^2 = 2 s``.

    A row of zeros stays at the origin, at cosine distance 1/2 from all other rows.
    """
    sizes = _or_one(largest_in_rows(X))
    if sparse.issparse(X):
        # By a power of two first: the reciprocal of the smallest sizes would overflow.
        units = np.ldexp(1.0, np.clip(np.frexp(sizes)[1], -1000, 1000))
        X = _times_rows(_times_rows(X, 1 / units), units / sizes)
        return _times_rows(X, 1 / _or_one(row_norms(X)))
    X = X / sizes[:, None]
    return X / _or_one(row_norms(X))[:, None]


def _or_one(lengths: np.ndarray) -> np.ndarray:
    return np.where(lengths > 0, lengths, 1.0)


def _times_rows(X: Points, factors: np.ndarray) -> Points:
    """Return sparse rows times one factor per row, with sorted columns, unlike a matrix product."""
    X = X.copy()
    X.data *= np.repeat(factors, np.diff(X.indptr))
    return X


def in_metric(X: Points, metric: str) -> Points:
    """Return points whose Euclidean distances order as the metric; unit vectors for cosine."""
    return unit_rows(X) if metric == "cosine" else X


def in_chords(radius: float | None, metric: str) -> float | None:
    """Return the Euclidean radius between points of `in_metric` for a radius in the metric.

    >>> in_chords(0.5, "cosine")
    1.0
    """
    if radius is None or metric == "euclidean":
        return None if radius is None else float(radius)
    return float(np.sqrt(2 * float(radius)))
