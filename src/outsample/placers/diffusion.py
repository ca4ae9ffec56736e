"""Extension by the transition probabilities of a diffusion over all training points.

A Nyström extension that interpolates, has its leave-one-out error in closed form, and tends to a
mean of the images away from the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_solve

from outsample._compiled import affinity as kernels
from outsample._parallel import over_rows
from outsample._validation import check_number
from outsample.neighbors.neighborhoods import Neighborhoods
from outsample.placers.all_points import (
    FactoredPlacer,
    FittedAllPoints,
    distances_in,
    inverse_diagonal,
    regular_factor,
)
from outsample.points import Points, kernel_rows
from outsample.records import Weights
from outsample.spectral import affinity, transitions

if TYPE_CHECKING:
    from outsample.placers.problem import Part, Problem

# Smallest ridge, and the factors that are tried until double precision can factor the kernel.
MIN_RIDGE = 1e-13
RIDGE_FACTORS = (1.0, 1e2, 1e4, 1e6)


@dataclass(frozen=True)
class Diffusion(FactoredPlacer):
    """Weighting by the transition probabilities of a diffusion, over all training points.

    ``f(x) = sum_j p(x, x_j) c_j`` with ``p`` proportional to ``exp(-|x - x_j|^2 / l^2)`` over the
    density at ``x_j``, and ``c`` such that the training points keep their images: the expansion
    of the map in the eigenfunctions of the diffusion, as in `NystroemExtension`.

    Attributes
    ----------
    length : float
        ``l``, in units of the typical distance to the 15th neighbour.
    ridge : float
        Eigenvalues below it are suppressed.

    Examples
    --------
    >>> from outsample import Diffusion, PCAExtension
    >>> smooth = PCAExtension(weighting=Diffusion(2.0))
    """

    length: float = 2.0
    ridge: float = 1e-9

    @property
    def weighting(self) -> Diffusion:
        """Value of the parameter ``weighting`` of `PCAExtension` that gives this placer."""
        return self

    @property
    def first_level(self) -> tuple[str, float, float]:
        """Settings of a diffusion to landmarks."""
        return "diffusion", self.length, self.ridge

    def check(self) -> None:
        """Raise ValueError for a parameter outside its range."""
        check_number("weighting.length", self.length, 0, np.inf, open_below=True)
        check_number("weighting.ridge", self.ridge, 0, 1)

    def fit(self, problem: Problem | Part, sample: np.ndarray) -> FittedDiffusion:
        """Return the expansion of the map, and leave-one-out values of the sample.

        The densities do not change when a row is left out.
        """
        Y, unit = problem.Y, problem.unit * self.length or problem.unit
        matrix = distances_in(problem, unit)
        kernel = transitions.markov(affinity.gaussian_of(matrix, 1.0, out=matrix), alpha=1.0)
        center = Y.mean(axis=0)
        f, roots = Y - center, kernel.root_degrees[:, None]
        lower = kernel_factor(kernel.conjugate, self.ridge)
        lift = cho_solve((lower, True), roots * f, check_finite=False) / roots - f
        leverage = inverse_diagonal(lower, sample)[:, None] - 1
        expanded = f[sample] - lift[sample] / np.maximum(leverage, transitions.MIN_LEVERAGE)
        means, trust = _means_of_others(kernel, f, sample)
        residuals = f[sample] - means - trust * (expanded - means)
        return FittedDiffusion(
            self, problem.X, Y, problem.n_jobs, Y[sample] - residuals, unit, kernel.weights, lift,
            center, longest_row(f),
        )  # fmt: skip


def kernel_factor(S: np.ndarray, ridge: float) -> np.ndarray:
    """Return the Cholesky factor of a kernel (n, n), with the ridge that double precision needs."""
    return regular_factor(
        lambda: S.copy(order="F"),
        lambda factor, _: max(ridge, MIN_RIDGE) * factor,
        RIDGE_FACTORS,
        "the kernel of all training points cannot be factored; use a larger ridge.",
    )


def longest_row(f: np.ndarray) -> float:
    """Return the Euclidean length of the longest row, without overflow."""
    largest = np.abs(f).max() or 1.0
    return float(largest * np.sqrt(((f / largest) ** 2).sum(axis=1).max()))


def _means_of_others(
    kernel: transitions.Markov, f: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return means (s, d) of all other images under the transition probabilities, and the trust."""
    roots = kernel.root_degrees
    shares = kernel.conjugate[rows] * roots
    shares[np.arange(len(rows)), rows] = 0.0
    shares *= (roots / kernel.weights)[rows, None]
    density = shares.sum(axis=1)
    means = shares @ f / np.where(density > 0, density, 1.0)[:, None]
    trust = np.empty((len(rows), 1))
    kernels.trusts(density, trust)
    return means, trust


@dataclass(frozen=True, eq=False)
class FittedDiffusion(FittedAllPoints):
    """The expansion: ``inverse_densities`` (n,), and ``lift`` (n, d), coefficients minus images.

    ``reach`` is the largest distance of an image from their mean, ``center`` (d,).
    """

    unit: float
    inverse_densities: np.ndarray
    lift: np.ndarray
    center: np.ndarray
    reach: float

    def place(
        self, Q: Points, neighborhoods: Neighborhoods | None, weights: Weights | None = None
    ) -> np.ndarray:
        """Return the values (q, d) of the expansion at the queries, bounded far from the data.

        ``sum_j p(x, x_j) (psi(x_j) + t(x) (c_j - psi(x_j)))``. The trust t falls from 1 to 0 as
        the kernel's sum over the training points, which is about 1 among them, falls from 0.1 to
        0.01: coefficients of either sign no longer cancel there. No point is placed farther from
        the mean of the images than twice the farthest image.
        """
        coordinates = np.empty((Q.shape[0], self.Y.shape[1]))
        over_rows(
            kernels.place_by_diffusion, Q.shape[0], self.n_jobs, kernel_rows(self.X),
            np.arange(len(self.Y)), kernel_rows(Q), self.Y, self.unit, self.inverse_densities,
            self.lift, self.center, self.reach, coordinates,
        )  # fmt: skip
        return coordinates
