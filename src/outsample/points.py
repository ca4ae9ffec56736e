"""Points, dense or sparse, as the kernels take them."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

# A float64 array (n, D), or a CSR matrix of that shape with sorted columns.
Points: TypeAlias = Any


def kernel_rows(X: Points) -> np.ndarray | tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Arrays that a kernel reads rows from.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, D)
        Points.

    Returns
    -------
    ndarray, or (data, columns, starts)
    """
    if sparse.issparse(X):
        return X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return np.ascontiguousarray(X)


def largest_entry(X: Points) -> float:
    """Largest absolute value, 0 for no entries at all.

    Parameters
    ----------
    X : ndarray or CSR matrix
        Points.

    Returns
    -------
    float
    """
    values = X.data if sparse.issparse(X) else X
    return max(abs(float(values.max())), abs(float(values.min()))) if values.size else 0.0


def largest_in_rows(X: Points) -> np.ndarray:
    """Largest absolute value of every row.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, D)
        Points.

    Returns
    -------
    ndarray of shape (n,)
    """
    if sparse.issparse(X):
        return abs(X).max(axis=1).toarray().ravel()
    return np.abs(X).max(axis=1)


def row_norms(X: Points) -> np.ndarray:
    """Euclidean length of every row.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, D)
        Points.

    Returns
    -------
    ndarray of shape (n,)
    """
    squares = X.multiply(X).sum(axis=1) if sparse.issparse(X) else (X**2).sum(axis=1)
    return np.sqrt(np.asarray(squares).ravel())


def unit_rows(X: Points) -> Points:
    """Scale every row to length 1, so that chords stand for angles.

    The chord c and the cosine distance s of two points are tied by ``c^2 = 2 s``.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, D)
        Points.

    Returns
    -------
    ndarray or CSR matrix
    """
    sizes = largest_in_rows(X)
    if not sizes.all():
        row = int(np.argmin(sizes))
        raise ValueError(f"Input X: row {row} is all zeros; metric='cosine' needs a direction.")
    if sparse.issparse(X):
        X = sparse.diags(1 / sizes) @ X
        return (sparse.diags(1 / row_norms(X)) @ X).tocsr()
    X = X / sizes[:, None]
    return X / row_norms(X)[:, None]


def in_metric(X: Points, metric: str) -> Points:
    """Points whose Euclidean distances are the metric's; for angles, unit vectors.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, D)
        Points.
    metric : {"euclidean", "cosine"}
        The metric.

    Returns
    -------
    ndarray or CSR matrix
    """
    return unit_rows(X) if metric == "cosine" else X


def in_chords(radius: float | None, metric: str) -> float | None:
    """Turn a radius of the metric into one between points `in_metric`.

    Parameters
    ----------
    radius : float or None
        In the metric.
    metric : {"euclidean", "cosine"}
        The metric.

    Returns
    -------
    float or None

    Examples
    --------
    >>> in_chords(0.5, "cosine")
    1.0
    """
    if radius is None or metric == "euclidean":
        return radius
    return float(np.sqrt(2 * radius))


def map_size(Y: np.ndarray) -> float:
    """Root mean square distance of images (n, d) from their mean; 1 for a constant map."""
    centered = Y - Y.mean(axis=0)
    largest = np.abs(centered).max()
    if largest == 0:
        return 1.0
    return float(largest * np.sqrt(((centered / largest) ** 2).sum(axis=1).mean()))
