"""Fitted placers that continue to place by the original points after others were learned.

What was fitted stays: constants, units, weights of parts. Local placers take learned points among
their neighbours. All-points models are functions of the original map, and learned coordinates are
their values: these would add nothing, so such models place by the original map alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from outsample.neighbors.neighborhoods import Neighborhoods, Search
from outsample.placers.weighting import power_weights
from outsample.points import Points
from outsample.records import Frames, Neighbors, Weights

if TYPE_CHECKING:
    from outsample.placers.protocol import Arrays, FittedPlacer


class SinglePlacerMixin:
    """A fitted placer that has no parts and keeps no frames of the points."""

    def weights_of_parts(
        self: Any, near: Neighborhoods
    ) -> Iterator[tuple[float, Neighbors, Weights]]:
        """Yield itself as the only part: weight 1, neighbours, and their weights."""
        yield 1.0, near.near, self.weights(near)

    def kept_frames(self) -> list[Frames]:
        """Return no frames."""
        return []

    def new_frames(self, near: Neighborhoods) -> list[Frames]:
        """Return no frames."""
        return []


class OriginalMapMixin(SinglePlacerMixin):
    """A fitted placer that learned points do not change."""

    n_jobs: int | None

    def regrow(
        self: Any, originals: Search, X: Points, Y: np.ndarray, frames: Iterator[Frames]
    ) -> FittedPlacer:
        """Return a placer that continues with the original points."""
        return FromOriginals(self, originals, self.n_jobs)


@dataclass(frozen=True, eq=False)
class FromOriginals(OriginalMapMixin):
    """A fitted placer that uses the original points only, by a search of its own."""

    fitted: FittedPlacer
    search: Search
    n_jobs: int | None

    @property
    def placer(self) -> Any:
        """The placer that was fitted."""
        return self.fitted.placer

    def place(
        self, Q: Points, near: Neighborhoods | None, weights: Weights | None = None
    ) -> np.ndarray:
        """Return coordinates (q, d) of queries, by the original map."""
        k = self.placer.n_neighbors
        return self.fitted.place(Q, None if k is None else self.search.around(Q, k))

    def leave_out(self, rows: np.ndarray, near: Neighborhoods | None) -> np.ndarray:
        """Return coordinates (s, d) of learned rows, which the original map does not contain."""
        assert near is not None
        return self.place(near.Q, near)

    def weights(self, near: Neighborhoods) -> Weights:
        """Return the weights of Eq. 4.3, for the scores."""
        return power_weights(near.near, 2.0, self.n_jobs)

    def arrays(self) -> Arrays:
        """Return everything that was fitted to the original map."""
        return self.fitted.arrays()
