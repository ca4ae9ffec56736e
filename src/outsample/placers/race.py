"""Choice of the placer on the user's own data, by leave-one-out over training points.

A local placer is left-one-out exactly by asking for one neighbour more and dropping the point
itself. All candidates share one neighbour search. They are tried on a few rows first; the better
ones go on to more rows, so that the cost is bounded whatever the size of the training set.

Placers over all points are factored once. They are tried on small sets, and where a smooth map asks
for many neighbours; the best one on some of the rows is fitted to all, and judged on the rows on
which the local placer was.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from outsample.neighbors import local_pca
from outsample.neighbors.neighborhoods import Neighborhoods
from outsample.placers.candidates import Given, beside, local_placers
from outsample.placers.local import LocalPlacer
from outsample.placers.over_all import FACTORED_ROWS
from outsample.placers.problem import DIMENSION_ROWS, UNIT_NEIGHBOR, Problem
from outsample.placers.protocol import FittedPlacer, Placer
from outsample.placers.weighting import PLAIN_SIZES
from outsample.points import map_size

# Rows of each round, and how many candidates stay for the next one.
ROUNDS = ((150, 14), (500, 5), (2000, 1))
# A candidate worse than the best by more than this factor does not go on.
WORSE = 1.4
# Candidates within this share of the best, or with errors below rounding, are tied.
TIE = 1e-3
ROUNDING = 1e-13
# Neighbourhoods tried beyond the largest candidates, for the best placer only.
WIDER = (120,)
# The placer in force is left-one-out on so many training rows; K and the error bars are too.
SAMPLE_ROWS = 2000
# Training sets up to this size try a placer over all points even if the local one is narrow.
ALWAYS_ROWS = 500
# Rows on which the settings of a placer over all points are chosen.
TRIAL_ROWS = 1000


class Trial(NamedTuple):
    """One row of `PCAExtension.selection_`.

    Attributes
    ----------
    placer : LocalPlacer, GaussianProcess or Diffusion
        The candidate.
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


class Chosen(NamedTuple):
    """The placer in force, what was tried (the chosen one first), and rows left out of it."""

    fitted: FittedPlacer
    trials: list[Trial]
    left_out: LeftOut


def choose(problem: Problem, given: Given) -> Chosen:
    """Choose what is open, fit what is needed."""
    family, n = given.family, problem.n
    over_all = _over_all(problem, given)
    if not family.weightings or (given.n_neighbors == n and over_all):
        if n > FACTORED_ROWS:
            raise ValueError(
                f"all {n} training points are asked for, but correlated errors and diffusions "
                f"can take at most {FACTORED_ROWS} at once; give fewer n_neighbors."
            )
        return _choose_over_all(problem, over_all, family.is_open)
    placers = _local_placers(problem, given)
    problem.widest = max(placer.n_neighbors for placer in placers)
    trials = _race(problem, placers, given.n_neighbors is None) if given.is_open else []
    placer = trials[0].placer if trials else placers[0]
    local = _fit(problem, placer, trials)
    most = FACTORED_ROWS if placer.wants_more else ALWAYS_ROWS
    settled = given.n_neighbors is not None or not family.is_open
    if settled or n > most or not over_all:
        return local
    whole = _choose_over_all(problem, over_all, True)
    if _is_better(problem.Y, whole.left_out, local.left_out, placer.wants_more):
        return whole._replace(trials=[whole.trials[0], *trials, *whole.trials[1:]])
    return local._replace(trials=[*trials, *whole.trials])


def mean_error(Y: np.ndarray, left_out: LeftOut) -> float:
    """Mean leave-one-out error over the size of the map."""
    errors = (left_out.coordinates - Y[left_out.rows]) / map_size(Y)
    return float(np.sqrt((errors**2).sum(axis=1)).mean())


def typical_error(errors: np.ndarray) -> float:
    """Square of the mean root of the lengths of errors (s, d).

    What placers over all points compare by: in a plain mean the few points far from all others,
    which nothing places well, would choose the length scale for everybody.
    """
    return float(np.sqrt(np.linalg.norm(errors, axis=1)).mean() ** 2)


