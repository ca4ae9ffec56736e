"""What a placement looks at: the neighbourhoods of queries, or of training rows held out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from outsample.neighbors.cuts import first_counts, without_self
from outsample.neighbors.few_columns import FewColumns
from outsample.neighbors.index import NeighborIndex
from outsample.neighbors.ties import tied_sizes, with_ties
from outsample.points import Points
from outsample.records import Neighbors

CHUNK_ROWS = 4096
# Neighbours held at once, and queries whose balls tell how many rows that is.
CHUNK_NEIGHBORS = 2**20
COUNTED_BALLS = 16


@dataclass(eq=False)
class Neighborhoods:
    """Neighbourhoods of a batch of points.

    ``near`` are the neighbours whose images count, ``reach`` (q,) is where the next one begins:
    the distance at which a taper ends. ``wide`` holds as many nearest as were asked for beside;
    ``few`` has these in fewer columns, where that pays.
    """

    near: Neighbors
    reach: np.ndarray
    wide: Neighbors
    search: Search
    Q: Points
    held_out: np.ndarray | None
    few: FewColumns | None = None

    def narrowed(self, k: int) -> Neighborhoods:
        """Return smaller neighbourhoods of the same points."""
        near = self.search.narrowed(self.Q, self.wide, k, self.held_out)
        near.few = self.few
        return near

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

    def closest(self, k: int) -> Neighbors:
        """Return the k nearest and those as far as the last, whatever number places the points.

        Of a search that found more than k, or all. Of balls, which may hold no other tie, one more.
        """
        if self.search.radius is None:
            return with_ties(self.search.index, self.Q, self.wide, k, self.held_out)[0]
        return first_counts(self.wide, np.minimum(tied_sizes(self.wide, k), k + 1))


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
            near = first_counts(wide, np.maximum(wide.inside, min(k, n)))
            wide = first_counts(wide, np.full(len(wide.inside), min(at_least, n)))
        reach = np.maximum(self.radius, 1.5 * near.distances[near.indptr[1:] - 1])
        reach = np.where(near.inside >= np.diff(near.indptr), self.radius, reach)
        return Neighborhoods(near, reach, wide, self, Q, held_out)

    def rows_at_once(self, Q: Points) -> int:
        """How many queries make so many neighbours that memory stays bounded.

        A ball may hold every training point; a few queries tell how many it does.
        """
        if self.radius is None or not Q.shape[0]:
            return max(Q.shape[0], 1)
        some = np.linspace(0, Q.shape[0] - 1, min(Q.shape[0], COUNTED_BALLS)).astype(int)
        largest = int(self.index.ball_sizes(Q[some], self.radius).max())
        return max(1, CHUNK_NEIGHBORS // max(largest, 1))

    def batches(self, Q: Points) -> Iterator[Points]:
        """Yield queries in pieces that bound the memory of a call."""
        size = min(CHUNK_ROWS, self.rows_at_once(Q))
        for at in range(0, Q.shape[0], size):
            yield Q[at : at + size]

    def nearest(self, Q: Points, k: int, held_out: np.ndarray | None = None) -> Neighbors:
        """Return the k nearest, or all there are, from which `narrowed` makes smaller ones."""
        n = self.index.X.shape[0]
        if held_out is None:
            return self.index.nearest(Q, min(k, n))
        return without_self(self.index.nearest(Q, min(k + 1, n)), held_out)

    def narrowed(
        self, Q: Points, wide: Neighbors, k: int, held_out: np.ndarray | None = None
    ) -> Neighborhoods:
        """Cut the k nearest, and those as far as the last, out of a wider search.

        So many placers share one search; only queries with ties beyond it are searched again.
        """
        near, reach = with_ties(self.index, Q, wide, k, held_out)
        return Neighborhoods(near, reach, wide, self, Q, held_out)

    def ball(
        self, Q: Points, radius: float, at_least: int, held_out: np.ndarray | None
    ) -> Neighbors:
        """Training rows within the radius, no fewer than so many."""
        n = self.index.X.shape[0]
        if held_out is None:
            return self.index.ball(Q, radius, min(at_least, n))
        return without_self(self.index.ball(Q, radius, min(at_least + 1, n)), held_out)
