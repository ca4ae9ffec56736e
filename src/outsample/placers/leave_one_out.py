"""Leave-one-out: training rows are placed by all others, and compared with their coordinates.

For a local model that is exact and cheap: search for one neighbour more and drop the row itself.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from outsample.neighbors.neighborhoods import Neighborhoods
from outsample.placers.problem import UNIT_NEIGHBOR, Problem
from outsample.placers.protocol import FittedPlacer, Placer
from outsample.points import map_size


class Trial(NamedTuple):
    """One row of `PCAExtension.selection_`.

    Attributes
    ----------
    placer : LocalPlacer, GaussianProcess, Diffusion, NeighborLoss, TwoLevels or Blend
        The candidate; ``str`` of it is short.
    error : float
        Mean leave-one-out error over the root mean square size of the map.
    seconds : float
        Time it took to place the rows.
    n_rows : int
        Training rows it was tried on; only trials on equally many rows are comparable.
    """

    placer: Placer
    error: float
    seconds: float
    n_rows: int


class LeftOut(NamedTuple):
    """Training rows (s,), their neighbourhoods if kept, and leave-one-out positions (s, d)."""

    rows: np.ndarray
    near: Neighborhoods | None
    coordinates: np.ndarray


class CandidateResult(NamedTuple):
    """A fitted candidate, its trial, and its positions (s, d) of the rows of the trial."""

    fitted: FittedPlacer
    trial: Trial
    coordinates: np.ndarray


def leave_out(problem: Problem, placer: Placer, rows: np.ndarray) -> tuple[FittedPlacer, LeftOut]:
    """Return a fitted placer, and training rows placed by all others."""
    fitted = placer.fit(problem, rows)
    neighborhoods = problem.left_out(rows, n_neighbors_of(problem, placer))
    return fitted, LeftOut(rows, neighborhoods, fitted.leave_out(rows, neighborhoods))


def leave_one_out(
    problem: Problem, candidates: Sequence[FittedPlacer], rows: np.ndarray
) -> list[CandidateResult]:
    """Return the result of each fitted candidate on training rows placed by all others.

    Candidates with equally many neighbours share their neighbourhoods.
    """
    neighborhoods: dict[int, Neighborhoods] = {}
    results = []
    for fitted in candidates:
        begin = time.perf_counter()
        k = n_neighbors_of(problem, fitted.placer)
        if k not in neighborhoods:
            neighborhoods[k] = problem.left_out(rows, k)
        coordinates = fitted.leave_out(rows, neighborhoods[k])
        seconds = time.perf_counter() - begin
        error = mean_error(problem.Y, LeftOut(rows, None, coordinates), problem.size)
        trial = Trial(fitted.placer, error, seconds, len(rows))
        results.append(CandidateResult(fitted, trial, coordinates))
    return results


def relative_errors(
    problem: Problem, results: Sequence[CandidateResult], rows: np.ndarray
) -> np.ndarray:
    """Return the errors (J, s, d) of results on the same rows, over the size of the map."""
    coordinates = np.array([result.coordinates for result in results])
    return (coordinates - problem.Y[rows]) / problem.size


def mean_error(Y: np.ndarray, left_out: LeftOut, size: float | None = None) -> float:
    """Return the mean leave-one-out error over the size of the map, which is computed if None."""
    errors = (left_out.coordinates - Y[left_out.rows]) / (size or map_size(Y))
    return float(np.sqrt((errors**2).sum(axis=1)).mean())


def typical_error(errors: np.ndarray) -> float:
    """Return the square of the mean root of the lengths of errors (s, d).

    All-points models are compared by it: in a plain mean a few points far from all others, which
    no model places well, would determine the length scale for the whole map.
    """
    return float(np.sqrt(np.linalg.norm(errors, axis=1)).mean() ** 2)


def n_neighbors_of(problem: Problem, placer: Placer) -> int:
    """Return the number of neighbours to search; for an all-points model, those of its scores."""
    return placer.n_neighbors or min(problem.n - 1, UNIT_NEIGHBOR)
