"""Eigenpairs of symmetric matrices: the leading ones, those above a threshold, one eigenvalue.

Every iterative solver has a bound on its work and falls back on a slower, more robust one.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, eigh
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh, lobpcg, spilu

# A matrix of up to this many rows is diagonalised directly.
DIRECT_ROWS = 1000
# So is a larger one where Lanczos does not converge, up to this many rows if it is sparse.
MAX_DENSE_ROWS = 3000
# Matrix-vector products of Lanczos, at most. With a gap in the spectrum a tenth is enough; without
# one, no number is.
MAX_LANCZOS_PRODUCTS = 600
# Iterations of the block solver, the residual at which it stops, the largest residual that is
# accepted, and the size of its incomplete factors relative to the matrix.
BLOCK_ITERATIONS = 200
BLOCK_TOLERANCE = 1e-9
MAX_RESIDUAL = 1e-7
FILL_FACTOR = 4
# Shift of a matrix beyond its largest eigenvalue, so that it can be factored.
SHIFT = 1e-7


def fixed_signs(vectors: np.ndarray) -> np.ndarray:
    """Return eigenvectors (n, m) with signs such that the largest entry of each is positive."""
    sizes = np.abs(vectors)
    # Of entries equal up to rounding, the first decides.
    largest_rows = np.argmax(sizes >= sizes.max(axis=0) * (1 - 1e-9), axis=0)
    return vectors * np.where(vectors[largest_rows, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)


def leading_eigenpairs(
    S: Any, count: int, first: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest eigenvalues (count,), descending, and eigenvectors (n, count).

    The eigenvectors are orthonormal, with `fixed_signs`, and deterministic. ``first`` (n,) is the
    eigenvector of the largest eigenvalue, of any length, if it is known in advance.
    """
    n = S.shape[0]
    pairs = None
    if n > DIRECT_ROWS and count <= n // 4:
        pairs = _by_lanczos(S, count)
    is_large = sparse.issparse(S) and n > MAX_DENSE_ROWS
    if pairs is None and is_large and first is not None and count > 1:
        first = first / np.linalg.norm(first)
        pairs = _by_blocks(S, count, first) or _by_inversion(S, count, first)
    if pairs is None:
        dense = S.toarray() if sparse.issparse(S) else S
        pairs = _pairs_by_number(dense, n - count, n - 1)
    values, vectors = pairs
    order = np.argsort(-values, kind="stable")
    return values[order], fixed_signs(vectors[:, order])


