"""The closeness of a place to all images of a plane map, from coefficients of splines on a grid."""

from __future__ import annotations

import numpy as np

from outsample._kernels.compiling import njit

# Nodes that a place sees along each axis: splines of the fifth degree.
NODES = 6


@njit
def spline_values(fraction, values, slopes):
    """Values (6,) of the splines around a place between two nodes, and their slopes."""
    values[0] = 1.0
    for order in range(2, NODES + 1):
        # The last two before the values of degree 5: their differences are the slopes.
        if order == NODES:
            for j in range(NODES):
                above = values[j] if j < NODES - 1 else 0.0
                below = values[j - 1] if j > 0 else 0.0
                slopes[NODES - 1 - j] = above - below
        for j in range(order - 1, -1, -1):
            at = fraction + j
            above = at * values[j] if j < order - 1 else 0.0
            below = (order - at) * values[j - 1] if j > 0 else 0.0
            values[j] = (above + below) / (order - 1)
    for j in range(NODES // 2):
        other = NODES - 1 - j
        values[j], values[other] = values[other], values[j]


@njit
def spread(Z, corner, step, mass):
    """Add the mass 1 of every image Z (n, 2) to the nodes (a, b) around it."""
    across, along, slopes = np.empty(NODES), np.empty(NODES), np.empty(NODES)
    for i in range(Z.shape[0]):
        u, v = (Z[i, 0] - corner[0]) / step, (Z[i, 1] - corner[1]) / step
        row, column = int(u), int(v)
        spline_values(u - row, across, slopes)
        spline_values(v - column, along, slopes)
        for s in range(NODES):
            for t in range(NODES):
                mass[row + s - 2, column + t - 2] += across[s] * along[t]


@njit
def is_on_grid(corner, step, grid, y):
    """Tell whether all nodes around a place y (2,) are on the grid (a, b); no grid has none."""
    if grid.size == 0:  # nor need there be two coordinates
        return False
    for a in range(2):
        at = (y[a] - corner[a]) / step
        if not 2.0 <= at < grid.shape[a] - 3.0:  # also what is not a number
            return False
    return True


@njit
def field_at(corner, step, grid, y, slope):
    """Value of the field at a place on the grid; its slope (2,) is written."""
    across, along = np.empty(NODES), np.empty(NODES)
    rises, climbs = np.empty(NODES), np.empty(NODES)
    u, v = (y[0] - corner[0]) / step, (y[1] - corner[1]) / step
    row, column = int(u), int(v)
    spline_values(u - row, across, rises)
    spline_values(v - column, along, climbs)
    total = 0.0
    slope[0] = slope[1] = 0.0
    for s in range(NODES):
        value, climb = 0.0, 0.0
        for t in range(NODES):
            node = grid[row + s - 2, column + t - 2]
            value += along[t] * node
            climb += climbs[t] * node
        total += across[s] * value
        slope[0] += rises[s] * value / step
        slope[1] += across[s] * climb / step
    return total
