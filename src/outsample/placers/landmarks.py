"""Least squares of a map on functions of all points that a few of them, the landmarks, span.

Which functions, how they are held in bounds and what they are at a query is said by a basis:
covariances (`landmark_process`) or transition probabilities (`landmark_diffusion`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import blas, cho_factor, cho_solve, solve_triangular

from outsample.points import Points

# Points at which functions are found at once, and pairs of them.
BLOCK_ROWS = 1024
BLOCK_PAIRS = 4096
# A row that the others say nothing about has leverage 1; it is taken for this much less.
LEAST_FREEDOM = 1e-10


class FittedLevel(Protocol):
    """The fitted functions of m landmarks."""

    @property
    def landmarks(self) -> np.ndarray:
        """Rows (m,) of the training points."""

    def values(self, X: Points, Q: Points, n_jobs: int | None) -> np.ndarray:
        """Values (q, d) at queries; X are the training points."""


class Basis(Protocol):
    """Functions of m landmarks."""

    def functions(self, rows: Points) -> np.ndarray:
        """Values (q, m) at points."""

    def factor(self) -> np.ndarray:
        """Lower Cholesky factor (m, m) of what bounds the coefficients: a' K a."""

    def ridge(self, squares: float, n: int) -> float:
        """How much it counts, from the sum of squares of the independent functions at n points."""

    def targets(self, X: Points, images: np.ndarray) -> np.ndarray:
        """Return what is fitted of the images (n, d) of the training points."""

    def fitted(self, coefficients: np.ndarray, reach: float) -> FittedLevel:
        """Functions with coefficients (m, d); no image is farther than the reach."""


class Solved(NamedTuple):
    """Cholesky factors of the bound and of the system, coefficients (m, d)."""

    inner: np.ndarray
    system: tuple[np.ndarray, bool]
    coefficients: np.ndarray


def solve(basis: Basis, X: Points, targets: np.ndarray) -> Solved:
    """Coefficients of targets (n, d), in the basis in which the functions are independent.

    ``a = L^-T (P P' + ridge)^-1 P y`` with ``P = L^-1 C``, C the functions (m, n) at all points, L
    the Cholesky factor of the bound.
    """
    inner = basis.factor()
    m = len(inner)
    system, right = np.zeros((m, m), order="F"), np.zeros((m, targets.shape[1]))
    for start, stop, block in _blocks(basis, X):
        P = solve_triangular(inner, block.T, lower=True, overwrite_b=True, check_finite=False)
        system = blas.dsyrk(1.0, P, beta=1.0, c=system, lower=1, overwrite_c=1)
        right += P @ targets[start:stop]
    system[np.diag_indices(m)] += basis.ridge(float(np.trace(system)), len(targets))
    factor = cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
    solved = cho_solve(factor, right, check_finite=False)
    return Solved(inner, factor, _back(inner, solved))


def leverages(
    basis: Basis, solved: Solved, X: Points, targets: np.ndarray, sample: np.ndarray,
    owners: np.ndarray, others: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Leverages of sampled rows (s,), those of pairs of one and another row, all residuals."""
    inner, factor, coefficients = solved
    P = basis.functions(X[sample]).T
    P = solve_triangular(inner, P, lower=True, overwrite_b=True, check_finite=False)
    hat = cho_solve(factor, P, check_finite=False)
    own = (P * hat).sum(axis=0)
    columns = np.ascontiguousarray(_back(inner, hat).T)
    shared, residuals = np.empty(len(others)), np.empty_like(targets)
    order = np.argsort(others, kind="stable")
    for start, stop, block in _blocks(basis, X):
        residuals[start:stop] = targets[start:stop] - block @ coefficients
        first, last = np.searchsorted(others[order], [start, stop])
        for at in range(first, last, BLOCK_PAIRS):
            pairs = order[at : min(at + BLOCK_PAIRS, last)]
            shared[pairs] = np.einsum(
                "pm,pm->p", block[others[pairs] - start], columns[owners[pairs]]
            )
    return own, shared, residuals


def _blocks(basis: Basis, X: Points) -> Iterator[tuple[int, int, np.ndarray]]:
    n = X.shape[0]
    for start in range(0, n, BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, n)
        yield start, stop, basis.functions(X[start:stop])


def _back(inner: np.ndarray, solved: np.ndarray) -> np.ndarray:
    return solve_triangular(inner, solved, lower=True, trans=1, check_finite=False)
