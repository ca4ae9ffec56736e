"""Least squares of a map on functions that a subset of the points, the landmarks, spans.

The functions are covariances with the landmarks (`ProcessBasis`), or transition probabilities of a
diffusion to them (`DiffusionBasis`). A basis also defines the penalty of the coefficients.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import blas, cho_factor, cho_solve, solve_triangular

from outsample._compiled import affinity as diffusion_kernels
from outsample._compiled import correlated as process_kernels
from outsample._parallel import over_rows
from outsample.placers.diffusion import kernel_factor
from outsample.placers.kriging import COVARIANCE_KINDS, covariance_factor, covariance_of
from outsample.points import Points, kernel_rows
from outsample.spectral import affinity, transitions

# Rows whose products are summed at a time (rounding depends on it), and pairs of points.
SUMMED_ROWS = 1024
LANDMARK_CHUNK_PAIRS = 4096
# A row that no other row determines has leverage 1, which is lowered by this much.
MIN_FREEDOM = 1e-10
# Weight of the penalty of a diffusion, relative to the mean square of an independent function.
# Chosen on a diffusion map of 10,000 images: error 0.00304 with 1e-9, 0.00285 with 0.01.
DAMPING = 0.01


@dataclass(frozen=True, eq=False)
class ProcessLevel:
    """``sum_j c(|x - z_j| / unit) a_j`` over the landmarks, rows (m,) of the training points."""

    covariance: str
    unit: float
    landmarks: np.ndarray
    coefficients: np.ndarray

    def values(self, X: Points, Q: Points, n_jobs: int | None) -> np.ndarray:
        """Return the values (q, d) at queries; X are the training points."""
        values = np.empty((Q.shape[0], self.coefficients.shape[1]))
        over_rows(
            process_kernels.predict_landmarks, len(values), n_jobs, kernel_rows(X), self.landmarks,
            kernel_rows(Q), self.unit, COVARIANCE_KINDS[self.covariance], self.coefficients,
            values,
        )  # fmt: skip
        return values


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
        """Return the values (q, d) at queries; X are the training points."""
        q, d = Q.shape[0], self.images.shape[1]
        values = np.empty((q, d))
        over_rows(
            diffusion_kernels.place_by_diffusion, q, n_jobs, kernel_rows(X), self.landmarks,
            kernel_rows(Q), self.images, self.unit, self.inverse_densities, self.lift, np.zeros(d),
            self.reach, values,
        )  # fmt: skip
        return values


class ProcessBasis(NamedTuple):
    """Covariances with landmarks, rows of X.

    The part of the map that the landmarks cannot express is not noise, but least squares would
    treat it as noise. The ridge therefore is the mean share of the variance that the landmarks
    leave (Snelson and Ghahramani 2006 use the share of each point).
    """

    covariance: str
    nugget: float
    X: Points
    landmarks: np.ndarray
    unit: float
    n_jobs: int | None

    def functions(self, rows: Points) -> np.ndarray:
        """Return the covariances (q, m) of points with the landmarks."""
        matrix = affinity.distances(self.X[self.landmarks], rows, n_jobs=self.n_jobs)
        np.minimum(matrix, 1e3 * self.unit, out=matrix)  # the covariance is 0 beyond
        matrix /= self.unit
        return covariance_of(matrix, self.covariance)

    def factor(self) -> np.ndarray:
        """Return the Cholesky factor (m, m) of the penalty: the covariance of the landmarks."""
        Z = self.X[self.landmarks]
        return covariance_factor(lambda: self.functions(Z), self.nugget, "use fewer landmarks")

    def ridge(self, squares: float, n: int) -> float:
        """Return the weight of the penalty from the squares of independent functions at n rows."""
        return max(1 - squares / n, self.nugget, MIN_FREEDOM)

    def targets(self, X: Points, images: np.ndarray) -> np.ndarray:
        """Return the values (n, d) that the functions are fitted to: the images."""
        return images

    def fitted(self, coefficients: np.ndarray, reach: float) -> ProcessLevel:
        """Return the functions with coefficients (m, d)."""
        return ProcessLevel(self.covariance, self.unit, self.landmarks, coefficients)


class DiffusionBasis(NamedTuple):
    """Transition probabilities to landmarks Z (m, D) with images (m, d), over root degrees.

    As in `placers.diffusion`, with the densities of the landmarks and coefficients that are fitted
    to all points by least squares.
    """

    Z: Points
    landmarks: np.ndarray
    images: np.ndarray
    unit: float
    nugget: float
    kernel: transitions.Markov
    n_jobs: int | None

    @classmethod
    def of(
        cls, X: Points, landmarks: np.ndarray, images: np.ndarray, unit: float, nugget: float,
        n_jobs: int | None,
    ) -> DiffusionBasis:  # fmt: skip
        """Return the basis of landmarks, rows of X; images (n, d) are those of all rows."""
        Z = X[landmarks]
        matrix = affinity.distances(Z, n_jobs=n_jobs)
        matrix /= unit
        kernel = transitions.markov(affinity.gaussian_of(matrix, 1.0, out=matrix), alpha=1.0)
        return cls(Z, landmarks, images[landmarks], unit, nugget, kernel, n_jobs)

    def functions(self, rows: Points) -> np.ndarray:
        """Return probabilities (q, m) times the trust, over the root degrees of the landmarks."""
        probabilities, trust = self._probabilities(rows)
        probabilities *= trust
        probabilities /= self.kernel.root_degrees
        return probabilities

    def factor(self) -> np.ndarray:
        """Return the Cholesky factor (m, m) of the penalty: the diffusion among the landmarks."""
        return kernel_factor(self.kernel.conjugate, self.nugget)

    def ridge(self, squares: float, n: int) -> float:
        """Return the weight of the penalty from the squares of independent functions at n rows."""
        return DAMPING * squares / len(self.landmarks)

    def targets(self, X: Points, images: np.ndarray) -> np.ndarray:
        """Return images minus the landmarks' mean image, as far as the trust is below 1."""
        targets = np.empty_like(images)
        for start in range(0, len(images), SUMMED_ROWS):
            rows = slice(start, start + SUMMED_ROWS)
            probabilities, trust = self._probabilities(X[rows])
            targets[rows] = images[rows] - (1 - trust) * (probabilities @ self.images)
        return targets

    def fitted(self, coefficients: np.ndarray, reach: float) -> DiffusionLevel:
        """Return the functions with coefficients (m, d); no image is farther than the reach."""
        lift = coefficients / self.kernel.root_degrees[:, None] - self.images
        return DiffusionLevel(
            self.unit, self.landmarks, self.kernel.weights, self.images, lift, reach
        )

    def _probabilities(self, rows: Points) -> tuple[np.ndarray, np.ndarray]:
        """Return transition probabilities (q, m), and the trust (q, 1)."""
        lengths = affinity.distances(self.Z, rows, n_jobs=self.n_jobs)
        with np.errstate(over="ignore"):
            lengths /= self.unit
        np.minimum(lengths, 1e150, out=lengths)
        nearest = lengths.min(axis=1, keepdims=True)
        exponents = (lengths - nearest) * (lengths + nearest)
        zero_beyond = diffusion_kernels.ZERO_BEYOND
        np.minimum(exponents, zero_beyond**2, out=exponents)
        shares = np.exp(-exponents) * self.kernel.weights
        total = shares.sum(axis=1, keepdims=True)
        density = total * np.exp(-(np.minimum(nearest, zero_beyond) ** 2))
        trust = total.copy()
        diffusion_kernels.trusts(density.ravel(), trust)
        shares /= total
        return shares, trust


