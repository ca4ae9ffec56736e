"""The sphere of Section 7.1: Table 7.1, higher orders, and convergence with the grid step.

The paper's extension is a local constant. A local polynomial has an error of O(h^(order + 1)) on a
smooth map sampled at step h. This module measures the error, and compares it with the bound of
Theorem 5.1, the bound proved in docs/theory.md, and the certificate of each placement.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outsample import PCAExtension
from outsample.trust.bounds import a_priori_bound
from outsample_lab.methods import TITLES, errors
from outsample_lab.paper import sphere_table as sphere
from outsample_lab.power_law import slope
from outsample_lab.progress import Progress
from outsample_lab.sphere import Sphere, random_angles, sphere_map
from outsample_lab.sphere import sphere as sphere_grid

Array = NDArray[np.float64]

LIPSCHITZ = 1.0  # K of the sphere's map
# Radius of the ball of Table 7.1 in grid steps, and the number of points in it away from the
# border, which is the minimum for polynomials.
RADIUS, NEIGHBORS = 2.3, 16
GRIDS = (10, 14, 20, 28, 40, 56, 80)
PAPER_COLORS = {"distance": "yellow", "tangent": "red", "local_tangent": "black"}
ORDER_TITLES = {1: "Distance weights, order 1", 2: "Distance weights, order 2"}


class Placed(NamedTuple):
    """The new points of the figure, placed by one method."""

    method: str
    title: str
    color: str | None  # The method's colour in the paper's Fig. 7.2.
    placed: Array
    errors: Array
    bound: Array  # The certificate of each placement, for the known K


class Figure(NamedTuple):
    """Fig. 7.1 and 7.2: the grid on the sphere, and true and placed positions of new points."""

    training: Array
    truth: Array
    placements: list[Placed]


class OrderCurve(NamedTuple):
    """Errors of one order on all grids."""

    order: int
    title: str
    errors: Array  # Mean error on each grid
    spread: Array  # Standard deviation over the seeds
    largest: Array  # Largest error of any new point
    slope: float  # Exponent of h, fitted to the mean errors of all grids
    fine_slope: float  # The same, fitted to the finer half of the grids
    claimed: int  # Order + 1
    certificate: Array  # Mean certificate of the placements
    held: float  # Share of all placements whose error is within their certificate


class Convergence(NamedTuple):
    """Error against the step of the grid."""

    n_per_axis: list[int]
    steps: Array
    orders: list[OrderCurve]
    theorem: Array  # Theorem 5.1 as printed, 3 K delta, delta being the ball's radius
    corrected: Array  # K eps, which holds for order 0: `bounds.a_priori_bound`


class SphereOrders(NamedTuple):
    """All results on the sphere."""

    table: list[sphere.TableRow]
    met: tuple[int, int]  # How many of the paper's numbers are reached, of those for these grids
    figure: Figure
    convergence: Convergence
    seconds: float = 0.0


def run(
    n_per_axis: Sequence[int] = (30, 50),
    grids: Sequence[int] = GRIDS,
    n_new: int = 100,
    n_seeds: int = 8,
    progress: Progress | None = None,
) -> SphereOrders:
    """Measure the table, the figure's points, and the convergence over grids."""
    # `n_per_axis` are the grids of the table, the first also that of the figure; `grids` those of
    # the convergence; there are `n_seeds` samples of `n_new` points.
    tell = progress or (lambda share, next_step: None)
    tell(0.0, "sphere: Table 7.1")
    rows = table(n_per_axis, n_new, n_seeds)
    tell(0.4, "sphere: Fig. 7.1 and 7.2")
    drawn = figure(n_per_axis[0], n_new)
    tell(0.5, "sphere: error against the step")
    return SphereOrders(rows, sphere.met(rows), drawn, convergence(grids, n_new, n_seeds))


def polynomial(order: int, step: float) -> PCAExtension:
    """Return an unfitted extension of one order for a grid of this step; order 0 is the paper's."""
    return PCAExtension(
        n_neighbors=NEIGHBORS if order else "auto", radius=RADIUS * step, weighting="distance",
        order=order, loss="squared", lipschitz=LIPSCHITZ,
    )  # fmt: skip


