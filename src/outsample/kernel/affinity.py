"""Gaussian kernels of points (Eq. 7.3): dense matrices, and sums over them.

The letter epsilon is the paper's: ``g(x, y) = exp(-|x - y|^2 / epsilon)``, a squared length.
"""

from __future__ import annotations

import numpy as np

from outsample._kernels import affinity as kernels
from outsample._parallel import one_blas_thread, over_rows
from outsample.points import Points, kernel_rows, largest_entry

# From this many columns on, distances of all pairs come from one product of matrices, but those
# whose squares are below this share of the squared sizes of both points: their digits cancel.
MANY_COLUMNS = 256
CANCELLED = 0.01
BLOCK_ROWS = 512


def distances(X: Points, Q: Points | None = None, n_jobs: int | None = None) -> np.ndarray:
    """Distances (q, n) between all pairs, or (n, n) without Q, from the coordinates themselves."""
    n = X.shape[0]
    rows = kernel_rows(X)
    if Q is None and isinstance(rows, np.ndarray) and X.shape[1] >= MANY_COLUMNS:
        return _by_products(rows, n_jobs)
    if Q is None:
        apart = np.empty((n, n))
        over_rows(kernels.own_distances, n, n_jobs, rows, apart)
        return apart
    apart = np.empty((Q.shape[0], n))
    over_rows(kernels.all_distances, Q.shape[0], n_jobs, kernel_rows(Q), rows, n, apart)
    return apart


def _by_products(X: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """Distances (n, n) of rows with many columns, to 13 digits: ``|x|^2 - 2xy + |y|^2``."""
    n = len(X)
    unit = np.ldexp(1.0, np.clip(np.frexp(largest_entry(X))[1], -1000, 1000))
    Z = X / unit
    Z -= Z.mean(axis=0)
    squares, apart = np.einsum("nd,nd->n", Z, Z), np.empty((n, n))
    for at in range(0, n, BLOCK_ROWS):
        to = min(at + BLOCK_ROWS, n)
        sizes = np.add.outer(squares[at:to], squares[:to])
        with one_blas_thread:  # the same digits on any number of threads
            found = Z[at:to] @ Z[:to].T
        found *= -2
        found += sizes
        sizes *= CANCELLED
        rows, columns = np.nonzero(np.tril(found < sizes, at - 1))
        np.sqrt(np.maximum(found, 0.0, out=found), out=found)
        found *= unit
        exact = np.empty(len(rows))
        over_rows(kernels.pair_distances, len(rows), n_jobs, X, rows + at, columns, exact)
        found[rows, columns] = exact
        apart[at:to, :to], apart[:to, at:to] = found, found.T
        own = np.tril(found[:, at:], -1)
        apart[at:to, at:to] = own + own.T
    return apart


def gaussian_of(apart: np.ndarray, epsilon: float, out: np.ndarray | None = None) -> np.ndarray:
    """Gaussian kernel (Eq. 7.3) of given distances, written to ``out``, which may be ``apart``."""
    out = np.divide(apart, np.sqrt(epsilon), out=out)
    np.minimum(out, kernels.BEYOND, out=out)
    np.multiply(out, out, out=out)
    np.negative(out, out=out)
    return np.exp(out, out=out)


def gaussian(X: Points, epsilon: float, n_jobs: int | None = None) -> np.ndarray:
    """Gaussian kernel matrix (n, n), ``G_ij = exp(-|x_i - x_j|^2 / epsilon)`` (Eq. 7.2, 7.3).

    Symmetric to the last bit, 1 on the diagonal; the only array of that size.

    >>> gaussian(np.array([[0.0], [1.0]]), 1.0).round(3)
    array([[1.   , 0.368],
           [0.368, 1.   ]])
    """
    apart = distances(X, n_jobs=n_jobs)
    return gaussian_of(apart, epsilon, out=apart)


def expansion(
    X: Points,
    Q: Points,
    epsilon: float,
    coefficients: np.ndarray,
    *,
    normalize: bool = False,
    n_jobs: int | None = None,
) -> np.ndarray:
    """``sum_j g(x, x_j) c_j`` (q, d), over ``sum_j g(x, x_j)`` with ``normalize``.

    Summed in the same order for any batch. Far from the data the quotient tends to the
    coefficient of the nearest training point, the plain sum to 0.
    """
    q, n, root = Q.shape[0], X.shape[0], float(np.sqrt(epsilon))
    values = np.empty((q, coefficients.shape[1]))
    c = np.ascontiguousarray(coefficients, dtype=np.float64)
    rows, asked = kernel_rows(X), kernel_rows(Q)
    over_rows(kernels.expansion, q, n_jobs, rows, n, asked, root, c, normalize, values)
    return values
