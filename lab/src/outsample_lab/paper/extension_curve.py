"""Fig. 7.3: errors of extensions of a diffusion map of network traffic.

The map of 800 normal minutes goes from R^14 to R^5. The positions of 50 random minutes are held out
and predicted from random training sets of growing size, taken from the other 750. The figure is the
mean error relative to the root mean square size of the map. The paper prints a figure without
numbers or bandwidths; here all methods select their bandwidths on the training set.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

import outsample
from outsample.points import map_size
from outsample_lab import methods as named
from outsample_lab.methods import errors, paper_weightings
from outsample_lab.novelty.splits import standardise
from outsample_lab.paper.traffic_map import traffic_map
from outsample_lab.progress import Progress
from outsample_lab.traffic.days import Traffic, log_features

Array = NDArray[np.float64]

AUTO = "auto"
SIZES = (100, 200, 300, 400, 500, 600, 700, 750)
N_POINTS, N_HIDDEN = 800, 50
TITLES = named.TITLES | {
    AUTO: "PCAExtension(), all defaults",
    "nystroem": "Nyström",
    "mse": "MSE",
    "pyramids": "Laplacian pyramids, tolerance",
    "adaptive_pyramids": "Laplacian pyramids, auto-adaptive",
    "harmonics": "Geometric harmonics",
}
# The four methods of the paper's figure; its pyramids are called auto-adaptive but described with
# a tolerance, so both variants are measured.
IN_PAPER = ("tangent", "nystroem", "mse", "adaptive_pyramids")


class TrafficMap(NamedTuple):
    """Minutes of traffic and their diffusion map."""

    X: Array  # Logarithms of the counts, standardised, shape (n, 14)
    Y: Array  # Images, shape (n, 5)


class Curve(NamedTuple):
    """Errors of one method at each size of the training set."""

    method: str
    title: str
    in_paper: bool  # True if the paper's figure contains it
    errors: Array  # Mean error over the size of the map
    spread: Array  # Standard deviation of the mean error over the repetitions
    medians: Array  # Median error of the hidden points, the mean over the repetitions
    seconds: Array  # Mean time to fit and place


class Winner(NamedTuple):
    """The lowest curve at one size."""

    size: int
    method: str
    error: float


class Shortfall(NamedTuple):
    """A size at which the defaults are not lowest."""

    size: int
    auto: float
    method: str
    error: float
    wins: int  # Repetitions in which the defaults had a lower error than this method


class ExtensionCurve(NamedTuple):
    """Fig. 7.3."""

    n_points: int
    n_distinct: int  # Number of distinct rows
    n_hidden: int
    n_repeats: int
    sizes: list[int]
    curves: list[Curve]
    winners: list[Winner]
    auto_not_lowest: list[Shortfall]
    chosen: list[dict[str, int]]  # Models that the defaults selected at each size, with counts
    seconds: float = 0.0


def methods() -> dict[str, Any]:
    """Return the unfitted extensions by name."""
    return {
        **paper_weightings(),
        AUTO: outsample.PCAExtension(),
        "nystroem": outsample.NystroemExtension(),
        "mse": outsample.MultiscaleExtension(),
        "pyramids": outsample.LaplacianPyramids(stop="tolerance"),
        "adaptive_pyramids": outsample.LaplacianPyramids(),
        "harmonics": outsample.GeometricHarmonics(),
    }


def embed(day: Traffic, n_points: int = N_POINTS) -> TrafficMap:
    """Return the diffusion map of a day's first normal minutes."""
    # The first minutes, because minutes at night are duplicates: held-out points with a duplicate
    # in the training set have no error.
    (X,) = standardise(log_features(day.X[~day.is_attack][:n_points]))
    return TrafficMap(X, traffic_map(X))


def run(
    data: TrafficMap,
    sizes: Sequence[int] = SIZES,
    n_repeats: int = 20,
    n_hidden: int = N_HIDDEN,
    n_workers: int = 1,
    progress: Progress | None = None,
) -> ExtensionCurve:
    """Measure every extension at every size, with `n_workers` repetitions in parallel."""
    # A repetition is a random choice of held-out points and training sets.
    scale, names = map_size(data.Y), list(methods())
    errors = np.empty((n_repeats, len(sizes), len(names), 3))
    selected_models: list[dict[str, int]] = [{} for _ in sizes]
    trials = [(repeat, at) for at in range(len(sizes)) for repeat in range(n_repeats)]
    # Measured cost of a trial, for the estimate of the time left.
    cost = np.cumsum([float(sizes[at]) ** 1.3 for _, at in trials])
    # One BLAS thread per worker: more threads under a pool of workers wait for each other.
    with threadpool_limits(1), ThreadPoolExecutor(n_workers) as pool:
        results = pool.map(lambda t: _trial(data, sizes[t[1]], n_hidden, t[0]), trials)
        for done, ((repeat, at), (rows, choice)) in enumerate(zip(trials, results, strict=True)):
            errors[repeat, at] = rows
            selected_models[at][choice] = selected_models[at].get(choice, 0) + 1
            if progress is not None:
                progress(float(cost[done] / cost[-1]), f"Fig. 7.3: {sizes[at]} training points")
    errors[..., :2] /= scale
    curves = [
        Curve(
            name, TITLES[name], name in IN_PAPER, errors[:, :, i, 0].mean(axis=0),
            errors[:, :, i, 0].std(axis=0), *errors[:, :, i, 1:].mean(axis=0).T,
        )
        for i, name in enumerate(names)
    ]  # fmt: skip
    winners = []
    for at, size in enumerate(sizes):
        best = min(curves, key=lambda curve: curve.errors[at])
        winners.append(Winner(size, best.method, float(best.errors[at])))
    short = _shortfalls(winners, names, errors[..., 0])
    return ExtensionCurve(
        len(data.X), len(np.unique(data.X, axis=0)), n_hidden, n_repeats, list(sizes), curves,
        winners, short, selected_models,
    )  # fmt: skip


def _trial(data: TrafficMap, size: int, n_hidden: int, repeat: int) -> tuple[Array, str]:
    """Return errors and seconds of every method on hidden points, and what auto selected."""
    # A repetition holds out the same points at every size, and its training sets are nested.
    order = np.random.default_rng(repeat).permutation(len(data.X))
    hidden, training = order[:n_hidden], order[n_hidden : n_hidden + size]
    rows, choice = [], ""
    for name, method in methods().items():
        begin = perf_counter()
        fitted = clone(method).fit(data.X[training], data.Y[training])
        distances = errors(fitted.transform(data.X[hidden]), data.Y[hidden])
        rows.append((distances.mean(), np.median(distances), perf_counter() - begin))
        if name == AUTO:
            kind = fitted.weighting_  # without its numbers
            choice = kind if isinstance(kind, str) else type(kind).__name__
    return np.array(rows), choice


def _shortfalls(winners: Sequence[Winner], names: Sequence[str], errors: Array) -> list[Shortfall]:
    """Return the sizes at which the defaults do not have the lowest error."""
    auto, short = names.index(AUTO), []
    for at, winner in enumerate(winners):
        ours, best = errors[:, at, auto], errors[:, at, names.index(winner.method)]
        if winner.method != AUTO:
            mean, wins = float(ours.mean()), int((ours < best).sum())
            short.append(Shortfall(winner.size, mean, winner.method, winner.error, wins))
    return short
