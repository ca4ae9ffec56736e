"""Least squares with correlated errors: kriging of a neighbourhood, or of all points at once.

The paper's W is block diagonal, so that two neighbours side by side are counted twice. Here the
errors of neighbours i and j, the changes of the map from them to the query, have the covariance
``g(r_i) + g(r_j) - g(r_ij)``, with g the variogram; Eq. 2.3 then is kriging. Over all training
points it is the extension by a Gaussian process (Barkan, Weill, Averbuch 2016).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.linalg import cho_solve

from outsample._compiled import correlated as kernels
from outsample._parallel import over_rows
from outsample._validation import check_choice, check_number
from outsample.neighbors.neighborhoods import Neighborhoods
from outsample.neighbors.truncation import first_counts
from outsample.placers import least_squares
from outsample.placers.all_points import (
    AllPointsPlacer,
    FittedAllPoints,
    distances_in,
    inverse_diagonal,
    regular_factor,
)
from outsample.placers.problem import WIDE, local_units
from outsample.placers.protocol import Arrays, ModelFamily
from outsample.placers.weighting import power_weights
from outsample.points import Points, kernel_rows, unit_scale
from outsample.records import Neighbors, Weights

if TYPE_CHECKING:
    from outsample.placers.problem import Part, Problem

KINDS = {
    "affine": kernels.AFFINE,
    "linear": kernels.LINEAR,
    "matern52": kernels.MATERN52,
    "gaussian": kernels.GAUSSIAN,
}
# The consensus of a torn map is asked of so many nearest neighbours, by steep weights, and kept
# within so many times their median distance from it.
CONSENSUS_NEIGHBORS = 8
CONSENSUS_POWER = 16.0
CONSENSUS_TOLERANCE = 1.5
# Steps by which a singular covariance is made regular.
LEAST_NUGGETS = (0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4)


@dataclass(frozen=True)
class Correlated:
    """Weighting with correlated errors, given in full.

    Attributes
    ----------
    covariance : {"linear", "matern52", "gaussian", "affine"}
        Smoothness of the map: rough, twice differentiable, analytic; or a plane, by the weights of
        locally linear embedding (Roweis and Saul 2000), which takes no more than the neighbours.
    length : float
        Length scale, in units of the distance to the 15th neighbour. Without effect for
        ``"linear"`` but for its relation to the nugget.
    nugget : float
        Variance of independent noise in the images, relative to the covariance.

    Examples
    --------
    >>> from outsample import Correlated, PCAExtension
    >>> smooth = PCAExtension(weighting=Correlated("gaussian", 4.0, 1e-10), n_neighbors=60)
    """

    covariance: str = "matern52"
    length: float = 4.0
    nugget: float = 1e-6

    sizes: ClassVar[tuple[int, ...]] = (5, 10, 20, WIDE)
    smooth: ClassVar[bool] = True

    def check(self) -> None:
        """Refuse parameters outside their range."""
        check_choice("weighting.covariance", self.covariance, KINDS)
        check_number("weighting.length", self.length, 0, np.inf, open_below=True)
        check_number("weighting.nugget", self.nugget, 0, np.inf)

    def cost_microseconds(self, k: int) -> float:
        """One covariance of all neighbours, factored."""
        return 0.04 * k**2

    def fit(self, problem: Problem, sample: np.ndarray, placer: Any) -> FittedKriging:
        """There is nothing to learn: the unit is local."""
        return FittedKriging(problem.X, problem.Y, problem.n_jobs, self)

    def family(self) -> ModelFamily:
        """Return itself for local placers, and the process over all points."""
        return ModelFamily((self,), () if self.covariance == "affine" else (GaussianProcess(self),))


@dataclass(frozen=True, eq=False)
class FittedKriging(least_squares.NeighborWeighting):
    """Kriging of neighbourhoods."""

    settings: Correlated

    def weights(self, near: Neighborhoods) -> Weights:
        """Eq. 4.3, which the scores use; it also tells which neighbours coincide with a query."""
        return power_weights(near.near, 2.0, self.n_jobs)

    def solve(self, placer: Any, Q: Points, near: Neighborhoods, weights: Weights) -> np.ndarray:
        """Eq. 2.3 over each neighbourhood, with a polynomial drift of the placer's order.

        With absolute loss, neighbours that disagree with the consensus are dropped before.
        """
        found, q = near.near, Q.shape[0]
        kept = np.ones(len(found.indices), dtype=bool)
        if placer.loss == "absolute":
            over_rows(
                kernels.agree_with_consensus, q, self.n_jobs, self.Y, found.indptr, found.indices,
                self._consensus(found), CONSENSUS_NEIGHBORS, CONSENSUS_TOLERANCE, kept,
            )  # fmt: skip
        coordinates = np.empty((q, self.Y.shape[1]))
        over_rows(
            kernels.solve_correlated, q, self.n_jobs, kernel_rows(self.X), kernel_rows(Q), self.Y,
            found.indptr, found.indices, found.distances, local_units(found), weights.deviations,
            kept, KINDS[self.settings.covariance], float(self.settings.length),
            float(self.settings.nugget), placer.order, min(placer.tangent_dim, self.X.shape[1]),
            coordinates,
        )  # fmt: skip
        return coordinates

    def _consensus(self, near: Neighbors) -> np.ndarray:
        """Geometric median of the nearest images: on one shred of a torn map, not between two."""
        counts = np.minimum(np.diff(near.indptr), CONSENSUS_NEIGHBORS)
        closest = first_counts(near, counts)
        weights = power_weights(closest, CONSENSUS_POWER, self.n_jobs)
        return least_squares.median(self.Y, closest, weights, self.n_jobs)

    def arrays(self) -> Arrays:
        """Nothing was learnt."""
        return {}


@dataclass(frozen=True)
class GaussianProcess(AllPointsPlacer):
    """One Gaussian process over all training points, factored once."""

    weighting: Correlated

    @property
    def first_level(self) -> tuple[str, float, float] | None:
        """A process on landmarks, if its covariance ends somewhere."""
        settings = self.weighting
        if settings.covariance == "linear":
            return None
        return settings.covariance, settings.length, settings.nugget

    def fit(self, problem: Problem | Part, sample: np.ndarray) -> FittedProcess:
        """Solve for the coefficients, and for what the others predict of the sample."""
        X, Y, settings = problem.X, problem.Y, self.weighting
        unit = problem.unit * settings.length or problem.unit
        lower = covariance_factor(
            lambda: _covariance_matrix(distances_in(problem, unit), settings.covariance),
            settings.nugget, "use fewer n_neighbors",
        )  # fmt: skip
        scale = unit_scale(Y)  # sums over all images must not overflow
        images = Y * scale
        center = images.mean(axis=0)
        sides = np.column_stack([np.ones(X.shape[0]), images - center])
        solved = cho_solve((lower, True), sides, check_finite=False)
        ones = solved[:, 0]
        drift = sides[:, 0] @ solved[:, 1:] / ones.sum()
        coefficients = solved[:, 1:] - ones[:, None] * drift
        coefficients -= coefficients.mean(axis=0)  # they sum to 0 but for rounding
        # The row and column of the inverse that belong to a row give its leave-one-out residual.
        diagonal = inverse_diagonal(lower, sample) - ones[sample] ** 2 / ones.sum()
        left_out = (images[sample] - coefficients[sample] / diagonal[:, None]) / scale
        mean = (center + drift) / scale
        return FittedProcess(
            self, X, Y, problem.n_jobs, left_out, unit, mean, coefficients / scale
        )


def covariance_factor(
    matrix: Callable[[], np.ndarray], nugget: float, advice: str
) -> np.ndarray:
    """Cholesky factor of a covariance, with as much nugget as double precision needs."""
    lower = regular_factor(
        matrix, lambda least, corner: max(nugget, least * corner), LEAST_NUGGETS
    )
    if lower is None:
        raise ValueError(f"the covariance of all training points cannot be factored; {advice}.")
    return lower


def _covariance_matrix(H: np.ndarray, kind: str) -> np.ndarray:
    """Covariance (n, n) from distances in units of the length, in their place."""
    if kind == "linear":  # any constant above the largest distance makes it positive definite
        np.minimum(H, 1e150, out=H)
        np.subtract(2 * (H.max() or 1.0), H, out=H)
        return H
    np.minimum(H, 1e3, out=H)  # nothing is left beyond, and squares may overflow
    return covariance_of(H, kind)


def covariance_of(H: np.ndarray, kind: str) -> np.ndarray:
    """Covariance at distances H, in length scales and not above 1e3, which it overwrites."""
    if kind == "gaussian":
        np.multiply(H, -H, out=H)
        np.exp(H, out=H)
    else:
        H *= 5**0.5
        decay = np.exp(-H)
        H += H * H / 3
        H += 1
        H *= decay
    return H


@dataclass(frozen=True, eq=False)
class FittedProcess(FittedAllPoints):
    """``mean - sum_j g(|x - x_j|) coefficients_j``, g the variogram; coefficients sum to 0."""

    unit: float
    mean: np.ndarray
    coefficients: np.ndarray

    def place(
        self, Q: Points, near: Neighborhoods | None, weights: Weights | None = None
    ) -> np.ndarray:
        """Values (q, d) of the process at the queries."""
        coordinates = np.empty((Q.shape[0], self.Y.shape[1]))
        over_rows(
            kernels.predict_global, Q.shape[0], self.n_jobs, kernel_rows(self.X),
            self.X.shape[0], kernel_rows(Q), self.Y, self.unit,
            KINDS[self.placer.weighting.covariance], self.mean, self.coefficients, coordinates,
        )  # fmt: skip
        return coordinates

    def arrays(self) -> Arrays:
        """Length scale, drift and coefficients."""
        unit = np.array(self.unit)
        return {"unit": unit, "mean": self.mean, "coefficients": self.coefficients}
