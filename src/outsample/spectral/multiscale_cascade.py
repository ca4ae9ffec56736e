"""Projections on columns of successively finer Gaussian kernels, and their useful number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import qr, solve_triangular

from outsample.points import Points, root_mean_square
from outsample.spectral import affinity
from outsample.spectral.interpolative import rank_bound, sampled_columns
from outsample.spectral.scales import even_rows, median_nearest

# Columns with a pivot below this multiple of delta, relative to the first pivot, are dropped.
PIVOT_TOLERANCE = 1e-3
# At this multiple of the squared nearest-neighbour distance a kernel is the identity.
FINEST_SCALE = 1 / 64
# Folds of the cross-validation, and its rows at most.
VALIDATION_FOLDS = 4
VALIDATION_ROWS = 800
# If the last error is within this share of the smallest, the levels are not limited.
EQUAL_ERRORS = 0.02


class Level(NamedTuple):
    """One scale: sampled rows (l,), coefficients (l, d), and the training error after it."""

    scale: float
    rows: np.ndarray
    coefficients: np.ndarray
    error: float


class Cascade(NamedTuple):
    """Parameters of the multiscale projections (Algorithm 7.3)."""

    scale: float
    delta: float
    tolerance: float
    max_levels: int
    seed: int

    def levels(self, X: Points, f: np.ndarray, n_jobs: int | None = None) -> Iterator[Level]:
        """Yield the projections of a centred map f (n, d) of points (n, D), scale by scale.

        The error is the root mean square of the residual over that of f. The last level has an
        error below the tolerance, or the finest scale.
        """
        n, size = X.shape[0], root_mean_square(f) or 1.0
        sides, distances = _sides(X), affinity.distances(X, n_jobs=n_jobs)
        finest = max(FINEST_SCALE * median_nearest(X, 1) ** 2, 1e-290)
        scale = self.scale
        for level in range(self.max_levels):
            if level and scale < finest:
                return
            kernel = affinity.gaussian_of(distances, scale)
            expected = rank_bound(sides, scale, self.delta, n)
            rows = sampled_columns(kernel, self.delta, expected, self.seed)
            basis, upper = qr(kernel[:, rows], mode="economic", check_finite=False)
            del kernel
            # The most important columns come first; the dropped ones add rounding errors only.
            pivots = np.abs(np.diag(upper))
            small = np.flatnonzero(pivots <= PIVOT_TOLERANCE * self.delta * pivots[0])
            rank = int(small[0]) if len(small) else len(pivots)
            part = basis[:, :rank].T @ f
            f = f - basis[:, :rank] @ part
            c = solve_triangular(upper[:rank, :rank], part, check_finite=False)
            error = root_mean_square(f) / size
            yield Level(scale, rows[:rank], c, error)
            if error <= self.tolerance:
                return
            scale /= 2

    def levels_that_pay(self, X: Points, f: np.ndarray, n_jobs: int | None = None) -> int:
        """Return the number of levels with the smallest cross-validation error, or `max_levels`.

        The error is the mean distance of hidden images from their predictions, in four folds of at
        most 800 rows. Closed-form leave-one-out errors do not work here: with fixed residuals they
        always favour more levels, recomputed at every level fewer than half.
        """
        rows = even_rows(X.shape[0], VALIDATION_ROWS)
        X, f = X[rows], f[rows]
        totals: list[np.ndarray] = []
        for fold in range(VALIDATION_FOLDS):
            hidden = np.arange(len(rows)) % VALIDATION_FOLDS == fold
            totals.append(self._errors(X[~hidden], f[~hidden], X[hidden], f[hidden], n_jobs))
        longest = max(len(errors) for errors in totals)
        # A fold that ends early keeps its last error at finer scales.
        errors = sum(np.r_[e, np.full(longest - len(e), e[-1])] for e in totals)
        smallest = np.min(errors)
        if errors[-1] <= smallest * (1 + EQUAL_ERRORS):
            return self.max_levels
        return int(np.argmax(errors <= smallest * (1 + 1e-9)))

    def _errors(
        self, X: Points, f: np.ndarray, Q: Points, g: np.ndarray, n_jobs: int | None
    ) -> np.ndarray:
        """Return the sum of the errors of hidden images g (q, d) after 0, 1, ... levels."""
        residuals = g - f.mean(axis=0)
        errors = [float(np.hypot.reduce(residuals, axis=1).sum())]
        for level in self.levels(X, f - f.mean(axis=0), n_jobs):
            residuals = residuals - affinity.expansion(
                X[level.rows], Q, level.scale, level.coefficients, n_jobs=n_jobs
            )
            errors.append(float(np.hypot.reduce(residuals, axis=1).sum()))
        return np.array(errors)


def _sides(X: Points) -> np.ndarray:
    """Return the sides of the box along the principal axes, which rotations do not change."""
    if sparse.issparse(X):
        return (X.max(axis=0) - X.min(axis=0)).toarray().ravel()
    X = X - X.mean(axis=0)
    return np.ptp(X @ np.linalg.eigh(X.T @ X)[1], axis=0)
