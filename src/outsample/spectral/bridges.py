"""Edges that connect the components of a neighbour graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from outsample.points import Points
from outsample.spectral.affinity import distances
from outsample.spectral.scales import even_rows

# Points per round whose distances to other components are computed, and rows per chunk.
SEARCHED_POINTS = 4096
BRIDGE_CHUNK_ROWS = 256


def parts_of(graph: Any) -> np.ndarray:
    """Return the number of the connected component of each point (n,)."""
    return np.asarray(connected_components(graph, directed=False)[1])


def bridges(X: Points, parts: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
    """Return pairs (b, 2) of points that connect all components.

    Each component except the largest is joined to the nearest point of another, in rounds, until
    one is left (O. Boruvka, 1926). Only a sample of the points of a large component is searched.

    >>> bridges(np.array([[0.0], [1.0], [5.0], [6.0]]), np.array([0, 0, 1, 1])).tolist()
    [[2, 1]]
    """
    edges = np.empty((0, 2), dtype=np.int64)
    n = len(parts)
    while parts.max() > 0:
        edges = np.concatenate([edges, _shortest_exits(X, parts, n_jobs)])
        joined = sparse.coo_matrix((np.ones(len(edges)), edges.T), shape=(n, n))
        to_first = np.arange(n), _first_members(parts)
        inside = sparse.coo_matrix((np.ones(n), to_first), shape=(n, n))
        parts = parts_of(joined + inside)
    return edges


def _first_members(parts: np.ndarray) -> np.ndarray:
    """Return the first point of the component of each point (n,)."""
    return np.unique(parts, return_index=True)[1][parts]


def _shortest_exits(X: Points, parts: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """Return the shortest edge out of each component but the largest, from sampled points."""
    sizes = np.bincount(parts)
    n_sampled = max(SEARCHED_POINTS // len(sizes), 1)
    largest = int(sizes.argmax())
    members = np.split(np.argsort(parts, kind="stable"), np.cumsum(sizes)[:-1])
    rows = np.concatenate(
        [own[even_rows(len(own), n_sampled)] for part, own in enumerate(members) if part != largest]
    )
    lengths, nearest = np.empty(len(rows)), np.empty(len(rows), dtype=np.int64)
    for start in range(0, len(rows), BRIDGE_CHUNK_ROWS):
        chunk = rows[start : start + BRIDGE_CHUNK_ROWS]
        pair_distances = distances(X, X[chunk], n_jobs)
        pair_distances[parts[chunk][:, None] == parts] = np.inf
        nearest[start : start + BRIDGE_CHUNK_ROWS] = pair_distances.argmin(axis=1)
        lengths[start : start + BRIDGE_CHUNK_ROWS] = pair_distances.min(axis=1)
    order = np.lexsort((lengths, parts[rows]))
    best = order[np.unique(parts[rows][order], return_index=True)[1]]
    return np.column_stack([rows[best], nearest[best]])
