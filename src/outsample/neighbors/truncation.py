"""Truncated neighbourhoods: the nearest of each, the first of a batch, without the row itself."""

from __future__ import annotations

import numpy as np

from outsample.records import Neighbors


def first_columns(near: Neighbors, k: int) -> Neighbors:
    """Return the k nearest of neighbourhoods of equal size."""
    q = len(near.inside)
    indices = near.indices.reshape(q, -1)[:, :k]
    distances = near.distances.reshape(q, -1)[:, :k]
    return Neighbors(
        np.arange(q + 1) * k,
        np.ascontiguousarray(indices).ravel(),
        np.ascontiguousarray(distances).ravel(),
        np.full(q, k),
    )


def first_rows(near: Neighbors, q: int) -> Neighbors:
    """Return the neighbourhoods of the first q points."""
    end = near.indptr[q]
    return Neighbors(
        near.indptr[: q + 1], near.indices[:end], near.distances[:end], near.inside[:q]
    )


def first_counts(near: Neighbors, counts: np.ndarray) -> Neighbors:
    """Return the nearest ``counts`` (q,) of neighbourhoods of any size."""
    indptr = np.concatenate([[0], np.cumsum(counts)])
    taken = np.arange(indptr[-1]) + np.repeat(near.indptr[:-1] - indptr[:-1], counts)
    return Neighbors(indptr, near.indices[taken], near.distances[taken], near.inside)


def without_self(near: Neighbors, rows: np.ndarray) -> Neighbors:
    """Return neighbourhoods of training rows without the row itself.

    If duplicates displaced the row from its own neighbourhood, the last neighbour is removed
    instead, so that every neighbourhood loses one.
    """
    counts = np.diff(near.indptr)
    is_removed = near.indices == np.repeat(rows, counts)
    has_self = np.add.reduceat(is_removed, near.indptr[:-1]) > 0
    is_removed[near.indptr[1:][~has_self] - 1] = True
    return Neighbors(
        np.concatenate([[0], np.cumsum(counts - 1)]),
        near.indices[~is_removed],
        near.distances[~is_removed],
        np.maximum(near.inside - 1, 0),
    )
