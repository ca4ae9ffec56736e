"""Table 7.1: the sphere, three weightings, two grids.

The paper does not print its radii. One rule for both grids, in units of the grid step h,
puts all six means at or under the printed ones: neighbours within 2.3 h, tangents from
images within 1.5 h, c = 2.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outsample import PCAExtension, plots
from outsample.comparison.holdout import place
from outsample.lab.datasets import Sphere, random_angles, sphere, sphere_map
from outsample.lab.methods import DEFAULTS, REFERENCE, TITLES, errors, paper_weightings, reference
from outsample.report.page import Picture, Section, Table

# Mean errors printed in Table 7.1, by weighting and number of training points.
PAPER: dict[tuple[str, int], float] = {
    ("distance", 900): 1.04e-2,
    ("tangent", 900): 8.08e-3,
    ("local_tangent", 900): 6.14e-3,
    ("distance", 2500): 6.01e-3,
    ("tangent", 2500): 4.45e-3,
    ("local_tangent", 2500): 3.17e-3,
}
MAGNIFY = 5  # Errors on the sphere are drawn so much longer; else nobody would see them


class TableRow(NamedTuple):
    """One line of Table 7.1, or below it."""

    method: str
    title: str
    n_points: int
    error: float  # Mean error of the new points, averaged over the seeds
    spread: float  # Standard deviation of the mean error from seed to seed
    paper: float | None  # The paper's mean error, None where the paper has no such row


class SphereExample(NamedTuple):
    """One draw of new points, placed by one method."""

    method: str
    training: NDArray[np.float64]  # Images of the grid, shape (n, 3)
    truth: NDArray[np.float64]  # True images of the new points, shape (q, 3)
    placed: NDArray[np.float64]  # Where the method put them
    bound: NDArray[np.float64] | None  # Its own bound of each error, if the method has one

    @property
    def errors(self) -> NDArray[np.float64]:
        """Distance of each placed point from its true image."""
        return errors(self.placed, self.truth)


def radii(step: float) -> dict[str, float]:
    """Return the paper's settings for a grid of this step."""
    return {"radius": 2.3 * step, "tangent_radius": 1.5 * step, "curvature": 2}


def methods(step: float) -> dict[str, Any]:
    """Return the unfitted estimators of the table by name, for a grid of this step."""
    paper = paper_weightings(**radii(step))
    return {REFERENCE: reference(), **paper, DEFAULTS: PCAExtension()}


def run(
    n_per_axis: Sequence[int] = (30, 50),
    n_new: int = 100,
    n_seeds: int = 8,
    on_row: Callable[[TableRow], None] | None = None,
) -> list[TableRow]:
    """Measure each method on each grid: the reference, the paper's three weightings, the defaults.

    >>> rows = run(n_per_axis=(10,), n_new=20, n_seeds=2)
    >>> [row.method for row in rows][1:4]
    ['distance', 'tangent', 'local_tangent']
    """
    rows = []
    for size in n_per_axis:
        data = sphere(size)
        for name, estimator in methods(data.step).items():
            rows.append(table_row(name, TITLES[name], estimator, data, n_new, n_seeds))
            if on_row is not None:
                on_row(rows[-1])
    return rows


def table_row(
    name: str, title: str, estimator: Any, data: Sphere, n_new: int, n_seeds: int
) -> TableRow:
    """Fit once, place every draw in one batch, and average draw by draw."""
    draws = np.concatenate([random_angles(n_new, seed) for seed in range(n_seeds)])
    placed = place(estimator.fit(data.X, data.Y), draws, data.Y.shape[1])
    means = errors(placed, sphere_map(draws)).reshape(n_seeds, n_new).mean(axis=1)
    n = len(data.X)
    paper = PAPER.get((name, n))
    return TableRow(name, title, n, float(means.mean()), float(means.std()), paper)


