"""Neighbourhoods of queries, or of training rows held out, that placements are computed from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from outsample.chunks import MAX_CHUNK_ROWS, chunks, map_chunks
from outsample.neighbors.index import NeighborIndex
from outsample.neighbors.reduced_coordinates import ReducedCoordinates
from outsample.neighbors.ties import tied_sizes, with_ties
from outsample.neighbors.truncation import first_counts, without_self
from outsample.points import Points, float64_rows, in_metric
from outsample.records import Neighbors

# Neighbours per chunk, and sampled queries whose ball sizes determine its number of rows.
MAX_CHUNK_NEIGHBORS = 2**20
SAMPLED_BALLS = 16


@dataclass(eq=False)
class Neighborhoods:
    """Neighbourhoods of a batch of points.

    ``near`` are the neighbours whose images count; ``reach`` (q,) is the distance of the next
    neighbour, at which a taper ends. ``wide`` holds the nearest neighbours of the wider search;
    ``reduced`` holds them in fewer columns, if that is faster.
    """

    near: Neighbors
    reach: np.ndarray
    wide: Neighbors
    search: Search
    Q: Points
    held_out: np.ndarray | None
    reduced: ReducedCoordinates | None = None

    def narrowed(self, k: int) -> Neighborhoods:
        """Return smaller neighbourhoods of the same points."""
        near = self.search.narrowed(self.Q, self.wide, k, self.held_out)
        near.reduced = self.reduced
        return near

    @cached_property
    def framed(self) -> tuple[Neighbors, np.ndarray]:
        """Return the neighbours whose images give the covariance of Eq. 4.4, and its eps1 (q,).

        With a tangent radius they are searched at first use: most weightings do not need them.
        """
        framed, radius = self.near, self.search.radius
        if self.search.tangent_radius is not None:
            radius = self.search.tangent_radius
            framed = self.search.ball(self.Q, radius, self.search.least_framed, self.held_out)
        return framed, np.maximum(framed.distances[framed.indptr[1:] - 1], radius or 0.0)

    def closest(self, k: int) -> Neighbors:
        """Return the k nearest neighbours and their ties, whatever number places the points.

        The wider search must have more than k neighbours, or all. Balls may not contain all ties,
        so at most one is added.
        """
        if self.search.radius is None:
            return with_ties(self.search.index, self.Q, self.wide, k, self.held_out)[0]
        return first_counts(self.wide, np.minimum(tied_sizes(self.wide, k), k + 1))


@dataclass(frozen=True)
class Search:
    """Parameters of neighbourhoods.

    ``radius`` is eps of Eq. 4.1 (None for a number of neighbours), ``tangent_radius`` eps1 of
    Eq. 4.4 (None for the neighbours themselves); a tangent ball with fewer than ``least_framed``
    training points is replaced by that many nearest points.
    """

    index: NeighborIndex
    radius: float | None
    tangent_radius: float | None
    least_framed: int

    def around(
        self, Q: Points, k: int, held_out: np.ndarray | None = None, at_least: int = 0
    ) -> Neighborhoods:
        """Return neighbourhoods of k points, or of the ball if it holds more.

        The wider search has the ``at_least`` nearest points. Queries that are the training rows
        ``held_out`` are not their own neighbours. There is one search.
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

    def max_rows(self, Q: Points, metric: str = "euclidean") -> int:
        """Return the number of queries that bounds the memory of their neighbours.

        A ball may contain every training point; the ball sizes of a sample of queries are counted.
        """
        if self.radius is None or not Q.shape[0]:
            return max(Q.shape[0], 1)
        rows = np.linspace(0, Q.shape[0] - 1, min(Q.shape[0], SAMPLED_BALLS)).astype(int)
        sample = in_metric(float64_rows(Q[rows]), metric)
        largest = int(self.index.ball_sizes(sample, self.radius).max())
        return max(1, MAX_CHUNK_NEIGHBORS // max(largest, 1))

    def chunks(self, Q: Points, metric: str = "euclidean") -> Iterator[Points]:
        """Yield queries of any real type as float64 chunks of bounded memory, in the metric."""
        max_rows = min(MAX_CHUNK_ROWS, self.max_rows(Q, metric))
        return (in_metric(rows, metric) for rows in chunks(Q, max_rows))

    def map_chunks(
        self,
        answer: Callable[[Points], Sequence[np.ndarray]],
        Q: Points,
        metric: str = "euclidean",
    ) -> list[np.ndarray]:
        """Return the arrays of q rows that ``answer`` computes for `chunks` of queries."""
        max_rows = min(MAX_CHUNK_ROWS, self.max_rows(Q, metric))
        return map_chunks(lambda rows: answer(in_metric(rows, metric)), Q, max_rows)

    def nearest(self, Q: Points, k: int, held_out: np.ndarray | None = None) -> Neighbors:
        """Return the k nearest training rows, or all, as input of `narrowed`."""
        n = self.index.X.shape[0]
        if held_out is None:
            return self.index.nearest(Q, min(k, n))
        return without_self(self.index.nearest(Q, min(k + 1, n)), held_out)

    def narrowed(
        self, Q: Points, wide: Neighbors, k: int, held_out: np.ndarray | None = None
    ) -> Neighborhoods:
        """Return the k nearest neighbours and their ties from a wider search.

        So several placers share one search; only queries with ties beyond it are searched again.
        """
        near, reach = with_ties(self.index, Q, wide, k, held_out)
        return Neighborhoods(near, reach, wide, self, Q, held_out)

    def ball(
        self, Q: Points, radius: float, at_least: int, held_out: np.ndarray | None
    ) -> Neighbors:
        """Return the training rows within the radius, or the ``at_least`` nearest rows."""
        n = self.index.X.shape[0]
        if held_out is None:
            return self.index.ball(Q, radius, min(at_least, n))
        return without_self(self.index.ball(Q, radius, min(at_least + 1, n)), held_out)
