"""Local placers: a weighting, a number of neighbours, an order and a loss."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from outsample.neighbors.neighborhoods import Neighborhoods, Search
from outsample.placers.least_squares import FittedWeighting
from outsample.placers.problem import WIDE_NEIGHBORS
from outsample.placers.protocol import Weighting
from outsample.points import Points
from outsample.records import Frames, Neighbors, Weights

if TYPE_CHECKING:
    from outsample.placers.problem import Problem


@dataclass(frozen=True)
class LocalPlacer:
    """Generalized least squares over the images of a point's neighbours (Eq. 2.8).

    Attributes
    ----------
    weighting : Weighting
        Weights of the neighbours.
    n_neighbors : int
        Number of neighbours; with a radius, the smallest number.
    order : int
        Degree of the local polynomial.
    loss : {"squared", "absolute"}
        Loss that is minimised.
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
        is_plain = self.order == 0 and self.loss == "squared"
        return self.weighting.smooth and is_plain and self.n_neighbors >= WIDE_NEIGHBORS

    def cost_microseconds(self, n: int, D: int) -> float:
        """Return the cost of the solve; absolute loss iterates, a polynomial needs a local PCA."""
        k = self.n_neighbors
        plane = 0.3 * min(k, D) ** 2 if self.order else 0.0
        median = 0.5 * k if self.loss == "absolute" else 0.0
        return self.weighting.cost_microseconds(k) + plane + median

    def fit(self, problem: Problem, sample: np.ndarray) -> FittedLocal:
        """Return the placer with the constants of its weighting."""
        return FittedLocal(self, self.weighting.fit(problem, sample, self), problem.X)


@dataclass(frozen=True, eq=False)
class FittedLocal:
    """A local placer with a fitted weighting."""

    placer: LocalPlacer
    weighting: FittedWeighting
    X: Points

    @property
    def curvature(self) -> float | None:
        """The paper's c, if the weighting has it."""
        return getattr(self.weighting, "curvature", None)

    def place(
        self, Q: Points, neighborhoods: Neighborhoods | None, weights: Weights | None = None
    ) -> np.ndarray:
        """Return coordinates (q, d) of queries."""
        assert neighborhoods is not None
        if weights is None:
            weights = self.weights(neighborhoods)
        return self.weighting.solve(self.placer, Q, neighborhoods, weights)

    def leave_out(self, rows: np.ndarray, neighborhoods: Neighborhoods | None) -> np.ndarray:
        """Return coordinates (s, d) of training rows, by neighbourhoods without themselves."""
        assert neighborhoods is not None
        weights, reduced = self.weights(neighborhoods), neighborhoods.reduced
        moved = None if reduced is None or weights.per_point else reduced.moved(neighborhoods.near)
        if reduced is None or moved is None:
            return self.weighting.solve(self.placer, neighborhoods.Q, neighborhoods, weights)
        weighting = replace(self.weighting, X=reduced.X, Y=reduced.Y)
        return weighting.solve(self.placer, reduced.Q, replace(neighborhoods, near=moved), weights)

    def weights(self, neighborhoods: Neighborhoods) -> Weights:
        """Return the weights of the neighbours."""
        return self.weighting.weights(neighborhoods)

    def weights_of_parts(
        self, neighborhoods: Neighborhoods
    ) -> Iterator[tuple[float, Neighbors, Weights]]:
        """Yield the placer as the only part: weight 1, neighbours, and their weights."""
        yield 1.0, neighborhoods.near, self.weights(neighborhoods)

    def regrow(
        self, originals: Search, X: Points, Y: np.ndarray, frames: Iterator[Frames]
    ) -> FittedLocal:
        """Return the placer with learned points among the neighbours."""
        return replace(self, X=X, weighting=self.weighting.regrow(X, Y, frames))

    def kept_frames(self) -> list[Frames]:
        """Return the frames that the weighting keeps."""
        return self.weighting.kept_frames()

    def new_frames(self, neighborhoods: Neighborhoods) -> list[Frames]:
        """Return frames of points to learn, if the weighting keeps frames."""
        return self.weighting.new_frames(neighborhoods)