def leave_out(problem: Problem, placer: Placer, rows: np.ndarray) -> tuple[FittedPlacer, LeftOut]:
    """Fit a placer, and place training rows by all others."""
    k = placer.n_neighbors or min(problem.n - 1, UNIT_NEIGHBOR)
    fitted, near = placer.fit(problem, rows), problem.left_out(rows, k)
    return fitted, LeftOut(rows, near, fitted.leave_out(rows, near))


def _fit(problem: Problem, placer: Placer, trials: list[Trial]) -> Chosen:
    """Fit the placer in force."""
    fitted, left_out = leave_out(problem, placer, problem.sample(SAMPLE_ROWS))
    return Chosen(fitted, trials, left_out)


def _try(problem: Problem, placer: Placer, rows: np.ndarray) -> Trial:
    begin = time.perf_counter()
    _, left_out = leave_out(problem, placer, rows)
    seconds = time.perf_counter() - begin
    return Trial(placer, mean_error(problem.Y, left_out), seconds, len(rows))


def _race(problem: Problem, placers: list[LocalPlacer], may_widen: bool) -> list[Trial]:
    """Try local placers, simplest first; the chosen one comes first, then by rows and error."""
    trials: dict[Placer, Trial] = {}
    for n_rows, stay in ROUNDS:
        rows = problem.sample(n_rows)
        tried = [_try(problem, placer, rows) for placer in placers]
        trials.update((trial.placer, trial) for trial in tried)
        tried.sort(key=lambda trial: trial.error)
        limit = WORSE * tried[0].error + ROUNDING
        good = {trial.placer for trial in tried[:stay] if trial.error <= limit}
        placers = [placer for placer in placers if placer in good]
        if len(placers) == 1 or len(rows) < n_rows:
            break
        if stay < ROUNDS[0][1] and tried[0].placer.wants_more:
            break  # smooth maps have errors alike everywhere, and placers that cost
    best = next(placer for placer in placers if placer == tried[0].placer)
    if may_widen and best.wants_more:
        # Larger neighbourhoods, unless all points can be taken at once.
        for k in WIDER:
            if FACTORED_ROWS < problem.n and k < problem.n:
                wider = replace(best, n_neighbors=k)
                trials[wider] = _try(problem, wider, rows)
    table = sorted(trials.values(), key=lambda trial: (-trial.n_rows, trial.error))
    last = [trial for trial in trials.values() if trial.n_rows == table[0].n_rows]
    limit = table[0].error * (1 + TIE) + ROUNDING
    chosen = next(trial for trial in last if trial.error <= limit)  # simplest first
    return [chosen, *(trial for trial in table if trial is not chosen)]


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
    tried = _try_over_all(problem, placers) if is_open else []
    best = tried.pop(0).placer if is_open else placers[0]
    chosen = _fit(problem, best, [])
    if not is_open:
        return chosen
    seconds, left_out = time.perf_counter() - begin, chosen.left_out
    trial = Trial(best, mean_error(problem.Y, left_out), seconds, len(left_out.rows))
    return chosen._replace(trials=[trial, *tried])


def _try_over_all(problem: Problem, placers: tuple[Placer, ...]) -> list[Trial]:
    """Leave-one-out of each placer on some rows, the typically best one first."""
    # Fewer points lie farther apart; the length scale is that of the whole set all the same.
    some = np.sort(problem.sample(TRIAL_ROWS))
    part, everyone, size = problem.part(some), np.arange(len(some)), map_size(problem.Y)
    typical: dict[Trial, float] = {}

    def attempt(placer: Placer) -> None:
        begin = time.perf_counter()
        errors = (placer.fit(part, everyone).leave_out(everyone, None) - part.Y) / size
        seconds = time.perf_counter() - begin
        error = float(np.linalg.norm(errors, axis=1).mean())
        typical[Trial(placer, error, seconds, len(some))] = typical_error(errors)

    for placer in placers:
        attempt(placer)
    for placer in beside(min(typical, key=typical.__getitem__).placer):
        attempt(placer)
    return sorted(typical, key=typical.__getitem__)


def _is_better(Y: np.ndarray, whole: LeftOut, local: LeftOut, is_smooth: bool) -> bool:
    """Typically better; where the local placer does not tell of a smooth map, on average too."""
    typical = [typical_error((o.coordinates - Y[o.rows]) / map_size(Y)) for o in (whole, local)]
    on_average = is_smooth or mean_error(Y, whole) < mean_error(Y, local) - ROUNDING
    return on_average and typical[0] < typical[1]
