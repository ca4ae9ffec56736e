"""Parts of neighbourhoods: the nearest of each, the first of a batch, all but the row itself."""

from __future__ import annotations

import numpy as np

from outsample.records import Neighbors


def first_columns(near: Neighbors, k: int) -> Neighbors:
    """Return the k nearest of neighbourhoods that all have one size."""
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
    """Take each training row out of its own neighbourhood.

    A row crowded out of it by others that coincide with it gives up its last neighbour instead,
    so that every neighbourhood loses one.
    """
    counts = np.diff(near.indptr)
    own = near.indices == np.repeat(rows, counts)
    found = np.add.reduceat(own, near.indptr[:-1]) > 0
    own[near.indptr[1:][~found] - 1] = True
    return Neighbors(
        np.concatenate([[0], np.cumsum(counts - 1)]),
        near.indices[~own],
        near.distances[~own],
        np.maximum(near.inside - 1, 0),
    )
