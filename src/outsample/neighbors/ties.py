"""Ties of the last neighbour, all of which count, so that row numbers do not matter."""

from __future__ import annotations

import numpy as np

from outsample.neighbors.index import NeighborIndex
from outsample.neighbors.truncation import first_columns, first_counts, without_self
from outsample.points import Points
from outsample.records import Neighbors

# Distances with a smaller relative difference are ties; rotating the points must not change them.
TIE_TOLERANCE = 1e-9
# At most 3 k + 48 neighbours; beyond, the row number decides: all points of a simplex are ties.
MAX_TIE_FACTOR, MAX_EXTRA_TIES = 3, 48


def with_ties(
    index: NeighborIndex, Q: Points, wide: Neighbors, k: int, held_out: np.ndarray | None = None
) -> tuple[Neighbors, np.ndarray]:
    """Return the k nearest neighbours and their ties, and the distance (q,) of the next neighbour.

    ``wide`` must have at least one more neighbour, if there is one; only queries with a tie at its
    end are searched again. ``held_out`` rows are not their own neighbours; -1 means none.
    """
    n, width = index.X.shape[0] - (held_out is not None), wide.indptr[1]
    if k >= width:
        return wide, np.full(len(wide.inside), np.inf)
    distances = wide.distances.reshape(-1, width)
    if not (distances[:, k] <= distances[:, k - 1] * (1 + TIE_TOLERANCE)).any():
        return first_columns(wide, k), distances[:, k].copy()
    counts = tied_sizes(wide, k)
    near, reach = first_counts(wide, counts), _next_distances(wide, counts)
    again = np.flatnonzero((counts == width) & (width < n))
    if len(again):
        max_size = max(MAX_TIE_FACTOR * k + MAX_EXTRA_TIES, width)
        wider = index.nearest(Q[again], min(max_size + 2, index.X.shape[0]))
        if held_out is not None:
            wider = without_self(wider, held_out[again])
        counts = np.minimum(tied_sizes(wider, k), max_size)
        near = _joined(near, first_counts(wider, counts), again)
        reach[again] = _next_distances(wider, counts)
    return near._replace(inside=np.diff(near.indptr)), reach


def _next_distances(near: Neighbors, counts: np.ndarray) -> np.ndarray:
    """Return the distance (q,) of the neighbour after the first ``counts``, or infinity."""
    position = near.indptr[:-1] + counts
    distances = near.distances[np.minimum(position, len(near.distances) - 1)]
    return np.where(position < near.indptr[1:], distances, np.inf)


def tied_sizes(near: Neighbors, k: int) -> np.ndarray:
    """Return the number of neighbours (q,) that are not farther than the k-th."""
    last = near.distances[near.indptr[:-1] + np.minimum(k, np.diff(near.indptr)) - 1]
    within = near.distances <= np.repeat(last * (1 + TIE_TOLERANCE), np.diff(near.indptr))
    return np.add.reduceat(within, near.indptr[:-1], dtype=np.int64)


def _joined(near: Neighbors, wider: Neighbors, rows: np.ndarray) -> Neighbors:
    """Return neighbourhoods with those of ``rows`` replaced by wider ones."""
    counts = np.diff(near.indptr)
    counts[rows] = np.diff(wider.indptr)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    replaced = np.zeros(len(counts), dtype=bool)
    replaced[rows] = True
    new = np.repeat(replaced, counts)
    old = ~np.repeat(replaced, np.diff(near.indptr))
    indices, distances = np.empty(indptr[-1], dtype=np.int64), np.empty(indptr[-1])
    indices[new], indices[~new] = wider.indices, near.indices[old]
    distances[new], distances[~new] = wider.distances, near.distances[old]
    return Neighbors(indptr, indices, distances, counts)
