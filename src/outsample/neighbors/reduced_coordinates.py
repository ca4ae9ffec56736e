"""Neighbourhoods of points with many columns, rotated to k coordinates for k neighbours.

The rotation preserves distances and planes, and solving in k instead of D coordinates is cheaper.
It pays because many candidate models are tried on the same neighbourhoods.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from outsample.records import Neighbors

# Relative ridges, tried in order until the inner products of every neighbourhood are positive
# definite: those of points on a line or in a plane are not.
PRODUCT_RIDGES = (1e-13, 1e-12, 1e-10)


class ReducedCoordinates(NamedTuple):
    """Neighbours of s queries, k each, as points X (s k, k) around them, with images Y (s k, d)."""

    X: np.ndarray
    Y: np.ndarray
    k: int

    def first(self, count: int) -> ReducedCoordinates:
        """Return the neighbourhoods of the first ``count`` queries."""
        end = count * self.k
        return ReducedCoordinates(self.X[:end], self.Y[:end], self.k)

    @property
    def Q(self) -> np.ndarray:
        """Return the queries (s, k), all at the origin."""
        return np.zeros((len(self.X) // self.k, self.k))

    def moved(self, near: Neighbors) -> Neighbors | None:
        """Return neighbours by their rows in ``X``; None if some are not in it."""
        counts = np.diff(near.indptr)
        if counts.max() > self.k:  # ties were added by another search
            return None
        starts = np.arange(len(counts)) * self.k
        rows = np.arange(near.indptr[-1]) + np.repeat(starts - near.indptr[:-1], counts)
        return near._replace(indices=rows)


def reduce_columns(
    distances: np.ndarray, Y: np.ndarray, near: Neighbors
) -> ReducedCoordinates | None:
    """Return rotated neighbourhoods from the distances (n, n) of all points; None if singular."""
    s = len(near.inside)
    rows = near.indices.reshape(s, -1)
    squares = near.distances.reshape(s, -1) ** 2
    products = distances[rows[:, :, None], rows[:, None, :]] ** 2
    products = (squares[:, :, None] + squares[:, None, :] - products) / 2
    k, sizes = rows.shape[1], squares.mean(axis=1, keepdims=True)
    for share in PRODUCT_RIDGES:
        products[:, np.arange(k), np.arange(k)] = squares + share * sizes
        try:
            X = np.linalg.cholesky(products)
        except np.linalg.LinAlgError:
            continue
        return ReducedCoordinates(X.reshape(s * k, k), Y[near.indices], k)
    return None
