"""Weighted least squares with a local polynomial (orders 1 and 2)."""

from __future__ import annotations

import numpy as np

from outsample._compiled.compiling import njit
from outsample._compiled.gls import place_on_coincident
from outsample._compiled.linear_algebra import cholesky_factor, cholesky_solve, solve_factored
from outsample._compiled.tangent import fill_design, polynomial_terms, tangent_coordinates

# Reweightings at most, and the change, relative to the images, that ends them.
MAX_REWEIGHTINGS = 200
REWEIGHTING_TOLERANCE = 1e-10
# Smaller residuals, relative to the largest, are raised to this share: an absolute fit passes
# through several images, and the normal equations would lose their digits.
SMALLEST_RESIDUAL = 1e-6
# Relative ridge on all terms but the constant, enough to factor collinear neighbourhoods.
RIDGE = 1e-11


@njit
def add_blocks(design, weights, deviations, axes, basis_rows, smallest, errors, total, right):
    """Write normal equations (p d, p d) for blocks that are not multiples of the identity."""
    k, p = design.shape
    d = errors.shape[1]
    total[:] = 0.0
    right[:] = 0.0
    block = np.empty((d, d))
    for j in range(k):
        basis = axes[basis_rows[j]]
        block[:] = 0.0
        for a in range(d):
            weight = weights[j] * (smallest / deviations[j, a]) ** 2
            for b in range(d):
                for c in range(d):
                    block[b, c] += weight * basis[b, a] * basis[c, a]
        for u in range(p):
            for b in range(d):
                for c in range(d):
                    right[u * d + b] += design[j, u] * block[b, c] * errors[j, c]
                for v in range(u + 1):
                    for c in range(d):
                        total[u * d + b, v * d + c] += design[j, u] * design[j, v] * block[b, c]


@njit
def add_isotropic(design, weights, deviations, smallest, total):
    """Write the weighted Gram matrix (p, p) of the design, shared by all columns of the images."""
    k, p = design.shape
    total[:] = 0.0
    for j in range(k):
        weight = weights[j] * (smallest / deviations[j, 0]) ** 2
        for u in range(p):
            for v in range(u + 1):
                total[u, v] += weight * design[j, u] * design[j, v]


@njit
def fit_polynomial(design, weights, deviations, axes, basis_rows, images, coefficients):
    """Write the coefficients (p, d) of the weighted fit of images (k, d); False if singular.

    Image j has ``deviations[j]`` along the columns of ``axes[basis_rows[j]]``.
    """
    k, p = design.shape
    d = images.shape[1]
    isotropic = deviations.shape[1] == 1
    smallest = np.inf
    for j in range(k):
        for a in range(deviations.shape[1]):
            smallest = min(smallest, deviations[j, a])
    size = p if isotropic else p * d
    inner = 1 if isotropic else d
    total = np.empty((size, size))
    right = np.empty(size)
    if isotropic:
        add_isotropic(design, weights, deviations, smallest, total)
    else:
        add_blocks(design, weights, deviations, axes, basis_rows, smallest, images, total, right)
    largest = 0.0
    for u in range(inner, size):
        largest = max(largest, total[u, u])
    for u in range(inner, size):
        total[u, u] += RIDGE * largest
    if not isotropic:
        if not cholesky_solve(total, right):
            return False
        for u in range(p):
            for a in range(d):
                coefficients[u, a] = right[u * d + a]
        return True
    if not cholesky_factor(total):  # one factor for all columns of the images
        return False
    sides = np.zeros((d, p))
    for j in range(k):
        weight = weights[j] * (smallest / deviations[j, 0]) ** 2
        for a in range(d):
            for u in range(p):
                sides[a, u] += weight * design[j, u] * images[j, a]
    for a in range(d):
        solve_factored(total, sides[a])
        for u in range(p):
            coefficients[u, a] = sides[a, u]
    return True


