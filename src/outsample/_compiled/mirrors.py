"""Householder reflections of k vectors in d dimensions to vectors in their first k coordinates."""

from __future__ import annotations

import numpy as np

from outsample._compiled.compiling import njit


@njit
def reflect_vector(mirror, first, vector):
    """Reflect a vector (d,) in place; the unit normal ``mirror`` is 0 before entry ``first``."""
    along = 0.0
    for a in range(first, vector.size):
        along += mirror[a] * vector[a]
    for a in range(first, vector.size):
        vector[a] -= 2.0 * along * mirror[a]


@njit
def reflect_into_first(Z, mirrors):
    """Reflect the k rows of Z (k, d) in place so that only the first k coordinates are not 0.

    The unit normals of the reflections are written to ``mirrors`` (k, d), in order.
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
            reflect_vector(mirror, j, Z[i])


@njit
def reflect_back(mirrors, vector):
    """Undo `reflect_into_first` for a vector (d,) in place."""
    for j in range(len(mirrors) - 1, -1, -1):
        reflect_vector(mirrors[j], j, vector)