def example(
    method: str = "distance", n_per_axis: int = 30, n_new: int = 100, seed: int = 0
) -> SphereExample:
    """Place one draw of new points with one method of the table; ours bound each error too."""
    data = sphere(n_per_axis)
    new = random_angles(n_new, seed)
    fitted = methods(data.step)[method].fit(data.X, data.Y)
    if not hasattr(fitted, "place"):
        placed = place(fitted, new, data.Y.shape[1])
        return SphereExample(method, data.Y, sphere_map(new), placed, None)
    placement = fitted.place(new)
    return SphereExample(method, data.Y, sphere_map(new), placement.coordinates, placement.bound)


def best(rows: Sequence[TableRow], n_points: int) -> str:
    """Return the name of our method with the smallest error on one grid."""
    ours = [row for row in rows if row.n_points == n_points and row.method != REFERENCE]
    return min(ours, key=lambda row: row.error).method


def met(rows: Sequence[TableRow]) -> tuple[int, int]:
    """Count the paper's numbers that are reached, and all it prints for these grids."""
    printed = [(row.error, row.paper) for row in rows if row.paper is not None]
    return sum(error <= paper for error, paper in printed), len(printed)


def section(
    rows: Sequence[TableRow], examples: Sequence[SphereExample], *, pictures: bool = True
) -> Section:
    """Show the table and the examples on a page; the bound is told of the last example."""
    grids = sorted({row.n_points for row in rows})
    names = list(dict.fromkeys(row.title for row in rows))
    found = {(row.title, row.n_points): row for row in rows}
    table = Table(
        ["Method", *(word for n in grids for word in (f"{n} points", "Paper"))],
        [[name, *(c for n in grids for c in _cells(found[name, n]))] for name in names],
        "Mean distance from the true image, and its spread over draws of new points. The sphere"
        " has radius 1.",
        frozenset({len(names) - 1}),
    )
    reached, printed = met(rows)
    verdict = f" {reached} of the {printed} printed errors are met or beaten." if printed else ""
    shown = examples[-1]
    held = 0 if shown.bound is None else int((shown.errors <= shown.bound).sum())
    return Section(
        "The paper's sphere",
        [
            "Table 7.1 of the paper: a grid of angles is mapped onto the sphere, and new points"
            " are placed between the grid's. The three weightings are the paper's, with one rule"
            f" for the radii on every grid.{verdict} The last row leaves everything to the"
            " defaults.",
            "Every placement comes with a bound of its error, from the steepest slope seen among"
            f" the training points. For one draw it holds at {held} of {len(shown.truth)} points"
            f" ({TITLES[shown.method]}).",
        ],
        [table],
        _pictures(rows, examples) if pictures else [],
    )


def _cells(row: TableRow) -> tuple[str, str]:
    """Return the error with its spread, and the paper's number or a dash."""
    paper = "–" if row.paper is None else f"{row.paper:.2e}"
    return f"{row.error:.2e} ± {row.spread:.0e}", paper


def error_picture(
    rows: Sequence[TableRow], title: str, limits: tuple[float, float], alt: str
) -> Picture:
    """Draw the errors on one grid beside the paper's."""
    figures = [row.title for row in rows], [row.error for row in rows], [row.paper for row in rows]
    return Picture(plots.error_chart(*figures, title=title, limits=limits), alt)


def _pictures(rows: Sequence[TableRow], examples: Sequence[SphereExample]) -> list[Picture]:
    """Draw one chart a grid, all on one scale of whole decades, then the examples."""
    values = np.log10([value for row in rows for value in (row.error, row.paper) if value])
    limits = float(10 ** np.floor(values.min())), float(10 ** np.ceil(values.max()))
    pictures = []
    for n in sorted({row.n_points for row in rows}):
        part, title = [row for row in rows if row.n_points == n], f"{n} training points"
        pictures.append(error_picture(part, title, limits, f"Mean errors on the sphere, {title}"))
    for one in examples:
        title = TITLES[one.method]
        ball = one.training, one.truth, one.placed
        drawn = plots.placed_sphere(*ball, title=title, magnify=MAGNIFY)
        caption = f"Errors are drawn {MAGNIFY} times longer than they are."
        pictures.append(Picture(drawn, f"Sphere with new points placed by: {title}", caption))
    return pictures
