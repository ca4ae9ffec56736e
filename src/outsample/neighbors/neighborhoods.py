"""What a placement looks at: the neighbourhoods of queries, or of training rows held out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from outsample.neighbors.index import NeighborIndex
from outsample.points import Points
from outsample.records import Neighbors


@dataclass(eq=False)
class Neighborhoods:
    """Neighbourhoods of a batch of points.

    ``near`` are the neighbours whose images count, ``reach`` (q,) is where the next one begins:
    the distance at which a taper ends. ``wide`` holds as many nearest as were asked for beside.
    """

    near: Neighbors
    reach: np.ndarray
    wide: Neighbors
    search: Search
    Q: Points
    held_out: np.ndarray | None

    @cached_property
    def framed(self) -> tuple[Neighbors, np.ndarray]:
        """Neighbours whose images give the covariance of Eq. 4.4, and its eps1 (q,).

        With a tangent radius they are searched when first asked for: most weightings never do.
        """
        framed, radius = self.near, self.search.radius
        if self.search.tangent_radius is not None:
            radius = self.search.tangent_radius
            framed = self.search.ball(self.Q, radius, self.search.least_framed, self.held_out)
        return framed, np.maximum(framed.distances[framed.indptr[1:] - 1], radius or 0.0)


@dataclass(frozen=True)
class Search:
    """How neighbourhoods are made.

    ``radius`` is eps of Eq. 4.1 (None for a number of neighbours), ``tangent_radius`` eps1 of
    Eq. 4.4 (None for the neighbours themselves); a tangent ball with fewer than ``least_framed``
    training points takes so many nearest ones.
    """

    index: NeighborIndex
    radius: float | None
    tangent_radius: float | None
    least_framed: int

    def around(
        self, Q: Points, k: int, held_out: np.ndarray | None = None, at_least: int = 0
    ) -> Neighborhoods:
        """Neighbourhoods of k points, or of the ball if it holds more, and ``at_least`` nearest.

        Queries that are the training rows ``held_out`` do not see themselves. One search.
        """
        if self.radius is None:
            wide = self.nearest(Q, max(k + 1, at_least), held_out)
            return self.narrowed(Q, wide, k, held_out)
        wide = self.ball(Q, self.radius, max(k, at_least), held_out)
        near = wide
        if at_least > k:
            n = self.index.X.shape[0] - (held_out is not None)
            near = _firsts(wide, np.maximum(wide.inside, min(k, n)))
            wide = _firsts(wide, np.full(len(wide.inside), min(at_least, n)))
        reach = np.maximum(self.radius, 1.5 * near.distances[near.indptr[1:] - 1])
        reach = np.where(near.inside >= np.diff(near.indptr), self.radius, reach)
        return Neighborhoods(near, reach, wide, self, Q, held_out)

    def nearest(self, Q: Points, k: int, held_out: np.ndarray | None = None) -> Neighbors:
        """Return the k nearest, or all there are, from which `narrowed` makes smaller ones."""
        n = self.index.X.shape[0]
        if held_out is None:
            return self.index.nearest(Q, min(k, n))
        return without_self(self.index.nearest(Q, min(k + 1, n)), held_out)

    def narrowed(
        self, Q: Points, wide: Neighbors, k: int, held_out: np.ndarray | None = None
    ) -> Neighborhoods:
        """Cut the k nearest out of a wider search, so that many placers share one."""
        q, width = len(wide.inside), len(wide.indices) // max(1, len(wide.inside))
        distances = wide.distances.reshape(q, width)
        reach = distances[:, k].copy() if k < width else np.full(q, np.inf)
        near = first_columns(wide, min(k, width))
        return Neighborhoods(near, reach, wide, self, Q, held_out)

    def ball(
        self, Q: Points, radius: float, at_least: int, held_out: np.ndarray | None
    ) -> Neighbors:
        """Training rows within the radius, no fewer than so many."""
        n = self.index.X.shape[0]
        if held_out is None:
            return self.index.ball(Q, radius, min(at_least, n))
        return without_self(self.index.ball(Q, radius, min(at_least + 1, n)), held_out)


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


def _firsts(near: Neighbors, counts: np.ndarray) -> Neighbors:
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
