"""Householder's reflections: a few vectors of many dimensions as vectors of few."""

from __future__ import annotations

import numpy as np

from outsample._kernels.compiling import njit


@njit
def mirrored(mirror, first, vector):
    """Reflect a vector (d,) in place at the plane across a unit vector that is 0 before first."""
    along = 0.0
    for a in range(first, vector.size):
        along += mirror[a] * vector[a]
    for a in range(first, vector.size):
        vector[a] -= 2.0 * along * mirror[a]


@njit
def turn_into_first(Z, mirrors):
    """Reflect k rows (k, d) of Z in place so that they lie in the first k coordinates.

    The reflections (Householder's) are kept in ``mirrors`` (k, d), the first one first.
    """
    k, d = Z.shape
    for j in range(k):
        mirror = mirrors[j]
        norm = 0.0
        for a in range(d):
            mirror[a] = Z[j, a] if a >= j else 0.0
            norm += mirror[a] * mirror[a]
        norm = np.sqrt(norm)
        if norm == 0.0:
            continue
        length = np.sqrt(2.0 * norm * (norm + abs(Z[j, j])))
        mirror[j] += norm if Z[j, j] >= 0.0 else -norm
        for a in range(j, d):
            mirror[a] /= length
        for i in range(j, k):
            mirrored(mirror, j, Z[i])


@njit
def turn_back(mirrors, vector):
    """Undo `turn_into_first` for a vector (d,) in place."""
    for j in range(len(mirrors) - 1, -1, -1):
        mirrored(mirrors[j], j, vector)
