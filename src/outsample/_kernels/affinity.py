"""Gaussian kernels of all pairs of points, and sums over them in a fixed order."""

from __future__ import annotations

import math

import numpy as np

from outsample._kernels.compiling import njit
from outsample._kernels.search import row_distance

# exp(-h^2) is 0 in double precision beyond this h, and its square is still far from overflow.
BEYOND = 28.0
# An expansion counts in full where the kernel's sum is above the one, and not below the other.
TRUSTED = 0.1
FADED = 0.01
# A kernel with lengths of its own is exp(-2) where it is cut off.
STEEPNESS = 2.0


@njit
def all_distances(start, stop, Q, X, n, distances):
    """Distances (q, n) of every query from every training row."""
    for i in range(start, stop):
        for j in range(n):
            distances[i, j] = row_distance(Q, i, X, j)


@njit
def own_distances(start, stop, X, distances):
    """Distances (n, n) of the rows from one another: each pair once, the mirror image copied."""
    for i in range(start, stop):
        distances[i, i] = 0.0
        for j in range(i):
            apart = row_distance(X, i, X, j)
            distances[i, j] = apart
            distances[j, i] = apart


@njit
def pair_distances(start, stop, X, rows, columns, distances):
    """Distances (p,) of pairs of rows."""
    for i in range(start, stop):
        distances[i] = row_distance(X, rows[i], X, columns[i])


@njit
def kth_distances(start, stop, Q, X, n, k, distances):
    """Distance of each query to its k-th nearest training row, counted from 0."""
    row = np.empty(n)
    for i in range(start, stop):
        for j in range(n):
            row[j] = row_distance(Q, i, X, j)
        distances[i] = np.partition(row, k)[k]


@njit
def expansion(start, stop, X, n, Q, root, coefficients, normalize, values):
    """``sum_j exp(-r_j^2 / root^2) c_j``, over ``sum_j exp(-r_j^2 / root^2)`` if asked.

    The quotient is taken with the nearest row's exponent removed from all, so that it is never
    0 / 0: far away it tends to the nearest row's coefficient.
    """
    d = coefficients.shape[1]
    reduced = np.empty(n)
    for i in range(start, stop):
        nearest = np.inf
        for j in range(n):
            reduced[j] = min(row_distance(Q, i, X, j) / root, 1e150)
            nearest = min(nearest, reduced[j])
        if not normalize:
            nearest = 0.0
        values[i] = 0.0
        total = 0.0
        for j in range(n):
            # h^2 - nearest^2 as a product: exact where both are large and alike.
            exponent = (reduced[j] - nearest) * (reduced[j] + nearest)
            if exponent > BEYOND * BEYOND:
                continue
            weight = math.exp(-exponent)
            total += weight
            for a in range(d):
                values[i, a] += weight * coefficients[j, a]
        if normalize:
            for a in range(d):
                values[i, a] /= total


@njit
def markov_mean(start, stop, X, n, Q, root, weights, own_reach, reach, coefficients, values):
    """Mean of the coefficients under the transition probabilities from each query.

    ``sum_j p_j c_j`` with ``p_j`` proportional to ``w_j exp(-r_j^2 / root^2)``, over the rows
    within the reach of the query or the query within theirs. The exponent of the nearest row is
    removed from all, so that it is never 0 / 0.
    """
    d = coefficients.shape[1]
    reduced = np.empty(n)
    for i in range(start, stop):
        nearest = np.inf
        for j in range(n):
            apart = row_distance(Q, i, X, j)
            if apart <= max(own_reach[i], reach[j]):
                reduced[j] = min(apart / root, 1e150)
                nearest = min(nearest, reduced[j])
            else:
                reduced[j] = np.inf
        values[i] = 0.0
        total = 0.0
        for j in range(n):
            if reduced[j] == np.inf:
                continue
            exponent = (reduced[j] - nearest) * (reduced[j] + nearest)
            if exponent > BEYOND * BEYOND:
                continue
            weight = math.exp(-exponent) * weights[j]
            total += weight
            for a in range(d):
                values[i, a] += weight * coefficients[j, a]
        for a in range(d):
            values[i, a] /= total


@njit
def local_mean(
    start, stop, X, rows, starts, stops, Q, own, scales, weights, images, values
):
    """Mean of images, weights ``w_j exp(-2 r_j^2 / h^2)`` with h the longer of two lengths.

    Candidates of query i are ``rows[starts[i] : stops[i]]``. Rows further than h count for nothing.
    A query on a training row gets that row's image.
    """
    d = images.shape[1]
    for i in range(start, stop):
        values[i] = 0.0
        total = 0.0
        for at in range(starts[i], stops[i]):
            j = rows[at]
            apart = row_distance(Q, i, X, j)
            if apart == 0.0:
                values[i] = images[j]
                total = 1.0
                break
            longer = max(own[i], scales[j])
            if apart > longer:
                continue
            reduced = apart / longer
            weight = math.exp(-STEEPNESS * reduced * reduced) * weights[j]
            total += weight
            for a in range(d):
                values[i, a] += weight * images[j, a]
        for a in range(d):
            values[i, a] /= total


@njit
def trust(density):
    """1 where the kernel's sum over the data is above 0.1, 0 below 0.01, smooth between."""
    if density <= FADED:
        return 0.0
    share = min(math.log(density / FADED) / math.log(TRUSTED / FADED), 1.0)
    return share * share * (3.0 - 2.0 * share)


@njit
def trusts(densities, shares):
    """`trust` of each density, into a column."""
    for i in range(densities.size):
        shares[i, 0] = trust(densities[i])


@njit
def place_by_diffusion(
    start, stop, X, rows, Q, Y, unit, weights, lift, center, reach, coordinates
):
    """``sum_j p_j (y_j + t lift_j)`` with ``p_j`` proportional to ``w_j exp(-r_j^2 / unit^2)``.

    The sum is over the rows (m,) of X, to which Y, weights and lift belong; t is the `trust` in
    ``sum_j w_j exp(-r_j^2 / unit^2)``. A query on training points gets the mean of their images;
    what would be further from the center than 2 reaches is drawn in.
    """
    n, d = Y.shape
    reduced = np.empty(n)
    raised = np.empty(d)
    for i in range(start, stop):
        anchor = 0
        for j in range(n):
            reduced[j] = min(row_distance(Q, i, X, rows[j]) / unit, 1e150)
            if reduced[j] < reduced[anchor]:
                anchor = j
        nearest = reduced[anchor]
        total = 0.0
        coordinates[i] = 0.0
        raised[:] = 0.0
        for j in range(n):
            exponent = (reduced[j] - nearest) * (reduced[j] + nearest)
            if exponent > BEYOND * BEYOND or (nearest == 0.0 and reduced[j] > 0.0):
                continue
            weight = 1.0 if nearest == 0.0 else math.exp(-exponent) * weights[j]
            total += weight
            for a in range(d):
                coordinates[i, a] += weight * (Y[j, a] - Y[anchor, a])
                raised[a] += weight * lift[j, a]
        share = 0.0
        if nearest > 0.0:
            share = trust(total * math.exp(-(min(nearest, BEYOND) ** 2)))
        away = 0.0
        for a in range(d):
            coordinates[i, a] = Y[anchor, a] + (coordinates[i, a] + share * raised[a]) / total
            if share > 0.0 and reach > 0.0:
                away += ((coordinates[i, a] - center[a]) / reach) ** 2
        if away > 4.0:
            for a in range(d):
                coordinates[i, a] = center[a] + (coordinates[i, a] - center[a]) * 2 / away**0.5
