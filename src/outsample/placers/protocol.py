"""Interfaces of placers and weightings.

A `Placer` is an unfitted model: frozen, hashable, shown in ``selection_``. Its ``fit`` returns a
`FittedPlacer`, which places points. Model selection calls ``fit``, ``leave_out`` and
``cost_microseconds``, and uses nothing else. A `Weighting` is the part of a local placer that
determines the weights of the neighbours; its ``fit`` returns a `least_squares.FittedWeighting`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from outsample.neighbors.neighborhoods import Neighborhoods, Search
from outsample.points import Points
from outsample.records import Frames, Neighbors, Weights

if TYPE_CHECKING:
    from outsample.placers.least_squares import FittedWeighting
    from outsample.placers.problem import Problem


class Placer(Protocol):
    """A model that places points into a map."""

    @property
    def n_neighbors(self) -> int | None:
        """Number of neighbours; None if all training points are used at once."""

    @property
    def weighting(self) -> Any:
        """Value of the parameter ``weighting`` of `PCAExtension` that gives this placer."""

    @property
    def order(self) -> int:
        """Degree of the local polynomial."""

    @property
    def loss(self) -> str:
        """Loss that is minimised: "squared" or "absolute"."""

    @property
    def tangent_dim(self) -> int:
        """Dimension of the tangent coordinates."""

    @property
    def uses_all_points(self) -> bool:
        """True if a position depends on more than the neighbours of the query."""

    @property
    def prefers_wide_neighborhoods(self) -> bool:
        """True if winning suggests a smooth map, where larger neighbourhoods help."""

    def cost_microseconds(self, n: int, D: int) -> float:
        """Return estimated microseconds to place one row, without the search; X is n x D."""

    def fit(self, problem: Any, sample: np.ndarray) -> FittedPlacer:
        """Fit to a `Problem`; ``sample`` are the training rows that will be left out."""


class FittedPlacer(Protocol):
    """A placer that is fitted to a map."""

    @property
    def placer(self) -> Placer:
        """The placer that was fitted."""

    @property
    def curvature(self) -> float | None:
        """The paper's c; None if no weight depends on it."""

    def place(
        self, Q: Points, neighborhoods: Neighborhoods | None, weights: Weights | None = None
    ) -> np.ndarray:
        """Return coordinates (q, d) of queries; ``weights`` may be passed if already computed."""

    def leave_out(self, rows: np.ndarray, neighborhoods: Neighborhoods | None) -> np.ndarray:
        """Return coordinates (s, d) of training rows placed by all other rows."""

    def weights(self, neighborhoods: Neighborhoods) -> Weights:
        """Return weights of the neighbours; those of Eq. 4.3 if the model has no own weights."""

    def weights_of_parts(
        self, neighborhoods: Neighborhoods
    ) -> Iterator[tuple[float, Neighbors, Weights]]:
        """Yield the weight of each part of a blend, its neighbours, and their weights."""

    def regrow(
        self, originals: Search, X: Points, Y: np.ndarray, frames: Iterator[Frames]
    ) -> FittedPlacer:
        """Return the placer over points X and images Y, the original ones first.

        ``originals`` searches the original points; ``frames`` yields the frames of all points for
        each part that keeps them.
        """

    def kept_frames(self) -> list[Frames]:
        """Return the frames of the points, one record for each part that keeps them."""

    def new_frames(self, neighborhoods: Neighborhoods) -> list[Frames]:
        """Return frames of points to learn, from the images of their neighbours."""


class Weighting(Protocol):
    """Weights of the neighbours as a function of distances and images."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of neighbours that model selection tries with order 0."""

    @property
    def smooth(self) -> bool:
        """True if it suits smooth maps, where larger neighbourhoods help."""

    def check(self) -> None:
        """Raise ValueError for a parameter outside its range."""

    def cost_microseconds(self, k: int) -> float:
        """Return estimated microseconds to solve for a constant with k neighbours."""

    def fit(self, problem: Problem, sample: np.ndarray, placer: Any) -> FittedWeighting:
        """Return the weighting with its constants, estimated on a sample of rows."""

    def family(self) -> ModelFamily:
        """Return the models that it allows."""


class ModelFamily(NamedTuple):
    """The models that a value of the parameter ``weighting`` allows.

    ``weightings`` are used by local placers; ``all_points`` are models of all training points.
    ``is_open`` is True if settings are to be selected; ``fixed`` is a model with all settings.
    """

    weightings: tuple[Weighting, ...] = ()
    all_points: tuple[Placer, ...] = ()
    is_open: bool = False
    fixed: Placer | None = None
