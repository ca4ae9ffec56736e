"""What an expansion in a kernel leaves of a map at a row it has not seen, in closed form."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from outsample.kernel.spectral import LEAST_LEVERAGE, Markov


def inverse(S: np.ndarray, ridge: float) -> np.ndarray | None:
    """Inverse (n, n) of ``S + ridge I``, or None if double precision does not allow it."""
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
    """Residuals (n, d) of the expansion in a kernel: ``c_i / (G^-1)_ii`` with ``c = G^-1 f``.

    Eigenvalues below the ridge count for nothing, as if they were cut. None where `inverse` fails.
    """
    inverted = inverse(G, ridge)
    if inverted is None:
        return None
    return (inverted @ f) / np.diag(inverted)[:, None]


def left_out_of_markov(kernel: Markov, f: np.ndarray, ridge: float) -> np.ndarray | None:
    """Residuals (n, d) of the expansion in transition probabilities, f with mean about 0.

    ``(c_i - f_i) / ((S^-1)_ii - 1)`` with ``c = R^-1 S^-1 R f``: the quotient of the extensions
    of ``f`` and of 1 without row i, densities and degrees of the other rows left as they are.
    None where `inverse` fails.
    """
    inverted = inverse(kernel.conjugate, ridge)
    if inverted is None:
        return None
    roots = kernel.root_degrees[:, None]
    coefficients = inverted @ (roots * f) / roots
    leverage = np.diag(inverted)[:, None] - 1
    alone = leverage < LEAST_LEVERAGE  # the kernel does not reach any other row
    return np.where(alone, f, (coefficients - f) / np.where(alone, 1.0, leverage))
