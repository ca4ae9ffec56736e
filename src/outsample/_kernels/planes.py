"""Distances of queries from the local PCA planes of their neighbours in the ambient space."""

from __future__ import annotations

import numpy as np

from outsample._kernels.compiling import njit
from outsample._kernels.linear_algebra import (
    cholesky_solve,
    dot,
    spectral_shares,
    symmetric_eigen,
)

# Variance relative to the widest direction below which there is none.
FLAT = 1e-13
# Up to so many columns a D x D matrix is made, if there are no fewer neighbours.
NARROW = 256
# For soft planes, where there are fewer columns than this share of the neighbours.
NARROW_SHARE = 0.75


@njit
def fill_cloud(X, x, rows, cloud, away):
    """Neighbours and query relative to the neighbours' mean, in units of the largest entry.

    Returns the unit; 0 where all coincide.
    """
    k, D = cloud.shape
    away[:] = 0.0
    for j in range(k):
        for a in range(D):
            cloud[j, a] = X[rows[j], a] - x[a]
            away[a] -= cloud[j, a]
    unit = 0.0
    for a in range(D):
        away[a] /= k
        unit = max(unit, abs(away[a]))
    for j in range(k):
        for a in range(D):
            cloud[j, a] += away[a]
            unit = max(unit, abs(cloud[j, a]))
    if unit > 0.0:
        for a in range(D):
            away[a] /= unit
        for j in range(k):
            for a in range(D):
                cloud[j, a] /= unit
    return unit


@njit
def plane_distances(start, stop, X, Q, indptr, indices, t, distances):
    """Length of what the t leading principal directions of the neighbours leave of a query."""
    D = X.shape[1]
    away = np.empty(D)
    room = np.empty((1, D))
    products = np.empty((D, D)) if D <= NARROW else np.empty((0, 0))
    shares = np.empty(D)
    for i in range(start, stop):
        rows = indices[indptr[i] : indptr[i + 1]]
        if rows.size > room.shape[0]:
            room = np.empty((rows.size, D))
        cloud = room[: rows.size]
        unit = fill_cloud(X, Q[i], rows, cloud, away)
        if D <= NARROW and D <= rows.size:
            left = left_of_narrow(cloud, away, t, products, shares)
        else:
            left = left_of_wide(cloud, away, t)
        distances[i] = left * unit


@njit
def left_of_narrow(cloud, away, t, products, shares):
    """Length of ``away`` off the t widest directions of a cloud of few columns."""
    k, D = cloud.shape
    for a in range(D):
        for b in range(a + 1):
            products[a, b] = 0.0
    for j in range(k):
        for a in range(D):
            for b in range(a + 1):
                products[a, b] += cloud[j, a] * cloud[j, b]
    spectral_shares(products, away, shares)
    square = 0.0
    largest = 0.0
    for a in range(D):
        square += away[a] * away[a]
        largest = max(largest, products[a, a])
    for _ in range(min(t, D)):  # take the widest direction that is left
        top = -1
        for a in range(D):
            wide = shares[a] >= 0.0 and products[a, a] > FLAT * largest
            if wide and (top < 0 or products[a, a] > products[top, top]):
                top = a
        if top < 0:
            break
        shares[top] = -1.0
    left = 0.0
    for a in range(D):
        left += max(shares[a], 0.0)
    return np.sqrt(left * square)


@njit
def left_of_wide(cloud, away, t):
    """`left_of_narrow` for more columns than points: nothing D x D is made."""
    k, D = cloud.shape
    products = np.zeros((k, k))
    for j in range(k):
        for p in range(j + 1):
            products[j, p] = dot(cloud[j], cloud[p])
            products[p, j] = products[j, p]
    vectors = np.empty((k, k))
    symmetric_eigen(products, vectors)
    direction = np.empty(D)
    for b in range(min(t, k)):
        if products[b, b] <= FLAT * products[0, 0]:
            break
        direction[:] = 0.0
        root = np.sqrt(products[b, b])
        for j in range(k):
            share = vectors[j, b] / root
            for a in range(D):
                direction[a] += cloud[j, a] * share
        along = dot(direction, away)
        for a in range(D):
            away[a] -= along * direction[a]
    return np.sqrt(dot(away, away))


