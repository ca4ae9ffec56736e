"""Lipschitz ratios and the certificate of a placement."""

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
def image_spread(start, stop, Y, indptr, indices, most, coordinates, spread):
    """Root mean square distance of the nearest images, at most ``most``, from the placement."""
    for i in range(start, stop):
        last = min(indptr[i] + most, indptr[i + 1])
        lengths = 0.0
        largest = 0.0
        for j in range(indptr[i], last):
            largest = max(largest, distance(coordinates[i], Y[indices[j]]))
        for j in range(indptr[i], last):
            if largest > 0.0:
                lengths += (distance(coordinates[i], Y[indices[j]]) / largest) ** 2
        spread[i] = largest * np.sqrt(lengths / (last - indptr[i]))
