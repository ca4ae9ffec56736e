"""Tangent coordinates of ambient neighbourhoods, and polynomials in them."""

from __future__ import annotations

import numpy as np
from numba import njit

from outsample._kernels.linear_algebra import symmetric_eigen


@njit(cache=True, nogil=True)
def tangent_coordinates(X, x, rows, length, T):
    """Coordinates (k, t) of the neighbours relative to the query in the local PCA plane.

    In units of ``length``. With more columns than neighbours the k x k Gram matrix is used, so
    that nothing D x D is made. With at least as many tangent as ambient dimensions the ambient
    coordinates are kept.
    """
    k, t = T.shape
    D = X.shape[1]
    if t >= D:
        for j in range(k):
            for a in range(D):
                T[j, a] = (X[rows[j], a] - x[a]) / length
        return
    center = np.zeros(D)
    for j in range(k):
        for a in range(D):
            center[a] += (X[rows[j], a] - x[a]) / length / k
    centered = np.empty((k, D))
    for j in range(k):
        for a in range(D):
            centered[j, a] = (X[rows[j], a] - x[a]) / length - center[a]
    size = min(k, D)
    products = np.zeros((size, size))
    vectors = np.empty((size, size))
    if D <= k:
        for j in range(k):
            for a in range(D):
                for b in range(a + 1):
                    products[a, b] += centered[j, a] * centered[j, b]
    else:
        for i in range(k):
            for j in range(i + 1):
                total = 0.0
                for a in range(D):
                    total += centered[i, a] * centered[j, a]
                products[i, j] = total
    for a in range(size):
        for b in range(a):
            products[b, a] = products[a, b]
    symmetric_eigen(products, vectors)
    for b in range(t):
        if b >= size or products[b, b] <= 1e-24 * products[0, 0]:
            T[:, b] = 0.0
        elif D <= k:
            for j in range(k):
                T[j, b] = 0.0
                for a in range(D):
                    T[j, b] += (centered[j, a] + center[a]) * vectors[a, b]
        else:
            root = np.sqrt(products[b, b])
            offset = 0.0
            for j in range(k):
                along = 0.0
                for a in range(D):
                    along += centered[j, a] * center[a]
                offset += along * vectors[j, b] / root
            for j in range(k):
                T[j, b] = vectors[j, b] * root + offset


@njit(cache=True, nogil=True)
def polynomial_terms(order, t):
    """Count the monomials of degree at most ``order`` in t variables."""
    if order == 0:
        return 1
    return 1 + t if order == 1 else 1 + t + t * (t + 1) // 2


@njit(cache=True, nogil=True)
def fill_design(T, order, design):
    """Monomials of the tangent coordinates, the constant first: at the query only it is 1."""
    k, t = T.shape
    for j in range(k):
        design[j, 0] = 1.0
        at = 1
        if order >= 1:
            for a in range(t):
                design[j, at] = T[j, a]
                at += 1
        if order >= 2:
            for a in range(t):
                for b in range(a + 1):
                    design[j, at] = T[j, a] * T[j, b]
                    at += 1
