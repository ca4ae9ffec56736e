"""Randomized interpolative decomposition, and the numerical rank of a Gaussian kernel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import qr, solve_triangular

# Rows drawn beyond the rank asked for: they make the bound hold with near certainty.
OVERSAMPLING = 8
# The adaptive rank starts here where no bound helps, and doubles.
FIRST_RANK = 64


def interpolative(
    A: np.ndarray, rank: int, random_state: int | np.random.Generator = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Columns (l,) of a matrix and P (l, n), l the rank: ``A ~ A[:, columns] P``.

    Algorithm 7.1: ``W = G A`` with a Gaussian ``G`` of ``rank + 8`` rows (the paper draws
    ``rank``), pivoted QR ``W[:, order] = Q R``, and ``P`` the solution of ``R_11 P = R``. With
    near certainty ``|A - B P| <= rank sqrt(m n) sigma_{rank + 1}(A)`` up to a small factor.
    The most important columns come first; fewer if A itself has a lower rank. P.-G. Martinsson,
    V. Rokhlin, M. Tygert, "A randomized algorithm for the decomposition of matrices", Applied and
    Computational Harmonic Analysis 30 (2011) 47-68.

    >>> A = np.outer([1.0, 2.0, 3.0], [1.0, 0.0, 5.0, 2.0])
    >>> columns, P = interpolative(A, 1)
    >>> columns, bool(np.allclose(A[:, columns] @ P, A))
    (array([2]), True)
    """
    if not 1 <= rank <= min(A.shape):
        raise ValueError(f"rank is {rank!r}, but must be from 1 to {min(A.shape)}, the matrix's.")
    upper, order = _sketch(A, rank, random_state)
    pivots = np.abs(np.diag(upper))[:rank]
    # Columns that add nothing beyond rounding would only blow up P.
    rank = max(1, int((pivots > pivots[0] * max(A.shape) * np.finfo(float).eps).sum()))
    P = np.zeros((rank, A.shape[1]))
    P[:, order[:rank]] = np.eye(rank)
    if pivots[0] > 0:
        P[:, order[rank:]] = solve_triangular(
            upper[:rank, :rank], upper[:rank, rank:], check_finite=False
        )
    return order[:rank], P


def sampled_columns(
    A: np.ndarray, delta: float, expected: int, random_state: int | np.random.Generator = 0
) -> np.ndarray:
    """Columns (l,) of Algorithm 7.1, as many as have a pivot above ``delta`` times the first.

    The sketch starts with the expected rank, such as `rank_bound`, or with 64 where that is as
    large as the matrix, and doubles until a pivot falls below, so that the cost follows the
    numerical rank, and an estimate of it that is too low does no harm.

    >>> len(sampled_columns(np.diag([1.0, 0.5, 1e-9]), 1e-6, 3))
    2
    """
    most = min(A.shape)
    rank = min(expected if expected < most else FIRST_RANK, most)
    while True:
        upper, order = _sketch(A, rank, random_state)
        pivots = np.abs(np.diag(upper))[:rank]
        found = int((pivots > delta * pivots[0]).sum())
        if found < rank or rank == most:
            return order[: max(1, found)]
        rank = min(2 * rank, most)


def rank_bound(lengths: Sequence[float] | np.ndarray, epsilon: float, delta: float, n: int) -> int:
    """Bound of the number of singular values of a Gaussian kernel above delta times the largest.

    ``R_delta(K) <= prod_i ((2 / pi) sqrt(ln(1 / delta)) |I_i| / sqrt(epsilon) + 1)``
    (Algorithm 7.3), for points in a box with sides ``|I_i|``, and no more than n. The constant
    is that of many wavelengths in a box: where the product is small, or delta is, the true rank
    can be up to twice as large (one dimension, side 1, delta 1e-6, epsilon 1: 5, not 3).

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
    """R and the order of the columns of a pivoted QR of G A; of A itself if G would be no less."""
    m = A.shape[0]
    height = rank + OVERSAMPLING
    if height < m:
        A = np.random.default_rng(random_state).normal(size=(height, m)) @ A
    upper, order = qr(A, mode="r", pivoting=True, check_finite=False)
    return upper, order.astype(np.int64)
