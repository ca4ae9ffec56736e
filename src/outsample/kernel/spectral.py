"""Eigenpairs of kernel matrices, functions of them, and the error of leaving a row out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import eigh, lapack
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
    """A kernel normalised to transition probabilities, in its symmetric form.

    Attributes
    ----------
    conjugate : ndarray or CSR matrix of shape (n, n)
        ``S = R^-1 W G W R^-1``, which has the eigenvalues of the transition matrix
        ``P = R^-2 W G W``.
    weights : ndarray of shape (n,)
        Diagonal of ``W``: densities to the power ``-alpha``.
    root_degrees : ndarray of shape (n,)
        Diagonal of ``R``: roots of the row sums of ``W G W``. An eigenvector v of ``S`` belongs
        to the eigenvector ``v / R`` of ``P``.
    """

    conjugate: Any
    weights: np.ndarray
    root_degrees: np.ndarray


def markov(G: Any, alpha: float) -> Markov:
    """Normalise a kernel by its density (Coifman, Lafon) and to transition probabilities.

    Parameters
    ----------
    G : ndarray or CSR matrix of shape (n, n)
        Symmetric kernel (Eq. 7.2), overwritten.
    alpha : float
        0 keeps the density of the points in the result, 1 removes it.

    Returns
    -------
    Markov
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
    """Turn every column so that its entry of largest size, the first if several, is positive.

    Parameters
    ----------
    vectors : ndarray of shape (n, m)
        Eigenvectors, whose signs a solver leaves open.

    Returns
    -------
    ndarray of shape (n, m)

    Examples
    --------
    >>> fixed_signs(np.array([[1.0, 0.0], [-2.0, 1.0]]))
    array([[-1.,  0.],
           [ 2.,  1.]])
    """
    sizes = np.abs(vectors)
    # Entries alike but for rounding count as equal.
    at = np.argmax(sizes >= sizes.max(axis=0) * (1 - 1e-9), axis=0)
    return vectors * np.where(vectors[at, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)


def leading_eigenpairs(S: Any, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Largest eigenvalues of a symmetric matrix with eigenvectors, the same ones every time.

    Parameters
    ----------
    S : ndarray or sparse matrix of shape (n, n)
        Symmetric.
    count : int
        How many, at most n.

    Returns
    -------
    values : ndarray of shape (count,)
        Largest first.
    vectors : ndarray of shape (n, count)
        Orthonormal columns, with `fixed_signs`.
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
        found = eigh(dense, subset_by_index=(n - count, n - 1), check_finite=False)
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
    """Eigenpairs with an eigenvalue above the largest one over ``condition``.

    Parameters
    ----------
    S : ndarray of shape (n, n)
        Symmetric, overwritten.
    condition : float
        Largest ratio of eigenvalues to keep.

    Returns
    -------
    values : ndarray of shape (m,)
        Largest first; at least one.
    vectors : ndarray of shape (n, m)
        Orthonormal columns.
    """
    # A Rayleigh quotient is no more than the largest eigenvalue, so nothing is missed.
    least = max(float(S.sum()) / len(S) / condition, np.finfo(float).tiny)
    values, vectors = eigh(S, subset_by_value=(least, np.inf), overwrite_a=True, check_finite=False)
    kept = values > values[-1] / condition
    return values[kept][::-1], vectors[:, kept][:, ::-1]


def nth_eigenvalue(S: np.ndarray, n: int) -> float:
    """Eigenvalue number n of a symmetric matrix, the largest being number 0.

    Parameters
    ----------
    S : ndarray of shape (m, m)
        Symmetric.
    n : int
        Which, below m.

    Returns
    -------
    float
    """
    at = S.shape[0] - 1 - n
    return float(eigh(S, eigvals_only=True, subset_by_index=(at, at), check_finite=False)[0])


def solve_in(values: np.ndarray, vectors: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Coefficients ``sum_i v_i (v_i' f) / lambda_i`` of the Nyström extension (after Eq. 7.3).

    Parameters
    ----------
    values, vectors : ndarrays of shape (m,) and (n, m)
        Eigenpairs of the kernel matrix.
    f : ndarray of shape (n, d)
        Functions on the training points.

    Returns
    -------
    ndarray of shape (n, d)
        Its product with the kernel between a new point and the training points is the extension.
    """
    return vectors @ ((vectors.T @ f) / values[:, None])


def inverse(S: np.ndarray, ridge: float) -> np.ndarray | None:
    """Inverse of ``S + ridge I``, or None if double precision does not allow it.

    Parameters
    ----------
    S : ndarray of shape (n, n)
        Symmetric and positive semidefinite.
    ridge : float
        Added to the diagonal.

    Returns
    -------
    ndarray of shape (n, n) or None
    """
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
    """Leave-one-out residuals of the expansion in a kernel: ``c_i / (G^-1)_ii``, ``c = G^-1 f``.

    Parameters
    ----------
    G : ndarray of shape (n, n)
        Kernel matrix.
    f : ndarray of shape (n, d)
        Functions.
    ridge : float
        Added to G. Eigenvalues below it count for nothing, as if they were cut.

    Returns
    -------
    ndarray of shape (n, d), or None where `inverse` fails
    """
    inverted = inverse(G, ridge)
    if inverted is None:
        return None
    return (inverted @ f) / np.diag(inverted)[:, None]


def left_out_of_markov(kernel: Markov, f: np.ndarray, ridge: float) -> np.ndarray | None:
    r"""Leave-one-out residuals of the expansion in transition probabilities.

    ``(c_i - f_i) / ((S^-1)_ii - 1)`` with ``c = R^-1 S^-1 R f``: the quotient of the extensions
    of ``f`` and of 1 without row i, densities and degrees of the other rows left as they are.

    Parameters
    ----------
    kernel : Markov
        Normalised kernel.
    f : ndarray of shape (n, d)
        Functions, with mean about 0.
    ridge : float
        Added to S.

    Returns
    -------
    ndarray of shape (n, d), or None where `inverse` fails
    """
    inverted = inverse(kernel.conjugate, ridge)
    if inverted is None:
        return None
    roots = kernel.root_degrees[:, None]
    coefficients = inverted @ (roots * f) / roots
    leverage = np.diag(inverted)[:, None] - 1
    alone = leverage < LEAST_LEVERAGE  # the kernel does not reach any other row
    return np.where(alone, f, (coefficients - f) / np.where(alone, 1.0, leverage))


def markov_mean(
    X: Points,
    Q: Points,
    epsilon: float,
    weights: np.ndarray,
    coefficients: np.ndarray,
    reach: tuple[np.ndarray, np.ndarray] | None = None,
    n_jobs: int | None = None,
) -> np.ndarray:
    """Mean of coefficients under the transition probabilities from each query.

    ``sum_j p(x, x_j) c_j`` with ``p(x, x_j) = w_j g(x, x_j) / sum_i w_i g(x, x_i)`` and the kernel
    g of Eq. 7.3; summed in the same order for any batch.

    Parameters
    ----------
    X, Q : ndarrays or CSR matrices of shape (n, D) and (q, D)
        Training points and queries.
    epsilon : float
        Bandwidth.
    weights : ndarray of shape (n,)
        The ``w_j`` of `Markov`.
    coefficients : ndarray of shape (n, d)
        The ``c_j``.
    reach : (ndarray of shape (q,), ndarray of shape (n,)), optional
        The kernel is 0 between a query and a training point further apart than the larger of
        their two reaches.
    n_jobs : int or None
        Threads.

    Returns
    -------
    ndarray of shape (q, d)
    """
    q, n = Q.shape[0], X.shape[0]
    own, others = reach if reach is not None else (np.full(q, np.inf), np.full(n, np.inf))
    values = np.empty((q, coefficients.shape[1]))
    over_rows(
        kernels.markov_mean,
        q,
        n_jobs,
        kernel_rows(X),
        n,
        kernel_rows(Q),
        float(np.sqrt(epsilon)),
        weights,
        own,
        others,
        np.ascontiguousarray(coefficients, dtype=np.float64),
        values,
    )
    return values
