"""Least squares with correlated errors: kriging of a neighbourhood, or of all points at once.

The paper's W is block diagonal, so that two neighbours close to each other are counted twice. Here
the errors of neighbours i and j, the changes of the map from them to the query, have the covariance
``g(r_i) + g(r_j) - g(r_ij)``, with g the variogram; Eq. 2.3 then is kriging. Over all training
points it is the extension by a Gaussian process (Barkan, Weill, Averbuch 2016).
"""

from __future__ import annotations

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
    FactoredPlacer,
    FittedAllPoints,
    distances_in,
    inverse_diagonal,
    regular_factor,
)
from outsample.placers.problem import WIDE_NEIGHBORS, local_units
from outsample.placers.protocol import ModelFamily
from outsample.placers.weighting import power_weights
from outsample.points import Points, kernel_rows, unit_scale
from outsample.records import Neighbors, Weights

if TYPE_CHECKING:
    from outsample.placers.problem import Part, Problem

COVARIANCE_KINDS = {
    "affine": kernels.AFFINE,
    "linear": kernels.LINEAR,
    "matern52": kernels.MATERN52,
    "gaussian": kernels.GAUSSIAN,
}
# On a torn map, the consensus is the median image of this many nearest neighbours, with steep
# weights; images farther from it than this many times their median distance are dropped.
CONSENSUS_NEIGHBORS = 8
CONSENSUS_POWER = 16.0
CONSENSUS_TOLERANCE = 1.5
# Nuggets, relative to the variance, that are tried until the covariance can be factored.
RELATIVE_NUGGETS = (0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4)


