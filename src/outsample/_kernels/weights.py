"""Relative standard deviations of the neighbours' errors, safe at any scale.

Every row is expressed in a power of two of its own, so that distances of 1e-160 and 1e+160 give
the same digits as distances of 1.
"""

from __future__ import annotations

import math

import numpy as np

from outsample._kernels.compiling import njit

# A deviation this many times the smallest one carries no weight that a double could show.
WEIGHTLESS = 1e150
# A direction with no spread keeps this much, so that 0 can mean "coincides with the query".
LEAST = 1e-150
# Blocks of neighbours with tangents of their own are summed before the solve: their condition
# number is held at 1e12 so that the sum can be factored.
LEAST_IN_BLOCK = 1e-6
# A part of the smallest double is 0, by which nothing can be divided.
SMALLEST = 5e-324


@njit
def smallest_positive(values):
    """Return the smallest value above 0, or 0 if there is none."""
    smallest = np.inf
    for value in values:
        if 0.0 < value < smallest:
            smallest = value
    return smallest if smallest < np.inf else 0.0


@njit
def isotropic_sigma(start, stop, indptr, deviations, power, sigma, exponent):
    """Deviations to a power, the same in every direction: Eq. 4.3 for distances to the power 1."""
    for i in range(start, stop):
        unit = smallest_positive(deviations[indptr[i] : indptr[i + 1]])
        scale = 1.0
        if unit > 0.0:
            whole = power * math.log2(unit)
            exponent[i] = math.floor(whole)
            scale = 2.0 ** (whole - math.floor(whole))
        for j in range(indptr[i], indptr[i + 1]):
            if deviations[j] == 0.0:
                sigma[j, 0] = 0.0
            elif unit == 0.0:  # every weight vanished: the nearest ones decide
                sigma[j, 0] = 1.0 if deviations[j] == deviations[indptr[i]] else WEIGHTLESS
            else:
                ratio = deviations[j] / unit
                heavy = ratio < WEIGHTLESS ** (1.0 / max(power, 1.0))
                sigma[j, 0] = scale * ratio**power if heavy else WEIGHTLESS


@njit
def gaussian_sigma(start, stop, indptr, distances, length, sigma, exponent):
    """Deviations ``r exp((r^2 - nearest^2) / (2 length^2))``, the nearest above 0."""
    length = max(length, SMALLEST)
    for i in range(start, stop):
        nearest = smallest_positive(distances[indptr[i] : indptr[i + 1]])
        scale = 1.0
        if nearest > 0.0:
            scale, exponent[i] = math.frexp(nearest)
        for j in range(indptr[i], indptr[i + 1]):
            if distances[j] == 0.0:
                sigma[j, 0] = 0.0
                continue
            # The difference of squares as a product: exact where both are large and alike.
            beyond = min((distances[j] - nearest) / length, 1e150)
            half = 0.5 * beyond * min((distances[j] + nearest) / length, 1e150)
            ratio = min(distances[j] / nearest, WEIGHTLESS)
            sigma[j, 0] = scale * min(ratio * math.exp(min(half, 345.0)), WEIGHTLESS)


@njit
def tangent_sigma(
    start, stop, indptr, indices, distances, spread, per_point, curvature, sigma, exponent
):
    """Deviations of Eq. 4.5: ``sigma^2 = r^2 spread^2 + (r / c)^4`` along each axis."""
    d = spread.shape[1]
    for i in range(start, stop):
        first, last = indptr[i], indptr[i + 1]
        nearest = smallest_positive(distances[first:last])
        if nearest == 0.0:
            sigma[first:last] = 0.0
            continue
        widest = 0.0
        for j in range(first, last) if per_point else range(first, first + 1):
            row = indices[j] if per_point else i
            for a in range(d):
                widest = max(widest, spread[row, a])
        near_part, near_power = math.frexp(nearest)
        curve_part, curve_power = math.frexp(curvature)
        curve_part = near_part / curve_part
        curve_power = near_power - curve_power
        wide_power = math.frexp(widest)[1]
        power = 2 * curve_power
        if widest > 0.0:
            power = max(power, near_power + wide_power)
        exponent[i] = power
        off = max(math.ldexp(curve_part * curve_part, 2 * curve_power - power), LEAST)
        for j in range(first, last):
            row = indices[j] if per_point else i
            ratio = min(distances[j] / nearest, 1e75)
            top = 0.0
            for a in range(d):
                along = math.ldexp(spread[row, a], -wide_power) * near_part
                along = math.ldexp(along, near_power + wide_power - power)
                across = ratio * off  # between 1e-150 and 1e76: squares are safe
                sigma[j, a] = ratio * math.sqrt(along * along + across * across)
                top = max(top, sigma[j, a])
            if per_point:
                for a in range(d):
                    sigma[j, a] = max(sigma[j, a], LEAST_IN_BLOCK * top)


@njit
def split_sigma(start, stop, indptr, distances, tangent_dim, curvature, sigma, exponent):
    """Deviations of Section 4.2: ``r`` along the tangent axes, ``(r / c)^2`` across them."""
    for i in range(start, stop):
        first, last = indptr[i], indptr[i + 1]
        nearest = smallest_positive(distances[first:last])
        if nearest == 0.0:
            sigma[first:last] = 0.0
            continue
        near_part, near_power = math.frexp(nearest)
        curve_part, curve_power = math.frexp(curvature)
        curve_part = near_part / curve_part
        curve_power = near_power - curve_power
        power = max(near_power, 2 * curve_power)
        exponent[i] = power
        along = max(math.ldexp(near_part, near_power - power), LEAST)
        across = math.ldexp(curve_part * curve_part, 2 * curve_power - power)
        across = max(across, LEAST)
        for j in range(first, last):
            ratio = min(distances[j] / nearest, 1e75)
            for a in range(sigma.shape[1]):
                sigma[j, a] = ratio * along if a < tangent_dim else ratio * ratio * across
