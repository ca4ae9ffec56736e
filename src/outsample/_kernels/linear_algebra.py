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


@njit(cache=True, nogil=True)
def spectral_shares(A, y, shares):
    """Shares of ``|y|^2`` along the eigenvectors of symmetric ``A``, which is overwritten.

    The eigenvalues end on the diagonal of ``A``, in no order. ``A`` is turned so that y is the
    first axis and made tridiagonal; of the eigenvectors only the first entries are then needed
    (Golub and Welsch), so that all costs about as much as two products of matrices.
    """
    d = A.shape[0]
    off = np.zeros(d)
    first = np.zeros(d)
    first[0] = 1.0
    reflect(A, y.copy(), 0)
    for j in range(d - 2):
        column = np.zeros(d)
        for i in range(j + 1, d):
            column[i] = A[i, j]
        reflect(A, column, j + 1)
    for j in range(d - 1):
        off[j] = A[j + 1, j]
    for low in range(d):
        for _ in range(SWEEPS * 2):
            high = low
            while high < d - 1:
                if abs(off[high]) <= 1e-17 * (abs(A[high, high]) + abs(A[high + 1, high + 1])):
                    break
                high += 1
            if high == low:
                break
            # One implicit QL step with Wilkinson's shift.
            gap = (A[low + 1, low + 1] - A[low, low]) / (2.0 * off[low])
            root = np.hypot(gap, 1.0)
            shift = A[high, high] - A[low, low] + off[low] / (gap + (root if gap >= 0 else -root))
            sine = cosine = 1.0
            carry = 0.0
            i = high - 1
            while i >= low:
                f = sine * off[i]
                b = cosine * off[i]
                root = np.hypot(f, shift)
                off[i + 1] = root
                if root == 0.0:
                    A[i + 1, i + 1] -= carry
                    off[high] = 0.0
                    break
                sine = f / root
                cosine = shift / root
                shift = A[i + 1, i + 1] - carry
                root = (A[i, i] - shift) * sine + 2.0 * cosine * b
                carry = sine * root
                A[i + 1, i + 1] = shift + carry
                shift = cosine * root - b
                f = first[i + 1]
                first[i + 1] = sine * first[i] + cosine * f
                first[i] = cosine * first[i] - sine * f
                i -= 1
            if i >= low:
                continue
            A[low, low] -= carry
            off[low] = shift
            off[high] = 0.0
    for i in range(d):
        shares[i] = first[i] * first[i]


@njit(cache=True, nogil=True)
def reflect(A, v, start):
    """Turn symmetric ``A`` by the reflection that takes v to the axis ``start``.

    The entries of v before ``start`` are 0. v is overwritten.
    """
    d = A.shape[0]
    largest = 0.0
    for i in range(start, d):
        largest = max(largest, abs(v[i]))
    if largest == 0.0:
        return
    norm = 0.0
    for i in range(start, d):
        v[i] /= largest
        norm += v[i] * v[i]
    norm = np.sqrt(norm)
    v[start] += norm if v[start] >= 0.0 else -norm
    square = 0.0
    for i in range(start, d):
        square += v[i] * v[i]
    # A <- (I - 2 v v' / v'v) A (I - 2 v v' / v'v) = A - v w' - w v'
    w = np.zeros(d)
    dot = 0.0
    for i in range(d):
        for j in range(start, d):
            w[i] += A[i, j] * v[j]
        w[i] *= 2.0 / square
        dot += w[i] * v[i]
    for i in range(start, d):
        w[i] -= dot / square * v[i]
    for i in range(d):
        for j in range(d):
            A[i, j] -= v[i] * w[j] + w[i] * v[j]
