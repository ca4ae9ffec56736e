"""Weighted least squares of Eq. 2.8 in closed form, and its two residuals."""

from __future__ import annotations

import math

import numpy as np

from outsample._compiled.compiling import njit
from outsample._compiled.linear_algebra import cholesky_solve

LARGEST_DOUBLE = 1.7976931348623157e308


@njit
def scaled(value, power):
    """Return ``value * 2 ** power``, or the largest double instead of infinity."""
    if value == 0.0:
        return 0.0
    if math.frexp(value)[1] + power > 1023:
        return LARGEST_DOUBLE
    return math.ldexp(value, power)


@njit
def place_on_coincident(Y, indices, deviations, first, last, out):
    """Write the mean image of the neighbours at the query's point (Lemma 5.1 in the limit).

    Return whether there are any; without them ``out`` is left as it is.
    """
    count = 0
    anchor = first
    for j in range(first, last):
        if deviations[j, 0] == 0.0:
            if count == 0:
                anchor = j
                out[:] = 0.0
            else:
                for a in range(out.size):
                    out[a] += Y[indices[j], a] - Y[indices[anchor], a]
            count += 1
    if count > 0:
        for a in range(out.size):
            out[a] = Y[indices[anchor], a] + out[a] / count
    return count > 0


@njit
def place_coincident(start, stop, Y, indptr, indices, deviations, coordinates):
    """Write the mean image of the training points that coincide with a query, if there are any."""
    for i in range(start, stop):
        place_on_coincident(Y, indices, deviations, indptr[i], indptr[i + 1], coordinates[i])


@njit
def solve_shared(start, stop, Y, indptr, indices, deviations, axes, coordinates):
    """Solve Eq. 5.3 with blocks diagonal in one basis: a weighted mean along each axis.

    Images are relative to the nearest one, so that a constant map is reproduced exactly.
    """
    d = Y.shape[1]
    isotropic = deviations.shape[1] == 1
    for i in range(start, stop):
        first, last = indptr[i], indptr[i + 1]
        out = coordinates[i]
        if place_on_coincident(Y, indices, deviations, first, last, out):
            continue
        anchor = Y[indices[first]]
        out[:] = 0.0
        for a in range(d):
            axis = 0 if isotropic else a
            smallest = deviations[first, axis]
            for j in range(first + 1, last):
                smallest = min(smallest, deviations[j, axis])
            total = 0.0
            mean = 0.0
            for j in range(first, last):
                weight = (smallest / deviations[j, axis]) ** 2
                if isotropic:
                    along = Y[indices[j], a] - anchor[a]
                else:
                    along = 0.0
                    for b in range(d):
                        along += axes[i, b, a] * (Y[indices[j], b] - anchor[b])
                total += weight
                mean += weight * along
            if isotropic:
                out[a] = mean / total
            else:
                for b in range(d):
                    out[b] += axes[i, b, a] * (mean / total)
        for a in range(d):
            out[a] += anchor[a]


@njit
def solve_per_point(start, stop, Y, indptr, indices, deviations, axes, coordinates):
    """Solve Eq. 5.3 with one basis per neighbour: sum the blocks, solve one d x d system."""
    d = Y.shape[1]
    total = np.empty((d, d))
    right = np.empty(d)
    for i in range(start, stop):
        first, last = indptr[i], indptr[i + 1]
        out = coordinates[i]
        if place_on_coincident(Y, indices, deviations, first, last, out):
            continue
        anchor = Y[indices[first]]
        smallest = deviations[first, 0]
        for j in range(first, last):
            for a in range(d):
                smallest = min(smallest, deviations[j, a])
        total[:] = 0.0
        right[:] = 0.0
        for j in range(first, last):
            basis = axes[indices[j]]
            for a in range(d):
                weight = (smallest / deviations[j, a]) ** 2
                along = 0.0
                for b in range(d):
                    along += basis[b, a] * (Y[indices[j], b] - anchor[b])
                for b in range(d):
                    right[b] += weight * basis[b, a] * along
                    for c in range(b + 1):
                        total[b, c] += weight * basis[b, a] * basis[c, a]
        if not cholesky_solve(total, right):  # singular in double precision
            right[:] = 0.0
        for a in range(d):
            out[a] = anchor[a] + right[a]


@njit
def disagreement(
    start,
    stop,
    Y,
    indptr,
    indices,
    deviations,
    exponent,
    axes,
    per_point,
    coordinates,
    residual,
    dispersion,
):
    """Write Eq. 2.9 in both readings: the sums of ``(e_j / s_j)^2`` and ``(e_j s_j)^2``.

    e_j are errors and s_j deviations. A neighbour that coincides with the query has no finite
    weight; its term tends to 0 as the query approaches it, and is left out.
    """
    d = Y.shape[1]
    isotropic = deviations.shape[1] == 1
    for i in range(start, stop):
        first, last = indptr[i], indptr[i + 1]
        size = 0.0
        for j in range(first, last):
            for a in range(d):
                size = max(size, abs(Y[indices[j], a] - coordinates[i, a]))
        residual[i] = 0.0
        dispersion[i] = 0.0
        if size == 0.0:
            continue
        # Bounded, so that the factor is finite; the scaled errors can be squared safely.
        size_power = min(max(math.frexp(size)[1], -1000), 1000)
        factor = math.ldexp(1.0, -size_power)
        weighted = 0.0
        dispersed = 0.0
        for j in range(first, last):
            if deviations[j, 0] == 0.0:
                continue
            for a in range(d):
                if isotropic:
                    along = factor * (Y[indices[j], a] - coordinates[i, a])
                    deviation = deviations[j, 0]
                else:
                    basis = axes[indices[j]] if per_point else axes[i]
                    along = 0.0
                    for b in range(d):
                        along += basis[b, a] * (factor * (Y[indices[j], b] - coordinates[i, b]))
                    deviation = deviations[j, a]
                weighted += (along / deviation) ** 2
                dispersed += (along * deviation) ** 2
        residual[i] = scaled(min(weighted, LARGEST_DOUBLE), 2 * (size_power - int(exponent[i])))
        dispersion[i] = scaled(min(dispersed, LARGEST_DOUBLE), 2 * (size_power + int(exponent[i])))
