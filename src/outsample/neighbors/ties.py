"""Neighbours as far away as the last one: all of them count, or none would by its row number."""

from __future__ import annotations

import numpy as np

from outsample.neighbors.cuts import first_columns, first_counts, without_self
from outsample.neighbors.index import NeighborIndex
from outsample.points import Points
from outsample.records import Neighbors

# Distances that agree to this are equal: turning the points must not part them.
EQUAL = 1e-9
# So many times the number of neighbours, and so many more, at most; beyond, the index decides, by
# what the rows are: a point of a simplex has all others as neighbours.
MOST_TIMES, MOST_MORE = 3, 48


def with_ties(
    index: NeighborIndex, Q: Points, wide: Neighbors, k: int, held_out: np.ndarray | None = None
) -> tuple[Neighbors, np.ndarray]:
    """Find the k nearest and those as far as the last of them, and where the next begins (q,).

    From a search for at least one more, if there are so many; only queries with a tie there are
    searched again. ``held_out`` rows do not see themselves, -1 being nobody.
    """
    n, width = index.X.shape[0] - (held_out is not None), wide.indptr[1]
    if k >= width:
        return wide, np.full(len(wide.inside), np.inf)
    apart = wide.distances.reshape(-1, width)
    if not (apart[:, k] <= apart[:, k - 1] * (1 + EQUAL)).any():
        return first_columns(wide, k), apart[:, k].copy()
    counts = tied_sizes(wide, k)
    near, reach = first_counts(wide, counts), _next(wide, counts)
    again = np.flatnonzero((counts == width) & (width < n))
    if len(again):
        most = max(MOST_TIMES * k + MOST_MORE, width)
        found = index.nearest(Q[again], min(most + 2, index.X.shape[0]))
        if held_out is not None:
            found = without_self(found, held_out[again])
        counts = np.minimum(tied_sizes(found, k), most)
        near, reach[again] = _joined(near, first_counts(found, counts), again), _next(found, counts)
    return near._replace(inside=np.diff(near.indptr)), reach


def _next(near: Neighbors, counts: np.ndarray) -> np.ndarray:
    """Distance (q,) of the neighbour after the first ``counts``; infinite if there is none."""
    at = near.indptr[:-1] + counts
    beyond = near.distances[np.minimum(at, len(near.distances) - 1)]
    return np.where(at < near.indptr[1:], beyond, np.inf)


def tied_sizes(near: Neighbors, k: int) -> np.ndarray:
    """How many neighbours (q,) are no farther than the k-th."""
    last = near.distances[near.indptr[:-1] + np.minimum(k, np.diff(near.indptr)) - 1]
    within = near.distances <= np.repeat(last * (1 + EQUAL), np.diff(near.indptr))
    return np.add.reduceat(within, near.indptr[:-1], dtype=np.int64)


def _joined(near: Neighbors, wider: Neighbors, rows: np.ndarray) -> Neighbors:
    """Neighbourhoods with those of some rows replaced."""
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