Basis = ProcessBasis | DiffusionBasis


class Solution(NamedTuple):
    """Cholesky factors of the penalty and of the normal equations, and coefficients (m, d)."""

    inner: np.ndarray
    system: tuple[np.ndarray, bool]
    coefficients: np.ndarray


def solve(basis: Basis, X: Points, targets: np.ndarray) -> Solution:
    """Return coefficients of targets (n, d), in the basis in which the functions are independent.

    ``a = L^-T (P P' + ridge)^-1 P y`` with ``P = L^-1 C``, C the functions (m, n) at all points, L
    the Cholesky factor of the penalty.
    """
    inner = basis.factor()
    m = len(inner)
    system, right = np.zeros((m, m), order="F"), np.zeros((m, targets.shape[1]))
    for start, stop, values in _chunks(basis, X):
        P = solve_triangular(inner, values.T, lower=True, overwrite_b=True, check_finite=False)
        system = blas.dsyrk(1.0, P, beta=1.0, c=system, lower=1, overwrite_c=1)
        right += P @ targets[start:stop]
    system[np.diag_indices(m)] += basis.ridge(float(np.trace(system)), len(targets))
    factor = cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
    solved = cho_solve(factor, right, check_finite=False)
    return Solution(inner, factor, _transform_back(inner, solved))


def leverages(
    basis: Basis, solution: Solution, X: Points, targets: np.ndarray, sample: np.ndarray,
    owners: np.ndarray, neighbors: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Return leverages of sampled rows (s,), those of pairs (p,), and all residuals (n, d).

    Pair i consists of row ``owners[i]`` of the sample and training row ``neighbors[i]``.
    """
    inner, factor, coefficients = solution
    P = basis.functions(X[sample]).T
    P = solve_triangular(inner, P, lower=True, overwrite_b=True, check_finite=False)
    hat = cho_solve(factor, P, check_finite=False)
    own = (P * hat).sum(axis=0)
    columns = np.ascontiguousarray(_transform_back(inner, hat).T)
    shared, residuals = np.empty(len(neighbors)), np.empty_like(targets)
    order = np.argsort(neighbors, kind="stable")
    for start, stop, values in _chunks(basis, X):
        residuals[start:stop] = targets[start:stop] - values @ coefficients
        first, last = np.searchsorted(neighbors[order], [start, stop])
        for at in range(first, last, LANDMARK_CHUNK_PAIRS):
            pairs = order[at : min(at + LANDMARK_CHUNK_PAIRS, last)]
            shared[pairs] = np.einsum(
                "pm,pm->p", values[neighbors[pairs] - start], columns[owners[pairs]]
            )
    return own, shared, residuals


def _chunks(basis: Basis, X: Points) -> Iterator[tuple[int, int, np.ndarray]]:
    n = X.shape[0]
    for start in range(0, n, SUMMED_ROWS):
        stop = min(start + SUMMED_ROWS, n)
        yield start, stop, basis.functions(X[start:stop])


def _transform_back(inner: np.ndarray, solved: np.ndarray) -> np.ndarray:
    return solve_triangular(inner, solved, lower=True, trans=1, check_finite=False)
