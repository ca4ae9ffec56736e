"""Small dense algebra, one matrix at a time."""

from __future__ import annotations

import numpy as np

from outsample._kernels.compiling import njit

SWEEPS = 30


@njit
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


@njit
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


@njit
def spectral_shares(A, y, shares):
    """Shares of ``|y|^2`` along the eigenvectors of symmetric ``A``, which is overwritten.

    The eigenvalues end on the diagonal of ``A``, in no order. ``A`` is turned so that y is the
    first axis and made tridiagonal; of the eigenvectors only the first entries are then needed
    (Golub and Welsch), so that all costs about as much as one product of matrices. Only the lower
    triangle of ``A`` is read. Its entries should be of the size of 1, so that squares are safe.
    """
    d = A.shape[0]
    beside = np.zeros(d)
    first = np.zeros(d)
    first[0] = 1.0
    v = np.empty(d)
    w = np.empty(d)
    for j in range(-1, d - 1):  # one call only: numba would compile `reflect` for a constant 0 too
        for i in range(j + 1, d):
            v[i] = A[i, j] if j >= 0 else y[i]
        corner = reflect(A, v, w, j + 1)
        if j >= 0:
            beside[j] = corner
    largest = 0.0
    for i in range(d):
        largest = max(largest, max(abs(A[i, i]), abs(beside[i])))
    for low in range(d):
        for _ in range(2 * SWEEPS):
            high = low
            # What is left beside the diagonal changes no eigenvalue by more than rounding does.
            while high < d - 1 and abs(beside[high]) > 1e-16 * largest:
                high += 1
            if high == low:
                break
            shifted_step(A, beside, first, low, high)
    for i in range(d):
        shares[i] = first[i] * first[i]


@njit
def shifted_step(A, beside, first, low, high):
    """One implicit QL step with Wilkinson's shift on rows ``low`` to ``high`` of a tridiagonal."""
    gap = (A[low + 1, low + 1] - A[low, low]) / (2.0 * beside[low])
    root = np.sqrt(gap * gap + 1.0) if abs(gap) < 1e150 else abs(gap)
    shift = A[high, high] - A[low, low] + beside[low] / (gap + (root if gap >= 0.0 else -root))
    sine = cosine = 1.0
    carry = 0.0
    for i in range(high - 1, low - 1, -1):
        f = sine * beside[i]
        b = cosine * beside[i]
        root = np.sqrt(f * f + shift * shift)
        beside[i + 1] = root
        if root < 1e-150:  # it fell into two parts
            A[i + 1, i + 1] -= carry
            beside[high] = 0.0
            return
        inverse = 1.0 / root
        sine = f * inverse
        cosine = shift * inverse
        shift = A[i + 1, i + 1] - carry
        turned = (A[i, i] - shift) * sine + 2.0 * cosine * b
        carry = sine * turned
        A[i + 1, i + 1] = shift + carry
        shift = cosine * turned - b
        f = first[i + 1]
        first[i + 1] = sine * first[i] + cosine * f
        first[i] = cosine * first[i] - sine * f
    A[low, low] -= carry
    beside[low] = shift
    beside[high] = 0.0


@njit
def reflect(A, v, w, start):
    """Turn rows and columns from ``start`` on by the reflection that takes v to the first of them.

    Returns what v becomes there. v and w are overwritten from ``start`` on.
    """
    d = A.shape[0]
    norm = 0.0
    for i in range(start, d):
        norm += v[i] * v[i]
    if norm < 1e-290 or start == d - 1:  # nothing beside entries of the size of 1
        return v[start]
    norm = np.sqrt(norm)
    if v[start] < 0.0:
        norm = -norm
    v[start] += norm
    scale = 1.0 / (norm * v[start])  # 2 / v'v
    # A <- (I - scale v v') A (I - scale v v') = A - v w' - w v'
    for i in range(start, d):
        w[i] = 0.0
    for i in range(start, d):
        total = A[i, i] * v[i]
        for j in range(start, i):
            total += A[i, j] * v[j]
            w[j] += A[i, j] * v[i]
        w[i] += total
    dot = 0.0
    for i in range(start, d):
        w[i] *= scale
        dot += w[i] * v[i]
    dot *= 0.5 * scale
    for i in range(start, d):
        w[i] -= dot * v[i]
    for i in range(start, d):
        for j in range(start, i + 1):
            A[i, j] -= v[i] * w[j] + w[i] * v[j]
    return -norm