def table(
    n_per_axis: Sequence[int] = (30, 50), n_new: int = 100, n_seeds: int = 8
) -> list[sphere.TableRow]:
    """Return Table 7.1: the reference, the paper's weightings, the defaults, orders 1 and 2."""
    rows: list[sphere.TableRow] = []
    for size in n_per_axis:
        rows += sphere.run((size,), n_new, n_seeds)
        data = sphere_grid(size)
        for order, title in ORDER_TITLES.items():
            estimator = polynomial(order, data.step)
            rows.append(sphere.table_row(f"order {order}", title, estimator, data, n_new, n_seeds))
    return rows


def figure(n_per_axis: int = 30, n_new: int = 100, seed: int = 0) -> Figure:
    """Place one draw of new points by the paper's three weightings, order 2 and the defaults."""
    data, new = sphere_grid(n_per_axis), random_angles(n_new, seed)
    truth = sphere_map(new)
    methods = sphere.methods(data.step)
    listed = {name: m for name, m in methods.items() if hasattr(m, "place")}
    titles = TITLES | {f"order {order}": title for order, title in ORDER_TITLES.items()}
    listed["order 2"] = polynomial(2, data.step)
    placements = []
    for name, estimator in listed.items():
        placed = estimator.set_params(lipschitz=LIPSCHITZ).fit(data.X, data.Y).place(new)
        off = errors(placed.coordinates, truth)
        color = PAPER_COLORS.get(name)
        placements.append(Placed(name, titles[name], color, placed.coordinates, off, placed.bound))
    return Figure(data.Y, truth, placements)


def convergence(grids: Sequence[int] = GRIDS, n_new: int = 100, n_seeds: int = 8) -> Convergence:
    """Measure the errors of orders 0, 1 and 2 on finer and finer grids: O(h^(order + 1)).

    >>> measured = convergence((12, 24), n_new=50, n_seeds=2)
    >>> [round(curve.slope) for curve in measured.orders]
    [1, 2, 3]
    """
    data = [sphere_grid(size) for size in grids]
    steps = np.array([sphere_data.step for sphere_data in data])
    radii = RADIUS * steps
    corrected = [a_priori_bound("distance", LIPSCHITZ, radius, d=3) for radius in radii]
    curves = [_curve(order, data, steps, n_new, n_seeds) for order in (0, 1, 2)]
    return Convergence(list(grids), steps, curves, 3 * LIPSCHITZ * radii, np.array(corrected))


def _curve(
    order: int, data: Sequence[Sphere], steps: Array, n_new: int, n_seeds: int
) -> OrderCurve:
    """Measure one order on every grid."""
    measures = [_measure(polynomial(order, s.step), s, n_new, n_seeds) for s in data]
    means = np.array([off.mean(axis=1) for off, _ in measures])
    held = float(np.mean([off <= bound for off, bound in measures]))
    mean, fine = means.mean(axis=1), min(len(steps) // 2, len(steps) - 2)
    title = "The paper's: a local constant" if order == 0 else ORDER_TITLES[order]
    largest = np.array([off.max() for off, _ in measures])
    certificate = np.array([bound.mean() for _, bound in measures])
    return OrderCurve(
        order, title, mean, means.std(axis=1), largest, slope(steps, mean),
        slope(steps[fine:], mean[fine:]), order + 1, certificate, held,
    )  # fmt: skip


def _measure(estimator: Any, data: Sphere, n_new: int, n_seeds: int) -> tuple[Array, Array]:
    """Fit once, place all draws in one batch; return errors and certificates, one row per draw."""
    draws = np.concatenate([random_angles(n_new, seed) for seed in range(n_seeds)])
    placed = estimator.fit(data.X, data.Y).place(draws)
    off = errors(placed.coordinates, sphere_map(draws))
    return off.reshape(n_seeds, n_new), placed.bound.reshape(n_seeds, n_new)
