"""Error bars: conformal radii from the leave-one-out errors of training points."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from outsample.trust.error_scale import NO_SCALE, ErrorScale, fitted_scale

LEVEL = 0.9
# With fewer leave-one-out errors, the scale is the spread of the five nearest images alone.
MIN_SCALE_ROWS = 60
# Groups of points with similar error bars: a tenth of the points, each overlapping the next by a
# half, with at least this many rows. The miscoverage of a group may exceed that of the level by at
# most this share.
GROUPS, MIN_GROUP_ROWS, COVERAGE_SLACK = 10, 60, 0.5
# Smaller errors, relative to the median, are raised to this share.
SMALLEST_ERROR = 1e-3
LARGEST_DOUBLE = float(np.finfo(np.float64).max)


class ErrorBars(NamedTuple):
    """Calibrated error bars of placements.

    With m the expected logarithm of the error at the point, the radius is ``exp(m + max(shift,
    least(m)))``, at most the ``largest`` leave-one-out error. ``shift`` is a conformal quantile
    over training points; ``least``, linear between the ``knots`` (b,), is the shift that points
    with a similar m need. With too few leave-one-out errors the radius is ``factor * (spread +
    floor)``, with the spread of the five nearest images.

    Beyond ``farthest``, the largest distance of a training point from its nearest neighbour, it is
    at least the largest error. From twice that distance on it is ``widest`` plus ``slope`` times
    the distance beyond, with a geometric mean in between.
    """

    scale: ErrorScale
    shift: float
    knots: np.ndarray
    least: np.ndarray
    largest: float
    factor: float
    floor: float
    slope: float
    farthest: float
    widest: float

    def radii(self, around: np.ndarray) -> np.ndarray:
        """Return error bars (q,) from the lengths (q, 5) around placements."""
        beyond = np.maximum(around[:, 0] - self.farthest, 0.0)
        with np.errstate(over="ignore"):  # the largest double instead of infinity
            share = np.minimum(beyond / self.farthest, 1.0) if self.farthest > 0 else beyond > 0
            far = np.minimum(self.widest + self.slope * beyond, LARGEST_DOUBLE)
        among = self.among(around)
        among = np.where(beyond > 0, np.maximum(among, self.largest), among)
        with np.errstate(over="ignore"):
            return np.minimum(among ** (1 - share) * far**share, LARGEST_DOUBLE)

    def scaled(self, factor: float) -> ErrorBars:
        """Return error bars whose radii are ``factor`` times as large everywhere."""
        shift = float(np.log(factor))
        return self._replace(
            shift=self.shift + shift, least=self.least + shift, largest=self.largest * factor,
            factor=self.factor * factor, slope=self.slope * factor, widest=self.widest * factor,
        )  # fmt: skip

    def among(self, around: np.ndarray) -> np.ndarray:
        """Return error bars (q,) of points that are no more isolated than the training points."""
        with np.errstate(over="ignore"):
            if not self.scale.values.size:
                return np.minimum(self.factor * (around[:, 3] + self.floor), LARGEST_DOUBLE)
            logs = self.scale.log_errors(around)
            logs += np.maximum(self.shift, np.interp(logs, self.knots, self.least))
            return np.minimum(np.exp(logs), self.largest)


def calibrated_bars(
    errors: np.ndarray,
    around: np.ndarray,
    slopes: np.ndarray,
    widest: float,
    level: float = LEVEL,
    n_jobs: int | None = None,
) -> ErrorBars:
    """Return error bars from the leave-one-out errors of training rows.

    The arguments are the errors (s,), the lengths (s, 5) around the rows, local Lipschitz
    estimates, the width of the map, and the coverage of the error bars.

    References
    ----------
    J. Lei, M. G'Sell, A. Rinaldo, R. J. Tibshirani, L. Wasserman, "Distribution-free predictive
    inference for regression", J. Am. Stat. Assoc. 113 (2018), for scores over a predicted scale;
    R. F. Barber, E. J. Candes, A. Ramdas, R. J. Tibshirani, "Predictive inference with the
    jackknife+", Ann. Stat. 49 (2021), for points left out.
    """
    spread = around[:, 3]
    floor = 0.1 * float(np.median(spread))
    if floor == 0.0:
        floor = float(spread.max()) or 1.0
    with np.errstate(over="ignore"):  # the largest double instead of infinity
        ratios = np.minimum(errors / (spread + floor), LARGEST_DOUBLE)
        factor = conformal_quantile(ratios, level)
        widest = min(factor * (widest + floor), LARGEST_DOUBLE)
    no_values, largest, slope = np.empty(0), float(errors.max()), float(np.median(slopes))
    farthest, widest = float(around[:, 0].max()), max(widest, largest)
    bars = ErrorBars(
        scale=NO_SCALE, shift=0.0, knots=no_values, least=no_values, largest=largest,
        factor=factor, floor=floor, slope=slope, farthest=farthest, widest=widest,
    )  # fmt: skip
    if len(errors) < MIN_SCALE_ROWS or not errors.any():
        return bars
    logs = np.log(np.maximum(errors, SMALLEST_ERROR * float(np.median(errors[errors > 0]))))
    scale, expected = fitted_scale(around, logs, n_jobs)
    excess = logs - expected
    knots, least = least_shifts(excess, expected, level)
    # Rows covered by the least shift are covered whatever the shift.
    excess[excess <= np.interp(expected, knots, least)] = -np.inf
    shift = conformal_quantile(excess, level)
    return bars._replace(scale=scale, shift=shift, knots=knots, least=least)


def least_shifts(
    excess: np.ndarray, expected: np.ndarray, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return knots (b,) and the smallest shift needed by points with these expected errors.

    Rows are grouped by expected log error (s,). The shift of a group is the quantile of the excess
    (s,) of true over expected log error whose coverage is `COVERAGE_SLACK` below the level.
    """
    order = np.argsort(expected, kind="stable")
    excess, expected = excess[order], expected[order]
    size = min(max(len(order) // GROUPS, MIN_GROUP_ROWS), len(order))
    starts = np.unique(np.linspace(0, len(order) - size, 2 * GROUPS - 1).astype(int))
    # Rows with equal expectations belong to the same groups, since their order is arbitrary.
    starts, ends = (
        np.searchsorted(expected, expected[starts], side="left"),
        np.searchsorted(expected, expected[starts + size - 1], side="right"),
    )
    groups = [slice(at, end) for at, end in zip(starts, ends, strict=True)]
    lowest = level - COVERAGE_SLACK * min(level, 1 - level)
    middles = np.array([np.median(expected[group]) for group in groups])
    needed = np.array([conformal_quantile(excess[group], lowest) for group in groups])
    knots, first = np.unique(middles, return_index=True)
    return knots, np.maximum.reduceat(needed, first)


def conformal_quantile(scores: np.ndarray, level: float) -> float:
    """Return the value that a new exchangeable score does not exceed with probability ``level``.

    The ``ceil((s + 1) level)``-th smallest of s scores; the largest if s is too small.

    >>> conformal_quantile(np.arange(1.0, 10.0), 0.9)
    9.0
    """
    rank = min(int(np.ceil((len(scores) + 1) * level)), len(scores))
    return float(np.partition(scores, rank - 1)[rank - 1])


def lengths(rows: np.ndarray) -> np.ndarray:
    """Return the Euclidean length (s,) of every row, without overflow.

    >>> lengths(np.array([[3e200, 4e200]]))
    array([5.e+200])
    """
    largest = np.abs(rows).max(axis=1, initial=0.0)
    # A power of two, which does not round; bounded, so that its inverse is finite.
    unit = np.ldexp(1.0, np.clip(np.frexp(largest)[1], -1000, 1000))
    return np.linalg.norm(rows / unit[:, None], axis=1) * unit
