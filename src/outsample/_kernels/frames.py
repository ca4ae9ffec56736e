"""Local PCA of the images of neighbourhoods (Eq. 4.4)."""

from __future__ import annotations

import numpy as np

from outsample._kernels.compiling import njit
from outsample._kernels.linear_algebra import symmetric_eigen


@njit
def image_frames(start, stop, Y, indptr, indices, lengths, axes, spread):
    """Eigenvectors and root eigenvalues of ``(1 / length^2)(1 / k) Z'Z``, Z centred images."""
    d = Y.shape[1]
    mean = np.empty(d)
    covariance = np.empty((d, d))
    for i in range(start, stop):
        first, last = indptr[i], indptr[i + 1]
        anchor = Y[indices[first]]
        mean[:] = 0.0
        for j in range(first, last):
            for a in range(d):
                mean[a] += Y[indices[j], a] - anchor[a]
        mean /= last - first
        size = 0.0
        for j in range(first, last):
            for a in range(d):
                size = max(size, abs(Y[indices[j], a] - anchor[a] - mean[a]))
        covariance[:] = 0.0
        if size > 0.0:  # scaled to entries of at most 1, so that squares are safe
            for j in range(first, last):
                for a in range(d):
                    left = (Y[indices[j], a] - anchor[a] - mean[a]) / size
                    for b in range(a + 1):
                        right = (Y[indices[j], b] - anchor[b] - mean[b]) / size
                        covariance[a, b] += left * right
            for a in range(d):
                for b in range(a + 1):
                    covariance[a, b] /= last - first
                    covariance[b, a] = covariance[a, b]
        symmetric_eigen(covariance, axes[i])
        for a in range(d):
            if lengths[i] > 0.0:
                root = np.sqrt(max(covariance[a, a], 0.0))
                spread[i, a] = min(root * min(size / lengths[i], 1e300), 1e300)
            else:
                spread[i, a] = 0.0
