"""Eigenpairs of symmetric matrices: the leading ones, those above a cut, a single eigenvalue.

No solver here can stall: each has a bound on its work and a more patient one to fall back on.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, eigh
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh, lobpcg, spilu

# A matrix of this many rows is diagonalised directly.
DIRECT_ROWS = 1000
# So is a larger one on which Lanczos does not settle, up to this size if it is sparse.
DENSE_ROWS = 3000
# Products of the matrix and a vector that Lanczos may take. Where the spectrum has a gap, a
# tenth is enough; where it has none, no number of them is.
PRODUCTS = 600
# Iterations of the block solver, the residual at which it ends, the largest with which its answer
# is taken, and how many times the entries of the matrix its incomplete factors may hold.
BLOCK_ITERATIONS = 200
RESIDUAL = 1e-9
LARGEST_RESIDUAL = 1e-7
FILL = 4
# How far beyond the largest eigenvalue a matrix is shifted, to be factored.
SHIFT = 1e-7


def fixed_signs(vectors: np.ndarray) -> np.ndarray:
    """Eigenvectors (n, m), each with its entry of largest size, the first if several, positive."""
    sizes = np.abs(vectors)
    # Entries alike but for rounding count as equal.
    at = np.argmax(sizes >= sizes.max(axis=0) * (1 - 1e-9), axis=0)
    return vectors * np.where(vectors[at, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)


def leading_eigenpairs(
    S: Any, count: int, first: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Largest eigenvalues (count,), falling, and eigenvectors (n, count) of a symmetric matrix.

    Orthonormal, with `fixed_signs`: the same ones every time. ``first`` (n,) is the eigenvector
    of the largest eigenvalue, up to its length, if that is known.
    """
    n = S.shape[0]
    found = None
    if n > DIRECT_ROWS and count <= n // 4:
        found = _by_lanczos(S, count)
    if found is None and sparse.issparse(S) and n > DENSE_ROWS and first is not None and count > 1:
        first = first / np.linalg.norm(first)
        found = _by_blocks(S, count, first) or _by_inversion(S, count, first)
    if found is None:
        dense = S.toarray() if sparse.issparse(S) else S
        found = _numbered(dense, n - count, n - 1)
    values, vectors = found
    order = np.argsort(-values, kind="stable")
    return values[order], fixed_signs(vectors[:, order])


def _by_lanczos(S: Any, count: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Eigenpairs from a fixed start vector; None where they do not settle in a few hundred steps.

    They do not where eigenvalues crowd at 1: on long thin data, and on groups far apart.
    """
    n = S.shape[0]
    start = np.random.default_rng(0).standard_normal(n)
    basis = min(n, max(4 * count, 2 * count + 40))
    restarts = max(PRODUCTS // (basis - count), 1)
    try:
        return eigsh(S, count, which="LA", v0=start, ncv=basis, tol=1e-13, maxiter=restarts)
    except ArpackNoConvergence:
        return None


def _by_blocks(S: Any, count: int, first: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Eigenpairs by preconditioned block iterations, the known first one set apart.

    None where their residuals are too large.

    A. V. Knyazev, "Toward the optimal preconditioned eigensolver", SIAM J. Sci. Comput. 23 (2001)
    517-541. Incomplete factors precondition: they are nearly complete where the graph of the
    matrix is long and thin, which is where nothing else settles.
    """
    n = S.shape[0]
    top = float(first @ (S @ first))
    below = (top * sparse.identity(n, format="csr") - S).tocsr()
    block = np.random.default_rng(0).standard_normal((n, count + 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # residuals are looked at below
        values, vectors = lobpcg(
            below, block, M=_preconditioner(below), Y=first[:, None], largest=False,
            tol=RESIDUAL, maxiter=BLOCK_ITERATIONS,
        )  # fmt: skip
    order = np.argsort(values, kind="stable")[: count - 1]
    values, vectors = np.r_[top, top - values[order]], np.column_stack([first, vectors[:, order]])
    residuals = np.linalg.norm(S @ vectors - vectors * values, axis=0)
    # Not "larger than": a residual that is not a number is too large as well.
    return (values, vectors) if (residuals <= LARGEST_RESIDUAL).all() else None


def _by_inversion(S: Any, count: int, first: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Eigenpairs by Lanczos on the inverse of the shifted matrix; None where it has no factors."""
    shift = float(first @ (S @ first)) + SHIFT
    start = np.random.default_rng(0).standard_normal(S.shape[0])
    try:
        return eigsh(S.tocsc(), count, sigma=shift, which="LM", v0=start)
    except (RuntimeError, MemoryError):  # no convergence, a zero pivot, or too many entries
        return None


def _preconditioner(L: Any) -> LinearOperator | None:
    """Incomplete factors of a positive semidefinite matrix, no more than `FILL` times its size."""
    shifted = (L + SHIFT * sparse.identity(L.shape[0], format="csr")).tocsc()
    try:
        factors = spilu(
            shifted, drop_tol=1e-3, fill_factor=FILL, diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )  # fmt: skip
    except RuntimeError:  # a zero pivot
        return None
    return LinearOperator(L.shape, matvec=factors.solve, matmat=factors.solve, dtype=np.float64)


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
