"""Handwritten digits on a t-SNE map: a fifth of the points is hidden, then placed again.

The map is made of *all* digits, so the true place of every hidden point is known. t-SNE
tears neighbourhoods apart; this is the hard case for any extension that averages.
"""

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outsample import PCAExtension, plots
from outsample.comparison.holdout import place
from outsample.lab import datasets
from outsample.lab.accuracy.maps import tsne
from outsample.lab.methods import DEFAULTS, REFERENCE, TITLES, errors, paper_weights, reference
from outsample.points import map_size
from outsample.report.page import Picture, Section, Table

FAR = 0.1  # A point is called far off when its error exceeds this share of the map's size


class DigitsMap(NamedTuple):
    """Digits, what they show, and where t-SNE put them."""

    X: NDArray[np.float64]
    labels: NDArray[np.int64]
    Y: NDArray[np.float64]
    seconds: float  # What the map itself cost on one thread, to set beside the cost of placing


class DigitsRow(NamedTuple):
    """One line of the table, averaged over the splits."""

    method: str
    error: float  # Mean error of the hidden points divided by the map's size
    spread: float  # Standard deviation of that error from split to split
    far: float  # Share of hidden points off by more than a tenth of the map's size
    seconds: float  # Time to place the hidden points of one split, the fastest of them


class DigitsExample(NamedTuple):
    """One split, placed by one method."""

    method: str
    hidden: NDArray[np.bool_]  # Which points of the map were hidden, shape (n,)
    placed: NDArray[np.float64]  # Where the hidden ones were placed, in their order


def embed(n_points: int | None = None) -> DigitsMap:
    """Make the t-SNE map of the first `n_points` digits, of all of them by default."""
    X, labels = datasets.digits()
    X, labels = X[:n_points], labels[:n_points]
    start = perf_counter()
    Y = tsne(X)
    return DigitsMap(X, labels, Y, perf_counter() - start)


def methods() -> dict[str, Any]:
    """Return the unfitted estimators of the table by name."""
    return {
        REFERENCE: reference(),
        **{name: paper_weights(name, n_neighbors=15) for name in ("distance", "tangent")},
        DEFAULTS: PCAExtension(),
    }


def split(n: int, seed: int) -> NDArray[np.bool_]:
    """Return a mask that hides a random fifth of n points."""
    hidden = np.zeros(n, dtype=bool)
    hidden[np.random.default_rng(seed).permutation(n)[: n // 5]] = True
    return hidden


def run(
    data: DigitsMap,
    seeds: Sequence[int] = (0, 1, 2),
    on_row: Callable[[DigitsRow], None] | None = None,
) -> list[DigitsRow]:
    """Measure the reference, the paper's weightings and the defaults over random splits."""
    rows = []
    for name, estimator in methods().items():
        rows.append(_row(name, estimator, data, seeds))
        if on_row is not None:
            on_row(rows[-1])
    return rows


def _row(name: str, estimator: Any, data: DigitsMap, seeds: Sequence[int]) -> DigitsRow:
    """Fit and place split by split; errors in units of the map's size."""
    size = map_size(data.Y)
    means, far, seconds = [], [], []
    for seed in seeds:
        hidden = split(len(data.X), seed)
        fitted = estimator.fit(data.X[~hidden], data.Y[~hidden])
        start = perf_counter()
        placed = place(fitted, data.X[hidden], data.Y.shape[1])
        seconds.append(perf_counter() - start)
        relative = errors(placed, data.Y[hidden]) / size
        means.append(relative.mean())
        far.append((relative > FAR).mean())
    return DigitsRow(
        name, float(np.mean(means)), float(np.std(means)), float(np.mean(far)), min(seconds)
    )


def example(data: DigitsMap, method: str = DEFAULTS, seed: int = 0) -> DigitsExample:
    """Place the hidden points of one split with one method of the table."""
    hidden = split(len(data.X), seed)
    fitted = methods()[method].fit(data.X[~hidden], data.Y[~hidden])
    return DigitsExample(method, hidden, place(fitted, data.X[hidden], data.Y.shape[1]))


def section(
    rows: Sequence[DigitsRow],
    data: DigitsMap,
    examples: Sequence[DigitsExample],
    *,
    pictures: bool = True,
) -> Section:
    """Show the table, the reference first and the defaults last, and the examples on a page."""
    known, ours = rows[0], rows[-1]
    table = Table(
        ("Method", "Mean error", "Spread", "Far off"),
        [
            (TITLES[row.method], f"{row.error:.2%}", f"± {row.spread:.2%}", f"{row.far:.1%}")
            for row in rows
        ],
        "Errors as a share of the map's size, the root mean squared distance from its centre."
        " Spread: over random splits. Far off: more than a tenth.",
        frozenset({len(rows) - 1}),
    )
    return Section(
        "Handwritten digits on a t-SNE map",
        [
            f"t-SNE itself cannot place a new point. Here it mapped {len(data.X)} images of digits;"
            " then a fifth of them was hidden, and placed again from their pixels and the rest of"
            " the map.",
            f"With all defaults a point lands {ours.error:.1%} of the map's size from where t-SNE"
            " had put it, on average; with inverse-distance nearest neighbours it is"
            f" {known.error:.1%}. Off by more than a tenth of the map's size are"
            f" {ours.far:.1%} of the points, against {known.far:.1%}.",
        ],
        [table],
        _pictures(data, examples) if pictures else [],
    )


def _pictures(data: DigitsMap, examples: Sequence[DigitsExample]) -> list[Picture]:
    """Draw for each example the placed points, then the same coloured by error."""
    by_class, by_error, size = [], [], map_size(data.Y)
    for one in examples:
        title, shown = TITLES[one.method], (one.hidden, one.placed)
        words = f"Map of the digits with hidden points placed by: {title}"
        drawn = plots.placed_map(data.Y, data.labels, *shown, title=title)
        lines = "Lines lead from the placed point to the true place."
        by_class.append(Picture(drawn, words, lines))
        drawn = plots.error_map(data.Y, *shown, size, title=f"{title}: errors")
        by_error.append(Picture(drawn, f"The same points coloured by their error: {title}"))
    return by_class + by_error
