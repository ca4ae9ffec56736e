"""Error bars: the errors of training points that were left out give a conformal radius."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from outsample.trust.error_scale import NOTHING, ErrorScale, learnt_scale

LEVEL = 0.9
# With fewer training points left out, the spread of five images alone tells the scale.
LEAST_ROWS = 60
# Points with bars alike: groups of a tenth, each overlapping the next by a half, none smaller than
# this. In none may the coverage fall short by more than this part of what the level leaves.
GROUPS, LEAST_GROUP, SLACK = 10, 60, 0.5
# Errors below this part of the typical one are not told apart.
SMALLEST = 1e-3
LARGEST = float(np.finfo(np.float64).max)


class ErrorBars(NamedTuple):
    """A calibrated scale for the errors of placements.

    With m the expected logarithm of the error at the point, the radius is ``exp(m + max(shift,
    least(m)))``, but no more than the ``largest`` error seen. ``shift`` is a conformal quantile
    over training points; ``least``, linear between the ``knots`` (b,), is what points with an m
    like this one need. Where too few points were left out the radius is ``factor * (spread +
    floor)``, with the spread of the five nearest images.

    Beyond ``farthest``, the largest distance of a training point from its nearest neighbour, it is
    no less than the largest error. At twice that distance ``widest`` plus ``slope`` times the
    distance beyond has taken over, by a geometric mean on the way.
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
        """Error bars (q,), from the lengths (q, 5) around placements."""
        beyond = np.maximum(around[:, 0] - self.farthest, 0.0)
        with np.errstate(over="ignore"):  # the largest double stands for anything beyond it
            share = np.minimum(beyond / self.farthest, 1.0) if self.farthest > 0 else beyond > 0
            far = np.minimum(self.widest + self.slope * beyond, LARGEST)
        near = self.among(around)
        near = np.where(beyond > 0, np.maximum(near, self.largest), near)
        with np.errstate(over="ignore"):
            return np.minimum(near ** (1 - share) * far**share, LARGEST)

    def among(self, around: np.ndarray) -> np.ndarray:
        """Error bars (q,) of points that are no farther away than the training ones."""
        with np.errstate(over="ignore"):
            if not self.scale.values.size:
                return np.minimum(self.factor * (around[:, 3] + self.floor), LARGEST)
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
    """Error bars from training rows placed by the others.

    Their errors (s,) and the lengths (s, 5) around them, local Lipschitz estimates, the width of
    the map, and the share of true images that the bars are to hold.

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
    with np.errstate(over="ignore"):  # the largest double stands for anything beyond it
        ratios = np.minimum(errors / (spread + floor), LARGEST)
        factor = conformal_quantile(ratios, level)
        widest = min(factor * (widest + floor), LARGEST)
    none, largest, slope = np.empty(0), float(errors.max()), float(np.median(slopes))
    farthest, widest = float(around[:, 0].max()), max(widest, largest)
    bars = ErrorBars(NOTHING, 0.0, none, none, largest, factor, floor, slope, farthest, widest)
    if len(errors) < LEAST_ROWS or not errors.any():
        return bars
    logs = np.log(np.maximum(errors, SMALLEST * float(np.median(errors[errors > 0]))))
    scale, expected = learnt_scale(around, logs, n_jobs)
    excess = logs - expected
    knots, least = least_shifts(excess, expected, level)
    # A row that is held in any case is held whatever the shift.
    excess[excess <= np.interp(expected, knots, least)] = -np.inf
    shift = conformal_quantile(excess, level)
    return bars._replace(scale=scale, shift=shift, knots=knots, least=least)


def least_shifts(
    excess: np.ndarray, expected: np.ndarray, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return knots (b,), and the least shift that points with expectations like these need.

    Rows are taken in groups by their expected log error (s,), and the quantile of the excess (s,)
    of true over expected in each is what holds `SLACK` less than the level.
    """
    order = np.argsort(expected, kind="stable")
    excess, expected = excess[order], expected[order]
    size = min(max(len(order) // GROUPS, LEAST_GROUP), len(order))
    starts = np.unique(np.linspace(0, len(order) - size, 2 * GROUPS - 1).astype(int))
    # Rows with one expectation stay together: which of them came first says nothing.
    starts, ends = (
        np.searchsorted(expected, expected[starts], side="left"),
        np.searchsorted(expected, expected[starts + size - 1], side="right"),
    )
    groups = [slice(at, end) for at, end in zip(starts, ends, strict=True)]
    lowest = level - SLACK * min(level, 1 - level)
    middles = np.array([np.median(expected[group]) for group in groups])
    needed = np.array([conformal_quantile(excess[group], lowest) for group in groups])
    knots, first = np.unique(middles, return_index=True)
    return knots, np.maximum.reduceat(needed, first)


def conformal_quantile(scores: np.ndarray, level: float) -> float:
    """Value that a new score stays below with probability ``level``, if exchangeable.

    The ``ceil((s + 1) level)``-th smallest of s scores; the largest where s is too small.

    >>> conformal_quantile(np.arange(1.0, 10.0), 0.9)
    9.0
    """
    rank = min(int(np.ceil((len(scores) + 1) * level)), len(scores))
    return float(np.partition(scores, rank - 1)[rank - 1])


def lengths(rows: np.ndarray) -> np.ndarray:
    """Euclidean length (s,) of every row, of any size: squared in a unit of its own.

    >>> lengths(np.array([[3e200, 4e200]]))
    array([5.e+200])
    """
    largest = np.abs(rows).max(axis=1, initial=0.0)
    # A power of two, which rounds nothing; bounded, so that its inverse is a number.
    unit = np.ldexp(1.0, np.clip(np.frexp(largest)[1], -1000, 1000))
    return np.linalg.norm(rows / unit[:, None], axis=1) * unit
