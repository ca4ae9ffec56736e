"""Placers tried on a map: training rows are placed by all others, and the errors compared."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from outsample.neighbors.neighborhoods import Neighborhoods
from outsample.placers.candidates import beside, over_many
from outsample.placers.over_all import FACTORED_ROWS
from outsample.placers.problem import UNIT_NEIGHBOR, Problem
from outsample.placers.protocol import FittedPlacer, Placer
from outsample.points import map_size

# Rows on which the settings of a placer over all points are chosen; so many of the best ones, no
# worse than the best by more than this factor, are tried on more of them.
TRIAL_ROWS, MORE_ROWS = 1000, 2500
CLOSE, WORSE = 2, 1.3
# Landmarks of such a trial where points are too many to be factored, and rows that are left out.
FEW_LANDMARKS, LANDMARK_ROWS = 1024, 500


class Trial(NamedTuple):
    """One row of `PCAExtension.selection_`.

    Attributes
    ----------
    placer : LocalPlacer, GaussianProcess, Diffusion or Blend
        The candidate; ``str`` of it is short.
    error : float
        Mean leave-one-out error over the root mean square size of the map.
    seconds : float
        Time it took.
    n_rows : int
        Training rows it was tried on; only trials on equally many rows compare.
    """

    placer: Placer
    error: float
    seconds: float
    n_rows: int


class LeftOut(NamedTuple):
    """Training rows (s,), their neighbourhoods if kept, and where the others place them (s, d)."""

    rows: np.ndarray
    near: Neighborhoods | None
    coordinates: np.ndarray


class Finalist(NamedTuple):
    """A trial of the last round, where the others place its rows (s, d), fitted if that is dear."""

    trial: Trial
    coordinates: np.ndarray
    fitted: FittedPlacer | None = None


def mean_error(Y: np.ndarray, left_out: LeftOut, size: float | None = None) -> float:
    """Mean leave-one-out error over the size of the map, found if it is not known."""
    errors = (left_out.coordinates - Y[left_out.rows]) / (size or map_size(Y))
    return float(np.sqrt((errors**2).sum(axis=1)).mean())


def typical_error(errors: np.ndarray) -> float:
    """Square of the mean root of the lengths of errors (s, d).

    What placers over all points compare by: in a plain mean the few points far from all others,
    which nothing places well, would choose the length scale for everybody.
    """
    return float(np.sqrt(np.linalg.norm(errors, axis=1)).mean() ** 2)


def leave_out(problem: Problem, placer: Placer, rows: np.ndarray) -> tuple[FittedPlacer, LeftOut]:
    """Fit a placer, and place training rows by all others."""
    fitted, near = placer.fit(problem, rows), problem.left_out(rows, width(problem, placer))
    return fitted, LeftOut(rows, near, fitted.leave_out(rows, near))


def width(problem: Problem, placer: Placer) -> int:
    """Neighbours to look at: those of the placer, or some to judge one over all points by."""
    return placer.n_neighbors or min(problem.n - 1, UNIT_NEIGHBOR)


def attempt(problem: Problem, placer: Placer, rows: np.ndarray) -> Finalist:
    """Try a placer on some training rows."""
    begin = time.perf_counter()
    _, left_out = leave_out(problem, placer, rows)
    seconds = time.perf_counter() - begin
    trial = Trial(placer, mean_error(problem.Y, left_out, problem.size), seconds, len(rows))
    return Finalist(trial, left_out.coordinates)


def errors_of(problem: Problem, rows: np.ndarray, finalists: list[Finalist]) -> np.ndarray:
    """Errors (J, s, d) over the size of the map, on as many rows as all finalists have."""
    count = min(len(one.coordinates) for one in finalists)
    found = np.array([one.coordinates[:count] for one in finalists])
    return (found - problem.Y[rows[:count]]) / problem.size


def try_over_all(problem: Problem, placers: tuple[Placer, ...]) -> list[Trial]:
    """Leave-one-out of placers over all points, the typically best one first.

    All are tried on few points. These lie farther apart, and prefer longer lengths than all points
    would, the length scale being that of the whole set: the best ones, and lengths beside the best,
    are tried on more, or on all by few landmarks where all are too many to be factored.
    """
    few = _typical(placers, *_on_some(problem, TRIAL_ROWS))
    ranked = sorted(few, key=few.__getitem__)
    best = ranked[0].placer
    if problem.n <= TRIAL_ROWS:
        few |= _typical(beside(best), *_on_some(problem, TRIAL_ROWS))
        return sorted(few, key=few.__getitem__)
    close = [trial.placer for trial in ranked[:CLOSE] if few[trial] < WORSE * few[ranked[0]]]
    again = dict.fromkeys([*close, *beside(best)])
    ways = _on_landmarks(problem) if problem.n > FACTORED_ROWS else _on_some(problem, MORE_ROWS)
    more = _typical(again, *ways)
    return [*sorted(more, key=more.__getitem__), *ranked]


def _typical(
    placers: Iterable[Placer], errors_of: Callable[[Placer], np.ndarray], n_rows: int
) -> dict[Trial, float]:
    """Typical errors of placers; ``errors_of`` gives those (s, d) over the size of the map."""
    found = {}
    for placer in placers:
        begin = time.perf_counter()
        errors = errors_of(placer)
        seconds, error = time.perf_counter() - begin, np.linalg.norm(errors, axis=1).mean()
        found[Trial(placer, float(error), seconds, n_rows)] = typical_error(errors)
    return found


def _on_some(problem: Problem, count: int) -> tuple[Callable[[Placer], np.ndarray], int]:
    """How placers do that know so many of the points and no others, and how many these are."""
    rows = np.sort(problem.sample(count))
    part = problem.part(rows)
    judged = np.linspace(0, len(rows) - 1, min(len(rows), TRIAL_ROWS)).astype(int)

    def errors(placer: Placer) -> np.ndarray:
        placed = placer.fit(part, judged).leave_out(judged, None)
        return (placed - part.Y[judged]) / problem.size

    return errors, len(rows)


def _on_landmarks(problem: Problem) -> tuple[Callable[[Placer], np.ndarray], int]:
    """How placers do that know all points by a few landmarks, and how many points there are."""
    rows = problem.sample(LANDMARK_ROWS)

    def errors(placer: Placer) -> np.ndarray:
        many = over_many(placer)
        assert many is not None
        few = replace(many, n_landmarks=FEW_LANDMARKS, shorter=1.0)
        return (few.fit(problem, rows).left_out - problem.Y[rows]) / problem.size

    return errors, problem.n
