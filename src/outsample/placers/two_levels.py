"""Models of many points at two levels: landmarks, and kriging of what they leave.

A process or a diffusion over n points takes n^3 operations and n^2 numbers. Its smooth part is
spanned by the covariances with m of the points, the landmarks (Quinonero-Candela and Rasmussen
2005), or by the transition probabilities to them, fitted to all n by least squares: n m^2
operations, m^2 numbers. What the landmarks cannot express is left to the neighbours of a query, by
kriging of the residuals with a shorter length, which also gives the training points their images
back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from outsample._compiled import landmarks as kernels
from outsample._parallel import over_rows
from outsample._validation import check_choice, check_number
from outsample.neighbors.neighborhoods import Neighborhoods
from outsample.placers.diffusion import farthest
from outsample.placers.growth import OriginalMapMixin
from outsample.placers.kriging import Correlated, FittedKriging
from outsample.placers.landmark_diffusion import diffusion_basis
from outsample.placers.landmark_process import ProcessBasis
from outsample.placers.landmarks import LEAST_FREEDOM, Basis, FittedLevel, leverages, solve
from outsample.placers.protocol import Arrays, ModelFamily
from outsample.placers.weighting import power_weights
from outsample.points import Points, unit_scale
from outsample.records import Neighbors, Weights
from outsample.spectral.units import exact_mean

if TYPE_CHECKING:
    from outsample.placers.problem import Problem

# Landmarks, as many as 32,000 points allow in a minute, and neighbours.
LANDMARKS = 3072
NEIGHBORS = 120
# Lengths of the residuals, over that of the process, among which left-out rows choose, and how many
# of these; their covariance and noise.
SHORTER = (0.25, 0.5, 1.0, 2.0)
CHOOSING_ROWS = 500
RESIDUAL = Correlated("matern52", 1.0, 1e-6)
# Left-out rows whose neighbours are held at once.
BLOCK_LEFT_OUT = 64
DIFFUSION = "diffusion"
FIRST_LEVELS = ("matern52", "gaussian", DIFFUSION)


@dataclass(frozen=True)
class TwoLevels:
    """A Gaussian process or a diffusion on landmarks, and kriging of what it leaves.

    ``f(x) = sum_j c(|x - z_j|) a_j + r(x)``: z are landmarks among the training points, a fitted to
    all of them by least squares, r the kriging of the residuals of the neighbours of x; in a
    diffusion c is the transition probability to z_j. What `PCAExtension` takes for a process or a
    diffusion over more points than can be factored.

    Attributes
    ----------
    covariance : {"matern52", "gaussian", "diffusion"}
        Smoothness of the map, as in `Correlated`; or transition probabilities as in `Diffusion`.
    length : float
        Length scale, in units of the typical distance to the 15th neighbour.
    nugget : float
        Variance of independent noise in the images, relative to the covariance; for a diffusion,
        eigenvalues below it count for nothing.
    shorter : float or None
        Length scale of the residuals over that of the process, in units of the query's own distance
        to its 15th neighbour; None chooses it by leave-one-out.
    n_landmarks, n_neighbors : int
        How many of each, at most.

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
    n_landmarks: int = LANDMARKS
    n_neighbors: int = NEIGHBORS

    order: ClassVar[int] = 0
    loss: ClassVar[str] = "squared"
    tangent_dim: ClassVar[int] = 1
    uses_all_points: ClassVar[bool] = True
    prefers_wide_neighborhoods: ClassVar[bool] = False

    def __str__(self) -> str:
        sizes = f"{self.n_landmarks} landmarks, {self.n_neighbors} neighbours"
        name = f"TwoLevels({self.covariance!r}, length={self.length:.3g})"
        return f"{name}, {sizes}"

    @property
    def weighting(self) -> TwoLevels:
        """What `PCAExtension` takes as ``weighting`` to get this placer."""
        return self

    def check(self) -> None:
        """Refuse parameters outside their range."""
        check_choice("weighting.covariance", self.covariance, list(FIRST_LEVELS))
        check_number("weighting.length", self.length, 0, np.inf, open_below=True)
        check_number("weighting.nugget", self.nugget, 0, np.inf)
        if self.shorter is not None:
            check_number("weighting.shorter", self.shorter, 0, np.inf, open_below=True)
        check_number("weighting.n_landmarks", self.n_landmarks, 1, np.inf, whole=True)
        check_number("weighting.n_neighbors", self.n_neighbors, 1, np.inf, whole=True)

    def family(self) -> ModelFamily:
        """Return itself."""
        return ModelFamily(fixed=self)

    def cost_microseconds(self, n: int, D: int) -> float:
        """Pass over the landmarks, and krige."""
        landmarks = 0.0008 * min(n, self.n_landmarks) * (D + 10)
        return landmarks + RESIDUAL.cost_microseconds(self.n_neighbors)

    def fit(self, problem: Problem, sample: np.ndarray) -> FittedTwoLevels:
        """Fit the landmarks to all points, and tell what the others predict of the sample.

        Exactly: a point taken out of least squares changes the residuals of its neighbours by its
        own, times their common leverage, and does not count among the neighbours. Landmarks stay,
        as basis functions; they are the last rows of the permutation whose first are the sample.
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
        solved = solve(basis, X, targets)
        near = problem.left_out(sample, self.n_neighbors)
        owners = np.repeat(np.arange(len(sample)), np.diff(near.near.indptr))
        pairs = owners, near.near.indices
        own, shared, residuals = leverages(basis, solved, X, targets, sample, *pairs)
        gain = residuals[sample] / np.maximum(1 - own, LEAST_FREEDOM)[:, None]
        changed = residuals[near.near.indices] + shared[:, None] * gain[owners]
        base = images[sample] - gain
        level = basis.fitted(solved.coefficients, farthest(images))
        fitted = FittedTwoLevels(
            self, X, Y, problem.n_jobs, base, center, scale, level, residuals
        )
        if self.shorter is None:
            fitted = fitted.chosen(near, changed, images[sample])
        placed = base + fitted.residuals_left_out(near, changed, len(sample))
        return replace(fitted, left_out=(center + placed) / scale)

    def _basis(
        self, X: Points, landmarks: np.ndarray, images: np.ndarray, unit: float,
        n_jobs: int | None,
    ) -> Basis:  # fmt: skip
        if self.covariance == DIFFUSION:
            return diffusion_basis(X, landmarks, images, unit, self.nugget, n_jobs)
        return ProcessBasis(self.covariance, self.nugget, X, landmarks, unit, n_jobs)


@dataclass(frozen=True, eq=False)
class FittedTwoLevels(OriginalMapMixin):
    """Both levels: functions of the landmarks, and ``residuals`` (n, d) of all rows.

    Both are of the images times ``scale``, less ``center``.
    """

    placer: TwoLevels
    X: Points
    Y: np.ndarray
    n_jobs: int | None
    left_out: np.ndarray
    center: np.ndarray
    scale: float
    level: FittedLevel
    residuals: np.ndarray

    def place(
        self, Q: Points, near: Neighborhoods | None, weights: Weights | None = None
    ) -> np.ndarray:
        """Values (q, d) of both levels at the queries; training points keep their images."""
        assert near is not None
        if weights is None:
            weights = self.weights(near)
        q, found = Q.shape[0], near.near
        values = self.level.values(self.X, Q, self.n_jobs)
        values += self._kriging(self.X, self.residuals).solve(self.placer, Q, near, weights)
        coordinates = (self.center + values) / self.scale
        over_rows(
            kernels.place_coincident, q, self.n_jobs, self.Y, found.indptr, found.indices,
            weights.deviations, coordinates,
        )  # fmt: skip
        return coordinates

    def leave_out(self, rows: np.ndarray, near: Neighborhoods | None) -> np.ndarray:
        """Coordinates of the sample that was given to ``fit``."""
        return self.left_out

    def weights(self, near: Neighborhoods) -> Weights:
        """Eq. 4.3, for the scores; it also tells which neighbours coincide with a query."""
        return power_weights(near.near, 2.0, self.n_jobs)

    def arrays(self) -> Arrays:
        """Center and scale, what the landmarks' functions are made of, and residuals."""
        level = {name: np.asarray(part) for name, part in vars(self.level).items()}
        scale = np.array(self.scale)
        return {"center": self.center, "scale": scale, **level, "residuals": self.residuals}

    def chosen(
        self, near: Neighborhoods, changed: np.ndarray, images: np.ndarray
    ) -> FittedTwoLevels:
        """Choose the length of the residuals on some left-out rows, whose images are given."""
        some = min(CHOOSING_ROWS, len(images))
        tried = [replace(self, placer=replace(self.placer, shorter=one)) for one in SHORTER]
        missing = images[:some] - self.left_out[:some]
        errors = [
            # The mean root, as placers over all points compare by (`leave_one_out.typical_error`).
            np.sqrt(np.linalg.norm(one - missing, axis=1)).mean()
            for one in (one.residuals_left_out(near, changed, some) for one in tried)
        ]
        return tried[int(np.argmin(errors))]

    def residuals_left_out(
        self, near: Neighborhoods, changed: np.ndarray, count: int
    ) -> np.ndarray:
        """Kriging (count, d) of the first left-out rows by the changed residuals of neighbours."""
        found, placed = near.near, np.empty((count, self.Y.shape[1]))
        for start in range(0, count, BLOCK_LEFT_OUT):
            stop = min(start + BLOCK_LEFT_OUT, count)
            first, last = found.indptr[start], found.indptr[stop]
            some = Neighbors(
                found.indptr[start : stop + 1] - first, np.arange(last - first),
                found.distances[first:last], found.inside[start:stop],
            )  # fmt: skip
            part = replace(near, near=some)
            kriging = self._kriging(self.X[found.indices[first:last]], changed[first:last])
            placed[start:stop] = kriging.solve(
                self.placer, near.Q[start:stop], part, self.weights(part)
            )
        return placed

    def _kriging(self, X: Points, residuals: np.ndarray) -> FittedKriging:
        length = self.placer.length * (self.placer.shorter or 1.0)
        return FittedKriging(X, residuals, self.n_jobs, replace(RESIDUAL, length=length))
