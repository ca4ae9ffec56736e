"""Leave-one-out residuals of kernel expansions, in closed form."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from outsample.spectral.transitions import MIN_LEVERAGE, Markov


def inverse(S: np.ndarray, ridge: float) -> np.ndarray | None:
    """Return the inverse (n, n) of ``S + ridge I``, or None if it is numerically singular."""
    S = S.copy(order="F")
    S[np.diag_indices_from(S)] += ridge
    factor, failed = lapack.dpotrf(S, lower=1, overwrite_a=1)
    if failed:
        return None
    inverted, failed = lapack.dpotri(factor, lower=1, overwrite_c=1)
    if failed:
        return None
    lower = np.tril(inverted)
    return lower + np.tril(lower, -1).T


def left_out_of_kernel(G: np.ndarray, f: np.ndarray, ridge: float) -> np.ndarray | None:
    """Return leave-one-out residuals (n, d): ``c_i / (G^-1)_ii`` with ``c = G^-1 f``.

    The ridge suppresses eigenvalues below it. None if `inverse` fails.
    """
    inverted = inverse(G, ridge)
    if inverted is None:
        return None
    return (inverted @ f) / np.diag(inverted)[:, None]


def left_out_of_markov(kernel: Markov, f: np.ndarray, ridge: float) -> np.ndarray | None:
    """Return leave-one-out residuals (n, d) of an expansion in transition probabilities.

    ``(c_i - f_i) / ((S^-1)_ii - 1)`` with ``c = R^-1 S^-1 R f``: the quotient of the extensions
    of ``f`` and of 1 without row i, with unchanged densities and degrees of the other rows. The
    mean of f should be close to 0. None if `inverse` fails.
    """
    inverted = inverse(kernel.conjugate, ridge)
    if inverted is None:
        return None
    roots = kernel.root_degrees[:, None]
    coefficients = inverted @ (roots * f) / roots
    leverage = np.diag(inverted)[:, None] - 1
    is_isolated = leverage < MIN_LEVERAGE  # the kernel is 0 at all other rows
    return np.where(is_isolated, f, (coefficients - f) / np.where(is_isolated, 1.0, leverage))
