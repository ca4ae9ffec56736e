"""Coverage of error bars, overall and by deciles of the points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from outsample.comparison.holdout import Case
from outsample.neighbors.index import NeighborIndex

N_DECILES = 10
# The distance to this nearest training point measures density.
DENSITY_NEIGHBOR = 15


class Coverage(NamedTuple):
    """Share of hidden points whose true position is within the error bar, overall and by deciles.

    Attributes
    ----------
    share : float
        Coverage of all hidden points.
    width : float
        Mean error bar.
    isolation, density, bar : ndarray of shape (10,)
        Coverage by deciles of ``Placement.isolation`` (smallest first), of density (densest first,
        measured by the distance to the 15th training point), and of the error bar (narrowest
        first); NaN for a decile without points.
    """

    share: float
    width: float
    isolation: np.ndarray
    density: np.ndarray
    bar: np.ndarray

    @property
    def lowest(self) -> float:
        """Lowest coverage of any decile."""
        return float(np.nanmin([self.isolation, self.density, self.bar]))


def coverage(fitted: Any, case: Case) -> Coverage:
    """Return the coverage of a fitted extension's error bars on the hidden points of a case.

    Parameters
    ----------
    fitted : PCAExtension, or an estimator with the same ``place``
        Fitted to ``case.X`` and ``case.Y``.
    case : Case
        Training points and their map, hidden points and their true positions.

    Returns
    -------
    Coverage

    Examples
    --------
    >>> from outsample import PCAExtension
    >>> X = np.random.default_rng(0).normal(size=(900, 2))
    >>> Y, plain = np.sin(X), {"weighting": "distance", "order": 0, "loss": "squared"}
    >>> fitted = PCAExtension(n_neighbors=5, **plain).fit(X[:500], Y[:500])
    >>> result = coverage(fitted, Case(X[:500], Y[:500], X[500:], Y[500:]))
    >>> 0.85 < result.share < 0.95, result.lowest > 0.7
    (True, True)
    """
    placed = fitted.place(case.X_new)
    covered = np.linalg.norm(placed.coordinates - case.truth, axis=1) <= placed.error_bar
    k = min(DENSITY_NEIGHBOR, case.X.shape[0])
    sparsity = NeighborIndex(case.X).nearest(case.X_new, k).distances[k - 1 :: k]
    deciles = [_by_deciles(covered, by) for by in (placed.isolation, sparsity, placed.error_bar)]
    return Coverage(float(covered.mean()), float(placed.error_bar.mean()), *deciles)


def mean_coverage(splits: Sequence[Coverage]) -> Coverage:
    """Return the mean over splits with equal numbers of hidden points."""
    share, width, *deciles = zip(*splits, strict=True)
    means = [_finite_mean(np.array(shares)) for shares in deciles]
    return Coverage(float(np.mean(share)), float(np.mean(width)), *means)


def measure_coverage(build: Callable[[], Any], cases: Sequence[Case]) -> Coverage:
    """Fit an extension to each case, and return the mean coverage.

    Parameters
    ----------
    build : callable
        Returns an unfitted extension that has ``place``, such as `PCAExtension` itself.
    cases : sequence of Case
        Splits of a map.

    Returns
    -------
    Coverage
        Deciles are those of each split.
    """
    return mean_coverage([coverage(build().fit(case.X, case.Y), case) for case in cases])


def _by_deciles(covered: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Return the coverage (10,) by deciles of a quantity (q,)."""
    parts = np.array_split(covered[np.argsort(by, kind="stable")], N_DECILES)
    return np.array([part.mean() if len(part) else np.nan for part in parts])


def _finite_mean(shares: np.ndarray) -> np.ndarray:
    """Return the means (10,) of the finite values of the splits (m, 10)."""
    counts = np.isfinite(shares).sum(axis=0)
    return np.where(counts > 0, np.nansum(shares, axis=0) / np.maximum(counts, 1), np.nan)
