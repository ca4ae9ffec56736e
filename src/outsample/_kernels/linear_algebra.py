"""Small dense algebra, one matrix at a time."""

from __future__ import annotations

import numpy as np
from numba import njit

SWEEPS = 30


@njit(cache=True, nogil=True)
def symmetric_eigen(A, vectors):
    """Diagonalise symmetric ``A`` in place by Jacobi rotations, largest eigenvalue first.

    The eigenvalues end on the diagonal of ``A``, the eigenvectors in the columns of ``vectors``,
    each with its largest entry positive so that the answer is unique.
    """
    d = A.shape[0]
    for i in range(d):
        for j in range(d):
            vectors[i, j] = 1.0 if i == j else 0.0
    for _ in range(SWEEPS):
        off = 0.0
        diagonal = 0.0
        for i in range(d):
            diagonal += A[i, i] * A[i, i]
            for j in range(i):
                off += A[i, j] * A[i, j]
        if off <= 1e-34 * diagonal:
            break
        for p in range(d - 1):
            for r in range(p + 1, d):
                if A[p, r] == 0.0:
                    continue
                theta = (A[r, r] - A[p, p]) / (2.0 * A[p, r])
                if abs(theta) > 1e150:
                    tangent = 0.5 / theta
                else:
                    tangent = 1.0 / (abs(theta) + np.sqrt(theta * theta + 1.0))
                    if theta < 0.0:
                        tangent = -tangent
                cosine = 1.0 / np.sqrt(tangent * tangent + 1.0)
                sine = tangent * cosine
                for i in range(d):
                    left = A[i, p]
                    right = A[i, r]
                    A[i, p] = cosine * left - sine * right
                    A[i, r] = sine * left + cosine * right
                for i in range(d):
                    left = A[p, i]
                    right = A[r, i]
                    A[p, i] = cosine * left - sine * right
                    A[r, i] = sine * left + cosine * right
                A[p, r] = 0.0
                A[r, p] = 0.0
                for i in range(d):
                    left = vectors[i, p]
                    right = vectors[i, r]
                    vectors[i, p] = cosine * left - sine * right
                    vectors[i, r] = sine * left + cosine * right
    for i in range(d - 1):
        top = i
        for j in range(i + 1, d):
            if A[j, j] > A[top, top]:
                top = j
        if top != i:
            A[i, i], A[top, top] = A[top, top], A[i, i]
            for j in range(d):
                vectors[j, i], vectors[j, top] = vectors[j, top], vectors[j, i]
    for i in range(d):
        largest = 0
        for j in range(1, d):
            if abs(vectors[j, i]) > abs(vectors[largest, i]) * (1.0 + 1e-9):
                largest = j
        if vectors[largest, i] < 0.0:
            for j in range(d):
                vectors[j, i] = -vectors[j, i]


@njit(cache=True, nogil=True)
def cholesky_solve(A, b):
    """Solve ``A x = b`` for positive definite ``A``, overwriting both; False if it is not so."""
    d = A.shape[0]
    for j in range(d):
        for i in range(j):
            A[j, j] -= A[j, i] * A[j, i]
        if not A[j, j] > 0.0:
            return False
        A[j, j] = np.sqrt(A[j, j])
        for i in range(j + 1, d):
            for p in range(j):
                A[i, j] -= A[i, p] * A[j, p]
            A[i, j] /= A[j, j]
    for i in range(d):
        for p in range(i):
            b[i] -= A[i, p] * b[p]
        b[i] /= A[i, i]
    for i in range(d - 1, -1, -1):
        for p in range(i + 1, d):
            b[i] -= A[p, i] * b[p]
        b[i] /= A[i, i]
    return True
