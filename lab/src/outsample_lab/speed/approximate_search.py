"""Placing by approximate search: time against n, recall, and effect on the error."""

from functools import partial

import numpy as np
from sklearn.neighbors import KNeighborsRegressor

from outsample import PCAExtension
from outsample_lab.power_law import slope
from outsample_lab.speed import made_up
from outsample_lab.speed.exact_search import REGRESSOR, K, fitted, setting
from outsample_lab.speed.made_up import IMAGES, TRAFFIC, Cloud, Shape
from outsample_lab.speed.sizes import JOBS, Ground
from outsample_lab.speed.speed_result import Curve, PartResult, Target
from outsample_lab.speed.stopwatch import Times, quartiles, take_turns

NAME, TITLE = "approximate", "Approximate search"
EXACT = "distance, exact"
GROWTH = "approximate, D = {D}: exponent of the time of a row in n, from {first:,} to {last:,}"


def approximate(ground: Ground) -> PartResult:
    """Time approximate search against a regressor, and over numbers of training points."""
    reason = why_unavailable()
    if reason:
        targets = [Target(description, limit, at_least=at_least, skipped=reason)
                   for description, limit, at_least in _limits(ground)]  # fmt: skip
        return PartResult(NAME, TITLE, [], targets, [], [], skipped=reason)
    targets, timings = [], []
    for at, shape in enumerate((TRAFFIC, IMAGES)):
        ground.tell(0.25 * at, f"approximate: D = {shape.D}")
        recall, times = _against_regressor(ground, shape)
        targets += recall
        timings += times.timings()
    growth, curve = _growth(ground)
    description = [
        *(made_up.words(shape) for shape in (TRAFFIC, IMAGES)),
        f"Recall: the share of the {K} nearest that the approximate search finds, new rows.",
    ]
    return PartResult(NAME, TITLE, description, [*targets, growth], timings, [curve])


def why_unavailable() -> str:
    """Return why approximate search is not available; empty if it is."""
    data = made_up.cloud(TRAFFIC, 300, 5)
    try:
        _fitted(data).transform(data.Q)
    except (ImportError, ValueError) as fault:
        return str(fault).splitlines()[0]
    return ""


def _fitted(data: Cloud) -> PCAExtension:
    return fitted("distance", data, index="approximate")


def _descriptions(shape: Shape) -> tuple[str, str, str]:
    start = f"approximate, D = {shape.D}"
    return f"{start}: against {REGRESSOR}", f"{start}: recall", f"{start}: error over exact"


def _limits(ground: Ground) -> list[tuple[str, float, bool]]:
    lines = []
    for shape in (TRAFFIC, IMAGES):
        time, recall, error = _descriptions(shape)
        lines += [(time, 0.15, False), (recall, 0.99, True), (error, 1.01, False)]
    first, last = ground.sizes.approximate[0], ground.sizes.approximate[-1]
    return [*lines, (GROWTH.format(D=TRAFFIC.D, first=first, last=last), 0.25, False)]


def _against_regressor(ground: Ground, shape: Shape) -> tuple[list[Target], Times]:
    sizes = ground.sizes
    data = made_up.cloud(shape, sizes.exact, sizes.batch)
    near, exact = _fitted(data), fitted("distance", data)
    regressor = KNeighborsRegressor(K, weights="distance", n_jobs=JOBS).fit(data.X, data.Y)
    works = {
        REGRESSOR: partial(regressor.predict, data.Q),
        EXACT: partial(exact.transform, data.Q),
        NAME: partial(near.transform, data.Q),
    }
    where = setting(shape, sizes.exact, sizes.batch)
    times = take_turns(where, works, sizes.repeats, sizes.budget)
    time, recall, error = _descriptions(shape)
    errors = data.error(near.transform(data.Q)), data.error(exact.transform(data.Q))
    targets = [
        times.target(time, 0.15, NAME, REGRESSOR),
        Target(recall, 0.99, recalled(near, exact, data), unit="of 1", at_least=True),
        Target(error, 1.01, errors[0] / errors[1],
               note=f"errors {errors[0]:.4g} and {errors[1]:.4g} of the size of the map"),
    ]  # fmt: skip
    return targets, times


def recalled(near: PCAExtension, exact: PCAExtension, data: Cloud) -> float:
    """Return the recall: the share of the nearest training points that are found."""
    approximate_rows, true = (
        model.distinct_.rows[model.index_.nearest(data.Q, K).indices].reshape(-1, K)
        for model in (near, exact)
    )
    shares = [len(np.intersect1d(*pair)) / K for pair in zip(approximate_rows, true, strict=True)]
    return float(np.mean(shares))


def _growth(ground: Ground) -> tuple[Target, Curve]:
    sizes, seconds = ground.sizes, []
    for at, n in enumerate(sizes.approximate):
        ground.tell(0.5 + 0.5 * at / len(sizes.approximate), f"approximate: n = {n:,}")
        data = made_up.cloud(TRAFFIC, n, sizes.batch)
        work = {NAME: partial(_fitted(data).transform, data.Q)}
        times = take_turns("", work, sizes.repeats, sizes.budget / 4).seconds[NAME]
        seconds.append(quartiles(times)[0] / sizes.batch)
    exponent = slope(sizes.approximate, seconds)
    (description, limit, _) = _limits(ground)[-1]
    curve = Curve(
        "Time of a row by approximate search", "training points", "microseconds per row", NAME,
        [float(n) for n in sizes.approximate], [1e6 * value for value in seconds], exponent,
    )  # fmt: skip
    return Target(description, limit, exponent, unit="exponent"), curve
