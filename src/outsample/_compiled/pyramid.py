"""Values of a Laplacian pyramid at queries, summed in the same order for any batch."""

from __future__ import annotations

import math

import numpy as np

from outsample._compiled.compiling import njit
from outsample._compiled.search import row_distance

# Weights below exp(-36), about 2e-16 of the largest in their row, are left out.
MAX_EXPONENT = 36.0


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
