"""Cholesky factors of matrices over all training points, as regular as double precision needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from scipy.linalg import cho_factor, solve_triangular

# Training sets up to this size are factored as a whole: the memory is its square.
FACTORED_ROWS = 8192


def regular_factor(
    matrix: Callable[[], np.ndarray], ridge: Callable[[float, float], float], steps: Iterable[float]
) -> np.ndarray | None:
    """Lower Cholesky factor (n, n) with the first ridge that suffices; None if none does.

    ``ridge(step, corner)`` is added to the diagonal. ``matrix`` makes the matrix anew for each
    attempt: a failed one leaves it overwritten.
    """
    for step in steps:
        ridged = matrix()
        ridged[np.diag_indices_from(ridged)] += ridge(step, float(ridged[0, 0]))
        try:
            return cho_factor(ridged, lower=True, overwrite_a=True, check_finite=False)[0]
        except np.linalg.LinAlgError:
            continue
    return None


def inverse_diagonal(lower: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Entries (s,) on the diagonal of the inverse of the matrix with this Cholesky factor."""
    chosen = np.zeros((len(lower), len(rows)))
    chosen[rows, np.arange(len(rows))] = 1.0
    half = solve_triangular(lower, chosen, lower=True, check_finite=False, overwrite_b=True)
    return (half**2).sum(axis=0)
