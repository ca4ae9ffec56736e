"""Placing a point by its neighbours: a weighting, a number of neighbours, an order and a loss."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from outsample.neighbors.neighborhoods import Neighborhoods, Search
from outsample.placers.growth import SinglePlacerMixin
from outsample.placers.problem import WIDE
from outsample.placers.protocol import Arrays, FittedWeighting, Weighting
from outsample.points import Points
from outsample.records import Frames, Weights

if TYPE_CHECKING:
    from outsample.placers.problem import Problem


@dataclass(frozen=True)
class LocalPlacer:
    """Generalized least squares over the images of a point's neighbours (Eq. 2.8).

    Attributes
    ----------
    weighting : Weighting
        How much each neighbour counts.
    n_neighbors : int
        How many, or the least number in a ball.
    order : int
        Degree of the local polynomial.
    loss : {"squared", "absolute"}
        What is summed.
    tangent_dim : int
        Dimension of the tangent coordinates and of ``"split_tangent"``.
    """

    weighting: Weighting
    n_neighbors: int
    order: int
    loss: str
    tangent_dim: int

    uses_all_points: ClassVar[bool] = False

    def __str__(self) -> str:
        sizes = f"{self.n_neighbors} neighbours, order {self.order}"
        return f"{self.weighting}, {sizes}, {self.loss} loss"

    @property
    def prefers_wide_neighborhoods(self) -> bool:
        """True if winning suggests a smooth map, where larger neighbourhoods help."""
        plain = self.order == 0 and self.loss == "squared"
        return self.weighting.smooth and plain and self.n_neighbors >= WIDE

    def cost_microseconds(self, n: int, D: int) -> float:
        """Solve, repeatedly for absolute loss; a polynomial needs a local PCA."""
        k = self.n_neighbors
        plane = 0.3 * min(k, D) ** 2 if self.order else 0.0
        median = 0.5 * k if self.loss == "absolute" else 0.0
        return self.weighting.cost_microseconds(k) + plane + median

    def fit(self, problem: Problem, sample: np.ndarray) -> FittedLocal:
        """Learn the constants of the weighting."""
        return FittedLocal(self, self.weighting.fit(problem, sample, self), problem.X)


@dataclass(frozen=True, eq=False)
class FittedLocal(SinglePlacerMixin):
    """A local placer with a fitted weighting."""

    placer: LocalPlacer
    weighting: FittedWeighting
    X: Points

    def place(
        self, Q: Points, near: Neighborhoods | None, weights: Weights | None = None
    ) -> np.ndarray:
        """Coordinates (q, d) of queries."""
        assert near is not None
        if weights is None:
            weights = self.weights(near)
        return self.weighting.solve(self.placer, Q, near, weights)

    def leave_out(self, rows: np.ndarray, near: Neighborhoods | None) -> np.ndarray:
        """Coordinates (s, d) of training rows, by neighbourhoods without themselves."""
        assert near is not None
        weights, reduced = self.weights(near), near.reduced
        moved = None if reduced is None or weights.per_point else reduced.moved(near.near)
        if reduced is None or moved is None:
            return self.weighting.solve(self.placer, near.Q, near, weights)
        among: Any = replace(self.weighting, X=reduced.X, Y=reduced.Y)  # type: ignore[type-var]
        return among.solve(self.placer, reduced.Q, replace(near, near=moved), weights)

    def weights(self, near: Neighborhoods) -> Weights:
        """Weights of the neighbours."""
        return self.weighting.weights(near)

    def arrays(self) -> Arrays:
        """Return the constants of the weighting."""
        return self.weighting.arrays()

    def regrow(
        self, originals: Search, X: Points, Y: np.ndarray, frames: Iterator[Frames]
    ) -> FittedLocal:
        """Return the placer with learned points among the neighbours."""
        return replace(self, X=X, weighting=self.weighting.regrow(X, Y, frames))

    def kept_frames(self) -> list[Frames]:
        """Return the frames that the weighting keeps."""
        return self.weighting.kept_frames()

    def new_frames(self, near: Neighborhoods) -> list[Frames]:
        """Return frames of points to learn, if the weighting keeps frames."""
        return self.weighting.new_frames(near)
