"""Example I on the page: Table 7.1, the two pictures of the sphere, and error against step."""

import math

from outsample.plots.colours import BLUE, FAINT, GREEN, INK, ORANGE, VERMILLION
from outsample.report.page import Picture, Section, Table
from outsample_lab.paper.page.viewer import Part, turning_part
from outsample_lab.paper.sphere_orders import Convergence, Figure, Placed, SphereOrders
from outsample_lab.paper.sphere_table import TableRow, error_picture
from outsample_lab.plots.curves import STYLES, Curve, curve_chart
from outsample_lab.plots.scenes import Layer, Scene
from outsample_lab.wording import ABSENT, measured, number, percent, plural

MAGNIFY = 5.0  # Factor by which errors are drawn longer, so that they are visible
GROUND = "#a9cbe6"
# The paper's colours, with a darker yellow for a white background, and a shape for each.
MARKS = {"yellow": (ORANGE, "circle"), "red": (VERMILLION, "square"), "black": (INK, "triangle")}


def sphere_parts(results: SphereOrders, drawing: bool) -> list[Part]:
    """Return the sections of Example I; `drawing` adds pictures."""
    return [_table(results, drawing), _pictures(results, drawing), _convergence(results, drawing)]


def _table(results: SphereOrders, drawing: bool) -> Part:
    sizes = sorted({row.n_points for row in results.table})
    methods = list(dict.fromkeys(row.title for row in results.table))
    printed = list(dict.fromkeys(row.title for row in results.table if row.paper is not None))
    cells = {(row.title, row.n_points): row for row in results.table}

    def pair(row: TableRow | None) -> list[str]:
        if row is None:
            return [ABSENT, ABSENT]
        return [number(row.paper), measured(row.error, row.spread)]

    table = Table(
        ["Method", *(f"{n}, {who}" for n in sizes for who in ("paper", "here"))],
        [[name, *(word for n in sizes for word in pair(cells.get((name, n))))] for name in methods],
        f"Mean distance of {len(results.figure.truth)} new points from their true"
        " images on a sphere of radius 1. After ± the standard deviation over draws of"
        " new points. Shaded: the paper's methods.",
        frozenset(at for at, method in enumerate(methods) if method in printed),
    )
    # Rows of the paper's methods, grid by grid.
    rows = {n: [cells[name, n] for name in printed if (name, n) in cells] for n in sizes}
    met, total = results.met
    reading = (
        f"In the paper: three weightings, 900 and 2500 training points, {total} mean errors."
        f" Here: the same, with {met} of {total} at or below the printed number, and"
        f" {plural(len(methods) - len(printed), 'method')} that the paper's table does not have."
    )
    order = "is" if all(map(_in_order, rows.values())) else "is not"
    caveat = (
        "Reading: the paper does not state its radii. Ours were chosen to match the printed errors,"
        " with one rule for both grids, so the comparison shows only that such radii exist."
        f" The order of the weightings {order} that of the paper. Rows without a number of the"
        " paper show the accuracy that is possible on a smooth map."
    )
    charts = _charts(rows) if drawing and printed else []
    heading = "Example I, Table 7.1: points on a sphere"
    return Part(Section(heading, [reading, caveat], [table], charts))


def _in_order(rows: list[TableRow]) -> bool:
    """Return True if the methods have the paper's order of errors on one grid."""
    pairs = [(row.error, row.paper) for row in rows if row.paper is not None]
    return sorted(pairs) == sorted(pairs, key=lambda pair: pair[1])


def _charts(rows: dict[int, list[TableRow]]) -> list[Picture]:
    """Return charts of the errors on each grid, with a common scale."""
    every = [x for listed in rows.values() for row in listed for x in (row.error, row.paper) if x]
    limits = 10 ** math.floor(math.log10(min(every))), 1.25 * max(every)
    alt = "Mean errors of Table 7.1 for {} training points, measured and printed"
    return [
        error_picture(listed, f"Table 7.1, {n} training points", limits, alt.format(n))
        for n, listed in rows.items()
    ]


