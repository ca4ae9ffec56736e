"""Absolute loss: the least sum of Mahalanobis distances to the neighbours' images."""

from __future__ import annotations

import numpy as np

from outsample._kernels.compiling import njit
from outsample._kernels.gls import place_on_coincident
from outsample._kernels.linear_algebra import cholesky_solve
from outsample._kernels.mirrors import turn_back, turn_into_first
from outsample._kernels.plane_median import ITERATIONS, TOLERANCE, median_in_plane


@njit
def weighted_pull(image, center, weights, basis, error, pull):
    """``e' w e`` and ``w e`` for ``e = image - center``; weights along the axes, or one for all."""
    d = error.size
    for a in range(d):
        error[a] = image[a] - center[a]
        pull[a] = 0.0
    square = 0.0
    if weights.size == 1:
        for a in range(d):
            pull[a] = weights[0] * error[a]
            square += pull[a] * error[a]
        return square
    for a in range(d):
        along = 0.0
        for b in range(d):
            along += basis[b, a] * error[b]
        square += weights[a] * along * along
        for b in range(d):
            pull[b] += weights[a] * along * basis[b, a]
    return square


@njit
def dual_norm(gradient, deviations, unit, basis):
    """``sqrt(g' w_j^-1 g)``, from deviations along the axes, or one for all, over the unit."""
    d = gradient.size
    square = 0.0
    for a in range(d):
        along = gradient[a]
        if deviations.size > 1:
            along = 0.0
            for b in range(d):
                along += basis[b, a] * gradient[b]
        square += (along * (deviations[0 if deviations.size == 1 else a] / unit)) ** 2
    return np.sqrt(square)


@njit
def best_image(images, weights, bases, error, pull):
    """Row whose image has the least sum of distances to all; the first of equals."""
    k, d = images.shape
    sums = np.zeros(k)
    if weights.shape[1] == 1:  # each pair once
        roots = np.empty(k)
        for p in range(k):
            roots[p] = np.sqrt(weights[p, 0])
            for q in range(p):
                square = 0.0
                for a in range(d):
                    apart = images[p, a] - images[q, a]
                    square += apart * apart
                apart = np.sqrt(square)
                sums[p] += apart * roots[q]
                sums[q] += apart * roots[p]
    else:
        for p in range(k):
            for j in range(k):
                square = weighted_pull(
                    images[j], images[p], weights[j], bases[j if len(bases) > 1 else 0], error, pull
                )
                sums[p] += np.sqrt(square)
    best = 0
    for p in range(1, k):
        if sums[p] < sums[best]:
            best = p
    return best


@njit
def is_median(images, at, weights, sigma, least, bases, error, pull, gradient):
    """Tell by the exact condition whether an image is the median: no pull exceeds its hold."""
    k, d = images.shape
    center = images[at]
    gradient[:] = 0.0
    for j in range(k):
        basis = bases[j if len(bases) > 1 else 0]
        square = weighted_pull(images[j], center, weights[j], basis, error, pull)
        if square > 0.0:
            for a in range(d):
                gradient[a] += pull[a] / np.sqrt(square)
    held = 0.0
    for j in range(k):
        same = True
        for a in range(d):
            same = same and images[j, a] == center[a]
        if same:
            norm = dual_norm(gradient, sigma[j], least, bases[j if len(bases) > 1 else 0])
            held += 1.0 / max(norm, 1e-300)
    return held >= 1.0


@njit
def derivatives(images, center, weights, bases, size, error, pull, step, total, curvature):
    """Sum of the distances to a point, which is returned, and its derivatives there.

    ``step`` gets minus the gradient, ``total`` the matrix of a reweighting and ``curvature`` that
    of Newton's method, both in their lower triangles.
    """
    k, d = images.shape
    total[:] = 0.0
    curvature[:] = 0.0
    step[:] = 0.0
    value = 0.0
    for j in range(k):
        basis = bases[j if len(bases) > 1 else 0]
        root = np.sqrt(weighted_pull(images[j], center, weights[j], basis, error, pull))
        value += root
        inverse = 1.0 / max(root, 1e-14 * size)
        for a in range(d):
            pull[a] *= inverse
            step[a] += pull[a]
        for a in range(d):
            along = pull[a] * inverse
            for b in range(a + 1):
                curvature[a, b] -= along * pull[b]
        if weights.shape[1] == 1:
            for a in range(d):
                total[a, a] += weights[j, 0] * inverse
            continue
        for a in range(d):
            weight = weights[j, a] * inverse
            for b in range(d):
                part = weight * basis[b, a]
                for c in range(b + 1):
                    total[b, c] += part * basis[c, a]
    for a in range(d):
        for b in range(a + 1):
            curvature[a, b] += total[a, b]
    return value


