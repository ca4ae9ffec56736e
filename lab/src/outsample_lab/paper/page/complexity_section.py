"""Section 6 on the page: how times grow with each size."""

import math

from outsample.plots.colours import FAINT
from outsample.report.page import Picture, Section, Table
from outsample_lab.paper.complexity import Complexity, Growth, Placing
from outsample_lab.paper.page.viewer import Part
from outsample_lab.plots.curves import STYLES, Curve, curve_chart
from outsample_lab.wording import ABSENT, number

STEPS = {"fit": "fitting", "place": "placing a point", "search": "neighbour search of a point"}


def complexity_part(found: Complexity, drawing: bool) -> Part:
    """Return the section on complexity, with pictures if there is matplotlib to draw with."""
    base = ", ".join(f"{key} = {value}" for key, value in found.base.items())
    words = [
        f"In the paper: orders of growth, without times. {found.statement}",
        f"Here: one of the sizes grows while the others stay at {base}; points lie near a surface"
        f" of dimension {found.latent_dimension}. Least of {found.repeats} runs, a point"
        f" being the mean over {found.n_queries}, on one thread.",
        "Reading: over so short a range a measured exponent is a rough figure. It is below the"
        " order where fixed costs still count, as with small k and d.",
        _placing(found.placing),
    ]
    table = Table(
        ["Step", "Size", "From – to", "First time, s", "Last time, s", "Exponent measured",
         "Order expected here", "Order in the paper"],
        [_row(one) for one in found.growths],
        "Exponent: slope of time against size on logarithmic scales, over the larger sizes.",
    )  # fmt: skip
    shown = [step for step in ("fit", "place") if _of(found, step)] if drawing else []
    pictures = [_chart(found, step) for step in shown]
    return Part(Section("Section 6: how the work grows", words, [table], pictures))


def _placing(one: Placing) -> str:
    """Say what error bars, certificates and distances from the manifold cost."""
    setting = ", ".join(f"{key} = {value}" for key, value in one.setting.items())
    all_of_it, alone = one.seconds["place"], one.seconds["transform"]
    return (
        f"All that place reports, with {setting}, takes {1e6 * all_of_it:.0f} µs a point; the"
        f" coordinates alone take {1e6 * alone:.0f} µs, a ratio of {all_of_it / alone:.2f}."
    )


def _of(found: Complexity, step: str) -> list[Growth]:
    return [one for one in found.growths if one.step == step]


def _row(one: Growth) -> list[str]:
    exponent = ABSENT if math.isnan(one.exponent) else f"{one.exponent:.2f}"
    return [
        STEPS[one.step], one.letter,
        f"{one.values[0]}\u00a0–\u00a0{one.values[-1]}", number(one.seconds[0]),
        number(one.seconds[-1]), exponent, one.ours, one.paper or ABSENT,
    ]  # fmt: skip


def _chart(found: Complexity, step: str) -> Picture:
    rows = _of(found, step)
    curves = []
    for one, style in zip(rows, STYLES, strict=False):
        sizes = [value / one.values[0] for value in one.values]
        name = f"{one.letter}, exponent {one.exponent:.2f}"
        curves.append(Curve(name, sizes, one.seconds / one.seconds[0], style))
    end = max(one.values[-1] / one.values[0] for one in rows)
    curves.append(Curve("in proportion", [1, end], [1, end], (FAINT, ":", "")))
    words = STEPS[step]
    return Picture(
        curve_chart(
            curves, title=f"Time of {words}", x_label="size, times the smallest",
            y_label="time, times the first",
        ),
        f"Time of {words} against each size, both relative to their smallest",
    )  # fmt: skip
