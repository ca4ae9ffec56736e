"""Gaussian kernels between all pairs of points, and sums over them in a fixed order."""

from __future__ import annotations

import math

import numpy as np

from outsample._compiled.compiling import njit
from outsample._compiled.search import row_distance

# Beyond this h, exp(-h^2) is 0 in double precision; h^2 is still far from overflow.
ZERO_BEYOND = 28.0
# Kernel sums (about 1 among the data) from which an expansion counts fully, and up to which it
# does not count at all.
FULL_TRUST_DENSITY = 0.1
NO_TRUST_DENSITY = 0.01
# A kernel with a length per point is exp(-2) at that length, where it is cut off.
STEEPNESS = 2.0
# Weights of a pyramid below exp(-36), about 2e-16 of the largest in their row, are left out.
MAX_EXPONENT = 36.0


@njit
def all_distances(start, stop, Q, X, n, distances):
    """Write the distances (q, n) of every query from every training row."""
    for i in range(start, stop):
        for j in range(n):
            distances[i, j] = row_distance(Q, i, X, j)


@njit
def own_distances(start, stop, X, distances):
    """Write the distances (n, n) between all rows; each pair is computed once."""
    for i in range(start, stop):
        distances[i, i] = 0.0
        for j in range(i):
            r = row_distance(X, i, X, j)
            distances[i, j] = r
            distances[j, i] = r


@njit
def pair_distances(start, stop, X, rows, columns, distances):
    """Write the distances (p,) of pairs of rows."""
    for i in range(start, stop):
        distances[i] = row_distance(X, rows[i], X, columns[i])


@njit
def kth_distances(start, stop, Q, X, n, k, distances):
    """Write the distance of each query to its k-th nearest training row, counted from 0."""
    row = np.empty(n)
    for i in range(start, stop):
        for j in range(n):
            row[j] = row_distance(Q, i, X, j)
        distances[i] = np.partition(row, k)[k]


@njit
def expansion(
    start, stop, X, n, Q, root, weights, query_reach, reach, coefficients, normalize, values
):
    """Write ``sum_j w_j g_j c_j``, ``g_j = exp(-r_j^2 / root^2)``, or that over ``sum_j w_j g_j``.

    The sum is over the rows within the reach of the query, or with the query within their reach.
    The quotient is computed with the nearest row's exponent removed from all, so that it is never
    0 / 0: far away it tends to the nearest row's coefficient.
    """
    d = coefficients.shape[1]
    scaled = np.empty(n)
    for i in range(start, stop):
        nearest = np.inf
        for j in range(n):
            r = row_distance(Q, i, X, j)
            if r <= max(query_reach[i], reach[j]):
                scaled[j] = min(r / root, 1e150)
                nearest = min(nearest, scaled[j])
            else:
                scaled[j] = np.inf
        if not normalize:
            nearest = 0.0
        values[i] = 0.0
        total = 0.0
        for j in range(n):
            if scaled[j] == np.inf:
                continue
            # h^2 - nearest^2 as a product: exact where both are large and nearly equal.
            exponent = (scaled[j] - nearest) * (scaled[j] + nearest)
            if exponent > ZERO_BEYOND * ZERO_BEYOND:
                continue
            weight = math.exp(-exponent) * weights[j]
            total += weight
            for a in range(d):
                values[i, a] += weight * coefficients[j, a]
        if normalize:
            for a in range(d):
                values[i, a] /= total


@njit
def pyramid(start, stop, X, n, Q, roots, residuals, values):
    """Write Eq. 7.6 with weights that sum to one at the query; all levels share the distances.

    The nearest row's exponent is removed from all, so that no quotient is 0 / 0.
    """
    levels, _, d = residuals.shape
    distances = np.empty(n)
    level = np.empty(d)
    for i in range(start, stop):
        nearest = np.inf
        for j in range(n):
            distances[j] = min(row_distance(Q, i, X, j), 1e150)
            nearest = min(nearest, distances[j])
        values[i] = 0.0
        for s in range(levels):
            level[:] = 0.0
            total = 0.0
            for j in range(n):
                difference, total_length = distances[j] - nearest, distances[j] + nearest
                exponent = (difference / roots[s]) * (total_length / roots[s])
                if exponent > MAX_EXPONENT:
                    continue
                weight = math.exp(-exponent)
                total += weight
                for a in range(d):
                    level[a] += weight * residuals[s, j, a]
            for a in range(d):
                values[i, a] += level[a] / total