def _by_lanczos(S: Any, count: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return eigenpairs by Lanczos from a fixed start vector; None if they do not converge.

    They do not if eigenvalues cluster at 1: for long thin data, and for distant groups.
    """
    n = S.shape[0]
    start = np.random.default_rng(0).standard_normal(n)
    basis = min(n, max(4 * count, 2 * count + 40))
    restarts = max(MAX_LANCZOS_PRODUCTS // (basis - count), 1)
    try:
        return eigsh(S, count, which="LA", v0=start, ncv=basis, tol=1e-13, maxiter=restarts)
    except ArpackNoConvergence:
        return None


def _by_blocks(S: Any, count: int, first: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return eigenpairs by preconditioned block iterations (LOBPCG), given the first one.

    None if a residual is too large.

    A. V. Knyazev, "Toward the optimal preconditioned eigensolver", SIAM J. Sci. Comput. 23 (2001)
    517-541. Incomplete factors are the preconditioner: they are nearly exact if the graph of the
    matrix is long and thin, which is where other solvers do not converge.
    """
    n = S.shape[0]
    top = float(first @ (S @ first))
    below = (top * sparse.identity(n, format="csr") - S).tocsr()
    block = np.random.default_rng(0).standard_normal((n, count + 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the residuals are checked below
        values, vectors = lobpcg(
            below, block, M=_preconditioner(below), Y=first[:, None], largest=False,
            tol=BLOCK_TOLERANCE, maxiter=BLOCK_ITERATIONS,
        )  # fmt: skip
    order = np.argsort(values, kind="stable")[: count - 1]
    values, vectors = np.r_[top, top - values[order]], np.column_stack([first, vectors[:, order]])
    residuals = np.linalg.norm(S @ vectors - vectors * values, axis=0)
    # "<=" rejects NaN.
    return (values, vectors) if (residuals <= MAX_RESIDUAL).all() else None


def _by_inversion(S: Any, count: int, first: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return eigenpairs by Lanczos on the inverse of the shifted matrix; None if that fails."""
    shift = float(first @ (S @ first)) + SHIFT
    start = np.random.default_rng(0).standard_normal(S.shape[0])
    try:
        return eigsh(S.tocsc(), count, sigma=shift, which="LM", v0=start)
    except (RuntimeError, MemoryError):  # no convergence, a zero pivot, or too many entries
        return None


def _preconditioner(L: Any) -> LinearOperator | None:
    """Return incomplete factors of a positive semidefinite matrix, or None."""
    shifted = (L + SHIFT * sparse.identity(L.shape[0], format="csr")).tocsc()
    try:
        factors = spilu(
            shifted, drop_tol=1e-3, fill_factor=FILL_FACTOR, diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )  # fmt: skip
    except RuntimeError:  # a zero pivot
        return None
    return LinearOperator(L.shape, matvec=factors.solve, matmat=factors.solve, dtype=np.float64)


def eigenpairs_above(S: np.ndarray, condition: float) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues above the largest / ``condition``, descending, and eigenvectors."""
    # A Rayleigh quotient is a lower bound of the largest eigenvalue, so no pair is missed.
    threshold = max(float(S.sum()) / len(S) / condition, np.finfo(float).tiny)
    values, vectors = _pairs_above(S, threshold)
    is_kept = values > values[-1] / condition
    return values[is_kept][::-1], vectors[:, is_kept][:, ::-1]


def nth_eigenvalue(S: np.ndarray, n: int) -> float:
    """Return eigenvalue number n of a symmetric matrix; the largest has number 0."""
    position = S.shape[0] - 1 - n
    try:
        subset = position, position
        values = eigh(S, eigvals_only=True, subset_by_index=subset, check_finite=False)
    except LinAlgError:
        values = np.empty(0)
    if not len(values):
        values = _all_pairs(S)[0][position:]
    return float(values[0])


def _pairs_by_number(S: np.ndarray, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenpairs ``first`` to ``last``, counted from the smallest eigenvalue."""
    try:
        pairs = eigh(S, subset_by_index=(first, last), check_finite=False)
    except LinAlgError:
        pairs = np.empty(0), np.empty((len(S), 0))
    if len(pairs[0]) == last - first + 1:
        return pairs
    values, vectors = _all_pairs(S)
    return values[first : last + 1], vectors[:, first : last + 1]


def _pairs_above(S: np.ndarray, threshold: float) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenpairs above ``threshold``, ascending, of a matrix with none far below 0."""
    try:
        pairs = eigh(S, subset_by_value=(threshold, np.inf), check_finite=False)
    except LinAlgError:
        pairs = np.empty(0), np.empty((len(S), 0))
    # The eigenvalues sum to the trace: a larger remainder means that a pair is missing.
    remainder = float(np.trace(S) - pairs[0].sum())
    rounding = len(S) * np.finfo(float).eps * float(np.trace(S))
    if len(pairs[0]) and remainder <= threshold * (len(S) - len(pairs[0])) + rounding:
        return pairs
    values, vectors = _all_pairs(S)
    return values[values > threshold], vectors[:, values > threshold]


def _all_pairs(S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return all eigenpairs, ascending, by the QR iteration.

    LAPACK's faster solver for a subset can fail, or return too few, if eigenvalues cluster, as
    those of a kernel with many components do.
    """
    return eigh(S, driver="ev", check_finite=False)
