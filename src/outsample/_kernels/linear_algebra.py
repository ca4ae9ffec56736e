"""Small dense algebra, one matrix at a time."""

from __future__ import annotations

import numpy as np

from outsample._kernels.compiling import njit

SWEEPS = 30


@njit
def dot(a, b):
    """Inner product; always summed in the same order, fast with many columns."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    last = a.size - a.size % 8
    for i in range(0, last, 8):
        s0 += a[i] * b[i]
        s1 += a[i + 1] * b[i + 1]
        s2 += a[i + 2] * b[i + 2]
        s3 += a[i + 3] * b[i + 3]
        s4 += a[i + 4] * b[i + 4]
        s5 += a[i + 5] * b[i + 5]
        s6 += a[i + 6] * b[i + 6]
        s7 += a[i + 7] * b[i + 7]
    for i in range(last, a.size):
        s0 += a[i] * b[i]
    return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))


@njit
def symmetric_eigen(A, vectors):
    """Diagonalise symmetric ``A`` in place, largest eigenvalue first.

    The eigenvalues end on the diagonal of ``A``, the eigenvectors in the columns of ``vectors``,
    each with its largest entry positive so that the answer is unique. Made tridiagonal by
    reflections, then diagonal by QL steps, which takes a fifth of the time of Jacobi's rotations.
    """
    d = A.shape[0]
    largest = 0.0
    for i in range(d):
        for j in range(i + 1):
            largest = max(largest, abs(A[i, j]))
    turned = np.zeros((d, d))  # the eigenvectors as rows
    for i in range(d):
        turned[i, i] = 1.0
    if largest > 0.0:
        for i in range(d):
            for j in range(i + 1):
                A[i, j] /= largest
        beside, v, w = np.zeros(d), np.empty(d), np.empty(d)
        for j in range(d - 1):
            for i in range(j + 1, d):
                v[i] = A[i, j]
            beside[j], scale = reflect(A, v, w, j + 1)
            if scale > 0.0:
                turn(turned, v, w, j + 1, scale)
        diagonalise(A, beside, turned)
        for i in range(d):
            A[i, i] *= largest
    for i in range(d - 1):
        top = i
        for j in range(i + 1, d):
            if A[j, j] > A[top, top]:
                top = j
        if top != i:
            A[i, i], A[top, top] = A[top, top], A[i, i]
            for j in range(d):
                turned[i, j], turned[top, j] = turned[top, j], turned[i, j]
    for i in range(d):
        axis = turned[i]
        longest = 0
        for j in range(1, d):
            if abs(axis[j]) > abs(axis[longest]) * (1.0 + 1e-9):
                longest = j
        sign = -1.0 if axis[longest] < 0.0 else 1.0
        for j in range(d):
            vectors[j, i] = sign * axis[j]


@njit
def turn(rows, v, w, start, scale):
    """Apply the reflection ``I - scale v v'`` to rows from ``start`` on; w is overwritten."""
    d, m = rows.shape
    for c in range(m):
        w[c] = 0.0
    for i in range(start, d):
        for c in range(m):
            w[c] += v[i] * rows[i, c]
    for i in range(start, d):
        factor = scale * v[i]
        for c in range(m):
            rows[i, c] -= factor * w[c]


@njit
def cholesky_solve(A, b):
    """Solve ``A x = b`` for positive definite ``A``, overwriting both; False if it is not so."""
    if not cholesky_factor(A):
        return False
    solve_factored(A, b)
    return True


@njit
def cholesky_factor(A):
    """Factor positive definite ``A`` in its lower triangle; False if it is not so."""
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
    return True


@njit
def solve_factored(A, b):
    """Solve for b in place by the factor of `cholesky_factor`."""
    d = A.shape[0]
    for i in range(d):
        for p in range(i):
            b[i] -= A[i, p] * b[p]
        b[i] /= A[i, i]
    for i in range(d - 1, -1, -1):
        for p in range(i + 1, d):
            b[i] -= A[p, i] * b[p]
        b[i] /= A[i, i]


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
    first = np.zeros((d, 1))
    first[0, 0] = 1.0
    v = np.empty(d)
    w = np.empty(d)
    for j in range(-1, d - 1):  # one call only: numba would compile `reflect` for a constant 0 too
        for i in range(j + 1, d):
            v[i] = A[i, j] if j >= 0 else y[i]
        corner, _ = reflect(A, v, w, j + 1)
        if j >= 0:
            beside[j] = corner
    diagonalise(A, beside, first)
    for i in range(d):
        shares[i] = first[i, 0] * first[i, 0]


@njit
def diagonalise(A, beside, rows):
    """QL steps on a tridiagonal: the diagonal of A, and what is beside it; rows turn with it."""
    d = A.shape[0]
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
            shifted_step(A, beside, rows, low, high)


@njit
def shifted_step(A, beside, rows, low, high):
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
        upper, lower = rows[i], rows[i + 1]
        for c in range(upper.size):
            f = lower[c]
            lower[c] = sine * upper[c] + cosine * f
            upper[c] = cosine * upper[c] - sine * f
    A[low, low] -= carry
    beside[low] = shift
    beside[high] = 0.0


@njit
def reflect(A, v, w, start):
    """Turn rows and columns from ``start`` on by the reflection that takes v to the first of them.

    Returns what v becomes there, and 2 / v'v, or 0 if nothing was turned. v and w are overwritten
    from ``start`` on.
    """
    d = A.shape[0]
    norm = 0.0
    for i in range(start, d):
        norm += v[i] * v[i]
    if norm < 1e-290 or start == d - 1:  # nothing beside entries of the size of 1
        return v[start], 0.0
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
    return -norm, scale
