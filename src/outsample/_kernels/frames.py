"""Local PCA of the images of neighbourhoods (Eq. 4.4)."""

from __future__ import annotations

import numpy as np

from outsample._kernels.compiling import njit
from outsample._kernels.linear_algebra import symmetric_eigen
from outsample._kernels.mirrors import turn_back, turn_into_first


@njit
def image_frames(start, stop, Y, indptr, indices, lengths, axes, spread):
    """Eigenvectors and root eigenvalues of ``(1 / length^2)(1 / k) Z'Z``, Z centred images."""
    d = Y.shape[1]
    mean = np.empty(d)
    values = np.empty(d)
    for i in range(start, stop):
        first, last = indptr[i], indptr[i + 1]
        anchor = Y[indices[first]]
        mean[:] = 0.0
        for j in range(first, last):
            for a in range(d):
                mean[a] += Y[indices[j], a] - anchor[a]
        mean /= last - first
        Z = np.empty((last - first, d))
        size = 0.0
        for j in range(first, last):
            for a in range(d):
                Z[j - first, a] = Y[indices[j], a] - anchor[a] - mean[a]
                size = max(size, abs(Z[j - first, a]))
        if size > 0.0:  # scaled to entries of at most 1, so that squares are safe
            for j in range(last - first):
                for a in range(d):
                    Z[j, a] /= size
        if last - first < d:
            wide_frame(Z, axes[i], values)
        else:
            covariance = np.zeros((d, d))
            for j in range(last - first):
                for a in range(d):
                    for b in range(a + 1):
                        covariance[a, b] += Z[j, a] * Z[j, b]
            eigen_of_sum(covariance, last - first, axes[i], values)
        for a in range(d):
            if lengths[i] > 0.0:
                root = np.sqrt(max(values[a], 0.0))
                spread[i, a] = min(root * min(size / lengths[i], 1e300), 1e300)
            else:
                spread[i, a] = 0.0


@njit
def eigen_of_sum(total, count, vectors, values):
    """Eigenvectors and eigenvalues of a sum of squares, its lower half given, over the count."""
    for a in range(total.shape[0]):
        for b in range(a + 1):
            total[a, b] /= count
            total[b, a] = total[a, b]
    symmetric_eigen(total, vectors)
    for a in range(total.shape[0]):
        values[a] = total[a, a]


@njit
def wide_frame(Z, axes, values):
    """Frame of fewer images (k, d) than the map has dimensions: k x k is enough to diagonalise.

    The other d - k axes have no spread.
    """
    k, d = Z.shape
    mirrors = np.empty((k, d))
    turn_into_first(Z, mirrors)
    total = np.zeros((k, k))
    for j in range(k):
        for a in range(k):
            for b in range(a + 1):
                total[a, b] += Z[j, a] * Z[j, b]
    inner = np.empty((k, k))
    values[:] = 0.0
    eigen_of_sum(total, k, inner, values)
    axis = np.empty(d)
    for c in range(d):
        top = 0
        for a in range(d):
            axis[a] = inner[a, c] if a < k and c < k else (1.0 if a == c else 0.0)
        turn_back(mirrors, axis)
        for a in range(1, d):
            if abs(axis[a]) > abs(axis[top]) * (1.0 + 1e-9):
                top = a
        sign = -1.0 if axis[top] < 0.0 else 1.0
        for a in range(d):
            axes[a, c] = sign * axis[a]
