"""Tangent coordinates of ambient neighbourhoods, and polynomials in them."""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import overload

from outsample._compiled.compiling import njit
from outsample._compiled.linear_algebra import dot, symmetric_eigen


@njit
def tangent_frame(steps, distances, reach, V):
    """Write the leading principal directions (D, t) of the nearest neighbours, by local PCA.

    ``steps`` (k, D) are the neighbours minus the query, in units of the farthest.

    The nearest 16 are used, or 2 t if that is more: the paper's eps1 is smaller than its eps. Their
    weights are ``(1 - (r / R)^2)^2``, R the distance of the next neighbour, so that the frame is
    continuous. With more columns than neighbours the Gram matrix replaces the D x D covariance.
    """
    D, t = V.shape
    k = distances.size
    m = min(k, max(16, 2 * t))
    edge = distances[m] if m < k else reach
    roots = np.empty(m)
    total = 0.0
    for j in range(m):
        ratio = distances[j] / edge
        roots[j] = 1.0 - ratio * ratio if ratio < 1.0 else 0.0
        total += roots[j] * roots[j]
    if total == 0.0:  # all are as far as the next neighbour
        roots[:] = 1.0
        total = float(m)
    center = np.zeros(D)
    for j in range(m):
        share = roots[j] * roots[j] / total
        for a in range(D):
            center[a] += share * steps[j, a]
    cloud = np.empty((m, D))
    for j in range(m):
        for a in range(D):
            cloud[j, a] = roots[j] * (steps[j, a] - center[a])
    size = min(m, D)
    products = np.zeros((size, size))
    vectors = np.empty((size, size))
    if D <= m:
        for j in range(m):
            for a in range(D):
                for b in range(a + 1):
                    products[a, b] += cloud[j, a] * cloud[j, b]
    else:
        for i in range(m):
            for j in range(i + 1):
                products[i, j] = dot(cloud[i], cloud[j])
    for a in range(size):
        for b in range(a):
            products[b, a] = products[a, b]
    symmetric_eigen(products, vectors)
    V[:] = 0.0
    for b in range(min(t, size)):
        if products[b, b] <= 1e-24 * products[0, 0]:
            continue
        if D <= m:
            for a in range(D):
                V[a, b] = vectors[a, b]
        else:
            root = np.sqrt(products[b, b])
            for j in range(m):
                for a in range(D):
                    V[a, b] += cloud[j, a] * (vectors[j, b] / root)


@njit
def tangent_coordinates(X, x, rows, distances, reach, T):
    """Write coordinates (k, t) of the neighbours relative to the query in the local PCA plane.

    The unit is the farthest neighbour's distance. If t >= D, they are the ambient coordinates.
    """
    k, t = T.shape
    D = X.shape[1]
    length = distances[k - 1]
    steps = np.empty((k, D))
    for j in range(k):
        for a in range(D):
            steps[j, a] = (X[rows[j], a] - x[a]) / length
    T[:] = 0.0
    if t >= D:
        for j in range(k):
            for a in range(D):
                T[j, a] = steps[j, a]
        return
    V = np.empty((D, t))
    tangent_frame(steps, distances, reach, V)
    for j in range(k):
        for a in range(D):
            step = steps[j, a]
            for b in range(t):
                T[j, b] += V[a, b] * step


def tangent_of(X, Q, i, rows, distances, reach, T):
    """Write `tangent_coordinates` around query i; zeros for sparse points."""
    if isinstance(X, tuple):
        T[:] = 0.0
    else:
        tangent_coordinates(X, Q[i], rows, distances, reach, T)


@overload(tangent_of)
def compile_tangent_of(X, Q, i, rows, distances, reach, T):
    """Return the dense or the sparse form when a kernel is compiled."""
    if isinstance(X, types.BaseTuple):

        def sparse(X, Q, i, rows, distances, reach, T):
            T[:] = 0.0

        return sparse

    def dense(X, Q, i, rows, distances, reach, T):
        tangent_coordinates(X, Q[i], rows, distances, reach, T)

    return dense


@njit
def polynomial_terms(order, t):
    """Return the number of monomials of degree at most ``order`` (0, 1 or 2) in t variables."""
    if order == 0:
        return 1
    return 1 + t if order == 1 else 1 + t + t * (t + 1) // 2


@njit
def fill_design(T, order, design):
    """Write the monomials of the tangent coordinates, the constant first.

    At the query the constant is 1 and all others are 0.
    """
    k, t = T.shape
    for j in range(k):
        design[j, 0] = 1.0
        column = 1
        if order >= 1:
            for a in range(t):
                design[j, column] = T[j, a]
                column += 1
        if order >= 2:
            for a in range(t):
                for b in range(a + 1):
                    design[j, column] = T[j, a] * T[j, b]
                    column += 1
