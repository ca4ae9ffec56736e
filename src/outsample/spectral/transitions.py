"""Normalisation of kernels to transition probabilities between points."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

# Below this leverage, no other row determines the value at a row.
MIN_LEVERAGE = 1e-6


class Markov(NamedTuple):
    """Kernel normalised to transition probabilities ``P = R^-2 W G W``, in symmetric form.

    conjugate (n, n) is ``S = R^-1 W G W R^-1``, which has the eigenvalues of ``P``; an
    eigenvector v of ``S`` belongs to the eigenvector ``v / R`` of ``P``. weights (n,) is the
    diagonal of ``W``, densities to the power ``-alpha``; root_degrees (n,) that of ``R``, roots of
    the row sums of ``W G W``.
    """

    conjugate: Any
    weights: np.ndarray
    root_degrees: np.ndarray


def markov(G: Any, alpha: float) -> Markov:
    """Return a symmetric kernel G (Eq. 7.2, overwritten) normalised by density and row sums.

    The result depends on the density of the points for ``alpha=0``, not for 1 (Coifman, Lafon).
    """
    weights = _row_sums(G) ** -float(alpha)
    G = _both_sides(G, weights)
    root_degrees = np.sqrt(_row_sums(G))
    return Markov(_both_sides(G, 1 / root_degrees), weights, root_degrees)


def _row_sums(G: Any) -> np.ndarray:
    return np.asarray(G.sum(axis=1)).ravel()


def _both_sides(G: Any, factors: np.ndarray) -> Any:
    """Scale rows and columns in place, and return the matrix."""
    if sparse.issparse(G):
        G.data *= factors[G.indices] * np.repeat(factors, np.diff(G.indptr))
    else:
        G *= factors[:, None]
        G *= factors
    return G


def solve_in(values: np.ndarray, vectors: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Return the coefficients ``sum_i v_i (v_i' f) / lambda_i`` (n, d) of the Nyström extension.

    See Eq. 7.3: their product with the kernel between new and training points is the extension.
    """
    return vectors @ ((vectors.T @ f) / values[:, None])
