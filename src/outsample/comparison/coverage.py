"""Do error bars hold what they promise, and everywhere? Coverage by tenths of the points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from outsample.comparison.holdout import Case
from outsample.neighbors.index import NeighborIndex

TENTHS = 10
# The distance to this training point tells how dense a place is.
DENSITY_NEIGHBOR = 15


class Coverage(NamedTuple):
    """Which share of hidden points has its true image within the error bar, overall and by tenths.

    Attributes
    ----------
    share : float
        Of all hidden points.
    width : float
        Mean error bar.
    isolation, density, bar : ndarray of shape (10,)
        Shares of the tenth with the smallest to that with the largest ``Placement.isolation``, the
        densest to the sparsest (by the distance to the 15th training point), and the narrowest to
        the widest bar; NaN where a tenth has no points.
    """

    share: float
    width: float
    isolation: np.ndarray
    density: np.ndarray
    bar: np.ndarray

    @property
    def lowest(self) -> float:
        """Share of the tenth that is served worst, of any kind."""
        return float(np.nanmin([self.isolation, self.density, self.bar]))


def coverage(fitted: Any, case: Case) -> Coverage:
    """Place the hidden points of a case by an extension that is fitted to it, and count.

    Parameters
    ----------
    fitted : PCAExtension, or what has a ``place`` like it
        Fitted to ``case.X`` and ``case.Y``.
    case : Case
        Points, their images, hidden points and their true images.

    Returns
    -------
    Coverage

    Examples
    --------
    >>> from outsample import PCAExtension
    >>> X = np.random.default_rng(0).normal(size=(900, 2))
    >>> Y, plain = np.sin(X), {"weighting": "distance", "order": 0, "loss": "squared"}
    >>> fitted = PCAExtension(n_neighbors=5, **plain).fit(X[:500], Y[:500])
    >>> found = coverage(fitted, Case(X[:500], Y[:500], X[500:], Y[500:]))
    >>> 0.85 < found.share < 0.95, found.lowest > 0.7
    (True, True)
    """
    placed = fitted.place(case.X_new)
    held = np.linalg.norm(placed.coordinates - case.truth, axis=1) <= placed.error_bar
    k = min(DENSITY_NEIGHBOR, case.X.shape[0])
    apart = NeighborIndex(case.X).nearest(case.X_new, k).distances[k - 1 :: k]
    tenths = [_by_tenths(held, by) for by in (placed.isolation, apart, placed.error_bar)]
    return Coverage(float(held.mean()), float(placed.error_bar.mean()), *tenths)


def mean_coverage(parts: Sequence[Coverage]) -> Coverage:
    """Mean over splits, with as many hidden points in each."""
    share, width, *tenths = zip(*parts, strict=True)
    means = [_known_mean(np.array(part)) for part in tenths]
    return Coverage(float(np.mean(share)), float(np.mean(width)), *means)


def measure_coverage(build: Callable[[], Any], cases: Sequence[Case]) -> Coverage:
    """Fit an extension to each case, and count over all of them.

    Parameters
    ----------
    build : callable
        Returns an unfitted extension that has ``place``, such as `PCAExtension` itself.
    cases : sequence of Case
        Splits of a map.

    Returns
    -------
    Coverage
        Tenths are those of each split.
    """
    return mean_coverage([coverage(build().fit(case.X, case.Y), case) for case in cases])


def _by_tenths(held: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Shares (10,) of points in the order of a quantity (q,)."""
    parts = np.array_split(held[np.argsort(by, kind="stable")], TENTHS)
    return np.array([part.mean() if len(part) else np.nan for part in parts])


def _known_mean(shares: np.ndarray) -> np.ndarray:
    """Mean (10,) over splits (m, 10) of what is known."""
    known = np.isfinite(shares)
    sums = np.where(known, shares, 0.0).sum(axis=0)
    return np.where(known.any(axis=0), sums / np.maximum(known.sum(axis=0), 1), np.nan)
