"""The last word on the model: the best local one, or one over all training points at once.

Models over all points are factored once: a Gaussian process, or the expansion in transition
probabilities. They are tried on small sets, and where a smooth map asks for many neighbours; the
best settings on some of the rows are fitted to all, and judged on the rows on which the local model
was.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from outsample.placers import covariance, transitions
from outsample.placers.candidates import Given
from outsample.placers.covariance import UNIT_NEIGHBOR, Correlated
from outsample.placers.model import Map, Model, Whole, is_whole
from outsample.placers.selection import (
    GLOBAL_ROWS,
    ROUNDING,
    Chooser,
    LeftOut,
    Trial,
    is_wide,
    map_size,
    mean_error,
    sample_rows,
)
from outsample.placers.transitions import Diffusion
from outsample.points import Points

# The model in force is left-one-out on so many training rows; K and the error bars are too.
SAMPLE_ROWS = 1000
# Training sets up to this size try a model over all points even if the local one is narrow.
ALWAYS_ROWS = 500
# Rows on which the settings of a model over all points are chosen.
TRIAL_ROWS = 1000

Settings = Correlated | Diffusion
WHOLE: tuple[Settings, ...] = (
    *(Correlated("matern52", length, 1e-8) for length in (1.0, 2.0, 4.0, 8.0, 16.0)),
    *(Correlated("gaussian", length, 1e-9) for length in (1.0, 2.0, 4.0, 8.0)),
    *(Diffusion(2.0 ** (half / 2)) for half in range(6)),
)
# The best length of a diffusion is then tried this much shorter and longer.
BESIDE = (2.0**-0.25, 2.0**0.25)


class Decision(NamedTuple):
    """The model in force.

    Attributes
    ----------
    model : Model
        The model.
    the_map : Map
        Its constants.
    trials : list of Trial
        What was tried, the chosen one first.
    left_out : LeftOut
        Training rows placed by the others.
    """

    model: Model
    the_map: Map
    trials: list[Trial]
    left_out: LeftOut


def decide(chooser: Chooser, given: Given) -> Decision:
    """Choose what is open, fit what is needed.

    Parameters
    ----------
    chooser : Chooser
        Tries models on the map.
    given : Given
        What the user fixed.

    Returns
    -------
    Decision
    """
    n = chooser.X.shape[0]
    rows = sample_rows(n, SAMPLE_ROWS)
    if is_whole(given.weighting) or (given.n_neighbors == n and _may_be_whole(chooser, given)):
        if n > GLOBAL_ROWS:
            raise ValueError(
                f"all {n} training points are asked for, but correlated errors and diffusions "
                f"can take at most {GLOBAL_ROWS} at once; give fewer n_neighbors."
            )
        return _decide_whole(chooser, given, rows)
    trials: list[Trial] = []
    if None in given or given.weighting == "correlated":
        trials = chooser.choose(given)
        model = trials[0].model
    else:
        model = Model(*given)  # type: ignore[arg-type]  # nothing is None here
    left_out = chooser.leave_out(model, rows)
    local = Decision(model, chooser.prepare(model, left_out.around), trials, left_out)
    is_open = given.n_neighbors is None and not isinstance(given.weighting, Correlated)
    wide, most = is_wide(model), GLOBAL_ROWS if is_wide(model) else ALWAYS_ROWS
    if not (is_open and n <= most and _may_be_whole(chooser, given)):
        return local
    whole = _decide_whole(chooser, given, rows)
    if _is_better(chooser.Y, whole.left_out, left_out, wide):
        return whole._replace(trials=[whole.trials[0], *trials, *whole.trials[1:]])
    return local._replace(trials=[*trials, *whole.trials])


def _is_better(Y: np.ndarray, whole: LeftOut, local: LeftOut, is_smooth: bool) -> bool:
    """Typically better; where the local model does not tell of a smooth map, on average too."""
    on_average = is_smooth or mean_error(Y, whole) < mean_error(Y, local) - ROUNDING
    return on_average and typical_error(Y, whole) < typical_error(Y, local)


def typical_error(Y: np.ndarray, left_out: LeftOut) -> float:
    """Square of the mean root of the leave-one-out errors, over the size of the map.

    What models over all points compare by: in a plain mean the few points far from all others,
    which nothing places well, would choose the length scale for everybody.

    Parameters
    ----------
    Y : ndarray of shape (n, d)
        Images.
    left_out : LeftOut
        Rows placed without themselves.

    Returns
    -------
    float
    """
    return _typical((left_out.coordinates - Y[left_out.rows]) / map_size(Y))


def _typical(residuals: np.ndarray) -> float:
    return float(np.sqrt(np.linalg.norm(residuals, axis=1)).mean() ** 2)


def _may_be_whole(chooser: Chooser, given: Given) -> bool:
    """Tell whether a model over all points agrees with what is given."""
    named = given.weighting is None or given.weighting == "correlated"
    plain = given.order in (None, 0) and given.loss in (None, "squared")
    dense = isinstance(chooser.X, np.ndarray) and chooser.search.radius is None
    return (named or isinstance(given.weighting, Correlated)) and plain and dense


def _decide_whole(chooser: Chooser, given: Given, rows: np.ndarray) -> Decision:
    """Choose the settings if they are open, and fit them to all points."""
    begin = time.perf_counter()
    n, tried = chooser.X.shape[0], []
    settings = given.weighting
    if not isinstance(settings, Correlated | Diffusion):
        tried = _try_settings(chooser, given)
        settings = tried.pop(0).model.weighting
    assert isinstance(settings, Correlated | Diffusion)
    fit, residuals = _fit(
        chooser.X, chooser.Y, chooser.typical_unit(), settings, rows, chooser.n_jobs
    )
    around = chooser.around(rows, min(n - 1, UNIT_NEIGHBOR))
    left_out = LeftOut(rows, around, chooser.Y[rows] - residuals)
    model = Model(settings, n, 0, "squared", given.tangent_dim or 1)
    the_map = chooser.prepare(model, around)._replace(process=fit)
    seconds = time.perf_counter() - begin
    trial = Trial(model, mean_error(chooser.Y, left_out), seconds, len(rows))
    trials = [trial, *tried] if given.weighting != settings else []
    return Decision(model, the_map, trials, left_out)


def _try_settings(chooser: Chooser, given: Given) -> list[Trial]:
    """Leave-one-out of each setting on some rows, the best one first."""
    n, unit, size = chooser.X.shape[0], chooser.typical_unit(), map_size(chooser.Y)
    # Fewer points lie farther apart; the length scale is that of the whole set all the same.
    some = np.sort(sample_rows(n, TRIAL_ROWS))
    X, Y, everyone = chooser.X[some], chooser.Y[some], np.arange(len(some))
    errors: dict[Trial, float] = {}

    def attempt(settings: Settings) -> None:
        begin = time.perf_counter()
        residuals = _fit(X, Y, unit, settings, everyone, chooser.n_jobs)[1] / size
        seconds = time.perf_counter() - begin
        error = float(np.linalg.norm(residuals, axis=1).mean())
        model = Model(settings, n, 0, "squared", given.tangent_dim or 1)
        errors[Trial(model, error, seconds, len(some))] = _typical(residuals)

    kinds = {"correlated": Correlated, "diffusion": Diffusion}
    for settings in WHOLE:
        if given.weighting is None or isinstance(settings, kinds[str(given.weighting)]):
            attempt(settings)
    best = min(errors, key=errors.__getitem__).model.weighting
    if isinstance(best, Diffusion):
        for factor in BESIDE:
            attempt(best._replace(length=best.length * factor))
    return sorted(errors, key=errors.__getitem__)


def _fit(
    X: Points,
    Y: np.ndarray,
    unit: float,
    settings: Settings,
    held_out: np.ndarray,
    n_jobs: int | None,
) -> tuple[Whole, np.ndarray]:
    if isinstance(settings, Diffusion):
        return transitions.fit_diffusion(X, Y, unit, settings, held_out, n_jobs)
    return covariance.fit_global(X, Y, unit, settings, held_out)
