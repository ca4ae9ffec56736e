"""Section 6: measured growth of the cost of fitting and placing.

The paper counts O(p^2) operations to prepare p points, because it compares all pairs to find
neighbours, and O(k^2 d^2) to place a point, because it multiplies blocks. Here neighbours come from
a k-d tree, and weights that share one covariance are diagonal in its eigenbasis: O(k d^2 + d^3) per
point, of which d^3 is the eigenbasis.
"""

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outsample_lab.methods import paper_weights
from outsample_lab.power_law import late_slope
from outsample_lab.progress import Progress

Array = NDArray[np.float64]


class Scales(NamedTuple):
    """Values of each parameter (n, D, d, k) to measure, and the number of repeats."""

    n: Sequence[int] = (500, 1000, 2000, 4000, 8000, 16000, 32000)  # Training points
    k: Sequence[int] = (5, 10, 20, 40, 80)  # Neighbours
    d: Sequence[int] = (1, 2, 4, 8, 16, 32)  # Dimensions of the map
    D: Sequence[int] = (2, 5, 10, 20, 50, 100, 200)  # Columns of the points
    n_queries: int = 1000
    repeats: int = 3


FULL = Scales()
BASE = {"n": 4000, "k": 15, "d": 3, "D": 10}  # Values of the other parameters while one is varied
TRAFFIC = {"n": 4000, "k": 15, "d": 5, "D": 14}  # A setting like that of Example II
LATENT = 2  # Dimension of the manifold from which points are drawn, whatever D
PAPER: dict[tuple[str, str], tuple[str, float | None]] = {
    ("fit", "n"): ("O(p²)", 2.0),
    ("fit", "k"): ("O(d k²) per point", 2.0),
    ("fit", "d"): ("O(d k²) per point", 1.0),
    ("place", "n"): ("O(p), search of all points", 1.0),
    ("place", "k"): ("O(k² d²)", 2.0),
    ("place", "d"): ("O(k² d²)", 2.0),
}
OURS = {
    ("fit", "n"): "O(n log n): k-d tree; error bars use a sample of fixed size",
    ("fit", "k"): "O(k): searches and covariances of a sample",
    ("fit", "d"): "O(k d² + d³) per row of the sample",
    ("fit", "D"): "O(D)",
    ("place", "n"): "O(log n): k-d tree",
    ("place", "k"): "O(k d²)",
    ("place", "d"): "O(k d² + d³): one eigenbasis for all neighbours",
    ("place", "D"): "O(D) per distance",
    ("search", "n"): "O(log n): k-d tree",
    ("search", "k"): "O(k log k)",
    ("search", "d"): "none",
    ("search", "D"): "O(D) per distance",
}
STATEMENT = (
    "The paper prepares p points in O(p²) and places a point in O(k² d²). Here a k-d tree finds"
    " neighbours in about O(log n) on data of low intrinsic dimension, fitting is O(n log n), and a"
    " point is placed in O(k d² + d³): the covariance of Eq. 4.4 costs k d², its eigenbasis d³, and"
    " in that basis all weights of Eq. 4.5 are diagonal, so that the solution costs k d."
)


class Growth(NamedTuple):
    """Seconds against one parameter."""

    step: str  # "fit" (all points), "place" (one point) or "search" (its neighbours alone)
    letter: str  # ``"n"``, ``"k"``, ``"d"`` or ``"D"``
    values: list[int]
    seconds: Array
    exponent: float  # Fitted to the upper half of the values, where fixed costs matter least
    paper: str | None  # The order in the paper, None if not given
    paper_exponent: float | None
    ours: str  # The order of this implementation


class Placing(NamedTuple):
    """Cost of the certificates: time per point of ``place`` and of ``transform``."""

    setting: dict[str, int]
    seconds: dict[str, float]  # Of "transform", coordinates alone, and "place", a whole Placement


