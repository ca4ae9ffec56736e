"""Relative standard deviations of the neighbours' errors, without over- or underflow.

Each query has its own power of two as a unit, so that distances of 1e-160 and 1e+160 give the same
digits as distances of 1.
"""

from __future__ import annotations

import math

import numpy as np

from outsample._compiled.compiling import njit

# A deviation this many times the smallest has a weight of 0 in double precision.
WEIGHTLESS = 1e150
# Deviation of a direction without spread: 0 would mean "coincides with the query".
SMALLEST_DEVIATION = 1e-150
# Blocks of neighbours with one tangent frame each are summed before the solve: their condition
# number is limited to 1e12 so that the sum can be factored.
SMALLEST_IN_BLOCK = 1e-6
# Smallest positive double, in place of a length that underflowed to 0.
SMALLEST_DOUBLE = 5e-324


@njit
def smallest_positive(values):
    """Return the smallest value above 0, or 0 if there is none."""
    smallest = np.inf
    for value in values:
        if 0.0 < value < smallest:
            smallest = value
    return smallest if smallest < np.inf else 0.0


@njit
def isotropic_deviations(start, stop, indptr, unscaled, power, deviations, exponent):
    """Write deviations ``unscaled ** power``, equal in all directions (Eq. 4.3 with power 1)."""
    for i in range(start, stop):
        unit = smallest_positive(unscaled[indptr[i] : indptr[i + 1]])
        scale = 1.0
        if unit > 0.0:
            log_unit = power * math.log2(unit)
            exponent[i] = math.floor(log_unit)
            scale = 2.0 ** (log_unit - math.floor(log_unit))
        for j in range(indptr[i], indptr[i + 1]):
            if unscaled[j] == 0.0:
                deviations[j, 0] = 0.0
            elif unit == 0.0:  # all weights underflow: only the nearest count
                deviations[j, 0] = 1.0 if unscaled[j] == unscaled[indptr[i]] else WEIGHTLESS
            else:
                ratio = unscaled[j] / unit
                has_weight = ratio < WEIGHTLESS ** (1.0 / max(power, 1.0))
                deviations[j, 0] = scale * ratio**power if has_weight else WEIGHTLESS


@njit
def gaussian_deviations(start, stop, indptr, distances, length, deviations, exponent):
    """Write deviations ``r exp((r^2 - nearest^2) / (2 length^2))``, ``nearest`` above 0."""
    length = max(length, SMALLEST_DOUBLE)
    for i in range(start, stop):
        nearest = smallest_positive(distances[indptr[i] : indptr[i + 1]])
        scale = 1.0
        if nearest > 0.0:
            scale, exponent[i] = math.frexp(nearest)
        for j in range(indptr[i], indptr[i + 1]):
            if distances[j] == 0.0:
                deviations[j, 0] = 0.0
                continue
            # The difference of squares as a product: exact where both are large and nearly equal.
            excess = min((distances[j] - nearest) / length, 1e150)
            exponent_half = 0.5 * excess * min((distances[j] + nearest) / length, 1e150)
            ratio = min(distances[j] / nearest, WEIGHTLESS)
            deviations[j, 0] = scale * min(ratio * math.exp(min(exponent_half, 345.0)), WEIGHTLESS)


@njit
def tangent_deviations(
    start, stop, indptr, indices, distances, spread, per_point, curvature, deviations, exponent
):
    """Write deviations s of Eq. 4.5: ``s^2 = r^2 spread^2 + (r / c)^4`` along each axis."""
    d = spread.shape[1]
    for i in range(start, stop):
        first, last = indptr[i], indptr[i + 1]
        nearest = smallest_positive(distances[first:last])
        if nearest == 0.0:
            deviations[first:last] = 0.0
            continue
        largest_spread = 0.0
        for j in range(first, last) if per_point else range(first, first + 1):
            row = indices[j] if per_point else i
            for a in range(d):
                largest_spread = max(largest_spread, spread[row, a])
        near_part, near_power = math.frexp(nearest)
        curve_part, curve_power = math.frexp(curvature)
        curve_part = near_part / curve_part
        curve_power = near_power - curve_power
        wide_power = math.frexp(largest_spread)[1]
        power = 2 * curve_power
        if largest_spread > 0.0:
            power = max(power, near_power + wide_power)
        exponent[i] = power
        off = max(math.ldexp(curve_part * curve_part, 2 * curve_power - power), SMALLEST_DEVIATION)
        for j in range(first, last):
            row = indices[j] if per_point else i
            ratio = min(distances[j] / nearest, 1e75)
            largest = 0.0
            for a in range(d):
                along = math.ldexp(spread[row, a], -wide_power) * near_part
                along = math.ldexp(along, near_power + wide_power - power)
                across = ratio * off  # between 1e-150 and 1e76: can be squared
                deviations[j, a] = ratio * math.sqrt(along * along + across * across)
                largest = max(largest, deviations[j, a])
            if per_point:
                for a in range(d):
                    deviations[j, a] = max(deviations[j, a], SMALLEST_IN_BLOCK * largest)


@njit
def split_deviations(start, stop, indptr, distances, tangent_dim, curvature, deviations, exponent):
    """Write deviations of Section 4.2: ``r`` along the tangent axes, ``(r / c)^2`` across them."""
    for i in range(start, stop):
        first, last = indptr[i], indptr[i + 1]
        nearest = smallest_positive(distances[first:last])
        if nearest == 0.0:
            deviations[first:last] = 0.0
            continue
        near_part, near_power = math.frexp(nearest)
        curve_part, curve_power = math.frexp(curvature)
        curve_part = near_part / curve_part
        curve_power = near_power - curve_power
        power = max(near_power, 2 * curve_power)
        exponent[i] = power
        along = max(math.ldexp(near_part, near_power - power), SMALLEST_DEVIATION)
        across = math.ldexp(curve_part * curve_part, 2 * curve_power - power)
        across = max(across, SMALLEST_DEVIATION)
        for j in range(first, last):
            ratio = min(distances[j] / nearest, 1e75)
            for a in range(deviations.shape[1]):
                deviations[j, a] = ratio * along if a < tangent_dim else ratio * ratio * across
