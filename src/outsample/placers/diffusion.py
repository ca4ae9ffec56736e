"""Extension by the transition probabilities of a diffusion over all training points.

The Nyström extension, made to stand beside the weightings: it interpolates, its leave-one-out
error comes in closed form, and away from the data it fades into a mean of the images.
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
    AllPointsPlacer,
    FittedAllPoints,
    distances_in,
    inverse_diagonal,
    regular_factor,
)
from outsample.placers.protocol import Arrays
from outsample.points import Points, kernel_rows
from outsample.records import Weights
from outsample.spectral import affinity, transitions

if TYPE_CHECKING:
    from outsample.placers.problem import Part, Problem

# Steps by which the ridge grows until double precision can factor the kernel.
LEAST_RIDGE = 1e-13
RIDGE_STEPS = (1.0, 1e2, 1e4, 1e6)


@dataclass(frozen=True)
class Diffusion(AllPointsPlacer):
    """Weighting by the transition probabilities of a diffusion, over all training points.

    ``f(x) = sum_j p(x, x_j) c_j`` with ``p`` proportional to ``exp(-|x - x_j|^2 / l^2)`` over the
    density at ``x_j``, and ``c`` such that the training points keep their images: the expansion
    of the map in the eigenfunctions of the diffusion, as in `NystroemExtension`.

    Attributes
    ----------
    length : float
        ``l``, in units of the typical distance to the 15th neighbour.
    ridge : float
        Eigenvalues below it count for nothing.

    Examples
    --------
    >>> from outsample import Diffusion, PCAExtension
    >>> smooth = PCAExtension(weighting=Diffusion(2.0))
    """

    length: float = 2.0
    ridge: float = 1e-9

    @property
    def weighting(self) -> Diffusion:
        """What `PCAExtension` takes as ``weighting`` to get this placer."""
        return self

    @property
    def first_level(self) -> tuple[str, float, float]:
        """A diffusion to landmarks."""
        return "diffusion", self.length, self.ridge

    def check(self) -> None:
        """Refuse parameters outside their range."""
        check_number("weighting.length", self.length, 0, np.inf, open_below=True)
        check_number("weighting.ridge", self.ridge, 0, 1)

    def fit(self, problem: Problem | Part, sample: np.ndarray) -> FittedDiffusion:
        """Expand the map, and tell what the others predict of the sample.

        The densities stay as they are when a row is left out.
        """
        Y, unit = problem.Y, problem.unit * self.length or problem.unit
        apart = distances_in(problem, unit)  # before they are squared
        kernel = transitions.markov(affinity.gaussian_of(apart, 1.0, out=apart), alpha=1.0)
        center = Y.mean(axis=0)
        f, roots = Y - center, kernel.root_degrees[:, None]
        lower = kernel_factor(kernel.conjugate, self.ridge)
        lift = cho_solve((lower, True), roots * f, check_finite=False) / roots - f
        leverage = inverse_diagonal(lower, sample)[:, None] - 1
        expanded = f[sample] - lift[sample] / np.maximum(leverage, transitions.MIN_LEVERAGE)
        means, trust = _others(kernel, f, sample)
        residuals = f[sample] - means - trust * (expanded - means)
        return FittedDiffusion(
            self, problem.X, Y, problem.n_jobs, Y[sample] - residuals, unit, kernel.weights, lift,
            center, farthest(f),
        )  # fmt: skip


def kernel_factor(S: np.ndarray, ridge: float) -> np.ndarray:
    """Cholesky factor of a kernel (n, n), the ridge as large as double precision needs."""
    lower = regular_factor(
        lambda: S.copy(order="F"),
        lambda step, corner: max(ridge, LEAST_RIDGE) * step,
        RIDGE_STEPS,
    )
    if lower is None:
        raise ValueError(
            "the kernel of all training points cannot be factored; give a larger ridge."
        )
    return lower


def farthest(f: np.ndarray) -> float:
    """Length of the longest row."""
    largest = np.abs(f).max() or 1.0
    return float(largest * np.sqrt(((f / largest) ** 2).sum(axis=1).max()))


def _others(
    kernel: transitions.Markov, f: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean (s, d) of the others' images under the transition probabilities, and the trust."""
    roots, own = kernel.root_degrees, np.arange(len(rows))
    shares = kernel.conjugate[rows] * roots
    shares[own, rows] = 0.0
    shares *= (roots / kernel.weights)[rows, None]
    density = shares.sum(axis=1)
    means = shares @ f / np.where(density > 0, density, 1.0)[:, None]
    trust = np.empty((len(rows), 1))
    kernels.trusts(density, trust)
    return means, trust


@dataclass(frozen=True, eq=False)
class FittedDiffusion(FittedAllPoints):
    """The expansion: ``inverse_densities`` (n,), ``lift`` (n, d) coefficients - images.

    ``reach`` is the largest distance of an image from their mean, ``center`` (d,).
    """

    unit: float
    inverse_densities: np.ndarray
    lift: np.ndarray
    center: np.ndarray
    reach: float

    def place(
        self, Q: Points, near: Neighborhoods | None, weights: Weights | None = None
    ) -> np.ndarray:
        """Values (q, d) of the expansion at the queries, kept near the images where data end.

        ``sum_j p(x, x_j) (psi(x_j) + t(x) (c_j - psi(x_j)))``. The trust t falls from 1 to 0 as
        the kernel's sum over the training points, which is about 1 among them, falls from 0.1 to
        0.01: coefficients of either sign no longer cancel there. Nothing is placed further from
        the mean of the images than twice the furthest of them.
        """
        coordinates = np.empty((Q.shape[0], self.Y.shape[1]))
        over_rows(
            kernels.place_by_diffusion, Q.shape[0], self.n_jobs, kernel_rows(self.X),
            np.arange(len(self.Y)), kernel_rows(Q), self.Y, self.unit, self.inverse_densities,
            self.lift, self.center, self.reach, coordinates,
        )  # fmt: skip
        return coordinates

    def arrays(self) -> Arrays:
        """Length scale, one over the densities, coefficients less images, center and reach."""
        return {
            "unit": np.array(self.unit),
            "inverse_densities": self.inverse_densities,
            "lift": self.lift,
            "center": self.center,
            "reach": np.array(self.reach),
        }
