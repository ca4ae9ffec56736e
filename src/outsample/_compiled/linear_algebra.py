"""Dense linear algebra of small matrices, one at a time."""

from __future__ import annotations

import numpy as np

from outsample._compiled.compiling import njit

MAX_QL_STEPS = 60  # per eigenvalue; two or three are typical


@njit
def dot(a, b):
    """Return the inner product, always summed in the same order; fast for long vectors."""
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
    each with its largest entry positive, so that the result is unique. Householder reflections to
    tridiagonal form, then QL steps: a fifth of the time of Jacobi rotations.
    """
    d = A.shape[0]
    largest = 0.0
    for i in range(d):
        for j in range(i + 1):
            largest = max(largest, abs(A[i, j]))
    axes = np.zeros((d, d))  # eigenvectors as rows
    for i in range(d):
        axes[i, i] = 1.0
    if largest > 0.0:
        for i in range(d):
            for j in range(i + 1):
                A[i, j] /= largest
        off_diagonal, v, w = np.zeros(d), np.empty(d), np.empty(d)
        for j in range(d - 1):
            for i in range(j + 1, d):
                v[i] = A[i, j]
            off_diagonal[j], scale = reflect(A, v, w, j + 1)
            if scale > 0.0:
                apply_reflection(axes, v, w, j + 1, scale)
        diagonalise(A, off_diagonal, axes)
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
                axes[i, j], axes[top, j] = axes[top, j], axes[i, j]
    for i in range(d):
        axis = axes[i]
        longest = 0
        for j in range(1, d):
            if abs(axis[j]) > abs(axis[longest]) * (1.0 + 1e-9):
                longest = j
        sign = -1.0 if axis[longest] < 0.0 else 1.0
        for j in range(d):
            vectors[j, i] = sign * axis[j]


@njit
def apply_reflection(rows, v, w, start, scale):
    """Apply the reflection ``I - scale v v'`` to ``rows`` from ``start`` on; w is workspace."""
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
    """Solve ``A x = b``, overwriting both; False if ``A`` is not positive definite."""
    if not cholesky_factor(A):
        return False
    solve_factored(A, b)
    return True


@njit
def cholesky_factor(A):
    """Factor ``A`` in its lower triangle (Cholesky); False if it is not positive definite."""
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
    """Solve for ``b`` in place with the factor from `cholesky_factor`."""
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
    """Write the shares of ``|y|^2`` along the eigenvectors of symmetric ``A``, overwriting ``A``.

    The eigenvalues end on the diagonal of ``A``, unordered. ``A`` is rotated so that y is the first
    axis and made tridiagonal; then only the first entries of the eigenvectors are needed (Golub
    and Welsch), and the cost is about that of one matrix product. Only the lower triangle of ``A``
    is read. Its entries should be of order 1, so that squares do not overflow.
    """
    d = A.shape[0]
    off_diagonal = np.zeros(d)
    first = np.zeros((d, 1))
    first[0, 0] = 1.0
    v = np.empty(d)
    w = np.empty(d)
    for j in range(-1, d - 1):  # one call site: numba compiles `reflect` again for a constant 0
        for i in range(j + 1, d):
            v[i] = A[i, j] if j >= 0 else y[i]
        corner, _ = reflect(A, v, w, j + 1)
        if j >= 0:
            off_diagonal[j] = corner
    diagonalise(A, off_diagonal, first)
    for i in range(d):
        shares[i] = first[i, 0] * first[i, 0]


@njit
def diagonalise(A, off_diagonal, rows):
    """Diagonalise a tridiagonal matrix by QL steps, and rotate ``rows`` with it.

    The diagonal is that of ``A``; ``off_diagonal`` holds the entries next to it.
    """
    d = A.shape[0]
    largest = 0.0
    for i in range(d):
        largest = max(largest, max(abs(A[i, i]), abs(off_diagonal[i])))
    for low in range(d):
        for _ in range(MAX_QL_STEPS):
            high = low
            # Smaller entries change no eigenvalue by more than rounding does.
            while high < d - 1 and abs(off_diagonal[high]) > 1e-16 * largest:
                high += 1
            if high == low:
                break
            shifted_step(A, off_diagonal, rows, low, high)


@njit
def shifted_step(A, off_diagonal, rows, low, high):
    """Do one implicit QL step with Wilkinson's shift on rows ``low`` to ``high``."""
    gap = (A[low + 1, low + 1] - A[low, low]) / (2.0 * off_diagonal[low])
    root = np.sqrt(gap * gap + 1.0) if abs(gap) < 1e150 else abs(gap)
    signed_root = root if gap >= 0.0 else -root
    shift = A[high, high] - A[low, low] + off_diagonal[low] / (gap + signed_root)
    sine = cosine = 1.0
    carry = 0.0
    for i in range(high - 1, low - 1, -1):
        f = sine * off_diagonal[i]
        b = cosine * off_diagonal[i]
        root = np.sqrt(f * f + shift * shift)
        off_diagonal[i + 1] = root
        if root < 1e-150:  # the matrix splits into two blocks
            A[i + 1, i + 1] -= carry
            off_diagonal[high] = 0.0
            return
        inverse = 1.0 / root
        sine = f * inverse
        cosine = shift * inverse
        shift = A[i + 1, i + 1] - carry
        rotated = (A[i, i] - shift) * sine + 2.0 * cosine * b
        carry = sine * rotated
        A[i + 1, i + 1] = shift + carry
        shift = cosine * rotated - b
        upper, lower = rows[i], rows[i + 1]
        for c in range(upper.size):
            f = lower[c]
            lower[c] = sine * upper[c] + cosine * f
            upper[c] = cosine * upper[c] - sine * f
    A[low, low] -= carry
    off_diagonal[low] = shift
    off_diagonal[high] = 0.0


@njit
def reflect(A, v, w, start):
    """Apply to rows and columns from ``start`` on the reflection that maps v to the first axis.

    Return the length of v along that axis, and ``2 / v'v``, or 0 if nothing was reflected. v and w
    are overwritten from ``start`` on.
    """
    d = A.shape[0]
    norm = 0.0
    for i in range(start, d):
        norm += v[i] * v[i]
    if norm < 1e-290 or start == d - 1:  # negligible next to entries of order 1
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
    product = 0.0
    for i in range(start, d):
        w[i] *= scale
        product += w[i] * v[i]
    product *= 0.5 * scale
    for i in range(start, d):
        w[i] -= product * v[i]
    for i in range(start, d):
        for j in range(start, i + 1):
            A[i, j] -= v[i] * w[j] + w[i] * v[j]
    return -norm, scale
