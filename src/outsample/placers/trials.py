"""Placers tried on a map: training rows are placed by all others, and the errors compared."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from outsample.neighbors.neighborhoods import Neighborhoods
from outsample.placers.candidates import beside
from outsample.placers.problem import UNIT_NEIGHBOR, Problem
from outsample.placers.protocol import FittedPlacer, Placer
from outsample.points import map_size

# Rows on which the settings of a placer over all points are chosen.
TRIAL_ROWS = 1000


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
    """Leave-one-out of each placer on some rows, the typically best one first.

    Fewer rows would choose otherwise: fewer points lie farther apart, and the length scale is that
    of the whole set all the same.
    """
    some = np.sort(problem.sample(TRIAL_ROWS))
    part, everyone = problem.part(some), np.arange(len(some))
    typical: dict[Trial, float] = {}

    def measure(placer: Placer) -> None:
        begin = time.perf_counter()
        errors = (placer.fit(part, everyone).leave_out(everyone, None) - part.Y) / problem.size
        seconds = time.perf_counter() - begin
        error = float(np.linalg.norm(errors, axis=1).mean())
        typical[Trial(placer, error, seconds, len(some))] = typical_error(errors)

    for placer in placers:
        measure(placer)
    for placer in beside(min(typical, key=typical.__getitem__).placer):
        measure(placer)
    return sorted(typical, key=typical.__getitem__)
