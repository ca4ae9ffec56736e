"""Section 6 on the page: growth of run times with each parameter."""

import math

from outsample.plots.colours import FAINT
from outsample.report.page import Picture, Section, Table
from outsample_lab.paper.complexity import Complexity, Growth, Placing
from outsample_lab.paper.page.viewer import Part
from outsample_lab.plots.curves import STYLES, Curve, curve_chart
from outsample_lab.wording import ABSENT, number

STEPS = {"fit": "fitting", "place": "placing a point", "search": "neighbour search of a point"}


def complexity_part(complexity: Complexity, drawing: bool) -> Part:
    """Return the section on complexity; `drawing` adds pictures."""
    base = ", ".join(f"{key} = {value}" for key, value in complexity.base.items())
    words = [
        f"In the paper: orders of growth, without times. {complexity.statement}",
        f"Here: one of the sizes grows while the others stay at {base}; points lie near a surface"
        f" of dimension {complexity.latent_dimension}. Minimum of {complexity.repeats} runs; times"
        f" per point are means over {complexity.n_queries} points, on one thread.",
        "Reading: over this short range measured exponents are approximate. They are below the"
        " order where fixed costs still matter, as with small k and d.",
        _placing(complexity.placing),
    ]
    table = Table(
        ["Step", "Size", "From – to", "First time, s", "Last time, s", "Exponent measured",
         "Order expected here", "Order in the paper"],
        [_row(growth) for growth in complexity.growths],
        "Exponent: slope of time against size on logarithmic scales, over the larger sizes.",
    )  # fmt: skip
    shown = [step for step in ("fit", "place") if _of(complexity, step)] if drawing else []
    pictures = [_chart(complexity, step) for step in shown]
    return Part(Section("Section 6: computational complexity", words, [table], pictures))


def _placing(placing: Placing) -> str:
    """Return a sentence on the cost of error bars, certificates and off-manifold distances."""
    setting = ", ".join(f"{key} = {value}" for key, value in placing.setting.items())
    placing_seconds, transform_seconds = placing.seconds["place"], placing.seconds["transform"]
    ratio = placing_seconds / transform_seconds
    return (
        f"With {setting}, place takes {1e6 * placing_seconds:.0f} µs per point and transform"
        f" {1e6 * transform_seconds:.0f} µs, a ratio of {ratio:.2f}."
    )


def _of(complexity: Complexity, step: str) -> list[Growth]:
    return [growth for growth in complexity.growths if growth.step == step]


def _row(growth: Growth) -> list[str]:
    exponent = ABSENT if math.isnan(growth.exponent) else f"{growth.exponent:.2f}"
    return [
        STEPS[growth.step], growth.letter,
        f"{growth.values[0]}\u00a0–\u00a0{growth.values[-1]}", number(growth.seconds[0]),
        number(growth.seconds[-1]), exponent, growth.ours, growth.paper or ABSENT,
    ]  # fmt: skip


def _chart(complexity: Complexity, step: str) -> Picture:
    rows = _of(complexity, step)
    curves = []
    for growth, style in zip(rows, STYLES, strict=False):
        sizes = [value / growth.values[0] for value in growth.values]
        name = f"{growth.letter}, exponent {growth.exponent:.2f}"
        curves.append(Curve(name, sizes, growth.seconds / growth.seconds[0], style))
    end = max(growth.values[-1] / growth.values[0] for growth in rows)
    curves.append(Curve("in proportion", [1, end], [1, end], (FAINT, ":", "")))
    words = STEPS[step]
    return Picture(
        curve_chart(
            curves, title=f"Time of {words}", x_label="size, times the smallest",
            y_label="time, times the first",
        ),
        f"Time of {words} against each size, both relative to their smallest",
    )  # fmt: skip
