"""Local PCA of the images of neighbourhoods (Eq. 4.4)."""

from __future__ import annotations

import numpy as np

from outsample._compiled.compiling import njit
from outsample._compiled.linear_algebra import symmetric_eigen


@njit
def image_frames(start, stop, Y, indptr, indices, lengths, axes, spread):
    """Write eigenvectors and root eigenvalues of ``(1 / length^2)(1 / k) Z'Z``, Z centred images.

    The root eigenvalues are 0 for a neighbourhood of length 0.
    """
    d = Y.shape[1]
    covariance = np.empty((d, d))
    for i in range(start, stop):
        k = indptr[i + 1] - indptr[i]
        Z = np.empty((k, d))
        size = centred_images(Y, indices, indptr[i], Z)
        covariance[:] = 0.0
        for j in range(k):
            for a in range(d):
                for b in range(a + 1):
                    covariance[a, b] += Z[j, a] * Z[j, b]
        for a in range(d):
            for b in range(a + 1):
                covariance[a, b] /= k
                covariance[b, a] = covariance[a, b]
        symmetric_eigen(covariance, axes[i])
        for a in range(d):
            spread[i, a] = 0.0
            if lengths[i] > 0.0:
                root = np.sqrt(max(covariance[a, a], 0.0))
                spread[i, a] = min(root * min(size / lengths[i], 1e300), 1e300)


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
