"""Selection among all-points models: Gaussian processes and diffusions with different lengths.

Factoring all training points is expensive: the candidates are tried on a part of the points first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from outsample.placers.all_points import MAX_FACTORED_ROWS
from outsample.placers.candidates import neighboring_lengths, with_landmarks
from outsample.placers.leave_one_out import (
    CandidateResult,
    Trial,
    leave_out,
    mean_error,
    typical_error,
)
from outsample.placers.problem import Problem
from outsample.placers.protocol import Placer

# Points on which all candidates are tried, and on which the best ones are tried again.
FIRST_POINTS, SECOND_POINTS = 1000, 2500
# At most this many of the best are tried again, if their error is within this factor of the best.
MAX_REPEATED, MAX_REPEATED_RATIO = 2, 1.3
# Landmarks and left-out rows of the second trial where the points are too many to be factored.
TRIAL_LANDMARKS, LANDMARK_ROWS = 1024, 500


class ErrorMeasure(NamedTuple):
    """A function that returns a candidate's errors (s, d), and the points the candidate uses."""

    errors_of: Callable[[Placer], np.ndarray]
    n_points: int


def best_all_points_model(
    problem: Problem, candidates: Sequence[Placer], rows: np.ndarray
) -> tuple[CandidateResult, list[Trial]]:
    """Return the typically best candidate, fitted to all points, and the other trials.

    ``rows`` are the training rows that the result is left out on.
    """
    begin = time.perf_counter()
    best, *trials = rank_all_points_models(problem, candidates)
    result = fit_all_points_model(problem, best.placer, rows)
    seconds = time.perf_counter() - begin
    return result._replace(trial=result.trial._replace(seconds=seconds)), trials


def fit_all_points_model(problem: Problem, placer: Placer, rows: np.ndarray) -> CandidateResult:
    """Return the model of all points, on landmarks if these are too many to be factored."""
    begin = time.perf_counter()
    if problem.n > MAX_FACTORED_ROWS:
        placer = with_landmarks(placer) or placer
    fitted, left_out = leave_out(problem, placer, rows)
    error, seconds = mean_error(problem.Y, left_out, problem.size), time.perf_counter() - begin
    trial = Trial(fitted.placer, error, seconds, len(rows))
    return CandidateResult(fitted, trial, left_out.coordinates)


def rank_all_points_models(problem: Problem, candidates: Sequence[Placer]) -> list[Trial]:
    """Return trials of the candidates, the typically best one first.

    A part of the points is sparser than all of them, and prefers longer lengths: the best
    candidates, and lengths next to the best, are tried again with more points.
    """
    measure = _on_part(problem, FIRST_POINTS)
    first = _typical_errors(candidates, measure)
    ranked = sorted(first, key=first.__getitem__)
    best = ranked[0].placer
    if problem.n <= FIRST_POINTS:
        first |= _typical_errors(neighboring_lengths(best), measure)
        return sorted(first, key=first.__getitem__)
    limit = MAX_REPEATED_RATIO * first[ranked[0]]
    repeated = [trial.placer for trial in ranked[:MAX_REPEATED] if first[trial] < limit]
    if problem.n > MAX_FACTORED_ROWS:
        measure = _on_landmarks(problem)
    else:
        measure = _on_part(problem, SECOND_POINTS)
    second = _typical_errors(dict.fromkeys([*repeated, *neighboring_lengths(best)]), measure)
    return [*sorted(second, key=second.__getitem__), *ranked]


def _typical_errors(candidates: Iterable[Placer], measure: ErrorMeasure) -> dict[Trial, float]:
    """Return the typical error of each candidate by its trial."""
    error_by_trial = {}
    for placer in candidates:
        begin = time.perf_counter()
        errors = measure.errors_of(placer)
        seconds, error = time.perf_counter() - begin, np.linalg.norm(errors, axis=1).mean()
        trial = Trial(placer, float(error), seconds, measure.n_points)
        error_by_trial[trial] = typical_error(errors)
    return error_by_trial


def _on_part(problem: Problem, count: int) -> ErrorMeasure:
    """Return the measure of candidates that are fitted to ``count`` sampled points."""
    rows = np.sort(problem.sample(count))
    part = problem.part(rows)
    left_out = np.linspace(0, len(rows) - 1, min(len(rows), FIRST_POINTS)).astype(int)

    def errors_of(placer: Placer) -> np.ndarray:
        placed = placer.fit(part, left_out).leave_out(left_out, None)
        return (placed - part.Y[left_out]) / problem.size

    return ErrorMeasure(errors_of, len(rows))


def _on_landmarks(problem: Problem) -> ErrorMeasure:
    """Return the measure of candidates that are fitted to all points by a few landmarks."""
    rows = problem.sample(LANDMARK_ROWS)

    def errors_of(placer: Placer) -> np.ndarray:
        two_levels = with_landmarks(placer)
        assert two_levels is not None
        smaller = replace(two_levels, n_landmarks=TRIAL_LANDMARKS, shorter=1.0)
        return (smaller.fit(problem, rows).left_out - problem.Y[rows]) / problem.size

    return ErrorMeasure(errors_of, problem.n)
