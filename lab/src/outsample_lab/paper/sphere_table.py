"""Table 7.1: the sphere, three weightings, two grids.

The paper does not print its radii. One rule for both grids, in units of the grid step h,
gives six means at most as large as the printed ones: neighbours within 2.3 h, tangents from
images within 1.5 h, c = 2.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from outsample import PCAExtension
from outsample.comparison.holdout import place
from outsample.report.page import Picture
from outsample_lab.methods import DEFAULTS, REFERENCE, TITLES, errors, paper_weightings, reference
from outsample_lab.plots.dots import error_chart
from outsample_lab.sphere import Sphere, random_angles, sphere, sphere_map

# Mean errors printed in Table 7.1, by weighting and number of training points.
PAPER: dict[tuple[str, int], float] = {
    ("distance", 900): 1.04e-2,
    ("tangent", 900): 8.08e-3,
    ("local_tangent", 900): 6.14e-3,
    ("distance", 2500): 6.01e-3,
    ("tangent", 2500): 4.45e-3,
    ("local_tangent", 2500): 3.17e-3,
}


class TableRow(NamedTuple):
    """One line of Table 7.1, or below it."""

    method: str
    title: str
    n_points: int
    error: float  # Mean error of the new points, averaged over the seeds
    spread: float  # Standard deviation of the mean error from seed to seed
    paper: float | None  # The paper's mean error, None where the paper has no such row


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


def met(rows: Sequence[TableRow]) -> tuple[int, int]:
    """Return how many of the paper's numbers for these grids are reached, and their number."""
    printed = [(row.error, row.paper) for row in rows if row.paper is not None]
    return sum(error <= paper for error, paper in printed), len(printed)


def error_picture(
    rows: Sequence[TableRow], title: str, limits: tuple[float, float], alt: str
) -> Picture:
    """Return a chart of the errors on one grid, measured and printed."""
    figures = [row.title for row in rows], [row.error for row in rows], [row.paper for row in rows]
    return Picture(error_chart(*figures, title=title, limits=limits), alt)