@dataclass(frozen=True)
class Correlated:
    """Weighting with correlated errors: kriging.

    Attributes
    ----------
    covariance : {"linear", "matern52", "gaussian", "affine"}
        Smoothness of the map: rough, twice differentiable, analytic; or a plane, by the weights of
        locally linear embedding (Roweis and Saul 2000), for neighbourhoods only.
    length : float
        Length scale, in units of the distance to the 15th neighbour. For ``"linear"`` it only
        scales the nugget.
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

    sizes: ClassVar[tuple[int, ...]] = (5, 10, 20, WIDE_NEIGHBORS)
    smooth: ClassVar[bool] = True

    def check(self) -> None:
        """Raise ValueError for a parameter outside its range."""
        check_choice("weighting.covariance", self.covariance, COVARIANCE_KINDS)
        check_number("weighting.length", self.length, 0, np.inf, open_below=True)
        check_number("weighting.nugget", self.nugget, 0, np.inf)

    def cost_microseconds(self, k: int) -> float:
        """Return the cost of factoring the covariance of the neighbours."""
        return 0.04 * k**2

    def fit(self, problem: Problem, sample: np.ndarray, placer: Any) -> FittedKriging:
        """Return the weighting; it has no constants to estimate, since its unit is local."""
        return FittedKriging(problem.X, problem.Y, problem.n_jobs, self)

    def family(self) -> ModelFamily:
        """Return the local placers with this weighting, and the process over all points."""
        return ModelFamily((self,), () if self.covariance == "affine" else (GaussianProcess(self),))


@dataclass(frozen=True, eq=False)
class FittedKriging(least_squares.FittedWeighting):
    """Kriging of neighbourhoods."""

    settings: Correlated

    def weights(self, neighborhoods: Neighborhoods) -> Weights:
        """Return the weights of Eq. 4.3, for the scores and to find coincident neighbours."""
        return power_weights(neighborhoods.near, 2.0, self.n_jobs)

    def solve(
        self, placer: Any, Q: Points, neighborhoods: Neighborhoods, weights: Weights
    ) -> np.ndarray:
        """Solve Eq. 2.3 in each neighbourhood, with a polynomial drift of the placer's order.

        With absolute loss, neighbours that disagree with the consensus are dropped first.
        """
        neighbors, q, settings = neighborhoods.near, Q.shape[0], self.settings
        is_kept = np.ones(len(neighbors.indices), dtype=bool)
        if placer.loss == "absolute":
            over_rows(
                kernels.agree_with_consensus, q, self.n_jobs, self.Y, neighbors.indptr,
                neighbors.indices, self._consensus(neighbors), CONSENSUS_NEIGHBORS,
                CONSENSUS_TOLERANCE, is_kept,
            )  # fmt: skip
        coordinates = np.empty((q, self.Y.shape[1]))
        over_rows(
            kernels.solve_correlated, q, self.n_jobs, kernel_rows(self.X), kernel_rows(Q), self.Y,
            neighbors.indptr, neighbors.indices, neighbors.distances, local_units(neighbors),
            weights.deviations, is_kept, COVARIANCE_KINDS[settings.covariance],
            float(settings.length), float(settings.nugget), placer.order,
            min(placer.tangent_dim, self.X.shape[1]), coordinates,
        )  # fmt: skip
        return coordinates

    def _consensus(self, neighbors: Neighbors) -> np.ndarray:
        """Return the median of the nearest images: on one side of a tear, not between the sides."""
        counts = np.minimum(np.diff(neighbors.indptr), CONSENSUS_NEIGHBORS)
        closest = first_counts(neighbors, counts)
        weights = power_weights(closest, CONSENSUS_POWER, self.n_jobs)
        return least_squares.median(self.Y, closest, weights, self.n_jobs)


@dataclass(frozen=True)
class GaussianProcess(FactoredPlacer):
    """One Gaussian process over all training points, factored once."""

    weighting: Correlated

    @property
    def first_level(self) -> tuple[str, float, float] | None:
        """Settings of a process on landmarks; a linear variogram has none, as it is unbounded."""
        settings = self.weighting
        if settings.covariance == "linear":
            return None
        return settings.covariance, settings.length, settings.nugget

    def fit(self, problem: Problem | Part, sample: np.ndarray) -> FittedProcess:
        """Return the process with its coefficients, and leave-one-out values of the sample."""
        X, Y, settings = problem.X, problem.Y, self.weighting
        unit = problem.unit * settings.length or problem.unit
        lower = covariance_factor(
            lambda: _covariance_matrix(distances_in(problem, unit), settings.covariance),
            settings.nugget,
            "use fewer n_neighbors",
        )
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
        return FittedProcess(self, X, Y, problem.n_jobs, left_out, unit, mean, coefficients / scale)


def covariance_factor(matrix: Any, nugget: float, advice: str) -> np.ndarray:
    """Return the Cholesky factor of a covariance, with the nugget that double precision needs."""
    return regular_factor(
        matrix,
        lambda relative, variance: max(nugget, relative * variance),
        RELATIVE_NUGGETS,
        f"the covariance of all training points cannot be factored; {advice}.",
    )


def _covariance_matrix(H: np.ndarray, kind: str) -> np.ndarray:
    """Return the covariance (n, n) of distances in length scales, which are overwritten."""
    if kind == "linear":  # any constant above the largest distance makes it positive definite
        np.minimum(H, 1e150, out=H)
        np.subtract(2 * (H.max() or 1.0), H, out=H)
        return H
    np.minimum(H, 1e3, out=H)  # the covariance is 0 beyond, and squares may overflow
    return covariance_of(H, kind)


def covariance_of(H: np.ndarray, kind: str) -> np.ndarray:
    """Return the covariance at distances of at most 1e3 length scales, which are overwritten.

    As `kernels.variogram`, but for a whole matrix in place: 1 minus the variogram would round.
    """
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
        self, Q: Points, neighborhoods: Neighborhoods | None, weights: Weights | None = None
    ) -> np.ndarray:
        """Return the values (q, d) of the process at the queries."""
        coordinates = np.empty((Q.shape[0], self.Y.shape[1]))
        over_rows(
            kernels.predict_global, Q.shape[0], self.n_jobs, kernel_rows(self.X),
            self.X.shape[0], kernel_rows(Q), self.Y, self.unit,
            COVARIANCE_KINDS[self.placer.weighting.covariance], self.mean, self.coefficients,
            coordinates,
        )  # fmt: skip
        return coordinates
