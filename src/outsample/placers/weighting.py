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
from outsample.placers.protocol import ModelFamily
from outsample.records import Neighbors, Weights

if TYPE_CHECKING:
    from outsample.placers.problem import Problem

NO_AXES = np.empty((0, 0, 0))
PLAIN_SIZES = (5, 10, 15, 20, 30)


class IndependentErrors:
    """Base of weightings with independent errors of the neighbours."""

    sizes: ClassVar[tuple[int, ...]] = PLAIN_SIZES
    smooth: ClassVar[bool] = False

    def check(self) -> None:
        """Accept any parameters."""

    def cost_microseconds(self, k: int) -> float:
        """Return the cost of one pass over the neighbours."""
        return 0.03 * k

    def family(self) -> ModelFamily:
        """Return the local placers with this weighting."""
        return ModelFamily((self,))  # type: ignore[arg-type]


@dataclass(frozen=True)
class InverseDistance(IndependentErrors):
    """Weighting ``w_j = r_j^-power I``: ``"distance"`` is power 2, the paper's normal one is 4.

    Attributes
    ----------
    power : float
        Power of the distance; above 0.

    Examples
    --------
    >>> from outsample import InverseDistance, PCAExtension
    >>> steep = PCAExtension(weighting=InverseDistance(6), order=0, loss="squared")
    """

    power: float = 2.0

    def check(self) -> None:
        """Raise ValueError for a power outside its range."""
        check_number("weighting.power", self.power, 0, 1000, open_below=True)

    def fit(self, problem: Problem, sample: np.ndarray, placer: Any) -> FittedPower:
        """Return the weighting; it has no constants to estimate."""
        return FittedPower(problem.X, problem.Y, problem.n_jobs, self.power)


@dataclass(frozen=True)
class GaussianDistance(IndependentErrors):
    """Weighting ``w_j = r_j^-2 exp(-(r_j^2 - r_1^2) / l^2) I``, r_1 that of the nearest neighbour.

    The weights fall steeply where the neighbours are far away and gently where they are close,
    which suits torn maps. The nearest neighbour has the weight of Eq. 4.3.

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
        """Raise ValueError for a length outside its range."""
        check_number("weighting.length", self.length, 0, np.inf, open_below=True)

    def fit(self, problem: Problem, sample: np.ndarray, placer: Any) -> FittedGaussian:
        """Return the weighting with its length in the units of X."""
        length = self.length * problem.unit
        return FittedGaussian(problem.X, problem.Y, problem.n_jobs, length)


@dataclass(frozen=True)
class FunctionOfDistance(IndependentErrors):
    """Weighting ``w_j = f(r_j) I`` by a decreasing function (remark below Eq. 4.2)."""

    function: Callable[[np.ndarray], np.ndarray]

    def fit(self, problem: Problem, sample: np.ndarray, placer: Any) -> FittedFunction:
        """Return the weighting; it has no constants to estimate."""
        return FittedFunction(problem.X, problem.Y, problem.n_jobs, self.function)


@dataclass(frozen=True, eq=False)
class FittedPower(LeastSquares):
    """``w_j = r_j^-power I``; power 2 is Eq. 4.2, 4.3."""

    power: float

    def weights(self, neighborhoods: Neighborhoods) -> Weights:
        """Return the weights of the neighbours."""
        return power_weights(neighborhoods.near, self.power, self.n_jobs)


@dataclass(frozen=True, eq=False)
class FittedGaussian(LeastSquares):
    """``w_j = r_j^-2 exp(-(r_j^2 - r_1^2) / l^2) I``, l in the units of X."""

    length: float

    def weights(self, neighborhoods: Neighborhoods) -> Weights:
        """Return the weights of the neighbours."""
        neighbors = neighborhoods.near
        deviations, exponent = empty_weights(neighbors, 1)
        over_rows(
            kernels.gaussian_deviations, len(exponent), self.n_jobs, neighbors.indptr,
            neighbors.distances, self.length, deviations, exponent,
        )  # fmt: skip
        return Weights(deviations, exponent, NO_AXES, False)


@dataclass(frozen=True, eq=False)
class FittedFunction(LeastSquares):
    """``w_j = f(r_j) I``.

    A neighbour with infinite weight determines the position alone; where every weight of a
    neighbourhood is 0, the nearest neighbour does.
    """

    function: Callable[[np.ndarray], np.ndarray]

    def weights(self, neighborhoods: Neighborhoods) -> Weights:
        """Return the weights of the neighbours; raise ValueError for invalid values."""
        distances = neighborhoods.near.distances
        with np.errstate(divide="ignore", over="ignore"):
            values = np.asarray(self.function(distances.copy()), dtype=np.float64)
            if values.shape != distances.shape:
                raise ValueError(
                    f"weighting returned shape {values.shape} for distances of shape "
                    f"{distances.shape}; it must return one weight per distance."
                )
            is_invalid = ~(values >= 0)
            if is_invalid.any():
                at = int(np.argmax(is_invalid))
                raise ValueError(
                    f"weighting returned {values[at]} at distance {distances[at]}; "
                    "weights must be at least 0."
                )
            deviations = 1.0 / np.sqrt(values)
        return isotropic_weights(neighborhoods.near, deviations, 1.0, self.n_jobs)


def power_weights(neighbors: Neighbors, power: float, n_jobs: int | None = None) -> Weights:
    """Return ``w_j = r_j^-power I``."""
    return isotropic_weights(neighbors, neighbors.distances, power / 2, n_jobs)


def empty_weights(neighbors: Neighbors, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return an array for deviations (m, width), and exponents (q,) of 0."""
    deviations = np.empty((len(neighbors.indices), width))
    return deviations, np.zeros(len(neighbors.inside), dtype=np.int64)


def isotropic_weights(
    neighbors: Neighbors, deviations: np.ndarray, power: float = 1.0, n_jobs: int | None = None
) -> Weights:
    """Return ``w_j = s_j^(-2 power) I`` from deviations s (m,); 0 coincides with the query."""
    relative, exponent = empty_weights(neighbors, 1)
    over_rows(
        kernels.isotropic_deviations, len(exponent), n_jobs, neighbors.indptr, deviations, power,
        relative, exponent,
    )  # fmt: skip
    return Weights(relative, exponent, NO_AXES, False)
