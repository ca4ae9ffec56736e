"""Loss that a new point adds to a neighbour embedding (t-SNE, UMAP) with all others fixed."""

from __future__ import annotations

import math

import numpy as np

from outsample._compiled.compiling import njit
from outsample._compiled.field import field_at, is_on_grid
from outsample._compiled.gls import place_on_coincident

# Bisection steps for the logarithm of the precision, and its bounds.
BISECTIONS = 40
MIN_LOG_PRECISION, MAX_LOG_PRECISION = -12.0, 24.0
# Rounds at most; each computes the repulsion once and makes a few steps with it. A round that moves
# the point by less than this, in units of the map, is the last.
MAX_ROUNDS, STEPS_PER_ROUND = 25, 3
SMALLEST_MOVE = 1e-4
# Nearest neighbours whose images are tried as the start.
MAX_STARTS = 20


@njit
def affinities(distances, first, last, perplexity, p):
    """Write Gaussian probabilities (k,) of the neighbours with a perplexity, equal if >= k."""
    k = last - first
    farthest = distances[last - 1]
    for j in range(k):
        p[j] = 1.0 / k
    if farthest == 0.0 or distances[first] == farthest or perplexity >= k:
        return
    nearest = distances[first] / farthest
    low, high = MIN_LOG_PRECISION, MAX_LOG_PRECISION
    for _ in range(BISECTIONS):
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
    """Return ``sum_j w_j``, w_j = 1 / (1 + |y - z_j|^2), over the images Z (n, d) except ``own``.

    From the field if y is on the grid, otherwise exactly.
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
    """Add ``push sum_j w_j^2 (y - z_j)`` over the images except ``own`` to the force (d,).

    That is minus half the gradient of `closeness`.
    """
    n, d = Z.shape
    if is_on_grid(corner, step, grid, y):
        slope = np.empty(2)
        field_at(corner, step, grid, y, slope)
        for a in range(2):
            force[a] -= push * slope[a] / 2
    elif d == 2:  # the usual case, in one pass
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
    """Return ``sum_j p_j log(1 + |y - z_j|^2)`` over the neighbours."""
    total = 0.0
    for j in range(first, last):
        squared = 0.0
        for a in range(y.size):
            squared += (y[a] - Z[indices[j], a]) ** 2
        total += p[j - first] * math.log1p(squared)
    return total


@njit
def closenesses(start, stop, Z, corner, step, grid, total):
    """Write the `closeness` (n,) of every image to all others."""
    for i in range(start, stop):
        total[i] = max(closeness(Z, Z[i], i, corner, step, grid), 0.0)


@njit
def solve_neighbor_loss(
    start, stop, Z, Y, indptr, indices, distances, deviations, own, crowd, perplexity, push, unit,
    corner, step, grid, coordinates,
):  # fmt: skip
    """Minimise ``sum_j p_j log(1 + |y - z_j|^2) + push sum_j w_j``, in units of the map.

    The start is the neighbour's image with the smallest loss. A step goes to the minimum of a
    parabola above the attraction, with the repulsion of this round. The start is returned if the
    loss did not fall.
    """
    d = Z.shape[1]
    for i in range(start, stop):
        first, last = indptr[i], indptr[i + 1]
        out = coordinates[i]
        if place_on_coincident(Y, indices, deviations, first, last, out):
            continue
        p = np.empty(last - first)
        affinities(distances, first, last, min(perplexity, (last - first) / 3), p)
        anchor, smallest = first, np.inf
        for j in range(first, min(first + MAX_STARTS, last)):
            row = indices[j]
            loss = crowd[row] + 1.0  # including the neighbour itself
            if own[i] >= 0:
                squared = 1.0
                for a in range(d):
                    squared += (Z[row, a] - Z[own[i], a]) ** 2
                loss -= 1.0 / squared
            loss = push * loss + attraction(Z, indices, first, last, p, Z[row])
            if loss < smallest:
                anchor, smallest = j, loss
        # From here on, positions are relative to that image.
        origin = Z[indices[anchor]]
        y = origin.copy()
        force = np.empty(d)
        previous = np.empty(d)
        for _ in range(MAX_ROUNDS):
            for a in range(d):
                force[a] = 0.0
                previous[a] = y[a]
            add_repulsion(Z, y, own[i], push, corner, step, grid, force)
            for _ in range(STEPS_PER_ROUND):
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
            squared_move = 0.0
            for a in range(d):
                squared_move += (y[a] - previous[a]) ** 2
            if not squared_move > SMALLEST_MOVE * SMALLEST_MOVE:
                break
        repulsion = closeness(Z, y, own[i], corner, step, grid)
        loss = attraction(Z, indices, first, last, p, y) + push * repulsion
        for a in range(d):
            out[a] = Y[indices[anchor], a]
            if loss < smallest:
                out[a] += unit * (y[a] - origin[a])