@njit
def reweight(design, coefficients, images, deviations, axes, basis_rows, taper, weights):
    """Write weights of the absolute loss: the taper over the Mahalanobis length of residuals."""
    k, p = design.shape
    d = images.shape[1]
    isotropic = deviations.shape[1] == 1
    error = np.empty(d)
    lengths = np.empty(k)
    largest = 0.0
    for j in range(k):
        for a in range(d):
            error[a] = images[j, a]
            for u in range(p):
                error[a] -= design[j, u] * coefficients[u, a]
        square = 0.0
        for a in range(d):
            along = error[a]
            if not isotropic:
                basis = axes[basis_rows[j]]
                along = 0.0
                for b in range(d):
                    along += basis[b, a] * error[b]
            square += (along / deviations[j, 0 if isotropic else a]) ** 2
        lengths[j] = np.sqrt(square)
        largest = max(largest, lengths[j])
    for j in range(k):
        length = max(lengths[j], SMALLEST_RESIDUAL * largest)
        weights[j] = taper[j] / length if largest > 0.0 else taper[j]


@njit
def solve_polynomial(
    start, stop, X, Q, Y, indptr, indices, distances, deviations, axes, per_point, reach, order,
    tangent_dim, absolute, coordinates,
):  # fmt: skip
    """Write the value at each query of the weighted polynomial fit over its neighbours.

    The taper ``(1 - (r / reach)^2)^2`` is 0 at ``reach``, so that a neighbour enters with weight
    0. The order is lowered until more neighbours than terms have a positive weight.
    """
    d = Y.shape[1]
    for i in range(start, stop):
        first, last = indptr[i], indptr[i + 1]
        out = coordinates[i]
        if place_on_coincident(Y, indices, deviations, first, last, out):
            continue
        k = last - first
        rows = indices[first:last]
        own_deviations = deviations[first:last]
        basis_rows = np.empty(k, dtype=np.int64)
        for j in range(k):
            basis_rows[j] = rows[j] if per_point else i
        taper = np.ones(k)
        n_weighted = 0
        for j in range(k):
            ratio = distances[first + j] / reach[i]
            taper[j] = (1.0 - ratio * ratio) ** 2 if ratio < 1.0 else 0.0
            n_weighted += taper[j] > 0.0
        if n_weighted == 0:
            taper[:] = 1.0
            n_weighted = k
        t = tangent_dim
        T = np.empty((k, t))
        tangent_coordinates(X, Q[i], rows, distances[first:last], reach[i], T)
        images = np.empty((k, d))
        for j in range(k):
            for a in range(d):
                images[j, a] = Y[rows[j], a] - Y[rows[0], a]
        degree = order
        while True:
            while degree > 0 and n_weighted <= polynomial_terms(degree, t):
                degree -= 1
            p = polynomial_terms(degree, t)
            design = np.empty((k, p))
            fill_design(T, degree, design)
            coefficients = np.zeros((p, d))
            weights = np.empty(k)
            for j in range(k):
                weights[j] = taper[j]
            is_fitted = fit_polynomial(
                design, weights, own_deviations, axes, basis_rows, images, coefficients
            )
            if is_fitted or degree == 0:
                break
            degree -= 1
        errors = np.empty((k, d))
        change = np.zeros((p, d))
        size = 0.0
        for j in range(k):
            for a in range(d):
                size = max(size, abs(images[j, a]))
        for _ in range(MAX_REWEIGHTINGS if absolute else 0):
            reweight(design, coefficients, images, own_deviations, axes, basis_rows, taper, weights)
            # Only the change is fitted, so that the ridge does not bias the converged result.
            for j in range(k):
                for a in range(d):
                    errors[j, a] = images[j, a]
                    for u in range(p):
                        errors[j, a] -= design[j, u] * coefficients[u, a]
            if not fit_polynomial(
                design, weights, own_deviations, axes, basis_rows, errors, change
            ):
                break
            largest_change = 0.0
            for a in range(d):
                largest_change = max(largest_change, abs(change[0, a]))
                for u in range(p):
                    coefficients[u, a] += change[u, a]
            if largest_change <= REWEIGHTING_TOLERANCE * size:
                break
        for a in range(d):
            out[a] = Y[rows[0], a] + coefficients[0, a]
