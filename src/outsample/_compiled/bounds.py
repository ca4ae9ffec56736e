"""Lipschitz ratios, certificates of placements, and the lengths that predict their errors."""

from __future__ import annotations

import numpy as np

from outsample._compiled.compiling import njit
from outsample._compiled.search import distance

EPSILON = 2.0**-52


@njit
def lipschitz_ratios(start, stop, Y, rows, indptr, indices, distances, ratios):
    """Write the largest ratio of image to ambient distance of ``rows[i]`` and its neighbours."""
    for i in range(start, stop):
        ratios[i] = 0.0
        for j in range(indptr[i], indptr[i + 1]):
            if distances[j] > 0.0:
                stretch = distance(Y[rows[i]], Y[indices[j]]) / distances[j]
                ratios[i] = max(ratios[i], min(stretch, 1e300))


@njit
def certificates(start, stop, Y, indptr, indices, distances, lipschitz, coordinates, bound):
    """Write ``min_j (|psi_hat - psi_j| + K r_j)`` over the neighbours of each placement."""
    for i in range(start, stop):
        bound[i] = 1e308
        for j in range(indptr[i], indptr[i + 1]):
            reach = distance(coordinates[i], Y[indices[j]]) + lipschitz * distances[j]
            if distances[j] > 0.0:  # the rounding of the image itself
                for a in range(Y.shape[1]):
                    reach += 4.0 * EPSILON * abs(Y[indices[j], a])
            bound[i] = min(bound[i], reach)
        bound[i] *= 1.0 + 1e-12  # the bound must hold in spite of rounding


@njit
def spread_around(Y, indices, first, last, center):
    """Return the root mean square distance of images from a point, without overflow."""
    largest = 0.0
    for j in range(first, last):
        largest = max(largest, distance(center, Y[indices[j]]))
    if largest == 0.0:
        return 0.0
    squares = 0.0
    for j in range(first, last):
        squares += (distance(center, Y[indices[j]]) / largest) ** 2
    return largest * np.sqrt(squares / (last - first))


@njit
def lengths_around(
    start, stop, Y, indptr, indices, distances, small, large, tie_factor, coordinates, lengths
):
    """Write distances of the first, ``small``-th and ``large``-th neighbour, and image spreads.

    The spreads are those of the ``small`` and ``large`` nearest images around the placement, ties
    included: neighbours at most ``tie_factor`` times as far as the last.
    """
    for i in range(start, stop):
        first, end = indptr[i], indptr[i + 1]
        lengths[i, 0] = distances[first]
        for part in range(2):
            size = small if part == 0 else large
            last = min(first + size, end) - 1
            lengths[i, 1 + part] = distances[last]
            limit = distances[last] * tie_factor
            last += 1
            while last < end and distances[last] <= limit:
                last += 1
            lengths[i, 3 + part] = spread_around(Y, indices, first, last, coordinates[i])
