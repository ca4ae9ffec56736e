"""Absolute loss: the least sum of Mahalanobis distances to the neighbours' images."""

from __future__ import annotations

import numpy as np
from numba import njit

from outsample._kernels.gls import place_on_coincident
from outsample._kernels.linear_algebra import cholesky_solve

ITERATIONS = 200
TOLERANCE = 1e-10


@njit(cache=True, nogil=True)
def weighted_pull(Y, row, center, sigma, j, basis, isotropic, least, error, pull):
    """``e' w e`` and ``w e`` for ``e = Y[row] - center`` and the block of neighbour j."""
    d = error.size
    for a in range(d):
        error[a] = Y[row, a] - center[a]
        pull[a] = 0.0
    square = 0.0
    for a in range(d):
        weight = (least / sigma[j, 0 if isotropic else a]) ** 2
        if isotropic:
            pull[a] = weight * error[a]
            square += pull[a] * error[a]
        else:
            along = 0.0
            for b in range(d):
                along += basis[b, a] * error[b]
            square += weight * along * along
            for b in range(d):
                pull[b] += weight * along * basis[b, a]
    return square


@njit(cache=True, nogil=True)
def dual_norm(gradient, sigma, j, basis, isotropic, least):
    """``sqrt(g' w_j^-1 g)``."""
    d = gradient.size
    square = 0.0
    for a in range(d):
        along = gradient[a]
        if not isotropic:
            along = 0.0
            for b in range(d):
                along += basis[b, a] * gradient[b]
        square += (along * sigma[j, 0 if isotropic else a] / least) ** 2
    return np.sqrt(square)


@njit(cache=True, nogil=True)
def solve_absolute(start, stop, Y, indptr, indices, sigma, axes, per_point, coordinates):
    """Weighted geometric median, from the squared solution that ``coordinates`` holds.

    A median often is one of the images; each is first tested for it by the exact condition, which
    also keeps the steps below from dividing by 0. A step is Newton's where it lowers the sum, else
    a reweighting (Weiszfeld), which always does but crawls where an image is near the median.
    """
    d = Y.shape[1]
    isotropic = sigma.shape[1] == 1
    error, pull, gradient, step = np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    newton, center = np.empty(d), np.empty(d)
    total, curvature = np.empty((d, d)), np.empty((d, d))
    none = np.empty((0, 0))
    for i in range(start, stop):
        first, last = indptr[i], indptr[i + 1]
        out = coordinates[i]
        if place_on_coincident(Y, indices, sigma, first, last, out):
            continue
        least = np.inf
        size = 0.0
        for j in range(first, last):
            for a in range(sigma.shape[1]):
                least = min(least, sigma[j, a])
            for a in range(d):
                size = max(size, abs(Y[indices[j], a] - Y[indices[first], a]))
        settled = size == 0.0
        if settled:
            out[:] = Y[indices[first]]
        candidate = first
        while candidate < last and not settled:
            center[:] = Y[indices[candidate]]
            gradient[:] = 0.0
            for j in range(first, last):
                basis = none if isotropic else axes[indices[j] if per_point else i]
                square = weighted_pull(
                    Y, indices[j], center, sigma, j, basis, isotropic, least, error, pull
                )
                if square > 0.0:
                    for a in range(d):
                        gradient[a] += pull[a] / np.sqrt(square)
            held = 0.0
            for j in range(first, last):
                same = True
                for a in range(d):
                    same = same and Y[indices[j], a] == center[a]
                if same:
                    basis = none if isotropic else axes[indices[j] if per_point else i]
                    norm = dual_norm(gradient, sigma, j, basis, isotropic, least)
                    held += 1.0 / max(norm, 1e-300)
            if held >= 1.0:
                out[:] = center
                settled = True
            candidate += 1
        for _ in range(0 if settled else ITERATIONS):
            total[:] = 0.0
            curvature[:] = 0.0
            step[:] = 0.0
            before = 0.0
            for j in range(first, last):
                basis = none if isotropic else axes[indices[j] if per_point else i]
                square = weighted_pull(
                    Y, indices[j], out, sigma, j, basis, isotropic, least, error, pull
                )
                before += np.sqrt(square)
                length = max(np.sqrt(square), 1e-14 * size)
                for a in range(d):
                    step[a] += pull[a] / length
                    for b in range(a + 1):
                        curvature[a, b] -= (pull[a] / length) * (pull[b] / length) / length
                    weight = (least / sigma[j, 0 if isotropic else a]) ** 2 / length
                    if isotropic:
                        total[a, a] += weight
                    else:
                        for b in range(d):
                            for c in range(b + 1):
                                total[b, c] += weight * basis[b, a] * basis[c, a]
            for a in range(d):
                newton[a] = step[a]
                for b in range(a + 1):
                    curvature[a, b] += total[a, b]
            lower = cholesky_solve(curvature, newton)
            if lower:
                after = 0.0
                for a in range(d):
                    center[a] = out[a] + newton[a]
                for j in range(first, last):
                    basis = none if isotropic else axes[indices[j] if per_point else i]
                    square = weighted_pull(
                        Y, indices[j], center, sigma, j, basis, isotropic, least, error, pull
                    )
                    after += np.sqrt(square)
                lower = after <= before * (1.0 + 1e-14)  # but for rounding
            if lower:
                step[:] = newton
            elif not cholesky_solve(total, step):
                break
            moved = 0.0
            for a in range(d):
                out[a] += step[a]
                moved = max(moved, abs(step[a]))
            if moved <= TOLERANCE * size:
                break
