"""Lipschitz ratios, the certificate of a placement, and lengths around it."""

from __future__ import annotations

import numpy as np

from outsample._kernels.compiling import njit
from outsample._kernels.search import distance

EPSILON = 2.0**-52


@njit
def lipschitz_ratios(start, stop, Y, rows, indptr, indices, distances, ratios):
    """Largest image distance over ambient distance between ``rows[i]`` and its neighbours."""
    for i in range(start, stop):
        ratios[i] = 0.0
        for j in range(indptr[i], indptr[i + 1]):
            if distances[j] > 0.0:
                stretch = distance(Y[rows[i]], Y[indices[j]]) / distances[j]
                ratios[i] = max(ratios[i], min(stretch, 1e300))


@njit
def certificates(start, stop, Y, indptr, indices, distances, lipschitz, coordinates, bound):
    """``min_j (|psi_hat - psi_j| + K r_j)`` over the neighbours of each placement."""
    for i in range(start, stop):
        bound[i] = 1e308
        for j in range(indptr[i], indptr[i + 1]):
            reach = distance(coordinates[i], Y[indices[j]]) + lipschitz * distances[j]
            if distances[j] > 0.0:  # images are known up to rounding only
                for a in range(Y.shape[1]):
                    reach += 4.0 * EPSILON * abs(Y[indices[j], a])
            bound[i] = min(bound[i], reach)
        bound[i] *= 1.0 + 1e-12  # rounding must not take the promise away


@njit
def spread_around(Y, indices, first, last, centre):
    """Root mean square distance of images from a point, of any size."""
    largest = 0.0
    for j in range(first, last):
        largest = max(largest, distance(centre, Y[indices[j]]))
    if largest == 0.0:
        return 0.0
    squares = 0.0
    for j in range(first, last):
        squares += (distance(centre, Y[indices[j]]) / largest) ** 2
    return largest * np.sqrt(squares / (last - first))


@njit
def lengths_around(
    start, stop, Y, indptr, indices, distances, few, many, equal, coordinates, lengths
):
    """Distances of three neighbours, and spreads of the images of few and many, ties included."""
    for i in range(start, stop):
        first, end = indptr[i], indptr[i + 1]
        lengths[i, 0] = distances[first]
        for part in range(2):
            size = few if part == 0 else many
            last = min(first + size, end) - 1
            lengths[i, 1 + part] = distances[last]
            limit = distances[last] * equal
            last += 1
            while last < end and distances[last] <= limit:
                last += 1
            lengths[i, 3 + part] = spread_around(Y, indices, first, last, coordinates[i])
