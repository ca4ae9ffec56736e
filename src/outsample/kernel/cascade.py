"""Projections on columns of ever finer Gaussian kernels, and how many of them pay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import qr, solve_triangular

from outsample.kernel import affinity
from outsample.kernel.interpolative import rank_bound, sampled_columns
from outsample.kernel.scales import even_rows, median_nearest
from outsample.points import Points, root_mean_square

# Columns whose part across the others is below this part of delta, relative to the first, are cut.
CUT = 1e-3
# At this part of the squared distance of nearest neighbours a kernel is the identity.
FINEST = 1 / 64
# Cross-validation leaves out each of so many parts of at most so many rows.
FOLDS = 4
ROWS = 800
# Errors that differ by less than this share count as equal: the scale goes on.
SAME = 0.02


class Level(NamedTuple):
    """One scale: sampled rows (l,), their coefficients (l, d), and the training error after it."""

    scale: float
    rows: np.ndarray
    coefficients: np.ndarray
    error: float


class Cascade(NamedTuple):
    """How projections follow one another (Algorithm 7.3)."""

    scale: float
    delta: float
    tolerance: float
    max_levels: int
    seed: int

    def levels(self, X: Points, f: np.ndarray, n_jobs: int | None = None) -> Iterator[Level]:
        """Project a centred map f (n, d) of points (n, D), scale by scale.

        The error is the root mean square of what is left over that of f; the last level has one
        below the tolerance, or no finer kernel to follow.
        """
        n, size = X.shape[0], root_mean_square(f) or 1.0
        sides, apart = _sides(X), affinity.distances(X, n_jobs=n_jobs)
        finest = max(FINEST * median_nearest(X, 1) ** 2, 1e-290)
        scale = self.scale
        for level in range(self.max_levels):
            if level and scale < finest:
                return
            kernel = affinity.gaussian_of(apart, scale)
            expected = rank_bound(sides, scale, self.delta, n)
            rows = sampled_columns(kernel, self.delta, expected, self.seed)
            basis, upper = qr(kernel[:, rows], mode="economic", check_finite=False)
            del kernel
            # The most important columns come first: those behind the cut add rounding only.
            pivots = np.abs(np.diag(upper))
            small = np.flatnonzero(pivots <= CUT * self.delta * pivots[0])
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
        """Levels with the least error in cross-validation; `max_levels` if the last are best.

        The mean distance of hidden images from their places, in four folds of at most 800 rows.
        Closed forms of leaving one row out do not serve: with the residuals as they are they
        always ask for more levels, and leaving out at every level for fewer than half.
        """
        chosen = even_rows(X.shape[0], ROWS)
        X, f = X[chosen], f[chosen]
        totals: list[np.ndarray] = []
        for fold in range(FOLDS):
            hidden = np.arange(len(chosen)) % FOLDS == fold
            totals.append(self._errors(X[~hidden], f[~hidden], X[hidden], f[hidden], n_jobs))
        longest = max(len(errors) for errors in totals)
        # A fold that ends early has nothing to add at finer scales.
        errors = sum(np.r_[e, np.full(longest - len(e), e[-1])] for e in totals)
        least = np.min(errors)
        if errors[-1] <= least * (1 + SAME):
            return self.max_levels
        return int(np.argmax(errors <= least * (1 + 1e-9)))

    def _errors(
        self, X: Points, f: np.ndarray, Q: Points, g: np.ndarray, n_jobs: int | None
    ) -> np.ndarray:
        """Sum of the errors of hidden images g (q, d) after 0, 1, ... levels."""
        left = g - f.mean(axis=0)
        errors = [float(np.hypot.reduce(left, axis=1).sum())]
        for level in self.levels(X, f - f.mean(axis=0), n_jobs):
            left = left - affinity.expansion(
                X[level.rows], Q, level.scale, level.coefficients, n_jobs=n_jobs
            )
            errors.append(float(np.hypot.reduce(left, axis=1).sum()))
        return np.array(errors)


def _sides(X: Points) -> np.ndarray:
    """Sides of the box along the principal axes, so that turning the points changes nothing."""
    if sparse.issparse(X):
        return (X.max(axis=0) - X.min(axis=0)).toarray().ravel()
    X = X - X.mean(axis=0)
    return np.ptp(X @ np.linalg.eigh(X.T @ X)[1], axis=0)
