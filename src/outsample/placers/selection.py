"""Model selection by leave-one-out over the user's own training points, in two rounds.

All candidates are screened on a few rows. Those that may still be best, or that improve a blend,
are compared on more rows, so that the cost is bounded for training sets of any size. The rows are
the same for every candidate and every call: the same data always give the same model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from outsample.placers.all_points import MAX_FACTORED_ROWS
from outsample.placers.all_points_selection import best_all_points_model, fit_all_points_model
from outsample.placers.blend import Blend, FittedBlend
from outsample.placers.candidates import (
    Constraints,
    all_points_candidates,
    local_candidates,
    with_landmarks,
)
from outsample.placers.leave_one_out import (
    CandidateResult,
    LeftOut,
    Trial,
    leave_one_out,
    leave_out,
    relative_errors,
)
from outsample.placers.problem import Problem
from outsample.placers.protocol import FittedPlacer, Placer
from outsample.placers.stacking import (
    MAX_BLEND_PARTS,
    ROUNDING_ERROR,
    Combination,
    Costs,
    combine,
    error_lengths,
    grow_blend,
    price,
)

SCREENING_ROWS = 150  # rows of the first round, on which every candidate is tried
FINAL_ROWS = 2000  # rows of the second round; error bars are calibrated on them too
MAX_KEPT_PER_CRITERION = 15
# A candidate is kept if it is not worse than the best by more than this many standard errors.
STANDARD_ERRORS = 2.0
# Training sets up to this size try an all-points model even if the best neighbourhood is small.
MAX_SMALL_ROWS = 500
# Microseconds of a neighbour search per query: a constant, and for every number in X.
SEARCH_MICROSECONDS = (5.0, 1e-4)


class Selection(NamedTuple):
    """The selected model, fitted; all trials, its own first; and its leave-one-out positions."""

    fitted: FittedPlacer
    trials: list[Trial]
    left_out: LeftOut


def select_model(problem: Problem, constraints: Constraints) -> Selection:
    """Return the model of lowest priced leave-one-out error that satisfies the constraints."""
    family = constraints.family
    if family.fixed is not None:
        problem.max_neighbors = family.fixed.n_neighbors or 1
        return _fit(problem, family.fixed)
    all_points = all_points_candidates(problem, constraints)
    if not family.weightings or (all_points and constraints.n_neighbors == problem.n):
        return _select_all_points(problem, all_points, family.is_open)
    candidates = local_candidates(problem, constraints)
    problem.max_neighbors = max(placer.n_neighbors or 1 for placer in candidates)
    if not constraints.is_open:
        return _fit(problem, candidates[0])
    may_blend = constraints.weighting is None
    if constraints.n_neighbors is not None or not family.is_open:
        all_points = ()
    return _select_in_two_rounds(problem, candidates, all_points, may_blend)


def _select_in_two_rounds(
    problem: Problem, candidates: list[Placer], all_points: tuple[Placer, ...], may_blend: bool
) -> Selection:
    """Return the blend, or the single model, that wins the second round."""
    rows, max_parts = problem.sample(FINAL_ROWS), MAX_BLEND_PARTS if may_blend else 1
    problem.share_search(rows, is_wide=len(candidates) > 1)
    fitted = [placer.fit(problem, rows) for placer in candidates]
    screened: list[CandidateResult] = []
    tuning_trials: list[Trial] = []
    if len(candidates) > 1 and len(rows) > SCREENING_ROWS:
        screening_rows = problem.sample(SCREENING_ROWS)
        screened = leave_one_out(problem, fitted, screening_rows)
        errors = relative_errors(problem, screened, screening_rows)
        kept = keep_promising(errors, candidate_costs(problem, candidates), max_parts)
        fitted = [fitted[at] for at in kept]
    finals = leave_one_out(problem, fitted, rows)
    all_points = _factorable(problem, all_points)
    if all_points and _suggests_all_points(problem, finals):
        result, tuning_trials = best_all_points_model(problem, all_points, rows)
        finals.append(result)
    errors = relative_errors(problem, finals, rows)
    costs = candidate_costs(problem, [result.trial.placer for result in finals])
    combination = grow_blend(errors, costs, max_parts)
    selected = _combined(finals, combination, errors)
    trials = _trial_table(selected.trial, finals, screened) + tuning_trials
    return Selection(selected.fitted, trials, LeftOut(rows, None, selected.coordinates))


def keep_promising(errors: np.ndarray, costs: Costs, max_parts: int = MAX_BLEND_PARTS) -> list[int]:
    """Return indices of candidates that are part of the best blend, or not clearly worse than best.

    Candidates are compared by their mean error and by their typical error (the mean of square
    roots). The second criterion matters on torn maps, where a few points in a wrong cluster
    dominate the mean: without it, one t-SNE map lost 31 %.
    """
    kept = set(grow_blend(errors, costs, max_parts).parts)
    priced = error_lengths(errors) * price(costs.alone())[:, None]
    for power in (1.0, 0.5):
        scores = priced**power
        means = scores.mean(axis=1)
        excess = scores - scores[means.argmin()]
        standard_errors = excess.std(axis=1) / np.sqrt(excess.shape[1])
        is_open = excess.mean(axis=1) <= STANDARD_ERRORS * standard_errors
        best_first = [int(at) for at in np.argsort(means, kind="stable") if is_open[at]]
        kept.update(best_first[:MAX_KEPT_PER_CRITERION])
    return sorted(kept)


def candidate_costs(problem: Problem, placers: Sequence[Placer]) -> Costs:
    """Return estimated microseconds per row; all-points models need no search."""
    n, D = problem.X.shape
    search = SEARCH_MICROSECONDS[0] + SEARCH_MICROSECONDS[1] * n * D
    return Costs(
        np.array([placer.cost_microseconds(n, D) for placer in placers]),
        np.array([0.0 if placer.n_neighbors is None else search for placer in placers]),
    )


def _suggests_all_points(problem: Problem, finals: list[CandidateResult]) -> bool:
    """Return True on small sets, and where the best neighbourhood is wide: on smooth maps."""
    best = min((result.trial for result in finals), key=lambda trial: trial.error)
    is_likely = best.placer.prefers_wide_neighborhoods or problem.n <= MAX_SMALL_ROWS
    return is_likely and best.error > ROUNDING_ERROR


def _combined(
    results: list[CandidateResult], combination: Combination, errors: np.ndarray
) -> CandidateResult:
    """Return the result of a combination: a blend, or the single model it consists of."""
    parts = [results[at] for at in combination.parts]
    if len(parts) == 1:
        return parts[0]
    blend = Blend(tuple(part.trial.placer for part in parts), tuple(combination.weights))
    fitted = FittedBlend(blend, tuple(part.fitted for part in parts))
    blended = combine(errors[combination.parts], np.array(combination.weights))
    seconds = sum(part.trial.seconds for part in parts)
    trial = Trial(blend, float(error_lengths(blended).mean()), seconds, len(blended))
    return CandidateResult(fitted, trial, fitted.mean([part.coordinates for part in parts]))


def _trial_table(
    selected: Trial, finals: list[CandidateResult], screened: list[CandidateResult]
) -> list[Trial]:
    """Return the selected trial, then the second round, then what was only screened, by error."""
    final_trials = [result.trial for result in finals]
    in_final = {trial.placer for trial in final_trials}
    screened_only = [result.trial for result in screened if result.trial.placer not in in_final]
    table = [
        *sorted(final_trials, key=lambda trial: trial.error),
        *sorted(screened_only, key=lambda trial: trial.error),
    ]
    return [selected, *(trial for trial in table if trial is not selected)]


def _fit(problem: Problem, placer: Placer) -> Selection:
    """Return the only model that satisfies the constraints."""
    fitted, left_out = leave_out(problem, placer, problem.sample(FINAL_ROWS))
    return Selection(fitted, [], left_out._replace(near=None))


def _select_all_points(
    problem: Problem, candidates: tuple[Placer, ...], is_open: bool
) -> Selection:
    """Return the best all-points model; the first one if all settings are fixed."""
    rows, candidates = problem.sample(FINAL_ROWS), _factorable(problem, candidates)
    if not candidates:
        raise ValueError(
            f"n_neighbors is {problem.n}, all training points, but linear covariances can use at "
            f"most {MAX_FACTORED_ROWS} points at once; use fewer n_neighbors."
        )
    if is_open:
        result, tuning = best_all_points_model(problem, candidates, rows)
        trials = [result.trial, *tuning]
    else:
        result, trials = fit_all_points_model(problem, candidates[0], rows), []
    return Selection(result.fitted, trials, LeftOut(rows, None, result.coordinates))


def _factorable(problem: Problem, candidates: tuple[Placer, ...]) -> tuple[Placer, ...]:
    """Return the all-points models that can be fitted: many points need landmarks."""
    if problem.n <= MAX_FACTORED_ROWS:
        return candidates
    return tuple(placer for placer in candidates if with_landmarks(placer) is not None)
