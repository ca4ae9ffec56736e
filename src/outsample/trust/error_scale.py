"""Expected error of a placement, from the lengths around the point.

Five lengths are available at every point: the distances of the nearest, the fifth and the fifteenth
training point, and the spreads of the five and the fifteen nearest images around the placement. The
logarithm of the error is modelled as a sum of five step functions, one per length, fitted to
leave-one-out errors by boosting of stumps (J. H. Friedman, "Greedy function approximation: a
gradient boosting machine", Ann. Stat. 29 (2001)). Four of them are non-decreasing; that of the
fifteenth distance, a measure of density, need not be: on a rolled sheet the dense regions are the
curved ones.

Step functions depend on the order of lengths only, so that units do not matter. The constants were
chosen on synthetic maps (normal, uniform, t-distributed and swiss-roll points under smooth
functions, a torn map); the guide reports the figures on other maps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from outsample._compiled import bounds as kernels
from outsample._compiled import stumps as boosting
from outsample._parallel import over_rows
from outsample.neighbors.ties import TIE_TOLERANCE
from outsample.records import Neighbors

# Numbers of neighbours whose distances and images are used.
SIZES = (5, 15)
# Which of the five step functions are non-decreasing.
RISING = np.array([True, True, False, True, True])
# Steps of a function, at most, and training points on either side of a cut, at least.
MAX_STEPS, MIN_STEP_ROWS = 32, 20
# Rounds of boosting, at most, and the learning rate.
MAX_BOOSTING_ROUNDS, LEARNING_RATE = 240, 0.1
# The smallest number of rounds whose loss is within this share of the best is used.
LOSS_TOLERANCE = 0.01
CROSS_FITTING_FOLDS = 5


class ErrorScale(NamedTuple):
    """Step functions of the lengths around a point; their sum is the expected log error.

    ``cuts`` (5, b - 1) ascend, ``values`` (5, b) are between them; both are empty if no scale was
    fitted.
    """

    cuts: np.ndarray
    values: np.ndarray

    def log_errors(self, lengths: np.ndarray) -> np.ndarray:
        """Return the logarithm of the expected error (q,) from lengths (q, 5)."""
        logs = np.zeros(len(lengths))
        for cuts, values, length in zip(self.cuts, self.values, lengths.T, strict=True):
            logs += values[np.searchsorted(cuts, length)]
        return logs


NO_SCALE = ErrorScale(np.empty((len(RISING), 0)), np.empty((len(RISING), 0)))


def lengths_around(
    Y: np.ndarray, neighbors: Neighbors, coordinates: np.ndarray, n_jobs: int | None = None
) -> np.ndarray:
    """Return the lengths (q, 5) around placements.

    These are the distances of the first, fifth and fifteenth neighbour, and the root mean square
    distance of the five and the fifteen nearest images, ties included, from the placement. With
    fewer neighbours the last one is used.
    """
    lengths = np.empty((len(coordinates), 1 + 2 * len(SIZES)))
    over_rows(
        kernels.lengths_around, len(lengths), n_jobs, Y, neighbors.indptr, neighbors.indices,
        neighbors.distances, *SIZES, 1 + TIE_TOLERANCE, coordinates, lengths,
    )  # fmt: skip
    return lengths


def fitted_scale(
    lengths: np.ndarray, logs: np.ndarray, n_jobs: int | None = None
) -> tuple[ErrorScale, np.ndarray]:
    """Return the scale fitted to log errors (s,) at lengths (s, 5), and cross-fitted log errors.

    The scale is the mean of five fits, each without one fold, with the number of rounds that is
    best for the left-out folds. The log error (s,) expected at a row is from the fit without it.
    """
    cuts = _cuts(lengths)
    steps = np.stack(
        [np.searchsorted(at, length) for at, length in zip(cuts, lengths.T, strict=True)]
    )
    # Folds depend on the values, not on the order of rows, which differs for sparse points.
    fold = np.empty(len(logs), dtype=np.int64)
    fold[np.lexsort((logs, *lengths.T))] = np.arange(len(logs)) % CROSS_FITTING_FOLDS
    paths = np.empty((len(logs), MAX_BOOSTING_ROUNDS + 1))
    boosts: list[Any] = [None] * CROSS_FITTING_FOLDS

    def fit_folds(start: int, stop: int) -> None:
        for number in range(start, stop):
            is_held_out = fold == number
            boosts[number] = boosted_stumps(steps[:, ~is_held_out], logs[~is_held_out])
            paths[is_held_out] = boosts[number].path(steps[:, is_held_out])

    over_rows(fit_folds, CROSS_FITTING_FOLDS, n_jobs, each=1)
    losses = ((paths - logs[:, None]) ** 2).sum(axis=0)
    rounds = int((losses <= (1 + LOSS_TOLERANCE) * losses.min()).argmax())
    values = [boost.values(rounds, cuts.shape[1] + 1) for boost in boosts]
    return ErrorScale(cuts, np.mean(values, axis=0)), paths[:, rounds]


class Stumps(NamedTuple):
    """Sum of decision stumps, in the order of the boosting rounds.

    Stump r adds ``low[r]`` up to step ``cut[r]`` of function ``function[r]``, ``high[r]`` above it.
    """

    mean: float
    function: np.ndarray
    cut: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def path(self, steps: np.ndarray) -> np.ndarray:
        """Return the sums (s, rounds + 1) after each round, for rows on these steps (5, s)."""
        is_low = steps[self.function] <= self.cut[:, None]
        added = np.where(is_low, self.low[:, None], self.high[:, None])
        return np.vstack([np.full(steps.shape[1], self.mean), added]).cumsum(axis=0).T

    def values(self, rounds: int, n_steps: int) -> np.ndarray:
        """Return the values (5, n_steps) of the step functions after a number of rounds."""
        values = np.zeros((len(RISING), n_steps))
        values[0] = self.mean
        for f, cut, low, high in zip(*(field[:rounds] for field in self[1:]), strict=True):
            values[f, : cut + 1] += low
            values[f, cut + 1 :] += high
        return values


def boosted_stumps(steps: np.ndarray, target: np.ndarray) -> Stumps:
    """Return a sum of stumps fitted to the target (s,); row i is on step ``steps[f, i]`` of f.

    Each round adds a share of the stump, one cut of one function, with the smallest sum of squared
    residuals; functions that are `RISING` take no decreasing stump.
    """
    mean = float(target.mean())
    shape = 2, MAX_BOOSTING_ROUNDS
    stumps = Stumps(mean, *np.zeros(shape, dtype=np.int64), *np.zeros(shape))
    boosting.boosted_stumps(
        np.ascontiguousarray(steps), target - mean, int(steps.max()) + 1, RISING, MIN_STEP_ROWS,
        LEARNING_RATE, *stumps[1:],
    )  # fmt: skip
    return stumps


def _cuts(lengths: np.ndarray) -> np.ndarray:
    """Return cuts (5, b) between lengths that differ by more than rounding, padded with infinity.

    A cut is just above the smaller length: a new length in a gap between training lengths, as on a
    regular grid, counts as the larger one.
    """
    columns_of_cuts = []
    for column in np.sort(lengths, axis=0).T:
        gaps = np.flatnonzero(column[1:] > column[:-1] * (1 + TIE_TOLERANCE))
        if len(gaps) >= MAX_STEPS:
            ranks = np.arange(1, MAX_STEPS) * len(column) / MAX_STEPS
            gaps = gaps[np.unique(np.minimum(np.searchsorted(gaps + 1, ranks), len(gaps) - 1))]
        columns_of_cuts.append(column[gaps] * (1 + TIE_TOLERANCE))
    cuts = np.full((len(columns_of_cuts), max(map(len, columns_of_cuts))), np.inf)
    for row, ascending in zip(cuts, columns_of_cuts, strict=True):
        row[: len(ascending)] = ascending
    return cuts
