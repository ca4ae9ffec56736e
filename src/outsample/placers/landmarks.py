"""Least squares of a map on the covariances of all points with a few of them, the landmarks.

What the landmarks cannot express of the training points is part of the map, not noise; least
squares that do not know of it would bend the smooth part after it. The ridge therefore is the share
of the variance that the landmarks leave, on average (as in the independent conditionals of Snelson
and Ghahramani 2006, there for each point).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import blas, cho_factor, cho_solve, solve_triangular

from outsample.kernel import affinity
from outsample.placers.kriging import covariance_factor, covariance_of
from outsample.points import Points

# Rows of the covariance with the landmarks that are summed at once, and pairs of rows.
BLOCK_ROWS = 1024
BLOCK_PAIRS = 4096
# A row that the others say nothing about has leverage 1; it is taken for this much less.
LEAST_FREEDOM = 1e-10


class Solved(NamedTuple):
    """Cholesky factors of the landmarks' covariance and of the system, coefficients (m, d)."""

    inner: np.ndarray
    system: tuple[np.ndarray, bool]
    coefficients: np.ndarray


class Landmarks(NamedTuple):
    """Least squares of all points on the covariances with landmarks."""

    kind: str
    nugget: float
    X: Points
    landmarks: np.ndarray
    unit: float
    n_jobs: int | None

    def solve(self, images: np.ndarray) -> Solved:
        """Coefficients of images (n, d), in the basis in which the landmarks are independent.

        ``a = L^-T (P P' + ridge)^-1 P y`` with ``P = L^-1 C``, C the covariances (m, n) of the
        landmarks with all points, L the Cholesky factor of those among themselves.
        """
        Z, m = self.X[self.landmarks], len(self.landmarks)
        inner = covariance_factor(
            lambda: self.covariances(Z), self.nugget, "use fewer landmarks"
        )
        system, right = np.zeros((m, m), order="F"), np.zeros((m, images.shape[1]))
        for start, stop, block in self._blocks(len(images)):
            P = solve_triangular(inner, block.T, lower=True, overwrite_b=True, check_finite=False)
            system = blas.dsyrk(1.0, P, beta=1.0, c=system, lower=1, overwrite_c=1)
            right += P @ images[start:stop]
        ridge = max(1 - np.trace(system) / len(images), self.nugget, LEAST_FREEDOM)
        system[np.diag_indices(m)] += ridge
        factor = cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
        solved = cho_solve(factor, right, check_finite=False)
        return Solved(inner, factor, _back(inner, solved))

    def leverages(
        self, solved: Solved, images: np.ndarray, sample: np.ndarray, owners: np.ndarray,
        others: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
        """Leverages of sampled rows (s,), those of pairs of one and another row, all residuals."""
        inner, factor, coefficients = solved
        P = self.covariances(self.X[sample]).T
        P = solve_triangular(inner, P, lower=True, overwrite_b=True, check_finite=False)
        hat = cho_solve(factor, P, check_finite=False)
        own = (P * hat).sum(axis=0)
        columns = np.ascontiguousarray(_back(inner, hat).T)
        shared, residuals = np.empty(len(others)), np.empty_like(images)
        order = np.argsort(others, kind="stable")
        for start, stop, block in self._blocks(len(images)):
            residuals[start:stop] = images[start:stop] - block @ coefficients
            first, last = np.searchsorted(others[order], [start, stop])
            for at in range(first, last, BLOCK_PAIRS):
                pairs = order[at : min(at + BLOCK_PAIRS, last)]
                shared[pairs] = np.einsum(
                    "pm,pm->p", block[others[pairs] - start], columns[owners[pairs]]
                )
        return own, shared, residuals

    def covariances(self, rows: Points) -> np.ndarray:
        """Covariances (q, m) of points with the landmarks."""
        apart = affinity.distances(self.X[self.landmarks], rows, n_jobs=self.n_jobs)
        np.minimum(apart, 1e3 * self.unit, out=apart)  # nothing is left beyond
        apart /= self.unit
        return covariance_of(apart, self.kind)

    def _blocks(self, n: int) -> Iterator[tuple[int, int, np.ndarray]]:
        for start in range(0, n, BLOCK_ROWS):
            stop = min(start + BLOCK_ROWS, n)
            yield start, stop, self.covariances(self.X[start:stop])


def _back(inner: np.ndarray, solved: np.ndarray) -> np.ndarray:
    return solve_triangular(inner, solved, lower=True, trans=1, check_finite=False)
