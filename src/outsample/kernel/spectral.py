"""Kernels as transition probabilities between points."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from outsample._kernels import affinity as kernels
from outsample._parallel import over_rows
from outsample.points import Points, kernel_rows

# Below this share of itself a row says nothing about the others.
LEAST_LEVERAGE = 1e-6


class Markov(NamedTuple):
    """A kernel normalised to transition probabilities ``P = R^-2 W G W``, in its symmetric form.

    conjugate (n, n) is ``S = R^-1 W G W R^-1``, which has the eigenvalues of ``P``; an
    eigenvector v of ``S`` belongs to the eigenvector ``v / R`` of ``P``. weights (n,) is the
    diagonal of ``W``, densities to the power ``-alpha``; root_degrees (n,) that of ``R``, roots of
    the row sums of ``W G W``.
    """

    conjugate: Any
    weights: np.ndarray
    root_degrees: np.ndarray


def markov(G: Any, alpha: float) -> Markov:
    """Normalise a symmetric kernel G (Eq. 7.2), overwritten, by its density and its row sums.

    ``alpha=0`` keeps the density of the points in the result, 1 removes it (Coifman, Lafon).
    """
    weights = _row_sums(G) ** -float(alpha)
    G = _both_sides(G, weights)
    root_degrees = np.sqrt(_row_sums(G))
    return Markov(_both_sides(G, 1 / root_degrees), weights, root_degrees)


def _row_sums(G: Any) -> np.ndarray:
    return np.asarray(G.sum(axis=1)).ravel()


def _both_sides(G: Any, factors: np.ndarray) -> Any:
    """Scale rows and columns, in place."""
    if sparse.issparse(G):
        G.data *= factors[G.indices] * np.repeat(factors, np.diff(G.indptr))
    else:
        G *= factors[:, None]
        G *= factors
    return G


def solve_in(values: np.ndarray, vectors: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Coefficients ``sum_i v_i (v_i' f) / lambda_i`` (n, d) of the Nyström extension.

    After Eq. 7.3: their product with the kernel between new and training points is the extension.
    """
    return vectors @ ((vectors.T @ f) / values[:, None])


def markov_mean(
    X: Points,
    Q: Points,
    epsilon: float,
    weights: np.ndarray,
    coefficients: np.ndarray,
    reach: tuple[np.ndarray, np.ndarray] | None = None,
    n_jobs: int | None = None,
) -> np.ndarray:
    """Mean (q, d) of coefficients under the transition probabilities from each query.

    ``sum_j p(x, x_j) c_j`` with ``p(x, x_j) = w_j g(x, x_j) / sum_i w_i g(x, x_i)``, g of Eq. 7.3
    and the w_j of `Markov`; summed in the same order for any batch. g is 0 between a query and a
    training point further apart than the larger of their two reaches, (q,) and (n,).
    """
    q, n, root = Q.shape[0], X.shape[0], float(np.sqrt(epsilon))
    own, others = reach if reach is not None else (np.full(q, np.inf), np.full(n, np.inf))
    values = np.empty((q, coefficients.shape[1]))
    c = np.ascontiguousarray(coefficients, dtype=np.float64)
    rows, asked = kernel_rows(X), kernel_rows(Q)
    over_rows(kernels.markov_mean, q, n_jobs, rows, n, asked, root, weights, own, others, c, values)
    return values