@njit
def soft_plane_distances(start, stop, X, Q, indptr, indices, sizes, ridges, distances):
    """Ridge residuals of queries by several numbers ``sizes[i]`` of their nearest neighbours.

    All from one table: of products of the widest neighbourhood, or of the columns, if these are
    fewer.
    """
    D = X.shape[1]
    away = np.empty(D)
    room = np.empty((1, D))
    table = np.empty((1, 1))
    toward = np.empty(1)
    for i in range(start, stop):
        rows = indices[indptr[i] : indptr[i + 1]]
        widest = rows.size
        if widest > room.shape[0]:
            room = np.empty((widest, D))
            table = np.empty((widest, widest))
            toward = np.empty(widest)
        cloud = room[:widest]
        unit = fill_cloud(X, Q[i], rows, cloud, away)
        if D < NARROW_SHARE * widest:
            soft_residuals_of_columns(cloud, away, sizes[i], ridges, distances[i])
        else:
            products = table[:widest, :widest]
            for j in range(widest):
                toward[j] = dot(cloud[j], away)
                for p in range(j + 1):
                    products[j, p] = dot(cloud[j], cloud[p])
                    products[p, j] = products[j, p]
            square = dot(away, away)
            for at in range(ridges.size):
                k = sizes[i, at]
                distances[i, at] = soft_residual(products[:k, :k], toward[:k], square, ridges[at])
        for at in range(ridges.size):
            distances[i, at] = np.sqrt(distances[i, at]) * unit


@njit
def soft_residuals_of_columns(cloud, away, sizes, ridges, residuals):
    """`soft_residual` for more neighbours than columns: ``penalty y' (Z'Z + penalty)^-1 y``.

    With ``y = x - m``; sums over the nearest go on from one size to the next.
    """
    D = away.size
    sums = np.zeros(D)
    products = np.zeros((D, D))
    centered = np.empty((D, D))
    y = np.empty(D)
    solved = np.empty(D)
    done = 0
    for at in range(sizes.size):
        k = sizes[at]
        if k < done:
            sums[:] = 0.0
            products[:] = 0.0
            done = 0
        for j in range(done, k):
            row = cloud[j]
            for a in range(D):
                sums[a] += row[a]
                for b in range(a + 1):
                    products[a, b] += row[a] * row[b]
        done = k
        trace = 0.0
        norm = 0.0
        for a in range(D):
            for b in range(a):
                centered[a, b] = products[a, b] - sums[a] * sums[b] / k
                norm += 2.0 * centered[a, b] * centered[a, b]
            centered[a, a] = products[a, a] - sums[a] * sums[a] / k
            norm += centered[a, a] * centered[a, a]
            trace += centered[a, a]
            y[a] = away[a] - sums[a] / k
            solved[a] = y[a]
        whole = dot(y, y)
        residuals[at] = whole
        if trace > 0.0:
            penalty = ridges[at] * norm / trace
            for a in range(D):
                centered[a, a] += penalty
            if cholesky_solve(centered, solved):
                residuals[at] = min(max(penalty * dot(y, solved), 0.0), whole)


@njit
def soft_residual(products, toward, square, ridge):
    """``min_w |x - m - Z'w|^2 + penalty |w|^2`` from inner products about any origin.

    Z are the neighbours minus their mean m. The penalty is ``ridge |Z Z'|_F^2 / tr Z Z'``: a
    share of the variance along a typical direction of the plane.
    """
    k = toward.size
    means = np.empty(k)
    for j in range(k):
        means[j] = products[j].sum() / k
    mean_toward = toward.sum() / k
    mean = means.sum() / k
    centered = np.empty((k, k))
    trace = 0.0
    norm = 0.0
    for j in range(k):
        for p in range(k):
            centered[j, p] = products[j, p] - means[j] - means[p] + mean
            norm += centered[j, p] * centered[j, p]
        trace += centered[j, j]
    whole = max(square - 2.0 * mean_toward + mean, 0.0)
    if not trace > 0.0:
        return whole
    penalty = ridge * norm / trace
    right = np.empty(k)
    solved = np.empty(k)
    for j in range(k):
        right[j] = toward[j] - means[j] - mean_toward + mean
        solved[j] = right[j]
        centered[j, j] += penalty
    if not cholesky_solve(centered, solved):
        return whole
    for j in range(k):
        whole -= right[j] * solved[j]
    return max(whole, 0.0)