class Complexity(NamedTuple):
    """Section 6."""

    statement: str
    base: dict[str, int]
    latent_dimension: int
    n_queries: int
    repeats: int
    growths: list[Growth]
    placing: Placing
    seconds: float = 0.0


def run(scales: Scales = FULL, progress: Progress | None = None) -> Complexity:
    """Time fitting, placing and searching while one parameter grows."""
    measure({"n": 100, "k": 5, "d": 3, "D": 3}, 10, 1)  # compile before the clock runs
    letters: dict[str, Sequence[int]] = {letter: getattr(scales, letter) for letter in BASE}
    total = float(sum(_cost(letter, v) for letter, values in letters.items() for v in values))
    done, growths = 0.0, []
    for letter, values in letters.items():
        rows = []
        for value in values:
            if progress is not None:
                progress(done / total, f"Section 6: cost against {letter}")
            rows.append(measure(BASE | {letter: value}, scales.n_queries, scales.repeats))
            done += _cost(letter, value)
        for step, seconds in zip(("fit", "place", "search"), np.transpose(rows), strict=True):
            growths.append(_growth(step, letter, values, seconds))
    placing = compare_placing(scales.n_queries, scales.repeats)
    return Complexity(STATEMENT, BASE, LATENT, scales.n_queries, scales.repeats, growths, placing)


def measure(setting: dict[str, int], n_queries: int, repeats: int) -> tuple[float, float, float]:
    """Return the seconds to fit, to place a point, and to find its neighbours, on one thread."""
    # With the paper's tangent weights; `setting` gives n, k, d and D, the best of `repeats` counts.
    X, Y, new = _data(setting, n_queries)
    k = min(setting["k"], len(X))
    fitted = paper_weights("tangent", n_neighbors=k).fit(X, Y)
    return (
        _best(lambda: paper_weights("tangent", n_neighbors=k).fit(X, Y), repeats),
        _best(lambda: fitted.transform(new), repeats) / n_queries,
        _best(lambda: fitted.index_.nearest(new, k), repeats) / n_queries,
    )


def compare_placing(n_queries: int, repeats: int) -> Placing:
    """Time ``place`` and ``transform`` with the paper's tangent weights, on one thread."""
    X, Y, new = _data(TRAFFIC, n_queries)
    fitted = paper_weights("tangent", n_neighbors=TRAFFIC["k"]).fit(X, Y)
    fitted.place(new[:2])  # compile before the clock runs
    steps = {"transform": fitted.transform, "place": fitted.place}
    seconds = {name: _best(partial(step, new), repeats) for name, step in steps.items()}
    return Placing(TRAFFIC, {name: time / n_queries for name, time in seconds.items()})


def _data(setting: dict[str, int], n_queries: int) -> tuple[Array, Array, Array]:
    """Return points of a smooth surface in R^D, and their positions under a smooth map to R^d."""
    rng = np.random.default_rng(0)
    flat = rng.uniform(-1.0, 1.0, size=(setting["n"] + n_queries, LATENT))
    X = np.sin(flat @ rng.standard_normal((LATENT, setting["D"])))
    Y = np.cos(flat @ rng.standard_normal((LATENT, setting["d"])))
    n = setting["n"]
    return X[:n], Y[:n], X[n:]


def _best(action: Callable[[], Any], repeats: int) -> float:
    """Return the shortest time of several runs, which is the least disturbed one."""
    times = []
    for _ in range(repeats):
        begin = perf_counter()
        action()
        times.append(perf_counter() - begin)
    return min(times)


def _growth(step: str, letter: str, values: Sequence[int], seconds: Array) -> Growth:
    exponent = late_slope(values, seconds)
    paper, paper_exponent = PAPER.get((step, letter), (None, None))
    return Growth(
        step, letter, list(values), seconds, exponent, paper, paper_exponent, OURS[step, letter]
    )


def _cost(letter: str, value: int) -> float:
    """Return a rough relative cost of one measurement, for the estimate of the time left."""
    return value / BASE["n"] if letter == "n" else 1.0
