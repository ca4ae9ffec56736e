"""Edges that join the separate parts of a graph of neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from outsample.kernel.affinity import distances
from outsample.kernel.scales import even_rows
from outsample.points import Points

# A round of joining looks outwards from so many points, spread over the smaller parts.
LOOKOUTS = 4096
BLOCK = 256


def parts_of(graph: Any) -> np.ndarray:
    """Tell which part of a graph each point is in, (n,)."""
    return np.asarray(connected_components(graph, directed=False)[1])


def bridges(X: Points, parts: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
    """Pairs (b, 2) of points that join all parts: each part to the nearest point of another.

    In rounds, until one part is left (O. Boruvka, 1926). The largest part waits for the others,
    and large parts look out from some of their points only.

    >>> bridges(np.array([[0.0], [1.0], [5.0], [6.0]]), np.array([0, 0, 1, 1])).tolist()
    [[2, 1]]
    """
    found = np.empty((0, 2), dtype=np.int64)
    n = len(parts)
    while parts.max() > 0:
        found = np.concatenate([found, _outwards(X, parts, n_jobs)])
        joined = sparse.coo_matrix((np.ones(len(found)), found.T), shape=(n, n))
        inside = sparse.coo_matrix((np.ones(n), (np.arange(n), _firsts(parts))), shape=(n, n))
        parts = parts_of(joined + inside)
    return found


def _firsts(parts: np.ndarray) -> np.ndarray:
    """Name the first point of the part that each point is in, (n,)."""
    return np.unique(parts, return_index=True)[1][parts]


def _outwards(X: Points, parts: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """From every part but the largest, the shortest way out that its lookouts see."""
    sizes = np.bincount(parts)
    each = max(LOOKOUTS // len(sizes), 1)
    largest = int(sizes.argmax())
    members = np.split(np.argsort(parts, kind="stable"), np.cumsum(sizes)[:-1])
    rows = np.concatenate(
        [own[even_rows(len(own), each)] for part, own in enumerate(members) if part != largest]
    )
    way, nearest = np.empty(len(rows)), np.empty(len(rows), dtype=np.int64)
    for at in range(0, len(rows), BLOCK):
        block = rows[at : at + BLOCK]
        apart = distances(X, X[block], n_jobs)
        apart[parts[block][:, None] == parts] = np.inf
        nearest[at : at + BLOCK] = apart.argmin(axis=1)
        way[at : at + BLOCK] = apart.min(axis=1)
    order = np.lexsort((way, parts[rows]))
    best = order[np.unique(parts[rows][order], return_index=True)[1]]
    return np.column_stack([rows[best], nearest[best]])