def _pictures(results: SphereOrders, drawing: bool) -> Part:
    figure = results.figure
    listed = {placement.color: placement for placement in figure.placements if placement.color}
    off = ", ".join(f"{p.title}: {number(float(p.errors.mean()))}" for p in figure.placements)
    words = [
        f"Mean error of the {len(figure.truth)} new points in these pictures. {off}.",
        "Reading: relative to a radius of 1 these errors are hardly visible. They are drawn"
        f" {MAGNIFY:g} times longer at first; on a screen a button shows them as they are.",
    ]
    heading = "Example I, Figures 7.1 and 7.2: new points on the sphere"
    if not drawing or not listed:
        return Part(Section(heading, words))
    first = next(iter(listed.values()))
    marks = [(placement, MARKS.get(color, (INK, "diamond"))) for color, placement in listed.items()]
    scenes = {
        "New points on the sphere, placed by distance weights": _scene(
            "Figure 7.1", figure, [(first, (VERMILLION, "circle"))]
        ),
        "New points on the sphere, placed by the paper's three weightings": _scene(
            "Figure 7.2", figure, marks
        ),
    }
    captions = [
        "In the paper: training set blue, true images green, placed points red, distance weights of"
        f" Eq. 4.3.\nHere: the same, errors drawn {MAGNIFY:g} times longer.",
        "In the paper: yellow, red and black for the three rows of Table 7.1.\nHere: orange"
        f" circles, red squares and black triangles, errors drawn {MAGNIFY:g} times longer.",
    ]
    return turning_part(heading, words, scenes, captions)


def _scene(title: str, figure: Figure, placed: list[tuple[Placed, tuple[str, str]]]) -> Scene:
    layers = [
        Layer("training set", figure.training, GROUND, size=2.0),
        Layer("true images", figure.truth, GREEN, size=3.2),
    ]
    for placement, (colour, shape) in placed:
        labels = [
            f"error {number(error)}, bound {number(limit)}"
            for error, limit in zip(placement.errors, placement.bound, strict=True)
        ]
        layers.append(
            Layer(placement.title, placement.placed, colour, shape, 3.2, labels=labels,
                  origins=figure.truth)
        )  # fmt: skip
    return Scene(title, layers, ("x", "y", "z"), magnify=MAGNIFY, turn=1.15, tilt=0.3, group="ball")


def _convergence(results: SphereOrders, drawing: bool) -> Part:
    convergence = results.convergence
    table = Table(
        ["Method", "Order", "Expected slope", "Slope", "Slope, finer grids", "Within certificate"],
        [
            [curve.title, str(curve.order), f"at least {curve.claimed}", f"{curve.slope:.2f}",
             f"{curve.fine_slope:.2f}", percent(curve.held)]
            for curve in convergence.orders
        ],
        "Slope: exponent of h fitted to the mean errors. Within certificate: share of all single"
        " placements whose error is at most their certificate.",
    )  # fmt: skip
    words = [
        "In the paper: Theorem 5.1 bounds the error by a multiple of the radius of the"
        " neighbourhood; no experiment follows it. Here: mean errors on grids from"
        f" {min(convergence.n_per_axis)} to {max(convergence.n_per_axis)} points per axis, with"
        " neighbours within a fixed number of grid steps; the printed bound; the bound that we"
        " prove for order 0; and the mean certificate of order 0.",
        _slopes(convergence),
    ]
    pictures = [_slope_chart(convergence)] if drawing else []
    heading = "Example I: error against the step of the grid"
    return Part(Section(heading, words, [table], pictures))


def _slopes(convergence: Convergence) -> str:
    kept = [curve for curve in convergence.orders if curve.slope >= curve.claimed - 0.05]
    count = f"{len(kept)} of {len(convergence.orders)}"
    largest = next(curve.largest for curve in convergence.orders if curve.order == 0)
    gap = float((convergence.corrected / largest).min())
    steep = f"Reading: {count} slopes are at least the expected one, to within 0.05."
    if gap < 1:
        return f"{steep} The bound proved here does not hold on every grid; see the picture."
    return (
        f"{steep} The bounds hold on every grid, with room to spare: the one proved here is at"
        f" least {number(gap, 2)} times the largest single error of order 0, and that error is at"
        f" most {number(float(largest.max()))}."
    )


def _slope_chart(convergence: Convergence) -> Picture:
    steps = convergence.steps
    curves = [
        Curve("3Kδ, Theorem 5.1", steps, convergence.theorem, (FAINT, "--", "")),
        Curve("Kε, proved here", steps, convergence.corrected, (INK, ":", "")),
    ]
    for curve, style in zip(convergence.orders, (BLUE, ORANGE, GREEN), strict=False):
        if curve.order == 0:
            curves.append(Curve("certificate, mean", steps, curve.certificate, (BLUE, ":", "")))
        name = f"order {curve.order}, slope {curve.slope:.2f}"
        mark = STYLES[curve.order % len(STYLES)][2]
        curves.append(Curve(name, steps, curve.errors, (style, "-", mark), curve.spread, True))
    return Picture(
        curve_chart(curves, title="Error against grid step", x_label="step h of the grid, radians",
                    y_label="mean error"),
        "Mean errors of orders 0, 1 and 2 against the step of the grid, with three bounds",
        "Both scales are logarithmic: a straight line is a power of h, and its steepness the"
        " exponent.",
    )  # fmt: skip
