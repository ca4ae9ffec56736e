"""Covariances of all points with a few of them, the landmarks.

What the landmarks cannot express of the training points is part of the map, not noise; least
squares that do not know of it would bend the smooth part after it. The ridge therefore is the share
of the variance that the landmarks leave, on average (as in the independent conditionals of Snelson
and Ghahramani 2006, there for each point).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from outsample._compiled import landmarks as kernels
from outsample._parallel import over_rows
from outsample.placers.kriging import KINDS, covariance_factor, covariance_of
from outsample.placers.landmarks import LEAST_FREEDOM
from outsample.points import Points, kernel_rows
from outsample.spectral import affinity


@dataclass(frozen=True, eq=False)
class ProcessLevel:
    """``sum_j c(|x - z_j| / unit) a_j`` over the landmarks, rows (m,) of the training points."""

    covariance: str
    unit: float
    landmarks: np.ndarray
    coefficients: np.ndarray

    def values(self, X: Points, Q: Points, n_jobs: int | None) -> np.ndarray:
        """Values (q, d) at queries."""
        values = np.empty((Q.shape[0], self.coefficients.shape[1]))
        over_rows(
            kernels.predict_landmarks, len(values), n_jobs, kernel_rows(X), self.landmarks,
            kernel_rows(Q), self.unit, KINDS[self.covariance], self.coefficients, values,
        )  # fmt: skip
        return values


class ProcessBasis(NamedTuple):
    """Covariances with landmarks."""

    covariance: str
    nugget: float
    X: Points
    landmarks: np.ndarray
    unit: float
    n_jobs: int | None

    def functions(self, rows: Points) -> np.ndarray:
        """Covariances (q, m) of points with the landmarks."""
        apart = affinity.distances(self.X[self.landmarks], rows, n_jobs=self.n_jobs)
        np.minimum(apart, 1e3 * self.unit, out=apart)  # nothing is left beyond
        apart /= self.unit
        return covariance_of(apart, self.covariance)

    def factor(self) -> np.ndarray:
        """Cholesky factor of the covariances of the landmarks among themselves."""
        Z = self.X[self.landmarks]
        return covariance_factor(lambda: self.functions(Z), self.nugget, "use fewer landmarks")

    def ridge(self, squares: float, n: int) -> float:
        """Share of the variance that the landmarks leave."""
        return max(1 - squares / n, self.nugget, LEAST_FREEDOM)

    def targets(self, X: Points, images: np.ndarray) -> np.ndarray:
        """All of the images."""
        return images

    def fitted(self, coefficients: np.ndarray, reach: float) -> ProcessLevel:
        """Functions with coefficients (m, d)."""
        return ProcessLevel(self.covariance, self.unit, self.landmarks, coefficients)
