"""Blends: a point is placed at the weighted mean of the positions by several models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from outsample.neighbors.neighborhoods import Neighborhoods, Search
from outsample.placers.protocol import FittedPlacer, ModelFamily, Placer
from outsample.points import Points
from outsample.records import Frames, Neighbors, Weights

if TYPE_CHECKING:
    from outsample.placers.problem import Problem


@dataclass(frozen=True)
class Blend:
    """Places a point at ``sum_j w_j f_j(x)``, f_j the parts and w_j their shares.

    `PCAExtension` selects a blend where it has a lower priced leave-one-out error than any single
    model (`stacking`); its ``weighting_`` is then a blend, which can be given to another one.

    Attributes
    ----------
    parts : tuple of LocalPlacer, GaussianProcess or Diffusion
        The heaviest first.
    shares : tuple of float
        Above 0, of sum one.

    Examples
    --------
    >>> import numpy as np
    >>> from outsample import Blend, InverseDistance, PCAExtension
    >>> from outsample.placers.local import LocalPlacer
    >>> steep = LocalPlacer(InverseDistance(4.0), 3, order=0, loss="squared", tangent_dim=1)
    >>> flat = LocalPlacer(InverseDistance(2.0), 10, order=0, loss="squared", tangent_dim=1)
    >>> blend = Blend((steep, flat), (0.75, 0.25))
    >>> X = np.linspace(0, 1, 30)[:, None]
    >>> PCAExtension(weighting=blend).fit(X, X**2).n_neighbors_
    10
    """

    parts: tuple[Placer, ...]
    shares: tuple[float, ...]

    def __str__(self) -> str:
        terms = zip(self.shares, self.parts, strict=True)
        return " + ".join(f"{share:.3g} x ({part})" for share, part in terms)

    def check(self) -> None:
        """Raise ValueError for shares that do not sum to one, and for parts outside their range."""
        fits = len(self.parts) == len(self.shares) > 0
        if not fits or min(self.shares) <= 0 or abs(sum(self.shares) - 1) > 1e-9:
            raise ValueError(
                f"weighting.shares is {self.shares}, but must be a number above 0 for each of the "
                f"{len(self.parts)} parts, of sum 1."
            )
        for part in self.parts:
            part.weighting.check()

    def family(self) -> ModelFamily:
        """Return the family of this blend alone."""
        return ModelFamily(fixed=self)

    @property
    def n_neighbors(self) -> int | None:
        """Neighbours of the widest part; the other parts use the nearest of them."""
        return max((part.n_neighbors or 0 for part in self.parts), default=0) or None

    @property
    def weighting(self) -> Blend:
        """Itself: there is no single weighting."""
        return self

    @property
    def order(self) -> int:
        """Degree of the local polynomial of the heaviest part."""
        return self.parts[0].order

    @property
    def loss(self) -> str:
        """Loss of the heaviest part."""
        return self.parts[0].loss

    @property
    def tangent_dim(self) -> int:
        """Dimension of the tangent coordinates of the heaviest part."""
        return self.parts[0].tangent_dim

    @property
    def uses_all_points(self) -> bool:
        """True if a part depends on more than the neighbours of the query."""
        return any(part.uses_all_points for part in self.parts)

    @property
    def prefers_wide_neighborhoods(self) -> bool:
        """True if winning suggests a smooth map."""
        return self.parts[0].prefers_wide_neighborhoods

    def cost_microseconds(self, n: int, D: int) -> float:
        """Return the sum over the parts."""
        return sum(part.cost_microseconds(n, D) for part in self.parts)

    def fit(self, problem: Problem, sample: np.ndarray) -> FittedBlend:
        """Return the blend with every part fitted."""
        return FittedBlend(self, tuple(part.fit(problem, sample) for part in self.parts))


@dataclass(frozen=True, eq=False)
class FittedBlend:
    """Fitted parts of a blend; one search is enough for all of them."""

    placer: Blend
    parts: tuple[FittedPlacer, ...]

    def place(
        self, Q: Points, neighborhoods: Neighborhoods | None, weights: Weights | None = None
    ) -> np.ndarray:
        """Return the mean (q, d) of the positions by the parts."""
        parts = self.around_parts(neighborhoods)
        return self.mean([part.place(Q, own) for part, own in parts])

    def leave_out(self, rows: np.ndarray, neighborhoods: Neighborhoods | None) -> np.ndarray:
        """Return the mean (s, d) of the positions of training rows placed by all other rows."""
        parts = self.around_parts(neighborhoods)
        return self.mean([part.leave_out(rows, own) for part, own in parts])

    def weights(self, neighborhoods: Neighborhoods) -> Weights:
        """Return the weights of all neighbours by the heaviest part, for the scores."""
        return self.parts[0].weights(neighborhoods)

    @property
    def curvature(self) -> float | None:
        """The paper's c of the first part that has one."""
        return next((part.curvature for part in self.parts if part.curvature is not None), None)

    def around_parts(
        self, neighborhoods: Neighborhoods | None
    ) -> Iterator[tuple[FittedPlacer, Neighborhoods | None]]:
        """Yield the parts with the neighbourhoods of their own size."""
        widest = self.placer.n_neighbors
        for part in self.parts:
            k, own = part.placer.n_neighbors, neighborhoods
            if neighborhoods is not None and k is not None and k != widest:
                own = neighborhoods.narrowed(k)
            yield part, own

    def mean(self, positions: list[np.ndarray]) -> np.ndarray:
        """Return ``f_1 + sum_j w_j (f_j - f_1)``: exactly f_1 where all parts agree."""
        first = positions[0]
        mean = first.copy()
        for share, position in zip(self.placer.shares[1:], positions[1:], strict=True):
            mean += share * position - share * first
        return mean

    def weights_of_parts(
        self, neighborhoods: Neighborhoods
    ) -> Iterator[tuple[float, Neighbors, Weights]]:
        """Yield the weight of each part, its neighbours, and their weights."""
        parts = zip(self.placer.shares, self.around_parts(neighborhoods), strict=True)
        for share, (part, own) in parts:
            assert own is not None
            yield share, own.near, part.weights(own)

    def regrow(
        self, originals: Search, X: Points, Y: np.ndarray, frames: Iterator[Frames]
    ) -> FittedBlend:
        """Return the blend of the parts over points X with images Y."""
        parts = tuple(part.regrow(originals, X, Y, frames) for part in self.parts)
        return replace(self, parts=parts)

    def kept_frames(self) -> list[Frames]:
        """Return the frames that parts keep, one record for each of these parts."""
        return [frames for part in self.parts for frames in part.kept_frames()]

    def new_frames(self, neighborhoods: Neighborhoods) -> list[Frames]:
        """Return frames of points to learn, one record for each part that keeps frames."""
        parts = self.around_parts(neighborhoods)
        return [frames for part, own in parts if own for frames in part.new_frames(own)]
