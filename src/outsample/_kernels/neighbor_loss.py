"""The loss that one more point adds to a neighbour embedding, all others fixed."""

from __future__ import annotations

import math

import numpy as np

from outsample._kernels.compiling import njit
from outsample._kernels.field import field_at, is_on_grid
from outsample._kernels.gls import place_on_coincident

# Halvings of the logarithm of the precision, between these.
HALVINGS = 40
FLATTEST, SHARPEST = -12.0, 24.0
# Rounds, in each of which the repulsion is found once and followed by a few steps; a round that
# moves less than this ends them.
ROUNDS, STEPS = 25, 3
STILL = 1e-4
# The nearest of the neighbours, at whose images a start is looked for.
BEGINNINGS = 20


@njit
def affinities(distances, first, last, perplexity, p):
    """Gaussian shares (k,) of the neighbours, of the perplexity; alike where it is beyond k."""
    k = last - first
    farthest = distances[last - 1]
    for j in range(k):
        p[j] = 1.0 / k
    if farthest == 0.0 or distances[first] == farthest or perplexity >= k:
        return
    nearest = distances[first] / farthest
    low, high = FLATTEST, SHARPEST
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        precision = math.exp(middle)
        total = 0.0
        moment = 0.0
        for j in range(k):
            h = distances[first + j] / farthest
            energy = precision * (h - nearest) * (h + nearest)
            p[j] = math.exp(-energy)
            total += p[j]
            moment += p[j] * energy
        if math.log(total) + moment / total > math.log(perplexity):
            low = middle
        else:
            high = middle
    for j in range(k):
        p[j] /= total


@njit
def closeness(Z, y, own, corner, step, grid):
    """``sum_j w_j``, w_j = 1 / (1 + |y - z_j|^2), over all but one of the images Z (n, d).

    By the field where y is on the grid, else exactly.
    """
    n, d = Z.shape
    total = 0.0
    if is_on_grid(corner, step, grid, y):
        total = field_at(corner, step, grid, y, np.empty(2))
    else:
        for j in range(n):
            squared = 1.0
            for a in range(d):
                squared += (y[a] - Z[j, a]) * (y[a] - Z[j, a])
            total += 1.0 / squared
    if own >= 0:
        squared = 1.0
        for a in range(d):
            squared += (y[a] - Z[own, a]) ** 2
        total -= 1.0 / squared
    return total


@njit
def add_repulsion(Z, y, own, push, corner, step, grid, force):
    """Add ``push sum_j w_j^2 (y - z_j)`` to the force (d,), over all but one of the images.

    That is minus half the slope of the `closeness`.
    """
    n, d = Z.shape
    if is_on_grid(corner, step, grid, y):
        slope = np.empty(2)
        field_at(corner, step, grid, y, slope)
        for a in range(2):
            force[a] -= push * slope[a] / 2
    elif d == 2:  # the usual map, in one pass
        across, along = 0.0, 0.0
        for j in range(n):
            u, v = y[0] - Z[j, 0], y[1] - Z[j, 1]
            squared = 1.0 + u * u + v * v
            weight = 1.0 / (squared * squared)
            across += weight * u
            along += weight * v
        force[0] += push * across
        force[1] += push * along
    else:
        for a in range(d):
            total = 0.0
            for j in range(n):
                squared = 1.0
                for b in range(d):
                    squared += (y[b] - Z[j, b]) * (y[b] - Z[j, b])
                total += (y[a] - Z[j, a]) / (squared * squared)
            force[a] += push * total
    if own >= 0:
        squared = 1.0
        for a in range(d):
            squared += (y[a] - Z[own, a]) ** 2
        for a in range(d):
            force[a] -= push * (y[a] - Z[own, a]) / (squared * squared)


@njit
def attraction(Z, indices, first, last, p, y):
    """``sum_j p_j log(1 + |y - z_j|^2)`` over the neighbours."""
    total = 0.0
    for j in range(first, last):
        squared = 0.0
        for a in range(y.size):
            squared += (y[a] - Z[indices[j], a]) ** 2
        total += p[j - first] * math.log1p(squared)
    return total


@njit
def closenesses(start, stop, Z, corner, step, grid, total):
    """Find the `closeness` (n,) of every image to all others."""
    for i in range(start, stop):
        total[i] = max(closeness(Z, Z[i], i, corner, step, grid), 0.0)


@njit
def solve_neighbor_loss(
    start, stop, Z, Y, indptr, indices, distances, sigma, own, crowd, perplexity, push, unit,
    corner, step, grid, coordinates,
):  # fmt: skip
    """Least ``sum_j p_j log(1 + |y - z_j|^2) + push sum_j w_j``, in units of the map.

    From the neighbour's image where it is least, by steps to the minimum of the parabola above the
    attraction, with the repulsion of the last round; never to where the loss is larger.
    """
    d = Z.shape[1]
    for i in range(start, stop):
        first, last = indptr[i], indptr[i + 1]
        out = coordinates[i]
        if place_on_coincident(Y, indices, sigma, first, last, out):
            continue
        p = np.empty(last - first)
        affinities(distances, first, last, min(perplexity, (last - first) / 3), p)
        anchor, least = first, np.inf
        for j in range(first, min(first + BEGINNINGS, last)):
            row = indices[j]
            loss = crowd[row] + 1.0  # the neighbour itself is there too
            if own[i] >= 0:
                squared = 1.0
                for a in range(d):
                    squared += (Z[row, a] - Z[own[i], a]) ** 2
                loss -= 1.0 / squared
            loss = push * loss + attraction(Z, indices, first, last, p, Z[row])
            if loss < least:
                anchor, least = j, loss
        # From here on, places are relative to that image.
        begin = Z[indices[anchor]]
        y = begin.copy()
        force = np.empty(d)
        before = np.empty(d)
        for _ in range(ROUNDS):
            for a in range(d):
                force[a] = 0.0
                before[a] = y[a]
            add_repulsion(Z, y, own[i], push, corner, step, grid, force)
            for _ in range(STEPS):
                total = 0.0
                pull = force.copy()
                for j in range(first, last):
                    row = indices[j]
                    squared = 1.0
                    for a in range(d):
                        squared += (y[a] - Z[row, a]) ** 2
                    weight = p[j - first] / squared
                    total += weight
                    for a in range(d):
                        pull[a] += weight * (Z[row, a] - y[a])
                for a in range(d):
                    y[a] += pull[a] / total
            moved = 0.0
            for a in range(d):
                moved += (y[a] - before[a]) ** 2
            if not moved > STILL * STILL:
                break
        crowded = closeness(Z, y, own[i], corner, step, grid)
        loss = attraction(Z, indices, first, last, p, y) + push * crowded
        for a in range(d):
            out[a] = Y[indices[anchor], a]
            if loss < least:
                out[a] += unit * (y[a] - begin[a])
