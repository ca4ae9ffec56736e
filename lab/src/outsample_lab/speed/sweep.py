"""Sweep from a thousand to a million training points: batches, single rows, fits, memory."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.interpolate import RBFInterpolator
from sklearn.neighbors import KNeighborsRegressor

from outsample_lab.power_law import late_slope
from outsample_lab.speed import made_up
from outsample_lab.speed.approximate_search import why_unavailable
from outsample_lab.speed.errands import in_fresh_process
from outsample_lab.speed.exact_search import (
    BASIS,
    REGRESSOR,
    SEARCHES,
    TREE,
    WIDE,
    K,
    bare_searches,
    fitted,
    setting,
)
from outsample_lab.speed.made_up import IMAGES, TRAFFIC, Cloud, Shape
from outsample_lab.speed.sizes import JOBS, Ground
from outsample_lab.speed.speed_result import Curve, PartResult, Target, Timing
from outsample_lab.speed.stopwatch import Times, Work, row_times, take_turns

OURS = "distance"
PRODUCT_WORK = 2e11  # Maximum multiplications of a batch by brute force; larger batches are cut
MAX_SLOWDOWN = 4.0  # Searches slower than this times the fastest are not timed in full
TRIAL = 200  # Rows of the trial that identifies slow searches


def over_sizes(ground: Ground) -> PartResult:
    """Time searches, regressors and our methods at every number of training points."""
    timings: list[Timing] = []
    curves: list[Curve] = []
    words = [
        *(made_up.words(shape) for shape in (TRAFFIC, IMAGES)),
        f"Searches return {K} neighbours. A search that took more than {MAX_SLOWDOWN:g} times the"
        f" fastest one for {TRIAL} rows was not timed further. faiss uses single precision. Single"
        " rows are timed on one thread.",
    ]
    reason = why_unavailable()
    words += [f"Approximate search was skipped: {reason}."] if reason else []
    sweep = ground.sizes.sweep
    for at, shape in enumerate((TRAFFIC, IMAGES)):
        seconds: dict[str, dict[int, float]] = {}
        for step, n in enumerate(sweep):
            ground.tell((at + step / len(sweep)) / 2, f"n = {n:,}, D = {shape.D}")
            rows = _rows(ground, shape, n)
            data = made_up.cloud(shape, n, rows)
            searches, slow = _quick_searches(data)
            words += [f"n = {n:,}, D = {shape.D}: {note}" for note in slow]
            for times, n_rows in _batches(ground, shape, data, searches, not reason):
                timings += times.timings()
                for work in times.seconds:
                    seconds.setdefault(work, {})[n] = times.median(work) / n_rows
            timings += _fits(ground, shape, data)
            timings += _single_rows(ground, shape, data, list(searches))
        curves += _curves(f"Time of a row in a batch, D = {shape.D}", seconds)
        curves.append(_over_fastest(f"D = {shape.D}", seconds))
    return PartResult("sizes", "From small to large", words, [], timings, curves)


def _rows(ground: Ground, shape: Shape, n: int) -> int:
    """Return the number of rows of a batch, smaller where brute force would take minutes."""
    return min(ground.sizes.batch, max(TRIAL, int(PRODUCT_WORK / (n * shape.D))))


def _quick_searches(data: Cloud) -> tuple[dict[str, Callable[[Any], Any]], list[str]]:
    """Return the searches that are fast enough to time, and a note on the others."""
    searches = bare_searches(data)
    works = {name: partial(search, data.Q[:TRIAL]) for name, search in searches.items()}
    trial = take_turns("", works, 1, 0.0)
    over = {name: trial.median(name) / min(map(trial.median, works)) for name in works}
    slow = [f"{name} took {ratio:.0f} times the fastest search."
            for name, ratio in over.items() if ratio > MAX_SLOWDOWN]  # fmt: skip
    return {name: searches[name] for name in works if over[name] <= MAX_SLOWDOWN}, slow


def _batches(
    ground: Ground, shape: Shape, data: Cloud, searches: Mapping[str, Any], near: bool
) -> list[tuple[Times, int]]:
    """Time a batch by all methods; radial basis functions, which are slow, on fewer rows."""
    sizes, n, rows = ground.sizes, len(data.X), len(data.Q)
    regressor = KNeighborsRegressor(K, weights="distance", n_jobs=JOBS).fit(data.X, data.Y)
    works: dict[str, Work] = {name: partial(search, data.Q) for name, search in searches.items()}
    works[REGRESSOR] = partial(regressor.predict, data.Q)
    works[OURS] = partial(fitted(OURS, data).transform, data.Q)
    if near:
        approximate = fitted(OURS, data, index="approximate")
        works[f"{OURS}, approximate"] = partial(approximate.transform, data.Q)
    times = take_turns(setting(shape, n, rows), works, sizes.repeats, sizes.budget)
    n_rows = min(rows, 1000 if n <= 50_000 else TRIAL)
    basis = RBFInterpolator(data.X, data.Y, neighbors=WIDE, kernel="linear")
    work = {BASIS: partial(basis, data.Q[:n_rows])}
    slower = take_turns(setting(shape, n, n_rows), work, 3, sizes.budget / 4, warm_up=False)
    return [(times, rows), (slower, n_rows)]


def _fits(ground: Ground, shape: Shape, data: Cloud) -> list[Timing]:
    regressor = KNeighborsRegressor(K, weights="distance")
    works: dict[str, Work] = {
        f"fit of {REGRESSOR}": partial(regressor.fit, data.X, data.Y),
        f"fit of {OURS}": partial(fitted, OURS, data),
    }
    where = f"n = {len(data.X):,}, D = {shape.D}, d = {shape.d}"
    return take_turns(where, works, ground.sizes.repeats, ground.sizes.budget / 4).timings()


def _single_rows(
    ground: Ground, shape: Shape, data: Cloud, searches: Sequence[str]
) -> list[Timing]:
    alone = bare_searches(data, jobs=1)
    works = {name: alone[name] for name in searches}
    regressor = KNeighborsRegressor(K, weights="distance").fit(data.X, data.Y)
    works |= {REGRESSOR: regressor.predict, OURS: fitted(OURS, data, n_jobs=1).transform}
    n, max_rows = len(data.X), ground.sizes.single_rows
    n_rows = min(max_rows, max(20, max_rows * 50_000 // n))
    where = f"n = {n:,}, D = {shape.D}, d = {shape.d}, single rows"
    return row_times(works, data.Q[:n_rows], where)[1]


def _curves(chart: str, seconds_by_work: dict[str, dict[int, float]]) -> list[Curve]:
    curves = []
    for name, times in seconds_by_work.items():
        sizes, seconds = list(times), [1e6 * value for value in times.values()]
        exponent = late_slope(sizes, seconds) if len(sizes) > 1 else np.nan
        curve = Curve(chart, "training points", "microseconds per row", name,
                      [float(n) for n in sizes], seconds, exponent)  # fmt: skip
        curves.append(curve)
    return curves


def _over_fastest(name: str, seconds: dict[str, dict[int, float]]) -> Curve:
    """Return our time over that of the fastest bare search, at every size."""
    searches = [times for work, times in seconds.items() if work in SEARCHES]
    least = {n: min(times[n] for times in searches if n in times) for n in seconds[OURS]}
    ratios = [seconds[OURS][n] / least[n] for n in least]
    chart, y = f"{OURS} over the fastest bare search", "ratio"
    return Curve(chart, "training points", y, name, [float(n) for n in least], ratios)


def one_row(ground: Ground) -> PartResult:
    """Time single rows; the median has a target."""
    sizes = ground.sizes
    data = made_up.cloud(TRAFFIC, sizes.single, sizes.single_rows)
    regressor = KNeighborsRegressor(K, weights="distance").fit(data.X, data.Y)
    works = {
        TREE: bare_searches(data, jobs=1)[TREE],
        REGRESSOR: regressor.predict,
        OURS: fitted(OURS, data, n_jobs=1).transform,
    }
    where = f"n = {sizes.single:,}, D = {TRAFFIC.D}, d = {TRAFFIC.d}, single rows, one thread"
    times, timings = row_times(works, data.Q, where)
    ratio = times.median(OURS) / times.median(TREE), times.median(OURS) / times.median(REGRESSOR)
    targets = [
        Target("one row, median: over bare cKDTree", 4.0, ratio[0]),
        Target(f"one row, median: against {REGRESSOR}", 0.2, ratio[1]),
    ]
    words = [made_up.words(TRAFFIC)]
    return PartResult("row", "One row", words, targets, timings, [])


def peak_memory(ground: Ground) -> PartResult:
    """Measure the memory of fitting and placing in a fresh process, without imports and data."""
    curves = []
    for shape in (TRAFFIC, IMAGES):
        for who in (OURS, REGRESSOR):
            sizes, peaks = [], []
            for n in ground.sizes.sweep:
                ground.tell(0.0, f"memory of {who}, n = {n:,}, D = {shape.D}")
                rows = _rows(ground, shape, n)
                result = in_fresh_process(
                    "fit_and_place", who=who, shape=list(shape), n=n, rows=rows
                )
                sizes.append(float(n))
                peaks.append(result["peak"])
            chart = f"Peak memory of fit and a batch, D = {shape.D}"
            unit = "MB without the points"
            curves.append(Curve(chart, "training points", unit, who, sizes, peaks))
    words = [
        "Each in a new process: the peak resident memory of fitting and placing a batch, without"
        " imports, kernels and points."
    ]
    return PartResult("memory", "Memory", words, [], [], curves)
