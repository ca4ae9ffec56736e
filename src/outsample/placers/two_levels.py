"""Models of many points at two levels: functions of landmarks, and kriging of the residuals.

A process or a diffusion over n points takes n^3 operations and n^2 numbers. Its smooth part is
spanned by the covariances with m of the points, the landmarks (Quinonero-Candela and Rasmussen
2005), or by the transition probabilities to them, fitted to all n points by least squares: n m^2
operations, m^2 numbers. The residuals are interpolated from the neighbours of a query by kriging
with a shorter length, so that the training points keep their images.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from outsample._compiled import gls as kernels
from outsample._parallel import over_rows
from outsample._validation import check_choice, check_number
from outsample.neighbors.neighborhoods import Neighborhoods
from outsample.placers.all_points import AllPointsPlacer, FittedAllPoints
from outsample.placers.diffusion import longest_row
from outsample.placers.kriging import Correlated, FittedKriging
from outsample.placers.landmarks import (
    MIN_FREEDOM,
    Basis,
    DiffusionBasis,
    DiffusionLevel,
    ProcessBasis,
    ProcessLevel,
    leverages,
    solve,
)
from outsample.points import Points, unit_scale
from outsample.records import Neighbors, Weights
from outsample.spectral.units import exact_mean

if TYPE_CHECKING:
    from outsample.placers.problem import Problem

# Landmarks, as many as 32,000 points allow in a minute, and neighbours.
MAX_LANDMARKS = 3072
MAX_RESIDUAL_NEIGHBORS = 120
# Length scales of the residuals over that of the process, and the number of left-out rows on which
# one of them is selected; covariance and nugget of the residuals.
LENGTH_RATIOS = (0.25, 0.5, 1.0, 2.0)
RATIO_ROWS = 500
RESIDUAL = Correlated("matern52", 1.0, 1e-6)
# Left-out rows per chunk of kriging.
LEFT_OUT_CHUNK_ROWS = 64
DIFFUSION = "diffusion"
FIRST_LEVELS = ("matern52", "gaussian", DIFFUSION)


@dataclass(frozen=True)
class TwoLevels(AllPointsPlacer):
    """A Gaussian process or a diffusion on landmarks, and kriging of its residuals.

    ``f(x) = sum_j c(|x - z_j|) a_j + r(x)``: z are landmarks among the training points, a fitted to
    all of them by least squares, r the kriging of the residuals of the neighbours of x; in a
    diffusion c is the transition probability to z_j. `PCAExtension` uses it in place of a process
    or a diffusion if there are more points than can be factored.

    Attributes
    ----------
    covariance : {"matern52", "gaussian", "diffusion"}
        Smoothness of the map, as in `Correlated`; or transition probabilities as in `Diffusion`.
    length : float
        Length scale, in units of the typical distance to the 15th neighbour.
    nugget : float
        Variance of independent noise in the images, relative to the covariance; in a diffusion,
        eigenvalues below it are suppressed.
    shorter : float or None
        Length scale of the residuals over that of the process, in units of the query's own distance
        to its 15th neighbour; None selects it by leave-one-out.
    n_landmarks, n_neighbors : int
        Numbers of landmarks and neighbours, at most.

    Examples
    --------
    >>> import numpy as np
    >>> from outsample import PCAExtension
    >>> from outsample.placers.two_levels import TwoLevels
    >>> X = np.random.default_rng(0).random((400, 2))
    >>> smooth = TwoLevels("matern52", 8.0, n_landmarks=50, n_neighbors=30)
    >>> extension = PCAExtension(weighting=smooth).fit(X, np.sin(3 * X))
    >>> bool(extension.loo_error_ < 1e-3)
    True
    """

    covariance: str = "matern52"
    length: float = 4.0
    nugget: float = 1e-8
    shorter: float | None = None
    n_landmarks: int = MAX_LANDMARKS
    n_neighbors: int = MAX_RESIDUAL_NEIGHBORS

    def __str__(self) -> str:
        sizes = f"{self.n_landmarks} landmarks, {self.n_neighbors} neighbours"
        name = f"TwoLevels({self.covariance!r}, length={self.length:.3g})"
        return f"{name}, {sizes}"

    @property
    def weighting(self) -> TwoLevels:
        """Value of the parameter ``weighting`` of `PCAExtension` that gives this placer."""
        return self

    def check(self) -> None:
        """Raise ValueError for a parameter outside its range."""
        check_choice("weighting.covariance", self.covariance, list(FIRST_LEVELS))
        check_number("weighting.length", self.length, 0, np.inf, open_below=True)
        check_number("weighting.nugget", self.nugget, 0, np.inf)
        if self.shorter is not None:
            check_number("weighting.shorter", self.shorter, 0, np.inf, open_below=True)
        check_number("weighting.n_landmarks", self.n_landmarks, 1, np.inf, whole=True)
        check_number("weighting.n_neighbors", self.n_neighbors, 1, np.inf, whole=True)

    def cost_microseconds(self, n: int, D: int) -> float:
        """Return the cost of a pass over the landmarks and of kriging."""
        landmarks = 0.0008 * min(n, self.n_landmarks) * (D + 10)
        return landmarks + RESIDUAL.cost_microseconds(self.n_neighbors)

    def fit(self, problem: Problem, sample: np.ndarray) -> FittedTwoLevels:
        """Return both levels, and exact leave-one-out values of the sample.

        Leaving a row out of least squares changes the residuals of its neighbours by its own
        residual times their common leverage. Landmarks remain basis functions; they are the last
        rows of the permutation whose first rows are the sample.
        """
        X, Y = problem.X, problem.Y
        scale = unit_scale(Y)  # sums over all images must not overflow
        images = Y * scale
        center = exact_mean(images)
        images -= center
        landmarks = np.sort(problem.sample(len(Y))[-self.n_landmarks :])
        unit = problem.unit * self.length or problem.unit
        basis = self._basis(X, landmarks, images, unit, problem.n_jobs)
        targets = basis.targets(X, images)
        solution = solve(basis, X, targets)
        neighborhoods = problem.left_out(sample, self.n_neighbors)
        neighbors = neighborhoods.near
        owners = np.repeat(np.arange(len(sample)), np.diff(neighbors.indptr))
        own, shared, residuals = leverages(
            basis, solution, X, targets, sample, owners, neighbors.indices
        )
        gain = residuals[sample] / np.maximum(1 - own, MIN_FREEDOM)[:, None]
        changed = residuals[neighbors.indices] + shared[:, None] * gain[owners]
        base = images[sample] - gain
        level = basis.fitted(solution.coefficients, longest_row(images))
        fitted = FittedTwoLevels(self, X, Y, problem.n_jobs, base, center, scale, level, residuals)
        if self.shorter is None:
            fitted = fitted.with_best_ratio(neighborhoods, changed, images[sample])
        placed = base + fitted.residuals_left_out(neighborhoods, changed, len(sample))
        return replace(fitted, left_out=(center + placed) / scale)

    def _basis(
        self, X: Points, landmarks: np.ndarray, images: np.ndarray, unit: float,
        n_jobs: int | None,
    ) -> Basis:  # fmt: skip
        if self.covariance == DIFFUSION:
            return DiffusionBasis.of(X, landmarks, images, unit, self.nugget, n_jobs)
        return ProcessBasis(self.covariance, self.nugget, X, landmarks, unit, n_jobs)


@dataclass(frozen=True, eq=False)
class FittedTwoLevels(FittedAllPoints):
    """Both levels: functions of the landmarks, and ``residuals`` (n, d) of all rows.

    Both are those of the images times ``scale``, minus ``center``.
    """

    center: np.ndarray
    scale: float
    level: ProcessLevel | DiffusionLevel
    residuals: np.ndarray

    def place(
        self, Q: Points, neighborhoods: Neighborhoods | None, weights: Weights | None = None
    ) -> np.ndarray:
        """Return the sums (q, d) of both levels at queries; training points keep their images."""
        assert neighborhoods is not None
        if weights is None:
            weights = self.weights(neighborhoods)
        neighbors, kriging = neighborhoods.near, self._kriging(self.X, self.residuals)
        values = self.level.values(self.X, Q, self.n_jobs)
        values += kriging.solve(self.placer, Q, neighborhoods, weights)
        coordinates = (self.center + values) / self.scale
        over_rows(
            kernels.place_coincident, Q.shape[0], self.n_jobs, self.Y, neighbors.indptr,
            neighbors.indices, weights.deviations, coordinates,
        )  # fmt: skip
        return coordinates

    def with_best_ratio(
        self, neighborhoods: Neighborhoods, changed: np.ndarray, images: np.ndarray
    ) -> FittedTwoLevels:
        """Return the model with the length ratio of lowest error on left-out rows with images."""
        count = min(RATIO_ROWS, len(images))
        candidates = [
            replace(self, placer=replace(self.placer, shorter=ratio)) for ratio in LENGTH_RATIOS
        ]
        missing = images[:count] - self.left_out[:count]
        errors = []
        for candidate in candidates:
            kriged = candidate.residuals_left_out(neighborhoods, changed, count)
            # The mean root, by which all-points models are compared (`typical_error`).
            errors.append(np.sqrt(np.linalg.norm(kriged - missing, axis=1)).mean())
        return candidates[int(np.argmin(errors))]

    def residuals_left_out(
        self, neighborhoods: Neighborhoods, changed: np.ndarray, count: int
    ) -> np.ndarray:
        """Return the kriging (count, d) of left-out rows by the changed residuals of neighbours."""
        neighbors, placed = neighborhoods.near, np.empty((count, self.Y.shape[1]))
        for start in range(0, count, LEFT_OUT_CHUNK_ROWS):
            stop = min(start + LEFT_OUT_CHUNK_ROWS, count)
            first, last = neighbors.indptr[start], neighbors.indptr[stop]
            chunk_neighbors = Neighbors(
                neighbors.indptr[start : stop + 1] - first, np.arange(last - first),
                neighbors.distances[first:last], neighbors.inside[start:stop],
            )  # fmt: skip
            chunk = replace(neighborhoods, near=chunk_neighbors)
            kriging = self._kriging(self.X[neighbors.indices[first:last]], changed[first:last])
            placed[start:stop] = kriging.solve(
                self.placer, neighborhoods.Q[start:stop], chunk, self.weights(chunk)
            )
        return placed

    def _kriging(self, X: Points, residuals: np.ndarray) -> FittedKriging:
        length = self.placer.length * (self.placer.shorter or 1.0)
        return FittedKriging(X, residuals, self.n_jobs, replace(RESIDUAL, length=length))
