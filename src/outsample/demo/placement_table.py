"""A fifth of the digits is hidden from a t-SNE map of all digits, then placed again.

The true position of every hidden point is known. t-SNE tears neighbourhoods apart, which is
the hard case for an extension that averages.
"""

from collections.abc import Sequence
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import KNeighborsRegressor

from outsample import PCAExtension, plots
from outsample.comparison.holdout import place
from outsample.demo.digits import DigitsMap, hide_fifth
from outsample.points import map_size
from outsample.report.page import Picture, Section, Table

REFERENCE = "Inverse-distance 15-NN"
DEFAULTS = "All defaults"
LARGE_ERROR = 0.1  # share of the map size


class PlacementRow(NamedTuple):
    """Errors of one method, averaged over the splits."""

    method: str
    error: float  # Mean error of the hidden points over the map size
    spread: float  # Standard deviation of that error over the splits
    share_large: float  # Share of hidden points with an error above `LARGE_ERROR`
    seconds: float  # Time to place the hidden points of one split, the fastest of them


class PlacedDigits(NamedTuple):
    """The hidden points of one split, placed by one method."""

    method: str
    hidden: NDArray[np.bool_]  # shape (n,)
    coordinates: NDArray[np.float64]  # of the hidden points, in their order


def methods() -> dict[str, Any]:
    """Return the unfitted estimators of the table by name."""
    paper: dict[str, Any] = {"order": 0, "loss": "squared", "n_neighbors": 15}
    return {
        REFERENCE: KNeighborsRegressor(n_neighbors=15, weights="distance"),
        "Distance weights, Eq. 4.3": PCAExtension(weighting="distance", **paper),
        "Tangent weights, Eq. 4.5": PCAExtension(weighting="tangent", **paper),
        DEFAULTS: PCAExtension(),
    }


def measure(method: str, digits: DigitsMap, seeds: Sequence[int]) -> PlacementRow:
    """Return the errors of one method over random splits."""
    size = map_size(digits.Y)
    means, shares_large, seconds = [], [], []
    for seed in seeds:
        hidden = hide_fifth(len(digits.X), seed)
        fitted = methods()[method].fit(digits.X[~hidden], digits.Y[~hidden])
        start = perf_counter()
        coordinates = place(fitted, digits.X[hidden], digits.Y.shape[1])
        seconds.append(perf_counter() - start)
        errors = np.linalg.norm(coordinates - digits.Y[hidden], axis=1) / size
        means.append(errors.mean())
        shares_large.append((errors > LARGE_ERROR).mean())
    return PlacementRow(
        method=method,
        error=float(np.mean(means)),
        spread=float(np.std(means)),
        share_large=float(np.mean(shares_large)),
        seconds=min(seconds),
    )


def place_hidden(digits: DigitsMap, method: str = DEFAULTS, seed: int = 0) -> PlacedDigits:
    """Place the hidden points of one split with one method of the table."""
    hidden = hide_fifth(len(digits.X), seed)
    fitted = methods()[method].fit(digits.X[~hidden], digits.Y[~hidden])
    return PlacedDigits(method, hidden, place(fitted, digits.X[hidden], digits.Y.shape[1]))


def error_table(rows: Sequence[PlacementRow]) -> Table:
    """Return the errors for a terminal, each also as a ratio to the reference."""
    reference = next(row.error for row in rows if row.method == REFERENCE)
    cells = [(row.method, f"{row.error:.2%}", f"{row.error / reference:.2g} x") for row in rows]
    return Table(("Method", "Error", "vs 15-NN"), cells)


def section(
    rows: Sequence[PlacementRow], digits: DigitsMap, examples: Sequence[PlacedDigits]
) -> Section:
    """Return the table, and a picture of each example, for a page."""
    reference, defaults = rows[0], rows[-1]
    table = Table(
        ("Method", "Mean error", "Spread", "Large errors"),
        [
            (row.method, f"{row.error:.2%}", f"± {row.spread:.2%}", f"{row.share_large:.1%}")
            for row in rows
        ],
        "Errors relative to the map size, the root mean squared distance from its centre."
        f" Spread: over random splits. Large: above {LARGE_ERROR:.0%}.",
        frozenset({len(rows) - 1}),
    )
    return Section(
        "Handwritten digits on a t-SNE map",
        [
            "t-SNE itself cannot place a new point. Here it mapped"
            f" {len(digits.X)} images of digits. A fifth of them was then hidden and placed again"
            " from the pixels and the other points of the map.",
            f"With all defaults the mean error is {defaults.error:.1%} of the map size; with"
            f" inverse-distance nearest neighbours it is {reference.error:.1%}."
            f" {defaults.share_large:.1%} of the points are off by more than a tenth of the map"
            f" size, compared with {reference.share_large:.1%}.",
        ],
        [table],
        [picture for example in examples for picture in _pictures(digits, example)],
    )


def _pictures(digits: DigitsMap, example: PlacedDigits) -> list[Picture]:
    """Draw the placed points by class, then by error."""
    by_class = plots.placed_map(
        digits.Y, digits.labels, example.hidden, example.coordinates, title=example.method
    )
    by_error = plots.error_map(
        digits.Y, example.hidden, example.coordinates, map_size(digits.Y),
        title=f"{example.method}: errors",
    )  # fmt: skip
    return [
        Picture(
            by_class,
            f"Map of the digits with hidden points placed by: {example.method}",
            "A line leads from each placed point to its true position.",
        ),
        Picture(by_error, f"The same points coloured by their error: {example.method}"),
    ]
