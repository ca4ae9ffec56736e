"""Gaussian kernels between points (Eq. 7.3): dense matrices, and sums over them.

Epsilon is the paper's, a squared length: ``g(x, y) = exp(-|x - y|^2 / epsilon)``.
"""

from __future__ import annotations

import numpy as np

from outsample._compiled import affinity as kernels
from outsample._parallel import one_blas_thread, over_rows
from outsample.points import Points, kernel_rows, largest_entry

# From this many columns on, distances between all pairs are matrix products, in chunks of rows.
# Squared distances below this share of |x|^2 + |y|^2 lose digits and are computed directly.
PRODUCT_COLUMNS = 256
CANCELLATION_SHARE = 0.01
PRODUCT_CHUNK_ROWS = 512


def distances(X: Points, Q: Points | None = None, n_jobs: int | None = None) -> np.ndarray:
    """Return the distances (q, n) of all queries and points, or (n, n) of the points without Q."""
    n = X.shape[0]
    rows = kernel_rows(X)
    if Q is None and isinstance(rows, np.ndarray) and X.shape[1] >= PRODUCT_COLUMNS:
        return _distances_by_products(rows, n_jobs)
    if Q is None:
        matrix = np.empty((n, n))
        over_rows(kernels.own_distances, n, n_jobs, rows, matrix)
        return matrix
    matrix = np.empty((Q.shape[0], n))
    over_rows(kernels.all_distances, Q.shape[0], n_jobs, kernel_rows(Q), rows, n, matrix)
    return matrix


def _distances_by_products(X: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """Return the distances (n, n) of rows, to 13 digits, from ``|x|^2 - 2xy + |y|^2``."""
    n = len(X)
    unit = np.ldexp(1.0, np.clip(np.frexp(largest_entry(X))[1], -1000, 1000))
    Z = X / unit
    Z -= Z.mean(axis=0)
    squares, matrix = np.einsum("nd,nd->n", Z, Z), np.empty((n, n))
    for start in range(0, n, PRODUCT_CHUNK_ROWS):
        stop = min(start + PRODUCT_CHUNK_ROWS, n)
        sizes = np.add.outer(squares[start:stop], squares[:stop])
        with one_blas_thread:  # BLAS rounds differently for other numbers of threads
            chunk = Z[start:stop] @ Z[:stop].T
        chunk *= -2
        chunk += sizes
        sizes *= CANCELLATION_SHARE
        rows, columns = np.nonzero(np.tril(chunk < sizes, start - 1))
        np.sqrt(np.maximum(chunk, 0.0, out=chunk), out=chunk)
        chunk *= unit
        direct = np.empty(len(rows))
        over_rows(kernels.pair_distances, len(rows), n_jobs, X, rows + start, columns, direct)
        chunk[rows, columns] = direct
        matrix[start:stop, :stop], matrix[:stop, start:stop] = chunk, chunk.T
        lower = np.tril(chunk[:, start:], -1)
        matrix[start:stop, start:stop] = lower + lower.T
    return matrix


def gaussian_of(lengths: np.ndarray, epsilon: float, out: np.ndarray | None = None) -> np.ndarray:
    """Return the Gaussian kernel (Eq. 7.3) of distances; ``out`` may be the same array."""
    out = np.divide(lengths, np.sqrt(epsilon), out=out)
    np.minimum(out, kernels.ZERO_BEYOND, out=out)
    np.multiply(out, out, out=out)
    np.negative(out, out=out)
    return np.exp(out, out=out)


def gaussian(X: Points, epsilon: float, n_jobs: int | None = None) -> np.ndarray:
    """Return the kernel matrix (n, n), ``G_ij = exp(-|x_i - x_j|^2 / epsilon)`` (Eq. 7.2, 7.3).

    Exactly symmetric, 1 on the diagonal. No other (n, n) array is allocated.

    >>> gaussian(np.array([[0.0], [1.0]]), 1.0).round(3)
    array([[1.   , 0.368],
           [0.368, 1.   ]])
    """
    matrix = distances(X, n_jobs=n_jobs)
    return gaussian_of(matrix, epsilon, out=matrix)


def expansion(
    X: Points,
    Q: Points,
    epsilon: float,
    coefficients: np.ndarray,
    *,
    weights: np.ndarray | None = None,
    reach: tuple[np.ndarray, np.ndarray] | None = None,
    normalize: bool = False,
    n_jobs: int | None = None,
) -> np.ndarray:
    """Return ``sum_j w_j g(x, x_j) c_j`` (q, d), over ``sum_j w_j g(x, x_j)`` with ``normalize``.

    With ``normalize`` and the weights of `transitions.Markov` it is the mean of the coefficients
    under the transition probabilities of each query. The weights (n,) are 1 by default. With
    ``reach``, g is 0 between a query and a training point farther apart than the larger of their
    reaches, (q,) and (n,). Sums have the same order for any batch. Far from the data the quotient
    tends to the coefficient of the nearest training point, the plain sum to 0.
    """
    q, n, root = Q.shape[0], X.shape[0], float(np.sqrt(epsilon))
    weights = np.ones(n) if weights is None else weights
    query_reach, row_reach = reach or (np.full(q, np.inf), np.full(n, np.inf))
    values = np.empty((q, coefficients.shape[1]))
    c = np.ascontiguousarray(coefficients, dtype=np.float64)
    over_rows(
        kernels.expansion, q, n_jobs, kernel_rows(X), n, kernel_rows(Q), root, weights,
        query_reach, row_reach, c, normalize, values,
    )  # fmt: skip
    return values
