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

MAGNIFY = 5.0  # Errors are drawn so much longer at first; else nobody would see them
GROUND = "#a9cbe6"
# The paper's colours, yellow made darker for a white ground, each with a shape of its own.
MARKS = {"yellow": (ORANGE, "circle"), "red": (VERMILLION, "square"), "black": (INK, "triangle")}


def sphere_parts(found: SphereOrders, drawing: bool) -> list[Part]:
    """Return the sections of Example I, with pictures if there is matplotlib to draw with."""
    return [_table(found, drawing), _pictures(found, drawing), _convergence(found, drawing)]


def _table(found: SphereOrders, drawing: bool) -> Part:
    sizes = sorted({row.n_points for row in found.table})
    methods = list(dict.fromkeys(row.title for row in found.table))
    printed = list(dict.fromkeys(row.title for row in found.table if row.paper is not None))
    cells = {(row.title, row.n_points): row for row in found.table}

    def pair(row: TableRow | None) -> list[str]:
        if row is None:
            return [ABSENT, ABSENT]
        return [number(row.paper), measured(row.error, row.spread)]

    table = Table(
        ["Method", *(f"{n}, {who}" for n in sizes for who in ("paper", "here"))],
        [[name, *(word for n in sizes for word in pair(cells.get((name, n))))] for name in methods],
        f"Mean distance of {len(found.figure.truth)} new points from their true"
        " images on a sphere of radius 1. After ± the standard deviation over draws of"
        " new points. Shaded: the paper's methods.",
        frozenset(at for at, method in enumerate(methods) if method in printed),
    )
    # Rows of the paper's methods, grid by grid.
    rows = {n: [cells[name, n] for name in printed if (name, n) in cells] for n in sizes}
    met, total = found.met
    reading = (
        f"In the paper: three weightings, 900 and 2500 training points, {total} mean errors."
        f" Here: the same, with {met} of {total} at or below the printed number, and"
        f" {plural(len(methods) - len(printed), 'method')} that the paper's table does not have."
    )
    order = "is" if all(map(_in_order, rows.values())) else "is not"
    caveat = (
        "Reading: the paper does not print its radii. Ours were chosen with the printed errors in"
        " view, one rule for both grids, so that the comparison shows no more than that such radii"
        f" exist. The order of the weightings {order} the paper's. Rows without a number of the"
        " paper show how much more a smooth map allows."
    )
    charts = _charts(rows) if drawing and printed else []
    heading = "Example I, Table 7.1: points on a sphere"
    return Part(Section(heading, [reading, caveat], [table], charts))


def _in_order(rows: list[TableRow]) -> bool:
    """Tell whether the methods stand in the paper's order on one grid."""
    pairs = [(row.error, row.paper) for row in rows if row.paper is not None]
    return sorted(pairs) == sorted(pairs, key=lambda pair: pair[1])


def _charts(rows: dict[int, list[TableRow]]) -> list[Picture]:
    """Draw the errors on each grid; one scale for all charts, from a power of ten on."""
    every = [x for listed in rows.values() for row in listed for x in (row.error, row.paper) if x]
    limits = 10 ** math.floor(math.log10(min(every))), 1.25 * max(every)
    alt = "Mean errors of Table 7.1 for {} training points, ours beside the paper's"
    return [
        error_picture(listed, f"Table 7.1, {n} training points", limits, alt.format(n))
        for n, listed in rows.items()
    ]


def _pictures(found: SphereOrders, drawing: bool) -> Part:
    figure = found.figure
    listed = {one.color: one for one in figure.placements if one.color}
    off = ", ".join(f"{one.title}: {number(float(one.errors.mean()))}" for one in figure.placements)
    words = [
        f"Mean error of the {len(figure.truth)} new points in these pictures. {off}.",
        "Reading: beside a radius of 1 such errors can hardly be seen. They are drawn"
        f" {MAGNIFY:g} times longer at first; on a screen a button shows them as they are.",
    ]
    heading = "Example I, Figures 7.1 and 7.2: new points on the sphere"
    if not drawing or not listed:
        return Part(Section(heading, words))
    first = next(iter(listed.values()))
    marks = [(one, MARKS.get(color, (INK, "diamond"))) for color, one in listed.items()]
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
    for one, (colour, shape) in placed:
        labels = [
            f"error {number(error)}, bound {number(limit)}"
            for error, limit in zip(one.errors, one.bound, strict=True)
        ]
        layers.append(
            Layer(one.title, one.placed, colour, shape, 3.2, labels=labels,
                  origins=figure.truth)
        )  # fmt: skip
    return Scene(title, layers, ("x", "y", "z"), magnify=MAGNIFY, turn=1.15, tilt=0.3, group="ball")


def _convergence(found: SphereOrders, drawing: bool) -> Part:
    told = found.convergence
    table = Table(
        ["Method", "Order", "Expected slope", "Slope", "Slope, finer grids", "Within certificate"],
        [
            [one.title, str(one.order), f"at least {one.claimed}", f"{one.slope:.2f}",
             f"{one.fine_slope:.2f}", percent(one.held)]
            for one in told.orders
        ],
        "Slope: exponent of h fitted to the mean errors. Within certificate: share of all single"
        " placements whose error is at most the certificate given with them.",
    )  # fmt: skip
    words = [
        "In the paper: Theorem 5.1 bounds the error by a multiple of the radius of the"
        " neighbourhood; no experiment follows it. Here: mean errors on grids from"
        f" {min(told.n_per_axis)} to {max(told.n_per_axis)} points on an axis, neighbours"
        " within a fixed number of grid steps, with the printed bound, the one that we prove for"
        " order 0, and the mean certificate of order 0.",
        _slopes(told),
    ]
    pictures = [_slope_chart(told)] if drawing else []
    heading = "Example I: error against the step of the grid"
    return Part(Section(heading, words, [table], pictures))


def _slopes(told: Convergence) -> str:
    kept = [one for one in told.orders if one.slope >= one.claimed - 0.05]
    count = f"{len(kept)} of {len(told.orders)}"
    largest = next(one.largest for one in told.orders if one.order == 0)
    gap = float((told.corrected / largest).min())
    steep = f"Reading: {count} slopes are at least the expected one, to within 0.05."
    if gap < 1:
        return f"{steep} The bound proved here does not hold on every grid; see the picture."
    return (
        f"{steep} The bounds hold on every grid, with room to spare: the one proved here is at"
        f" least {number(gap, 2)} times the largest single error of order 0, and that error is at"
        f" most {number(float(largest.max()))}."
    )


def _slope_chart(told: Convergence) -> Picture:
    steps = told.steps
    curves = [
        Curve("3Kδ, Theorem 5.1", steps, told.theorem, (FAINT, "--", "")),
        Curve("Kε, proved here", steps, told.corrected, (INK, ":", "")),
    ]
    for one, style in zip(told.orders, (BLUE, ORANGE, GREEN), strict=False):
        if one.order == 0:
            curves.append(Curve("certificate, mean", steps, one.certificate, (BLUE, ":", "")))
        name = f"order {one.order}, slope {one.slope:.2f}"
        mark = STYLES[one.order % len(STYLES)][2]
        curves.append(Curve(name, steps, one.errors, (style, "-", mark), one.spread, True))
    return Picture(
        curve_chart(curves, title="Error against grid step", x_label="step h of the grid, radians",
                    y_label="mean error"),
        "Mean errors of orders 0, 1 and 2 against the step of the grid, with three bounds",
        "Both scales are logarithmic: a straight line is a power of h, and its steepness the"
        " exponent.",
    )  # fmt: skip
