"""How large the error of a placement is expected to be, from what surrounds the point.

Five lengths are known at every point: the distances of the nearest, the fifth and the fifteenth
training point, and how far the five and the fifteen nearest images are from the placement. The
logarithm of the error is a sum of five step functions, one of each length, fitted to training
points that were left out by boosting of stumps (J. H. Friedman, "Greedy function approximation: a
gradient boosting machine", Ann. Stat. 29 (2001)). Four of them do not fall; that of the fifteenth
distance, which tells the density, may: on a rolled sheet the dense places are the curved ones.

Steps look at nothing but the order of lengths, so that units do not matter. The constants were
chosen on made-up maps (points normal, uniform, t-distributed and on a swiss roll under smooth
functions, a torn map); the guide has the figures on others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from outsample._kernels import bounds as kernels
from outsample._kernels import stumps as boosting
from outsample._parallel import over_rows
from outsample.neighbors.ties import EQUAL
from outsample.records import Neighbors

# Neighbours whose distances and images are looked at.
SIZES = (5, 15)
# Which of the five step functions must not fall.
RISING = np.array([True, True, False, True, True])
# Steps of a function at most, training points on either side of a cut at least.
STEPS, LEAST = 32, 20
# Rounds of boosting at most, and the share of each stump that is taken.
ROUNDS, RATE = 240, 0.1
# The fewest rounds that are worse than the best number by no more than this part are taken.
WORSE = 0.01
# The error of a training point is predicted from those of four other fifths.
FOLDS = 5


class ErrorScale(NamedTuple):
    """Step functions of the lengths around a point; their sum is the logarithm of an error.

    ``cuts`` (5, b - 1) ascend, ``values`` (5, b) are between them; without values nothing is known.
    """

    cuts: np.ndarray
    values: np.ndarray

    def log_errors(self, lengths: np.ndarray) -> np.ndarray:
        """Logarithm of the expected error (q,) from lengths (q, 5)."""
        found = np.zeros(len(lengths))
        for cuts, values, length in zip(self.cuts, self.values, lengths.T, strict=True):
            found += values[np.searchsorted(cuts, length)]
        return found


NOTHING = ErrorScale(np.empty((len(RISING), 0)), np.empty((len(RISING), 0)))


def lengths_around(
    Y: np.ndarray, near: Neighbors, coordinates: np.ndarray, n_jobs: int | None = None
) -> np.ndarray:
    """Lengths (q, 5) around placements: distances of the first, fifth and fifteenth neighbour.

    And the root mean square distance of the images of the five and the fifteen nearest, and those
    as far as the last of them, from the placement. The last neighbour stands in where there are
    fewer.
    """
    found = np.empty((len(coordinates), 1 + 2 * len(SIZES)))
    over_rows(
        kernels.lengths_around, len(found), n_jobs, Y, near.indptr, near.indices, near.distances,
        *SIZES, 1 + EQUAL, coordinates, found,
    )  # fmt: skip
    return found


def learnt_scale(
    lengths: np.ndarray, logs: np.ndarray, n_jobs: int | None = None
) -> tuple[ErrorScale, np.ndarray]:
    """Fit log errors (s,) to lengths (s, 5); and what (s,) is expected without each row's fifth.

    The scale is the mean of the five that are fitted without a fifth, after so many rounds as serve
    the left-out fifths best.
    """
    cuts = _cuts(lengths)
    steps = np.stack(
        [np.searchsorted(at, length) for at, length in zip(cuts, lengths.T, strict=True)]
    )
    # By what the rows are, wherever they stand: sparse points are sorted otherwise than dense ones.
    fold = np.empty(len(logs), dtype=np.int64)
    fold[np.lexsort((logs, *lengths.T))] = np.arange(len(logs)) % FOLDS
    paths = np.empty((len(logs), ROUNDS + 1))
    boosts: list[Any] = [None] * FOLDS

    def fit_folds(start: int, stop: int) -> None:
        for one in range(start, stop):
            boosts[one] = boosted_stumps(steps[:, fold != one], logs[fold != one])
            paths[fold == one] = boosts[one].path(steps[:, fold == one])

    over_rows(fit_folds, FOLDS, n_jobs, each=1)
    losses = ((paths - logs[:, None]) ** 2).sum(axis=0)
    rounds = int((losses <= (1 + WORSE) * losses.min()).argmax())
    values = [boost.values(rounds, cuts.shape[1] + 1) for boost in boosts]
    return ErrorScale(cuts, np.mean(values, axis=0)), paths[:, rounds]


class Stumps(NamedTuple):
    """A sum of stumps, in the order in which they were taken.

    Stump r adds ``low[r]`` up to step ``cut[r]`` of function ``function[r]``, ``high[r]`` above it.
    """

    mean: float
    function: np.ndarray
    cut: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def path(self, steps: np.ndarray) -> np.ndarray:
        """Return sums (s, rounds + 1) for rows on these steps (5, s), after each round."""
        is_low = steps[self.function] <= self.cut[:, None]
        added = np.where(is_low, self.low[:, None], self.high[:, None])
        return np.vstack([np.full(steps.shape[1], self.mean), added]).cumsum(axis=0).T

    def values(self, rounds: int, n_steps: int) -> np.ndarray:
        """Values (5, n_steps) of the step functions after so many rounds."""
        found = np.zeros((len(RISING), n_steps))
        found[0] = self.mean
        for f, cut, low, high in zip(*(field[:rounds] for field in self[1:]), strict=True):
            found[f, : cut + 1] += low
            found[f, cut + 1 :] += high
        return found


def boosted_stumps(steps: np.ndarray, target: np.ndarray) -> Stumps:
    """Fit a sum of stumps to the target (s,); row i is on step ``steps[f, i]`` of function f.

    Each round takes a part of the stump, one cut of one function, that leaves the least squares;
    functions that are `RISING` take no stump that falls.
    """
    mean = float(target.mean())
    stumps = Stumps(mean, *np.zeros((2, ROUNDS), dtype=np.int64), *np.zeros((2, ROUNDS)))
    boosting.boosted_stumps(
        np.ascontiguousarray(steps), target - mean, int(steps.max()) + 1, RISING, LEAST, RATE,
        *stumps[1:],
    )  # fmt: skip
    return stumps


def _cuts(lengths: np.ndarray) -> np.ndarray:
    """Cuts (5, b) between lengths that differ by more than rounding; infinite ones fill up.

    Each is just above the smaller length: in a gap that no training point has, as those of a
    regular grid, a point counts among the larger ones.
    """
    found = []
    for column in np.sort(lengths, axis=0).T:
        gaps = np.flatnonzero(column[1:] > column[:-1] * (1 + EQUAL))
        if len(gaps) >= STEPS:
            ranks = np.arange(1, STEPS) * len(column) / STEPS
            gaps = gaps[np.unique(np.minimum(np.searchsorted(gaps + 1, ranks), len(gaps) - 1))]
        found.append(column[gaps] * (1 + EQUAL))
    cuts = np.full((len(found), max(map(len, found))), np.inf)
    for row, some in zip(cuts, found, strict=True):
        row[: len(some)] = some
    return cuts
