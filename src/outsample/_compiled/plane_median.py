"""Weighted geometric medians in the plane, on scalars instead of arrays.

The same steps as in `absolute`, in a tenth of the time.
"""

from __future__ import annotations

import numpy as np

from outsample._compiled.compiling import njit

# Newton or reweighting steps at most, and the step, relative to the images, that ends them.
MEDIAN_MAX_STEPS = 200
MEDIAN_TOLERANCE = 1e-10


@njit
def median_in_plane(images, weights, size, out):
    """Write the median of images (k, 2) with weights (k, 1) to ``out``, which holds the start.

    The best image is tested first, by the exact condition of `absolute.is_median`.
    """
    k = images.shape[0]
    roots, sums = np.empty(k), np.zeros(k)
    for p in range(k):
        roots[p] = np.sqrt(weights[p, 0])
        for q in range(p):
            x, y = images[p, 0] - images[q, 0], images[p, 1] - images[q, 1]
            length = np.sqrt(x * x + y * y)
            sums[p] += length * roots[q]
            sums[q] += length * roots[p]
    best = np.argmin(sums)
    hold = pull_x = pull_y = 0.0
    for j in range(k):
        x, y = images[j, 0] - images[best, 0], images[j, 1] - images[best, 1]
        length = np.sqrt(x * x + y * y)
        if length > 0.0:
            pull_x += roots[j] * x / length
            pull_y += roots[j] * y / length
        else:
            hold += roots[j]
    if pull_x * pull_x + pull_y * pull_y <= hold * hold:
        out[0], out[1] = images[best, 0], images[best, 1]
    else:
        descend_in_plane(images, roots, size, out)


@njit
def plane_derivatives(images, roots, x, y, size):
    """Return the sum of distances to (x, y), minus its gradient, the total weight, the Hessian.

    The Hessian is ``[[total - xx, -xy], [-xy, total - yy]]``, returned as its three entries.
    """
    value = pull_x = pull_y = total = xx = xy = yy = 0.0
    for j in range(roots.size):
        root = roots[j]
        e, f = images[j, 0] - x, images[j, 1] - y
        length = root * np.sqrt(e * e + f * f)
        inverse = root / max(length, 1e-14 * size)  # a weight may be 0
        e, f = e * inverse, f * inverse
        value += length
        pull_x += root * e
        pull_y += root * f
        weight = root * inverse
        total += weight
        xx += weight * e * e
        xy += weight * e * f
        yy += weight * f * f
    return value, pull_x, pull_y, total, total - xx, -xy, total - yy


@njit
def descend_in_plane(images, roots, size, out):
    """Minimise as `absolute.descend`, for images (k, 2) with roots of weights (k,)."""
    x, y = out[0], out[1]
    value, gx, gy, total, xx, xy, yy = plane_derivatives(images, roots, x, y, size)
    for _ in range(MEDIAN_MAX_STEPS):
        is_lower, determinant = False, xx * yy - xy * xy
        if xx > 0.0 and determinant > 0.0:
            step_x, step_y = (yy * gx - xy * gy) / determinant, (xx * gy - xy * gx) / determinant
            next_values = plane_derivatives(images, roots, x + step_x, y + step_y, size)
            is_lower = next_values[0] <= value * (1.0 + 1e-14)  # up to rounding
        if not is_lower:
            step_x, step_y = gx / total, gy / total
        x, y = x + step_x, y + step_y
        if max(abs(step_x), abs(step_y)) <= MEDIAN_TOLERANCE * size:
            break
        if not is_lower:
            next_values = plane_derivatives(images, roots, x, y, size)
        value, gx, gy, total, xx, xy, yy = next_values
    out[0], out[1] = x, y
