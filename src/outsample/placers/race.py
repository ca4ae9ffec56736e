"""Choice of the placer on the user's own data, by leave-one-out over training points.

A local placer is left-one-out exactly by asking for one neighbour more and dropping the point
itself. All candidates share one neighbour search. They are tried on a few rows first; the better
ones go on to more rows, so that the cost is bounded whatever the size of the training set.

Placers over all points are factored once. They are tried on small sets, and where a smooth map asks
for many neighbours; the best one on some of the rows is fitted to all, and judged on the rows on
which the local placer was. Where all are too many to be factored, landmarks stand for them.

Where the weighting is open, the chosen placer is blended with a few of those that came far, if
rows that did not choose the shares say that it pays (`shares`).
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from outsample.neighbors import local_pca
from outsample.placers import shares
from outsample.placers.blend import Blend, FittedBlend
from outsample.placers.candidates import Given, local_placers, neighbor_losses, over_many
from outsample.placers.local import LocalPlacer
from outsample.placers.over_all import FACTORED_ROWS
from outsample.placers.problem import DIMENSION_ROWS, Problem
from outsample.placers.protocol import FittedPlacer, Placer
from outsample.placers.trials import (
    Finalist,
    LeftOut,
    Trial,
    attempt,
    errors_of,
    leave_out,
    mean_error,
    try_over_all,
    typical_error,
    width,
)
from outsample.placers.weighting import PLAIN_SIZES

# Rows of each round, and how many candidates stay for the next one; before the last one, of five
# there are so many by their own errors if they may be blended, and those that blend best with them.
ROUNDS = ((150, 14), (500, 5), (2000, 1))
BY_ERROR = 3
# Few rows hardly tell candidates apart: after the first round those also stay, up to so many in
# all, that are worse than the best by less than so many standard errors of the difference. Chosen
# on a diffusion map of 12,000 images: 4 % less error than without, for a fifth of the time more.
DOUBT, MOST_STAY = 3.0, 60
# Microseconds of a search: a start, and for every number of the training points.
SEARCH = (5.0, 1e-4)
# A candidate worse than the best by more than this factor does not go on.
WORSE = 1.4
# A candidate that costs some five times as much as others has to be better by this factor, in the
# mean and typically.
DEAR = 1.05
# Candidates within this share of the best, or with errors below rounding, are tied.
TIE = 1e-3
ROUNDING = 1e-13
# Neighbourhoods tried beyond the largest candidates, for the best placer only.
WIDER = (120,)
# The placer in force is left-one-out on so many training rows; K and the error bars are too.
SAMPLE_ROWS = 2000
# Training sets up to this size try a placer over all points even if the local one is narrow.
ALWAYS_ROWS = 500


class Chosen(NamedTuple):
    """The placer in force, what was tried (the chosen one first), and rows left out of it."""

    fitted: FittedPlacer
    trials: list[Trial]
    left_out: LeftOut


def choose(problem: Problem, given: Given) -> Chosen:
    """Choose what is open, fit what is needed."""
    family, n = given.family, problem.n
    if family.given is not None:
        problem.widest = family.given.n_neighbors or 1
        return _fit(problem, family.given, [])
    over_all = _over_all(problem, given)
    is_whole = not family.weightings or bool(given.n_neighbors == n and over_all)
    if n > FACTORED_ROWS:
        over_all = tuple(placer for placer in over_all if over_many(placer) is not None)
    if is_whole:
        if not over_all:
            raise ValueError(
                f"all {n} training points are asked for, but linear covariances can take at most "
                f"{FACTORED_ROWS} at once; give fewer n_neighbors."
            )
        return _choose_over_all(problem, over_all, family.is_open)
    placers = _local_placers(problem, given)
    problem.widest = max(placer.n_neighbors for placer in placers)
    if not given.is_open:
        return _fit(problem, placers[0], [])
    may_blend, shape = given.weighting is None, (*problem.X.shape, problem.Y.shape[1])
    dear = neighbor_losses(given, shape, problem.search.radius is not None)
    problem.shared = len(placers) + len(dear) > 1
    if not problem.shared and problem.search.radius is None:
        problem.nearest(problem.sample(SAMPLE_ROWS), 1)  # the trial's rows are among them
    trials, finalists = _race(problem, [*placers, *dear], given.n_neighbors is None, may_blend)
    chosen = local = _fit(problem, trials[0].placer, trials)
    is_smooth = local.fitted.placer.wants_more
    settled = given.n_neighbors is not None or not family.is_open
    if over_all and not settled and (is_smooth or n <= ALWAYS_ROWS):
        whole = _choose_over_all(problem, over_all, True)
        finalists.append(Finalist(whole.trials[0], whole.left_out.coordinates, whole.fitted))
        if _is_better(problem, whole.left_out, local.left_out, is_smooth):
            chosen = whole._replace(trials=[whole.trials[0], *trials, *whole.trials[1:]])
        else:
            chosen = local._replace(trials=[*trials, *whole.trials])
    return _blended(problem, chosen, finalists) if may_blend else chosen


def _fit(problem: Problem, placer: Placer, trials: list[Trial]) -> Chosen:
    """Fit the placer in force."""
    fitted, left_out = leave_out(problem, placer, problem.sample(SAMPLE_ROWS))
    return Chosen(fitted, trials, left_out)


def _race(
    problem: Problem, placers: list[Placer], may_widen: bool, may_blend: bool
) -> tuple[list[Trial], list[Finalist]]:
    """Try local placers, simplest first; the chosen one comes first, then by rows and error.

    Also the good ones of the last round, simplest first.
    """
    trials: dict[Placer, Trial] = {}
    for n_rows, stay in ROUNDS:
        rows = problem.sample(n_rows)
        tried = [attempt(problem, placer, rows) for placer in placers]
        trials.update((one.trial.placer, one.trial) for one in tried)
        promising = _promising(problem, rows, tried)
        worth = [one.trial for one in tried if not one.trial.placer.is_dear]
        worth += [one.trial for one in tried if one.trial.placer in promising]
        ranked = sorted(worth, key=_cost)
        best, limit = ranked[0].placer, WORSE * ranked[0].error + ROUNDING
        ahead = {trial.placer for trial in ranked[:MOST_STAY]} | promising
        finalists = [one for one in tried if one.trial.placer in ahead]
        good = {trial.placer for trial in ranked[:stay] if trial.error <= limit}
        if stay == ROUNDS[0][1]:
            good |= _undecided(problem, rows, tried, best)
        elif may_blend:
            good &= {trial.placer for trial in ranked[:BY_ERROR]}
        if may_blend and stay > 1:
            good |= _partners(problem, rows, finalists, best)
        placers = [placer for placer in placers if placer in good | promising]
        if len(placers) == 1 or len(rows) < n_rows:
            break
        if stay < ROUNDS[0][1] and (best.wants_more or best.is_dear):
            break  # smooth maps have errors alike everywhere, and placers that cost
    if may_widen and best.wants_more:
        # Larger neighbourhoods, unless all points can be taken at once.
        for k in WIDER:
            if FACTORED_ROWS < problem.n and k < problem.n:
                wider: Any = replace(best, n_neighbors=k)  # type: ignore[type-var]
                finalists.append(attempt(problem, wider, rows))
                trials[wider] = finalists[-1].trial
                worth.append(trials[wider])
    table = sorted(trials.values(), key=lambda trial: (-trial.n_rows, trial.error))
    limit = min(map(_cost, worth)) * (1 + TIE) + ROUNDING
    chosen = next(trial for trial in worth if _cost(trial) <= limit)  # simplest first
    if all(one.trial is not chosen for one in finalists):  # as good as many others
        finalists += [one for one in tried if one.trial is chosen]
    return [chosen, *(trial for trial in table if trial is not chosen)], finalists


def _promising(problem: Problem, rows: np.ndarray, tried: list[Finalist]) -> set[Placer]:
    """Placers that cost, but whose typical error is lower by far than that of the best other one.

    On torn maps a mean over few rows is that of the few points in a wrong shred.
    """
    best = min((one for one in tried if not one.trial.placer.is_dear), key=lambda one: one[0].error)
    limit = typical_error(errors_of(problem, rows, [best])[0]) / DEAR
    return {
        one.trial.placer for one in tried
        if one.trial.placer.is_dear and typical_error(errors_of(problem, rows, [one])[0]) < limit
    }  # fmt: skip


def _undecided(
    problem: Problem, rows: np.ndarray, tried: list[Finalist], best: Placer
) -> set[Placer]:
    """Placers that do not cost, and of which so few rows do not say that they are worse."""
    placers = [one.trial.placer for one in tried]
    lengths = np.linalg.norm(errors_of(problem, rows, tried), axis=2)
    worse = lengths - lengths[placers.index(best)]
    is_worse = worse.mean(axis=1) > DOUBT * worse.std(axis=1) / len(rows) ** 0.5
    order = np.argsort(lengths.mean(axis=1), kind="stable")[:MOST_STAY]
    return {placers[at] for at in order if not (is_worse[at] or placers[at].is_dear)}


def _cost(trial: Trial) -> float:
    """Error of a trial, higher if placing costs much more than by others."""
    return trial.error * (DEAR if trial.placer.is_dear else 1.0)


def _partners(
    problem: Problem, rows: np.ndarray, finalists: list[Finalist], best: Placer
) -> set[Placer]:
    """Placers that blend well with the best one, it among them."""
    placers = [one.trial.placer for one in finalists]
    errors, efforts = errors_of(problem, rows, finalists), _efforts(problem, placers)
    return {placers[at] for at in shares.team(errors, efforts, placers.index(best))}


def _efforts(problem: Problem, placers: list[Placer]) -> shares.Efforts:
    """Rough microseconds that the placers and their searches take for a point."""
    n, D = problem.X.shape
    search = SEARCH[0] + SEARCH[1] * n * D
    return shares.Efforts(
        np.array([placer.effort(n, D) for placer in placers]),
        np.array([0.0 if placer.n_neighbors is None else search for placer in placers]),
    )


def _blended(problem: Problem, chosen: Chosen, finalists: list[Finalist]) -> Chosen:
    """Blend the chosen placer with some of the finalists, if that pays."""
    begin = time.perf_counter()
    placers, rows = [one.trial.placer for one in finalists], problem.sample(ROUNDS[-1][0])
    errors = errors_of(problem, rows, finalists)
    first = placers.index(chosen.fitted.placer)
    found = shares.mixture(errors, _efforts(problem, placers), first)
    if found is None:
        return chosen
    parts, rows = [finalists[at] for at in found.parts], chosen.left_out.rows
    blend = Blend(tuple(part.trial.placer for part in parts), tuple(found.shares))
    fitted = FittedBlend(
        blend, tuple(part.fitted or part.trial.placer.fit(problem, rows) for part in parts)
    )
    near = problem.left_out(rows, width(problem, blend))
    left_out = LeftOut(rows, near, fitted.leave_out(rows, near))
    seconds = time.perf_counter() - begin
    trial = Trial(blend, float(found.lengths.mean()), seconds, errors.shape[1])
    return Chosen(fitted, [trial, *chosen.trials], left_out)


def _local_placers(problem: Problem, given: Given) -> list[LocalPlacer]:
    """Local candidates; with nothing open, the one that was given."""
    n, D = problem.X.shape
    t = given.tangent_dim or (1 if given.order == 0 else problem.dimension)
    if given.weighting == "split_tangent" and given.tangent_dim is None:
        rows = problem.sample(DIMENSION_ROWS)
        near = problem.left_out(rows, min(n - 1, given.n_neighbors or PLAIN_SIZES[1]))
        frames = local_pca.image_frames(problem.Y, *near.framed, problem.n_jobs)
        t = local_pca.tangent_dimension(frames.spread)
    in_ball = problem.search.radius is not None
    return local_placers(given, (n, D, problem.Y.shape[1]), t, in_ball)


def _over_all(problem: Problem, given: Given) -> tuple[Placer, ...]:
    """Placers over all points that agree with what is given."""
    plain = given.order in (None, 0) and given.loss in (None, "squared")
    dense = isinstance(problem.X, np.ndarray) and problem.search.radius is None
    return given.family.over_all if plain and dense else ()


def _choose_over_all(problem: Problem, placers: tuple[Placer, ...], is_open: bool) -> Chosen:
    """Choose among placers over all points on some rows, and fit the best one to all."""
    begin = time.perf_counter()
    tried = try_over_all(problem, placers) if is_open else []
    best = tried.pop(0).placer if is_open else placers[0]
    many = over_many(best) if problem.n > FACTORED_ROWS else None
    chosen = _fit(problem, many or best, [])
    if not is_open:
        return chosen
    seconds, left_out = time.perf_counter() - begin, chosen.left_out
    error, best = mean_error(problem.Y, left_out, problem.size), chosen.fitted.placer
    trial = Trial(best, error, seconds, len(left_out.rows))
    return chosen._replace(trials=[trial, *tried])


def _is_better(problem: Problem, whole: LeftOut, local: LeftOut, is_smooth: bool) -> bool:
    """Typically better; where the local placer does not tell of a smooth map, on average too."""
    Y, size = problem.Y, problem.size
    typical = [typical_error((o.coordinates - Y[o.rows]) / size) for o in (whole, local)]
    on_average = is_smooth or mean_error(Y, whole, size) < mean_error(Y, local, size) - ROUNDING
    return on_average and typical[0] < typical[1]
