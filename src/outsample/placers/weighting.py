"""Weightings by distance alone: the same in every direction of the map."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from outsample._compiled import weights as kernels
from outsample._parallel import over_rows
from outsample._validation import check_number
from outsample.neighbors.neighborhoods import Neighborhoods
from outsample.placers.least_squares import LeastSquares
from outsample.placers.protocol import Arrays, ModelFamily
from outsample.records import Neighbors, Weights

if TYPE_CHECKING:
    from outsample.placers.problem import Problem

NO_AXES = np.empty((0, 0, 0))
PLAIN_SIZES = (5, 10, 15, 20, 30)


class IndependentErrors:
    """What weightings share whose errors of different neighbours are independent."""

    sizes: ClassVar[tuple[int, ...]] = PLAIN_SIZES
    smooth: ClassVar[bool] = False

    def check(self) -> None:
        """Nothing to refuse."""

    def cost_microseconds(self, k: int) -> float:
        """One pass over the neighbours."""
        return 0.03 * k

    def family(self) -> ModelFamily:
        """Return itself, for local placers."""
        return ModelFamily((self,))  # type: ignore[arg-type]


@dataclass(frozen=True)
class InverseDistance(IndependentErrors):
    """Weighting ``w_j = r_j^-power I``: ``"distance"`` is power 2, the paper's normal one is 4.

    Attributes
    ----------
    power : float
        How steeply the weight falls; above 0.

    Examples
    --------
    >>> from outsample import InverseDistance, PCAExtension
    >>> steep = PCAExtension(weighting=InverseDistance(6), order=0, loss="squared")
    """

    power: float = 2.0

    def check(self) -> None:
        """Refuse a power outside its range."""
        check_number("weighting.power", self.power, 0, 1000, open_below=True)

    def fit(self, problem: Problem, sample: np.ndarray, placer: Any) -> FittedPower:
        """There is nothing to learn."""
        return FittedPower(problem.X, problem.Y, problem.n_jobs, self.power)


@dataclass(frozen=True)
class GaussianDistance(IndependentErrors):
    """Weighting ``w_j = r_j^-2 exp(-(r_j^2 - r_1^2) / l^2) I``, r_1 that of the nearest neighbour.

    Steep where the neighbours are far away, gentle where they are near: for torn maps. The nearest
    neighbour has the weight of Eq. 4.3.

    Attributes
    ----------
    length : float
        ``l``, in units of the typical distance to the 15th neighbour; above 0.

    Examples
    --------
    >>> from outsample import GaussianDistance, PCAExtension
    >>> torn = PCAExtension(weighting=GaussianDistance(0.35), order=0, loss="absolute")
    """

    length: float = 0.35

    def check(self) -> None:
        """Refuse a length outside its range."""
        check_number("weighting.length", self.length, 0, np.inf, open_below=True)

    def fit(self, problem: Problem, sample: np.ndarray, placer: Any) -> FittedGaussian:
        """Learn the length in the units of X."""
        length = self.length * problem.unit
        return FittedGaussian(problem.X, problem.Y, problem.n_jobs, length)


@dataclass(frozen=True)
class FunctionOfDistance(IndependentErrors):
    """Weighting ``w_j = f(r_j) I`` by a decreasing function (remark below Eq. 4.2)."""

    function: Callable[[np.ndarray], np.ndarray]

    def fit(self, problem: Problem, sample: np.ndarray, placer: Any) -> FittedFunction:
        """There is nothing to learn."""
        return FittedFunction(problem.X, problem.Y, problem.n_jobs, self.function)


@dataclass(frozen=True, eq=False)
class FittedPower(LeastSquares):
    """``w_j = r_j^-power I``; power 2 is Eq. 4.2, 4.3."""

    power: float

    def weights(self, near: Neighborhoods) -> Weights:
        """Weights of the neighbours."""
        return power_weights(near.near, self.power, self.n_jobs)

    def arrays(self) -> Arrays:
        """Nothing was learnt."""
        return {}


@dataclass(frozen=True, eq=False)
class FittedGaussian(LeastSquares):
    """``w_j = r_j^-2 exp(-(r_j^2 - r_1^2) / l^2) I``, l in the units of X."""

    length: float

    def weights(self, near: Neighborhoods) -> Weights:
        """Weights of the neighbours."""
        found = near.near
        deviations, exponent = empty_weights(found, 1)
        over_rows(
            kernels.gaussian_deviations, len(exponent), self.n_jobs, found.indptr, found.distances,
            self.length, deviations, exponent,
        )  # fmt: skip
        return Weights(deviations, exponent, NO_AXES, False)

    def arrays(self) -> Arrays:
        """Return the length."""
        return {"length": np.array(self.length)}


@dataclass(frozen=True, eq=False)
class FittedFunction(LeastSquares):
    """``w_j = f(r_j) I``.

    An infinite weight means that the neighbour decides alone; where every weight of a
    neighbourhood is 0, the nearest neighbour decides.
    """

    function: Callable[[np.ndarray], np.ndarray]

    def weights(self, near: Neighborhoods) -> Weights:
        """Weights of the neighbours, after a look at what the function returned."""
        distances = near.near.distances
        with np.errstate(divide="ignore", over="ignore"):
            values = np.asarray(self.function(distances.copy()), dtype=np.float64)
            if values.shape != distances.shape:
                raise ValueError(
                    f"weighting returned shape {values.shape} for distances of shape "
                    f"{distances.shape}; it must return one weight a distance."
                )
            wrong = ~(values >= 0)
            if wrong.any():
                at = int(np.argmax(wrong))
                raise ValueError(
                    f"weighting returned {values[at]} at distance {distances[at]}; "
                    "weights must be 0 or more."
                )
            deviations = 1.0 / np.sqrt(values)
        return isotropic_weights(near.near, deviations, 1.0, self.n_jobs)

    def arrays(self) -> Arrays:
        """Nothing was learnt."""
        return {}


def power_weights(near: Neighbors, power: float, n_jobs: int | None = None) -> Weights:
    """``w_j = r_j^-power I``."""
    return isotropic_weights(near, near.distances, power / 2, n_jobs)


def empty_weights(near: Neighbors, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Room for deviations (m, width), and exponents (q,) of 0."""
    return np.empty((len(near.indices), width)), np.zeros(len(near.inside), dtype=np.int64)


def isotropic_weights(
    near: Neighbors, deviations: np.ndarray, power: float = 1.0, n_jobs: int | None = None
) -> Weights:
    """``w_j = s_j^(-2 power) I`` from deviations s (m,); 0 coincides with the query."""
    relative, exponent = empty_weights(near, 1)
    over_rows(
        kernels.isotropic_deviations, len(exponent), n_jobs, near.indptr, deviations, power,
        relative, exponent,
    )  # fmt: skip
    return Weights(relative, exponent, NO_AXES, False)
