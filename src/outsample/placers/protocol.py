"""What a way of placing points is.

A `Placer` is the recipe: frozen, hashable, shown in ``selection_``. ``fit`` makes a
`FittedPlacer` of it, which places points. The race among candidates calls ``fit`` and
``leave_out`` and knows nothing else. A `Weighting` is the part of a local placer that says how
much each neighbour counts; fitted, it holds its own constants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from outsample.neighbors.neighborhoods import Neighborhoods
from outsample.points import Points
from outsample.records import Weights

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
    def wants_more(self) -> bool:
        """Whether doing best tells of a smooth map, for which more neighbours are better."""

    @property
    def is_dear(self) -> bool:
        """Whether it costs so much more than others that it has to be better by far."""

    def effort(self, n: int, D: int) -> float:
        """Rough microseconds to place one point, without the search, from the shape of X."""

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

    def effort(self, k: int) -> float:
        """Rough microseconds to solve for a constant with k neighbours."""

    def fit(self, problem: Problem, sample: np.ndarray, placer: Any) -> FittedWeighting:
        """Learn its constants for a local placer; a sample of rows is enough."""

    def family(self) -> Family:
        """Return what a user may mean by it."""


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


class Family(NamedTuple):
    """What a value of the parameter ``weighting`` stands for.

    ``weightings`` are used by local placers, ``over_all`` are placers over all training points.
    ``is_open`` tells that the settings are to be chosen, not given; ``given`` has all of them.
    """

    weightings: tuple[Weighting, ...] = ()
    over_all: tuple[Placer, ...] = ()
    is_open: bool = False
    given: Placer | None = None