@njit
def local_mean(
    start, stop, X, rows, starts, stops, Q, query_scales, scales, weights, images, values
):
    """Write means of images with weights ``w_j exp(-2 r_j^2 / h^2)``.

    h is the larger of the lengths of query and row; rows beyond h do not count. The candidates of
    query i are ``rows[starts[i] : stops[i]]``. A query equal to a training row gets that row's
    image.
    """
    d = images.shape[1]
    for i in range(start, stop):
        values[i] = 0.0
        total = 0.0
        for at in range(starts[i], stops[i]):
            j = rows[at]
            r = row_distance(Q, i, X, j)
            if r == 0.0:
                values[i] = images[j]
                total = 1.0
                break
            h = max(query_scales[i], scales[j])
            if r > h:
                continue
            ratio = r / h
            weight = math.exp(-STEEPNESS * ratio * ratio) * weights[j]
            total += weight
            for a in range(d):
                values[i, a] += weight * images[j, a]
        for a in range(d):
            values[i, a] /= total


@njit
def trust(density):
    """Return 1 where the kernel's sum over the data is above 0.1, 0 below 0.01, smooth between."""
    if density <= NO_TRUST_DENSITY:
        return 0.0
    share = math.log(density / NO_TRUST_DENSITY)
    share = min(share / math.log(FULL_TRUST_DENSITY / NO_TRUST_DENSITY), 1.0)
    return share * share * (3.0 - 2.0 * share)


@njit
def trusts(densities, shares):
    """Write `trust` of each density to a column."""
    for i in range(densities.size):
        shares[i, 0] = trust(densities[i])


@njit
def place_by_diffusion(start, stop, X, rows, Q, Y, unit, weights, lift, center, reach, coordinates):
    """Write ``sum_j p_j (y_j + t lift_j)``, ``p_j`` proportional to ``w_j exp(-r_j^2 / unit^2)``.

    The sum is over ``rows`` (m,) of X, to which Y, weights and lift belong; t is the `trust` in
    ``sum_j w_j exp(-r_j^2 / unit^2)``. A query equal to training points gets the mean of their
    images; positions farther from the center than 2 ``reach`` are moved back to that distance.
    """
    n, d = Y.shape
    scaled = np.empty(n)
    lifted = np.empty(d)
    for i in range(start, stop):
        anchor = 0
        for j in range(n):
            scaled[j] = min(row_distance(Q, i, X, rows[j]) / unit, 1e150)
            if scaled[j] < scaled[anchor]:
                anchor = j
        nearest = scaled[anchor]
        total = 0.0
        coordinates[i] = 0.0
        lifted[:] = 0.0
        for j in range(n):
            exponent = (scaled[j] - nearest) * (scaled[j] + nearest)
            if exponent > ZERO_BEYOND * ZERO_BEYOND or (nearest == 0.0 and scaled[j] > 0.0):
                continue
            weight = 1.0 if nearest == 0.0 else math.exp(-exponent) * weights[j]
            total += weight
            for a in range(d):
                coordinates[i, a] += weight * (Y[j, a] - Y[anchor, a])
                lifted[a] += weight * lift[j, a]
        trusted = 0.0
        if nearest > 0.0:
            trusted = trust(total * math.exp(-(min(nearest, ZERO_BEYOND) ** 2)))
        square = 0.0
        for a in range(d):
            coordinates[i, a] = Y[anchor, a] + (coordinates[i, a] + trusted * lifted[a]) / total
            if trusted > 0.0 and reach > 0.0:
                square += ((coordinates[i, a] - center[a]) / reach) ** 2
        if square > 4.0:
            for a in range(d):
                coordinates[i, a] = center[a] + (coordinates[i, a] - center[a]) * 2 / square**0.5
