"""Field of the closeness of a position to all images of a plane map, by splines on a grid."""

from __future__ import annotations

import numpy as np

from outsample._compiled.compiling import njit

# Nodes per axis that contribute to a value: splines of degree 5.
SPLINE_NODES = 6


@njit
def spline_values(fraction, values, slopes):
    """Write the values (6,) and slopes of the splines around a position between two nodes."""
    values[0] = 1.0
    for order in range(2, SPLINE_NODES + 1):
        # Differences of the values of degree 4 are the slopes of those of degree 5.
        if order == SPLINE_NODES:
            for j in range(SPLINE_NODES):
                above = values[j] if j < SPLINE_NODES - 1 else 0.0
                below = values[j - 1] if j > 0 else 0.0
                slopes[SPLINE_NODES - 1 - j] = above - below
        for j in range(order - 1, -1, -1):
            offset = fraction + j
            above = offset * values[j] if j < order - 1 else 0.0
            below = (order - offset) * values[j - 1] if j > 0 else 0.0
            values[j] = (above + below) / (order - 1)
    for j in range(SPLINE_NODES // 2):
        opposite = SPLINE_NODES - 1 - j
        values[j], values[opposite] = values[opposite], values[j]


@njit
def spread(Z, corner, step, mass):
    """Add the mass 1 of every image Z (n, 2) to the nodes (a, b) around it."""
    across, along, slopes = np.empty(SPLINE_NODES), np.empty(SPLINE_NODES), np.empty(SPLINE_NODES)
    for i in range(Z.shape[0]):
        u, v = (Z[i, 0] - corner[0]) / step, (Z[i, 1] - corner[1]) / step
        row, column = int(u), int(v)
        spline_values(u - row, across, slopes)
        spline_values(v - column, along, slopes)
        for s in range(SPLINE_NODES):
            for t in range(SPLINE_NODES):
                mass[row + s - 2, column + t - 2] += across[s] * along[t]


@njit
def is_on_grid(corner, step, grid, y):
    """Return whether all nodes around a position y (2,) are on the grid (a, b)."""
    if grid.size == 0:  # no grid: the map may not have two coordinates
        return False
    for a in range(2):
        position = (y[a] - corner[a]) / step
        if not 2.0 <= position < grid.shape[a] - 3.0:  # also rejects NaN
            return False
    return True


@njit
def field_at(corner, step, grid, y, slope):
    """Return the field at a position on the grid, and write its gradient (2,) to ``slope``."""
    across, along = np.empty(SPLINE_NODES), np.empty(SPLINE_NODES)
    across_slopes, along_slopes = np.empty(SPLINE_NODES), np.empty(SPLINE_NODES)
    u, v = (y[0] - corner[0]) / step, (y[1] - corner[1]) / step
    row, column = int(u), int(v)
    spline_values(u - row, across, across_slopes)
    spline_values(v - column, along, along_slopes)
    total = 0.0
    slope[0] = slope[1] = 0.0
    for s in range(SPLINE_NODES):
        value, along_slope = 0.0, 0.0
        for t in range(SPLINE_NODES):
            node = grid[row + s - 2, column + t - 2]
            value += along[t] * node
            along_slope += along_slopes[t] * node
        total += across[s] * value
        slope[0] += across_slopes[s] * value / step
        slope[1] += across[s] * along_slope / step
    return total
