"""Neighbourhoods of points with many columns, in as many coordinates as they have neighbours.

Turning them there changes no distance and no plane, and what is solved in them costs a k-th of the
columns. Where many placers are tried on the same neighbourhoods, that is paid back many times.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from outsample.records import Neighbors

# Squared lengths are widened by these shares until the products of every neighbourhood are
# positive definite: those of points on a line or in a plane are not.
WIDENED = (1e-13, 1e-12, 1e-10)


class FewColumns(NamedTuple):
    """Neighbours of s queries, k each, as points (s k, k) around them, with images (s k, d)."""

    X: np.ndarray
    Y: np.ndarray
    k: int

    def first(self, count: int) -> FewColumns:
        """Return those of the first queries."""
        end = count * self.k
        return FewColumns(self.X[:end], self.Y[:end], self.k)

    @property
    def Q(self) -> np.ndarray:
        """The queries (s, k): each is the origin."""
        return np.zeros((len(self.X) // self.k, self.k))

    def moved(self, near: Neighbors) -> Neighbors | None:
        """Return the nearest of these neighbours by their new numbers; None if there are others."""
        counts = np.diff(near.indptr)
        if counts.max() > self.k:  # some were searched again
            return None
        starts = np.arange(len(counts)) * self.k
        at = np.arange(near.indptr[-1]) + np.repeat(starts - near.indptr[:-1], counts)
        return near._replace(indices=at)


def few_columns(apart: np.ndarray, Y: np.ndarray, near: Neighbors) -> FewColumns | None:
    """Coordinates from the distances (n, n) of all points; None where rounding leaves none."""
    s = len(near.inside)
    rows = near.indices.reshape(s, -1)
    squares = near.distances.reshape(s, -1) ** 2
    products = apart[rows[:, :, None], rows[:, None, :]] ** 2
    products = (squares[:, :, None] + squares[:, None, :] - products) / 2
    k, sizes = rows.shape[1], squares.mean(axis=1, keepdims=True)
    for share in WIDENED:
        products[:, np.arange(k), np.arange(k)] = squares + share * sizes
        try:
            X = np.linalg.cholesky(products)
        except np.linalg.LinAlgError:
            continue
        return FewColumns(X.reshape(s * k, k), Y[near.indices], k)
    return None
