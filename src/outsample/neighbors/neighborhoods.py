"""What a placement looks at: the neighbourhoods of queries, or of training rows held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from outsample.neighbors.index import NeighborIndex
from outsample.points import Points
from outsample.records import Neighbors


class Around(NamedTuple):
    """Neighbourhoods of a batch of points.

    Attributes
    ----------
    near : Neighbors
        The neighbours whose images count.
    reach : ndarray of shape (q,)
        Where the next neighbour begins: the distance at which a taper ends.
    framed : Neighbors
        The neighbours whose images give the covariance of Eq. 4.4.
    lengths : ndarray of shape (q,)
        eps1 of that covariance.
    """

    near: Neighbors
    reach: np.ndarray
    framed: Neighbors
    lengths: np.ndarray


@dataclass(frozen=True)
class Search:
    """How neighbourhoods are made.

    Attributes
    ----------
    index : NeighborIndex
        Of the training rows.
    radius : float or None
        eps of Eq. 4.1; None for a number of neighbours.
    tangent_radius : float or None
        eps1 of Eq. 4.4; None for the neighbours themselves.
    least_framed : int
        A tangent ball with fewer training points takes so many nearest ones.
    """

    index: NeighborIndex
    radius: float | None
    tangent_radius: float | None
    least_framed: int

    def around(self, Q: Points, k: int, held_out: np.ndarray | None = None) -> Around:
        """Find the neighbourhoods of queries.

        Parameters
        ----------
        Q : ndarray of shape (q, D)
            Queries.
        k : int
            Number of neighbours, or the least number in a ball.
        held_out : ndarray of shape (q,), optional
            Queries that are these training rows, and must not see themselves.

        Returns
        -------
        Around
        """
        if self.radius is None:
            wide = self.widest(Q, k + 1, held_out)
            return self.narrowed(Q, wide, k, held_out)
        near = self._ball(Q, self.radius, k, held_out)
        reach = np.maximum(self.radius, 1.5 * near.distances[near.indptr[1:] - 1])
        reach = np.where(near.inside >= np.diff(near.indptr), self.radius, reach)
        return self._with_frames(Q, near, reach, self.radius, held_out)

    def widest(self, Q: Points, k: int, held_out: np.ndarray | None = None) -> Neighbors:
        """Find up to k neighbours, from which `narrowed` makes smaller neighbourhoods.

        Parameters
        ----------
        Q : ndarray of shape (q, D)
            Queries.
        k : int
            How many, cut to what there is.
        held_out : ndarray of shape (q,), optional
            Queries that are these training rows.

        Returns
        -------
        Neighbors
        """
        n = self.index.X.shape[0]
        if held_out is None:
            return self.index.nearest(Q, min(k, n))
        return without_self(self.index.nearest(Q, min(k + 1, n)), held_out)

    def narrowed(
        self, Q: Points, wide: Neighbors, k: int, held_out: np.ndarray | None = None
    ) -> Around:
        """Cut the k nearest out of a wider search, so that many models share one.

        Parameters
        ----------
        Q : ndarray of shape (q, D)
            Queries.
        wide : Neighbors
            From `widest`, at least k + 1 neighbours a query where there are so many.
        k : int
            How many to keep.
        held_out : ndarray of shape (q,), optional
            Queries that are these training rows.

        Returns
        -------
        Around
        """
        q, width = len(wide.inside), len(wide.indices) // max(1, len(wide.inside))
        keep = min(k, width)
        indices = np.ascontiguousarray(wide.indices.reshape(q, width)[:, :keep])
        distances = wide.distances.reshape(q, width)
        reach = distances[:, k].copy() if k < width else np.full(q, np.inf)
        near = Neighbors(
            np.arange(q + 1) * keep,
            indices.ravel(),
            np.ascontiguousarray(distances[:, :keep]).ravel(),
            np.full(q, keep),
        )
        return self._with_frames(Q, near, reach, None, held_out)

    def _with_frames(
        self,
        Q: Points,
        near: Neighbors,
        reach: np.ndarray,
        radius: float | None,
        held_out: np.ndarray | None,
    ) -> Around:
        framed = near
        if self.tangent_radius is not None:
            radius = self.tangent_radius
            framed = self._ball(Q, radius, self.least_framed, held_out)
        lengths = np.maximum(framed.distances[framed.indptr[1:] - 1], radius or 0.0)
        return Around(near, reach, framed, lengths)

    def _ball(
        self, Q: Points, radius: float, at_least: int, held_out: np.ndarray | None
    ) -> Neighbors:
        n = self.index.X.shape[0]
        if held_out is None:
            return self.index.ball(Q, radius, min(at_least, n))
        return without_self(self.index.ball(Q, radius, min(at_least + 1, n)), held_out)


def without_self(near: Neighbors, rows: np.ndarray) -> Neighbors:
    """Take each training row out of its own neighbourhood.

    A row crowded out of it by others that coincide with it gives up its last neighbour instead,
    so that every neighbourhood loses one.

    Parameters
    ----------
    near : Neighbors
        Neighbourhoods of training rows.
    rows : ndarray of shape (q,)
        The rows.

    Returns
    -------
    Neighbors
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
