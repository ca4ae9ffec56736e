"""Absolute loss: the point with the smallest sum of Mahalanobis distances to the images."""

from __future__ import annotations

import numpy as np

from outsample._compiled.compiling import njit
from outsample._compiled.gls import place_on_coincident
from outsample._compiled.linear_algebra import cholesky_solve
from outsample._compiled.mirrors import reflect_back, reflect_into_first
from outsample._compiled.plane_median import (
    MEDIAN_MAX_STEPS,
    MEDIAN_TOLERANCE,
    median_in_plane,
)


@njit
def weighted_pull(image, center, weights, basis, error, pull):
    """Return ``e' w e`` for ``e = image - center``, and write ``w e`` to ``pull``.

    ``weights`` has one entry per axis of the basis, or a single entry for all axes.
    """
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
    """Return ``sqrt(g' w_j^-1 g)`` for deviations (one per axis, or one in all) over the unit."""
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
    """Return the row whose image has the smallest sum of distances to all; the first of ties."""
    k, d = images.shape
    sums = np.zeros(k)
    if weights.shape[1] == 1:  # symmetric: visit each pair once
        roots = np.empty(k)
        for p in range(k):
            roots[p] = np.sqrt(weights[p, 0])
            for q in range(p):
                square = 0.0
                for a in range(d):
                    difference = images[p, a] - images[q, a]
                    square += difference * difference
                length = np.sqrt(square)
                sums[p] += length * roots[q]
                sums[q] += length * roots[p]
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
def is_median(images, row, weights, deviations, smallest, bases, error, pull, gradient):
    """Return whether an image is the median, by the exact optimality condition.

    It is one if the pull of the other images does not exceed the weight of the images there.
    """
    k, d = images.shape
    center = images[row]
    gradient[:] = 0.0
    for j in range(k):
        basis = bases[j if len(bases) > 1 else 0]
        square = weighted_pull(images[j], center, weights[j], basis, error, pull)
        if square > 0.0:
            for a in range(d):
                gradient[a] += pull[a] / np.sqrt(square)
    hold = 0.0
    for j in range(k):
        is_same = True
        for a in range(d):
            is_same = is_same and images[j, a] == center[a]
        if is_same:
            norm = dual_norm(gradient, deviations[j], smallest, bases[j if len(bases) > 1 else 0])
            hold += 1.0 / max(norm, 1e-300)
    return hold >= 1.0


@njit
def derivatives(images, center, weights, bases, size, error, pull, step, total, curvature):
    """Return the sum of the distances to a point, and write its derivatives there.

    ``step`` receives minus the gradient, ``total`` the matrix of the reweighting step and
    ``curvature`` the Hessian, both in their lower triangles.
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
    """Copy a row; the assignment of a slice takes numba longer to compile."""
    for a in range(target.size):
        target[a] = source[a]


@njit
def solve_absolute(start, stop, Y, indptr, indices, deviations, axes, per_point, coordinates):
    """Write weighted geometric medians, starting from the squared solution in ``coordinates``.

    The median is often one of the images, so the best image is tested first by the exact
    condition; this also keeps the steps below from dividing by 0. A step is Newton's if it lowers
    the sum, otherwise a reweighting (Weiszfeld), which always lowers it but converges slowly where
    an image is close to the median.
    """
    d = Y.shape[1]
    isotropic = deviations.shape[1] == 1
    error, pull, gradient = np.empty(d), np.empty(d), np.empty(d)
    for i in range(start, stop):
        first, last = indptr[i], indptr[i + 1]
        out = coordinates[i]
        if place_on_coincident(Y, indices, deviations, first, last, out):
            continue
        k = last - first
        images = np.empty((k, d))
        smallest = deviations[first, 0]
        size = 0.0
        for j in range(k):
            for a in range(d):
                images[j, a] = Y[indices[first + j], a]
                size = max(size, abs(images[j, a] - images[0, a]))
            for a in range(deviations.shape[1]):
                smallest = min(smallest, deviations[first + j, a])
        if size == 0.0:
            for a in range(d):
                out[a] = images[0, a]
            continue
        weights = np.empty((k, deviations.shape[1]))
        for j in range(k):
            for a in range(deviations.shape[1]):
                weights[j, a] = (smallest / deviations[first + j, a]) ** 2
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
        own_deviations = deviations[first:last]
        if is_median(images, best, weights, own_deviations, smallest, bases, error, pull, gradient):
            for a in range(d):
                out[a] = images[best, a]
        elif isotropic and k < d:
            descend_in_span(images, weights, bases, size, out)
        else:
            descend(images, weights, bases, size, out)


@njit
def descend_in_span(images, weights, bases, size, out):
    """Minimise from ``out`` in the span of the k images (k, d), which contains the median.

    Relative to the first image, the other images and the start have k coordinates.
    """
    k, d = images.shape
    offsets = np.empty((k, d))
    for j in range(k - 1):
        for a in range(d):
            offsets[j, a] = images[j + 1, a] - images[0, a]
    for a in range(d):
        offsets[k - 1, a] = out[a] - images[0, a]
    mirrors = np.empty((k, d))
    reflect_into_first(offsets, mirrors)
    reflected = np.zeros((k, k))
    for j in range(1, k):
        copy_into(offsets[j - 1], reflected[j])
    solution = np.empty(k)
    copy_into(offsets[k - 1], solution)
    descend(reflected, weights, bases, size, solution)
    result = np.zeros(d)
    for a in range(k):
        result[a] = solution[a]
    reflect_back(mirrors, result)
    for a in range(d):
        out[a] = images[0, a] + result[a]


@njit
def descend(images, weights, bases, size, out):
    """Minimise the sum of distances to the images, starting from ``out``, which is overwritten."""
    d = out.size
    error, pull, step = np.empty(d), np.empty(d), np.empty(d)
    move, center, next_step = np.empty(d), np.empty(d), np.empty(d)
    total, next_total, curvature = np.empty((d, d)), np.empty((d, d)), np.empty((d, d))
    value = derivatives(images, out, weights, bases, size, error, pull, step, total, curvature)
    for _ in range(MEDIAN_MAX_STEPS):
        copy_into(step, move)
        is_lower = cholesky_solve(curvature, move)
        if is_lower:
            for a in range(d):
                center[a] = out[a] + move[a]
            next_value = derivatives(
                images, center, weights, bases, size, error, pull, next_step, next_total, curvature
            )
            is_lower = next_value <= value * (1.0 + 1e-14)  # up to rounding
        if not is_lower:
            copy_into(step, move)
            if not cholesky_solve(total, move):
                break
        largest_move = 0.0
        for a in range(d):
            out[a] += move[a]
            largest_move = max(largest_move, abs(move[a]))
        if largest_move <= MEDIAN_TOLERANCE * size:
            break
        if is_lower:
            value = next_value
            copy_into(next_step, step)
            for a in range(d):
                copy_into(next_total[a], total[a])
        else:
            value = derivatives(
                images, out, weights, bases, size, error, pull, step, total, curvature
            )
