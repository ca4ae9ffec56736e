"""Local PCA of the images of neighbourhoods (Eq. 4.4)."""

from __future__ import annotations

import numpy as np

from outsample._compiled.compiling import njit
from outsample._compiled.linear_algebra import symmetric_eigen
from outsample._compiled.mirrors import reflect_back, reflect_into_first


@njit
def image_frames(start, stop, Y, indptr, indices, lengths, axes, spread):
    """Write eigenvectors and root eigenvalues of ``(1 / length^2)(1 / k) Z'Z``, Z centred images.

    Only for neighbourhoods with at least d images; `wide_frames` does the others, and is compiled
    only if there are any.
    """
    d = Y.shape[1]
    values = np.empty(d)
    covariance = np.empty((d, d))
    for i in range(start, stop):
        k = indptr[i + 1] - indptr[i]
        if k < d:
            continue
        Z = np.empty((k, d))
        size = centred_images(Y, indices, indptr[i], Z)
        covariance[:] = 0.0
        for j in range(k):
            for a in range(d):
                for b in range(a + 1):
                    covariance[a, b] += Z[j, a] * Z[j, b]
        eigen_of_sum(covariance, k, axes[i], values)
        root_values(values, size, lengths[i], spread[i])


@njit
def wide_frames(start, stop, Y, indptr, indices, lengths, axes, spread):
    """Write the frames of `image_frames` for neighbourhoods with fewer than d images."""
    d = Y.shape[1]
    values = np.empty(d)
    for i in range(start, stop):
        k = indptr[i + 1] - indptr[i]
        if k >= d:
            continue
        Z = np.empty((k, d))
        size = centred_images(Y, indices, indptr[i], Z)
        wide_frame(Z, axes[i], values)
        root_values(values, size, lengths[i], spread[i])


@njit
def centred_images(Y, indices, first, Z):
    """Write images minus their mean, over the largest entry, to Z (k, d); return that entry."""
    k, d = Z.shape
    size = 0.0
    for a in range(d):
        anchor = Y[indices[first], a]
        mean = 0.0
        for j in range(k):
            mean += Y[indices[first + j], a] - anchor
        mean /= k
        for j in range(k):
            Z[j, a] = Y[indices[first + j], a] - anchor - mean
            size = max(size, abs(Z[j, a]))
    if size > 0.0:  # entries of at most 1, whose squares cannot overflow
        for j in range(k):
            for a in range(d):
                Z[j, a] /= size
    return size


@njit
def root_values(values, size, length, spread):
    """Write root eigenvalues in units of the neighbourhood's length; 0 if that length is 0."""
    for a in range(values.size):
        if length > 0.0:
            root = np.sqrt(max(values[a], 0.0))
            spread[a] = min(root * min(size / length, 1e300), 1e300)
        else:
            spread[a] = 0.0


@njit
def eigen_of_sum(total, count, vectors, values):
    """Write eigenvectors and eigenvalues of ``total / count``; only its lower triangle is read."""
    for a in range(total.shape[0]):
        for b in range(a + 1):
            total[a, b] /= count
            total[b, a] = total[a, b]
    symmetric_eigen(total, vectors)
    for a in range(total.shape[0]):
        values[a] = total[a, a]


@njit
def wide_frame(Z, axes, values):
    """Write the frame of k images with k < d, from a k x k matrix.

    The other d - k axes have no spread.
    """
    k, d = Z.shape
    mirrors = np.empty((k, d))
    reflect_into_first(Z, mirrors)
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
        reflect_back(mirrors, axis)
        for a in range(1, d):
            if abs(axis[a]) > abs(axis[top]) * (1.0 + 1e-9):
                top = a
        sign = -1.0 if axis[top] < 0.0 else 1.0
        for a in range(d):
            axes[a, c] = sign * axis[a]
