"""Distances of queries from the local PCA planes of their neighbours in the ambient space."""

from __future__ import annotations

import numpy as np

from outsample._compiled.compiling import njit
from outsample._compiled.linear_algebra import (
    cholesky_solve,
    dot,
    spectral_shares,
    symmetric_eigen,
)

# Variances below this share of the largest count as 0.
ZERO_VARIANCE = 1e-13
# Up to this many columns the D x D covariance is used, if there are at least D neighbours.
MAX_COVARIANCE_COLUMNS = 256
# For soft planes it is used if the columns are fewer than this share of the neighbours.
MAX_COLUMNS_PER_NEIGHBOR = 0.75


@njit
def fill_cloud(X, x, rows, cloud, away):
    """Write neighbours and query relative to the neighbours' mean, in units of the largest entry.

    Return the unit, which is 0 if all points coincide.
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
    """Write the distance of each query from the plane of the t leading principal directions."""
    D = X.shape[1]
    away = np.empty(D)
    workspace = np.empty((1, D))
    products = np.empty((D, D)) if D <= MAX_COVARIANCE_COLUMNS else np.empty((0, 0))
    shares = np.empty(D)
    for i in range(start, stop):
        rows = indices[indptr[i] : indptr[i + 1]]
        if rows.size > workspace.shape[0]:
            workspace = np.empty((rows.size, D))
        cloud = workspace[: rows.size]
        unit = fill_cloud(X, Q[i], rows, cloud, away)
        if D <= MAX_COVARIANCE_COLUMNS and D <= rows.size:
            remaining = distance_by_covariance(cloud, away, t, products, shares)
        else:
            remaining = distance_by_products(cloud, away, t)
        distances[i] = remaining * unit


@njit
def distance_by_covariance(cloud, away, t, products, shares):
    """Return the length of ``away`` outside the t widest directions, for few columns."""
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
    for _ in range(min(t, D)):  # remove the widest of the remaining directions
        widest = -1
        for a in range(D):
            is_wide = shares[a] >= 0.0 and products[a, a] > ZERO_VARIANCE * largest
            if is_wide and (widest < 0 or products[a, a] > products[widest, widest]):
                widest = a
        if widest < 0:
            break
        shares[widest] = -1.0
    remaining = 0.0
    for a in range(D):
        remaining += max(shares[a], 0.0)
    return np.sqrt(remaining * square)


@njit
def distance_by_products(cloud, away, t):
    """Return the length as `distance_by_covariance` does, by inner products of the neighbours."""
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
        if products[b, b] <= ZERO_VARIANCE * products[0, 0]:
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
    """Write the ridge residuals of queries for several neighbourhood sizes ``sizes[i]``.

    All sizes share the inner products of the largest neighbourhood, or the sums of the covariance
    if there are few columns.
    """
    D = X.shape[1]
    away = np.empty(D)
    workspace = np.empty((1, D))
    table = np.empty((1, 1))
    toward = np.empty(1)
    for i in range(start, stop):
        rows = indices[indptr[i] : indptr[i + 1]]
        largest_size = rows.size
        if largest_size > workspace.shape[0]:
            workspace = np.empty((largest_size, D))
            table = np.empty((largest_size, largest_size))
            toward = np.empty(largest_size)
        cloud = workspace[:largest_size]
        unit = fill_cloud(X, Q[i], rows, cloud, away)
        if D < MAX_COLUMNS_PER_NEIGHBOR * largest_size:
            soft_residuals_by_covariance(cloud, away, sizes[i], ridges, distances[i])
        else:
            products = table[:largest_size, :largest_size]
            for j in range(largest_size):
                toward[j] = dot(cloud[j], away)
                for p in range(j + 1):
                    products[j, p] = dot(cloud[j], cloud[p])
                    products[p, j] = products[j, p]
            square = dot(away, away)
            for size_idx in range(ridges.size):
                k = sizes[i, size_idx]
                distances[i, size_idx] = soft_residual(
                    products[:k, :k], toward[:k], square, ridges[size_idx]
                )
        for size_idx in range(ridges.size):
            distances[i, size_idx] = np.sqrt(distances[i, size_idx]) * unit


@njit
def soft_residuals_by_covariance(cloud, away, sizes, ridges, residuals):
    """Write `soft_residual` for few columns: ``penalty y' (Z'Z + penalty)^-1 y``, ``y = x - m``.

    Sums over the nearest neighbours are continued from one size to the next.
    """
    D = away.size
    sums = np.zeros(D)
    products = np.zeros((D, D))
    centered = np.empty((D, D))
    y = np.empty(D)
    solved = np.empty(D)
    done = 0
    for size_idx in range(sizes.size):
        k = sizes[size_idx]
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
        squared_length = dot(y, y)
        residuals[size_idx] = squared_length
        if trace > 0.0:
            penalty = ridges[size_idx] * norm / trace
            for a in range(D):
                centered[a, a] += penalty
            if cholesky_solve(centered, solved):
                residuals[size_idx] = min(max(penalty * dot(y, solved), 0.0), squared_length)


@njit
def soft_residual(products, toward, square, ridge):
    """Return ``min_w |x - m - Z'w|^2 + penalty |w|^2`` from inner products about any origin.

    Z are the neighbours minus their mean m. The penalty is ``ridge |Z Z'|_F^2 / tr Z Z'``, a
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
    squared_length = max(square - 2.0 * mean_toward + mean, 0.0)
    if not trace > 0.0:
        return squared_length
    penalty = ridge * norm / trace
    right = np.empty(k)
    solved = np.empty(k)
    for j in range(k):
        right[j] = toward[j] - means[j] - mean_toward + mean
        solved[j] = right[j]
        centered[j, j] += penalty
    if not cholesky_solve(centered, solved):
        return squared_length
    for j in range(k):
        squared_length -= right[j] * solved[j]
    return max(squared_length, 0.0)
