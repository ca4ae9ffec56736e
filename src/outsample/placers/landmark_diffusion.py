"""Transition probabilities of a diffusion from all points to a few of them, the landmarks.

What `placers.diffusion` does with all points, for more of them than can be factored: densities are
those of the landmarks, and the coefficients are fitted to all points by least squares, bounded as
those of a diffusion among the landmarks are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from outsample._compiled import affinity as kernels
from outsample._parallel import over_rows
from outsample.placers.diffusion import kernel_factor
from outsample.placers.landmarks import BLOCK_ROWS
from outsample.points import Points, kernel_rows
from outsample.spectral import affinity, transitions

# How much the bound counts, over the mean square of an independent function. Chosen on a diffusion
# map of 10,000 images: error 0.00304 with 1e-9, 0.00285 with 0.01.
DAMPING = 0.01


@dataclass(frozen=True, eq=False)
class DiffusionLevel:
    """``sum_j p_j(x) (y_j + t(x) lift_j)`` over the landmarks, rows (m,) of the training points.

    ``p_j`` is proportional to ``w_j exp(-|x - z_j|^2 / unit^2)``, w one over the densities, t the
    trust, as in `placers.diffusion.FittedDiffusion`.
    """

    unit: float
    landmarks: np.ndarray
    inverse_densities: np.ndarray
    images: np.ndarray
    lift: np.ndarray
    reach: float

    def values(self, X: Points, Q: Points, n_jobs: int | None) -> np.ndarray:
        """Values (q, d) at queries."""
        q, d = Q.shape[0], self.images.shape[1]
        values = np.empty((q, d))
        over_rows(
            kernels.place_by_diffusion, q, n_jobs, kernel_rows(X), self.landmarks, kernel_rows(Q),
            self.images, self.unit, self.inverse_densities, self.lift, np.zeros(d), self.reach,
            values,
        )  # fmt: skip
        return values


class DiffusionBasis(NamedTuple):
    """Transition probabilities to landmarks Z (m, D) with images (m, d), over root degrees."""

    Z: Points
    landmarks: np.ndarray
    images: np.ndarray
    unit: float
    nugget: float
    kernel: transitions.Markov
    n_jobs: int | None

    def functions(self, rows: Points) -> np.ndarray:
        """Probabilities (q, m) times the trust, over the root degrees of the landmarks."""
        found, trust = self._probabilities(rows)
        found *= trust
        found /= self.kernel.root_degrees
        return found

    def factor(self) -> np.ndarray:
        """Cholesky factor of the symmetric form of the diffusion among the landmarks."""
        return kernel_factor(self.kernel.conjugate, self.nugget)

    def ridge(self, squares: float, n: int) -> float:
        """Return a small share of the mean square of a function."""
        return DAMPING * squares / len(self.landmarks)

    def targets(self, X: Points, images: np.ndarray) -> np.ndarray:
        """Images less what is said of them where there is no trust: the mean of the landmarks'."""
        found = np.empty_like(images)
        for start in range(0, len(images), BLOCK_ROWS):
            some = slice(start, start + BLOCK_ROWS)
            shares, trust = self._probabilities(X[some])
            found[some] = images[some] - (1 - trust) * (shares @ self.images)
        return found

    def fitted(self, coefficients: np.ndarray, reach: float) -> DiffusionLevel:
        """Functions with coefficients (m, d)."""
        lift = coefficients / self.kernel.root_degrees[:, None] - self.images
        return DiffusionLevel(
            self.unit, self.landmarks, self.kernel.weights, self.images, lift, reach
        )

    def _probabilities(self, rows: Points) -> tuple[np.ndarray, np.ndarray]:
        """Transition probabilities (q, m), and the trust (q, 1)."""
        apart = affinity.distances(self.Z, rows, n_jobs=self.n_jobs)
        with np.errstate(over="ignore"):
            apart /= self.unit
        np.minimum(apart, 1e150, out=apart)
        nearest = apart.min(axis=1, keepdims=True)
        exponents = (apart - nearest) * (apart + nearest)
        np.minimum(exponents, kernels.ZERO_BEYOND**2, out=exponents)
        shares = np.exp(-exponents) * self.kernel.weights
        total = shares.sum(axis=1, keepdims=True)
        density = total * np.exp(-(np.minimum(nearest, kernels.ZERO_BEYOND) ** 2))
        trust = total.copy()
        kernels.trusts(density.ravel(), trust)
        shares /= total
        return shares, trust


def diffusion_basis(
    X: Points, landmarks: np.ndarray, images: np.ndarray, unit: float, nugget: float,
    n_jobs: int | None,
) -> DiffusionBasis:  # fmt: skip
    """Functions of landmarks, rows of X; images (n, d) are those of all rows."""
    Z = X[landmarks]
    apart = affinity.distances(Z, n_jobs=n_jobs)
    apart /= unit
    kernel = transitions.markov(affinity.gaussian_of(apart, 1.0, out=apart), alpha=1.0)
    return DiffusionBasis(Z, landmarks, images[landmarks], unit, nugget, kernel, n_jobs)
