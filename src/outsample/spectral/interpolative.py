"""Columns of a randomized interpolative decomposition, and the rank of a Gaussian kernel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import qr

# Rows of the sketch beyond the rank: the error bound then holds with probability close to 1.
OVERSAMPLING = 8
# The adaptive rank starts here if the bound is no smaller than the matrix, and doubles.
FIRST_RANK = 64


def sampled_columns(
    A: np.ndarray, delta: float, expected: int, random_state: int | np.random.Generator = 0
) -> np.ndarray:
    """Return the columns (l,) of Algorithm 7.1 with pivots above ``delta`` times the first.

    The matrix is sketched as ``W = G A`` with a Gaussian ``G`` of ``rank + 8`` rows (the paper
    draws ``rank``), and the pivoted QR of W orders the columns by importance. The rank starts with
    ``expected``, such as `rank_bound`, or with 64 if that is as large as the matrix, and doubles
    until a pivot falls below: the cost follows the numerical rank, and too low an estimate does no
    harm. P.-G. Martinsson, V. Rokhlin, M. Tygert, "A randomized algorithm for the decomposition of
    matrices", Applied and Computational Harmonic Analysis 30 (2011) 47-68.

    >>> len(sampled_columns(np.diag([1.0, 0.5, 1e-9]), 1e-6, 3))
    2
    """
    max_rank = min(A.shape)
    rank = min(expected if expected < max_rank else FIRST_RANK, max_rank)
    while True:
        upper, order = _sketch(A, rank, random_state)
        pivots = np.abs(np.diag(upper))[:rank]
        n_large = int((pivots > delta * pivots[0]).sum())
        if n_large < rank or rank == max_rank:
            return order[: max(1, n_large)]
        rank = min(2 * rank, max_rank)


def rank_bound(lengths: Sequence[float] | np.ndarray, epsilon: float, delta: float, n: int) -> int:
    """Return a bound of the number of singular values above delta times the largest.

    ``R_delta(K) <= prod_i ((2 / pi) sqrt(ln(1 / delta)) |I_i| / sqrt(epsilon) + 1)``
    (Algorithm 7.3), for a Gaussian kernel of points in a box with sides ``|I_i|``, at most n. The
    constant is asymptotic: if the product or delta is small, the true rank can be twice as large
    (one dimension, side 1, delta 1e-6, epsilon 1: 5, not 3).

    >>> rank_bound([1.0], 0.01, 0.1, 1000)
    10
    """
    sides = np.asarray(lengths, dtype=np.float64) / np.sqrt(epsilon)
    factors = 2 / np.pi * np.sqrt(np.log(1 / delta)) * sides + 1
    # In logarithms: the product of hundreds of sides overflows.
    if np.log(factors).sum() >= np.log(n):
        return n
    return min(n, int(np.floor(np.prod(factors))))


def _sketch(
    A: np.ndarray, rank: int, random_state: int | np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return R and the column order of a pivoted QR of G A, or of A if G has no fewer rows."""
    m = A.shape[0]
    height = rank + OVERSAMPLING
    if height < m:
        A = np.random.default_rng(random_state).normal(size=(height, m)) @ A
    upper, order = qr(A, mode="r", pivoting=True, check_finite=False)
    return upper, order.astype(np.int64)
