"""Sparse graph of the distances between neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from outsample.neighbors.index import NeighborIndex
from outsample.points import Points

# A search for ties of the last neighbour is widened this many times, at most.
MAX_WIDENINGS = 4


def neighbor_distances(index: NeighborIndex, k: int) -> tuple[Any, np.ndarray]:
    """Return sparse distances (n, n) of every row to its k nearest others, ties included.

    The distance to the row itself is an explicit 0. The second array is the distance (n,) to the
    k-th other row.
    """
    X: Points = index.X
    n = X.shape[0]
    reach = np.empty(n)
    rows, columns, values = [], [], []
    open_rows = np.arange(n)
    width = min(k + 2, n)
    for widening in range(MAX_WIDENINGS + 1):
        near = index.nearest(X[open_rows], width)
        distances = near.distances.reshape(-1, width)
        reach[open_rows] = distances[:, k]
        is_last = width == n or widening == MAX_WIDENINGS
        is_settled = (distances[:, -1] > distances[:, k]) | is_last
        is_neighbor = (distances <= distances[:, [k]]) & is_settled[:, None]
        rows.append(np.repeat(open_rows, is_neighbor.sum(axis=1)))
        columns.append(near.indices.reshape(distances.shape)[is_neighbor])
        values.append(distances[is_neighbor])
        open_rows = open_rows[~is_settled]
        if not len(open_rows):
            break
        width = min(2 * width, n)
    data = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
    return sparse.csr_matrix(data, shape=(n, n)), reach
