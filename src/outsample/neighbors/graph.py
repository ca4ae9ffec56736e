"""The graph of neighbours: which points are near one another, and how near."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from outsample.neighbors.index import NeighborIndex
from outsample.points import Points

# A search for neighbours at the same distance as the last one is widened so many times.
WIDENINGS = 4


def neighbor_distances(index: NeighborIndex, k: int) -> tuple[Any, np.ndarray]:
    """Distances (n, n) of every row to its k nearest others and to those as near as the last one.

    Sparse, with a 0 for the row itself; and the distance (n,) to the k-th other row.
    """
    X: Points = index.X
    n = X.shape[0]
    reach = np.empty(n)
    rows, columns, apart = [], [], []
    left = np.arange(n)
    width = min(k + 2, n)
    for widening in range(WIDENINGS + 1):
        near = index.nearest(X[left], width)
        found = near.distances.reshape(-1, width)
        reach[left] = found[:, k]
        settled = (found[:, -1] > found[:, k]) | (width == n) | (widening == WIDENINGS)
        inside = (found <= found[:, [k]]) & settled[:, None]
        rows.append(np.repeat(left, inside.sum(axis=1)))
        columns.append(near.indices.reshape(found.shape)[inside])
        apart.append(found[inside])
        left = left[~settled]
        if not len(left):
            break
        width = min(2 * width, n)
    data = np.concatenate(apart), (np.concatenate(rows), np.concatenate(columns))
    return sparse.csr_matrix(data, shape=(n, n)), reach
