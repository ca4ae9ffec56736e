"""What a way of placing points is.

A `Placer` is the recipe: frozen, hashable, shown in ``selection_``. ``fit`` makes a
`FittedPlacer` of it, which places points. Model selection calls ``fit``, ``leave_out`` and
``cost_microseconds``, and uses nothing else. A `Weighting` is the part of a local placer that
determines the weights of the neighbours; fitted, it holds its own constants.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from outsample.neighbors.neighborhoods import Neighborhoods, Search
from outsample.points import Points
from outsample.records import Frames, Neighbors, Weights

if TYPE_CHECKING:
    from outsample.placers.problem import Problem

Arrays = dict[str, np.ndarray]


class Placer(Protocol):
    """A way of placing points."""

    @property
    def n_neighbors(self) -> int | None:
        """How many neighbours; None takes all training points at once."""

    @property
    def weighting(self) -> Any:
        """What `PCAExtension` takes as ``weighting`` to get this placer."""

    @property
    def order(self) -> int:
        """Degree of the local polynomial."""

    @property
    def loss(self) -> str:
        """What is summed: "squared" or "absolute"."""

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
        """Learn from a `Problem`; ``sample`` are the training rows that will be left out."""


class FittedPlacer(Protocol):
    """A placer that has learnt a map."""

    @property
    def placer(self) -> Placer:
        """What was fitted."""

    def place(
        self, Q: Points, near: Neighborhoods | None, weights: Weights | None = None
    ) -> np.ndarray:
        """Coordinates (q, d) of queries; ``weights`` are its own of ``near``, if known."""

    def leave_out(self, rows: np.ndarray, near: Neighborhoods | None) -> np.ndarray:
        """Coordinates (s, d) of training rows placed by the others."""

    def weights(self, near: Neighborhoods) -> Weights:
        """Weights of the neighbours; Eq. 4.3 where the placer has none of its own."""

    def arrays(self) -> Arrays:
        """All it has learnt beyond X and Y, by name."""

    def weights_of_parts(self, near: Neighborhoods) -> Iterator[tuple[float, Neighbors, Weights]]:
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

    def new_frames(self, near: Neighborhoods) -> list[Frames]:
        """Return frames of points to learn: those of the neighbours that placed them."""


class Weighting(Protocol):
    """How much each neighbour counts."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Neighbourhoods worth trying with a constant (order 0)."""

    @property
    def smooth(self) -> bool:
        """Whether it is made for smooth maps, and gains from many neighbours."""

    def check(self) -> None:
        """Refuse parameters outside their range."""

    def cost_microseconds(self, k: int) -> float:
        """Return estimated microseconds to solve for a constant with k neighbours."""

    def fit(self, problem: Problem, sample: np.ndarray, placer: Any) -> FittedWeighting:
        """Learn its constants for a local placer; a sample of rows is enough."""

    def family(self) -> ModelFamily:
        """Return the models that it allows."""


class FittedWeighting(Protocol):
    """A weighting with its constants."""

    def weights(self, near: Neighborhoods) -> Weights:
        """Weights of the neighbours."""

    def solve(
        self, placer: Any, Q: Points, near: Neighborhoods, weights: Weights
    ) -> np.ndarray:
        """Coordinates (q, d) by the order and loss of the placer."""

    def arrays(self) -> Arrays:
        """Its constants, by name."""

    def regrow(self, X: Points, Y: np.ndarray, frames: Iterator[Frames]) -> FittedWeighting:
        """Return the weighting over points X and images Y; see `FittedPlacer.regrow`."""

    def kept_frames(self) -> list[Frames]:
        """Return the frames of the points if it keeps them, as a list of one."""

    def new_frames(self, near: Neighborhoods) -> list[Frames]:
        """Return frames of points to learn, if it keeps frames."""


class ModelFamily(NamedTuple):
    """The models that a value of the parameter ``weighting`` allows.

    ``weightings`` are used by local placers; ``all_points`` are models of all training points.
    ``is_open`` is True if settings are to be selected; ``fixed`` is a model with all settings.
    """

    weightings: tuple[Weighting, ...] = ()
    all_points: tuple[Placer, ...] = ()
    is_open: bool = False
    fixed: Placer | None = None

