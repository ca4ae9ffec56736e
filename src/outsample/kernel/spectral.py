"""Kernels as transition probabilities, and the eigenpairs of kernel matrices."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, eigh
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from outsample._kernels import affinity as kernels
from outsample._parallel import over_rows
from outsample.points import Points, kernel_rows

# A dense matrix of this many rows is diagonalised directly.
DIRECT_ROWS = 1000
# Larger sparse matrices are not made dense.
DENSE_ROWS = 8192
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


def fixed_signs(vectors: np.ndarray) -> np.ndarray:
    """Eigenvectors (n, m), each with its entry of largest size, the first if several, positive."""
    sizes = np.abs(vectors)
    # Entries alike but for rounding count as equal.
    at = np.argmax(sizes >= sizes.max(axis=0) * (1 - 1e-9), axis=0)
    return vectors * np.where(vectors[at, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)


def leading_eigenpairs(S: Any, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Largest eigenvalues (count,), falling, and eigenvectors (n, count) of a symmetric matrix.

    Orthonormal, with `fixed_signs`: the same ones every time.
    """
    n = S.shape[0]
    found = None
    if n > DIRECT_ROWS and count <= n // 4:
        found = _by_lanczos(S, count)
    if found is None:
        if sparse.issparse(S) and n > DENSE_ROWS:
            raise ValueError(
                f"the leading {count} eigenvectors could not be told apart: the points fall into "
                "separate groups. Give a larger bandwidth or more n_neighbors."
            )
        dense = S.toarray() if sparse.issparse(S) else S
        found = _numbered(dense, n - count, n - 1)
    values, vectors = found
    order = np.argsort(-values, kind="stable")
    return values[order], fixed_signs(vectors[:, order])


def _by_lanczos(S: Any, count: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Eigenpairs from a fixed start vector; None where they do not settle."""
    n = S.shape[0]
    start = np.random.default_rng(0).standard_normal(n)
    # More basis vectors than by default: eigenvalues of a fine kernel crowd near 1.
    basis = min(n, max(4 * count, 2 * count + 40))
    try:
        return eigsh(S, count, which="LA", v0=start, ncv=basis, tol=1e-13, maxiter=1000)
    except ArpackNoConvergence:  # groups of points so far apart that all eigenvalues are 1
        return None


def eigenpairs_above(S: np.ndarray, condition: float) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues (m,) above the largest over ``condition``, falling, and eigenvectors (n, m)."""
    # A Rayleigh quotient is no more than the largest eigenvalue, so nothing is missed.
    least = max(float(S.sum()) / len(S) / condition, np.finfo(float).tiny)
    values, vectors = _above(S, least)
    kept = values > values[-1] / condition
    return values[kept][::-1], vectors[:, kept][:, ::-1]


def nth_eigenvalue(S: np.ndarray, n: int) -> float:
    """Eigenvalue number n of a symmetric matrix, the largest being number 0."""
    at = S.shape[0] - 1 - n
    try:
        found = eigh(S, eigvals_only=True, subset_by_index=(at, at), check_finite=False)
    except LinAlgError:
        found = np.empty(0)
    if not len(found):
        found = _all(S)[0][at:]
    return float(found[0])


def _numbered(S: np.ndarray, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """Eigenpairs of the numbers from first to last, counted from the least eigenvalue."""
    try:
        found = eigh(S, subset_by_index=(first, last), check_finite=False)
    except LinAlgError:
        found = np.empty(0), np.empty((len(S), 0))
    if len(found[0]) == last - first + 1:
        return found
    values, vectors = _all(S)
    return values[first : last + 1], vectors[:, first : last + 1]


def _above(S: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray]:
    """Eigenpairs with eigenvalues above the least, rising, of a matrix with none much below 0."""
    try:
        found = eigh(S, subset_by_value=(least, np.inf), check_finite=False)
    except LinAlgError:
        found = np.empty(0), np.empty((len(S), 0))
    # The eigenvalues sum to the trace, so those left out would be too large together.
    left = float(np.trace(S) - found[0].sum())
    rounding = len(S) * np.finfo(float).eps * float(np.trace(S))
    if len(found[0]) and left <= least * (len(S) - len(found[0])) + rounding:
        return found
    values, vectors = _all(S)
    return values[values > least], vectors[:, values > least]


def _all(S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every eigenpair, rising, by the QR iteration.

    LAPACK's quicker solver for a part of them can fail, or find fewer than asked for, where
    eigenvalues cluster, as those of a kernel in many separate parts do.
    """
    return eigh(S, driver="ev", check_finite=False)


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