@njit
def copy_into(source, target):
    """Copy a row; numba takes longer to compile the assignment of a slice."""
    for a in range(target.size):
        target[a] = source[a]


@njit
def solve_absolute(start, stop, Y, indptr, indices, sigma, axes, per_point, coordinates):
    """Weighted geometric median, from the squared solution that ``coordinates`` holds.

    A median often is one of the images; the best of them is first tested for it by the exact
    condition, which also keeps the steps below from dividing by 0. A step is Newton's where it
    lowers the sum, else a reweighting (Weiszfeld), which always does but crawls where an image is
    near the median.
    """
    d = Y.shape[1]
    isotropic = sigma.shape[1] == 1
    error, pull, gradient = np.empty(d), np.empty(d), np.empty(d)
    for i in range(start, stop):
        first, last = indptr[i], indptr[i + 1]
        out = coordinates[i]
        if place_on_coincident(Y, indices, sigma, first, last, out):
            continue
        k = last - first
        images = np.empty((k, d))
        least = sigma[first, 0]
        size = 0.0
        for j in range(k):
            for a in range(d):
                images[j, a] = Y[indices[first + j], a]
                size = max(size, abs(images[j, a] - images[0, a]))
            for a in range(sigma.shape[1]):
                least = min(least, sigma[first + j, a])
        if size == 0.0:
            for a in range(d):
                out[a] = images[0, a]
            continue
        weights = np.empty((k, sigma.shape[1]))
        for j in range(k):
            for a in range(sigma.shape[1]):
                weights[j, a] = (least / sigma[first + j, a]) ** 2
        if isotropic:
            bases = np.empty((1, 0, 0))
        elif per_point:
            bases = np.empty((k, d, d))
            for j in range(k):
                for a in range(d):
                    for b in range(d):
                        bases[j, a, b] = axes[indices[first + j], a, b]
        else:
            bases = axes[i : i + 1]
        if isotropic and d == 2:
            median_in_plane(images, weights, size, out)
            continue
        best = best_image(images, weights, bases, error, pull)
        deviations = sigma[first:last]
        if is_median(images, best, weights, deviations, least, bases, error, pull, gradient):
            for a in range(d):
                out[a] = images[best, a]
        elif isotropic and k < d:
            descend_in_span(images, weights, bases, size, out)
        else:
            descend(images, weights, bases, size, out)


@njit
def descend_in_span(images, weights, bases, size, out):
    """Go down from where ``out`` is in the space of the k images (k, d), which has the median.

    All but one of them relative to that one, and the beginning, lie in k coordinates.
    """
    k, d = images.shape
    across = np.empty((k, d))
    for j in range(k - 1):
        for a in range(d):
            across[j, a] = images[j + 1, a] - images[0, a]
    for a in range(d):
        across[k - 1, a] = out[a] - images[0, a]
    mirrors = np.empty((k, d))
    turn_into_first(across, mirrors)
    turned = np.zeros((k, k))
    for j in range(1, k):
        copy_into(across[j - 1], turned[j])
    inner = np.empty(k)
    copy_into(across[k - 1], inner)
    descend(turned, weights, bases, size, inner)
    place = np.zeros(d)
    for a in range(k):
        place[a] = inner[a]
    turn_back(mirrors, place)
    for a in range(d):
        out[a] = images[0, a] + place[a]


@njit
def descend(images, weights, bases, size, out):
    """Go down from ``out`` to the least sum of distances to the images."""
    d = out.size
    error, pull, step = np.empty(d), np.empty(d), np.empty(d)
    newton, center, ahead = np.empty(d), np.empty(d), np.empty(d)
    total, total_ahead, curvature = np.empty((d, d)), np.empty((d, d)), np.empty((d, d))
    value = derivatives(images, out, weights, bases, size, error, pull, step, total, curvature)
    for _ in range(ITERATIONS):
        copy_into(step, newton)
        lower = cholesky_solve(curvature, newton)
        if lower:
            for a in range(d):
                center[a] = out[a] + newton[a]
            after = derivatives(
                images, center, weights, bases, size, error, pull, ahead, total_ahead, curvature
            )
            lower = after <= value * (1.0 + 1e-14)  # but for rounding
        if not lower:
            copy_into(step, newton)
            if not cholesky_solve(total, newton):
                break
        moved = 0.0
        for a in range(d):
            out[a] += newton[a]
            moved = max(moved, abs(newton[a]))
        if moved <= TOLERANCE * size:
            break
        if lower:
            value = after
            copy_into(ahead, step)
            for a in range(d):
                copy_into(total_ahead[a], total[a])
        else:
            value = derivatives(
                images, out, weights, bases, size, error, pull, step, total, curvature
            )
