"""Fig. 7.3 on the page: error against the size of the training set."""

from collections import Counter

import numpy as np

from outsample.report.page import Picture, Section, Table
from outsample_lab.paper.extension_curve import AUTO, ExtensionCurve
from outsample_lab.paper.page.viewer import Part
from outsample_lab.plots.curves import STYLES, Curve, curve_chart
from outsample_lab.wording import measured, number, plural

# Names short enough to stand beside a curve on a phone.
SHORT = {
    "distance": "distance weights",
    "tangent": "tangent weights",
    "local_tangent": "tangent, per point",
    AUTO: "all defaults",
    "nystroem": "Nyström",
    "mse": "MSE",
    "pyramids": "pyramids, tolerance",
    "adaptive_pyramids": "pyramids, adaptive",
    "harmonics": "harmonics",
}


def lowest(found: ExtensionCurve) -> tuple[int, int]:
    """Return at how many sizes the defaults have the lowest mean error, and how many there are."""
    return sum(one.method == AUTO for one in found.winners), len(found.winners)


def standing(found: ExtensionCurve) -> str:
    """Say at how many sizes the defaults are lowest, and how far behind they are elsewhere."""
    least, total = lowest(found)
    said = (
        f"PCAExtension() with all defaults has the lowest mean error at {least} of"
        f" {plural(total, 'training size')}."
    )
    behind = [one.auto / one.error - 1 for one in found.auto_not_lowest if one.error]
    if not behind:
        return said
    return f"{said} At the others it is above the lowest by at most {100 * max(behind):.1f} %."


def curve_part(found: ExtensionCurve, suffix: str, drawing: bool) -> Part:
    """Return the section of Fig. 7.3; titles end in `suffix`, which says if data are simulated."""
    words = [
        "In the paper: the error norm of four methods on 50 of 800 points, against the size of the"
        " training set, as a picture without numbers.",
        f"Here: a diffusion map of {found.n_points} minutes ({found.n_distinct} of them"
        f" distinct) in five dimensions; {found.n_hidden} hidden minutes are placed from random"
        f" training sets, {plural(found.n_repeats, 'repetition')} each. The error is the mean"
        " distance from the true image over the size of the map. No number of ours can be held"
        " against one of the paper's.",
        *_reading(found),
    ]
    table = Table(
        ["Method", *(f"{size} points" for size in found.sizes)],
        [
            [one.title + " *" * one.in_paper, *map(measured, one.errors, one.spread)]
            for one in found.curves
        ],
        "Mean error ± standard deviation over repetitions. *: one of the paper's four methods."
        " Shaded: PCAExtension() with all defaults.",
        frozenset(at for at, one in enumerate(found.curves) if one.method == AUTO),
    )  # fmt: skip
    heading = f"Example II, Figure 7.3: error against training size{suffix}"
    pictures = [_chart(found, suffix)] if drawing else []
    tables = [table, _shortfalls(found)] if found.auto_not_lowest else [table]
    return Part(Section(heading, words, tables, pictures))


def _shortfalls(found: ExtensionCurve) -> Table:
    """List the sizes at which the defaults are not lowest."""
    titles = {one.method: one.title for one in found.curves}
    rows = [
        [str(one.size), titles[one.method], number(one.error, 4),
         number(one.auto, 4), f"{one.wins} of {found.n_repeats}"]
        for one in found.auto_not_lowest
    ]  # fmt: skip
    return Table(
        ["Training points", "Lowest", "Its error", "Defaults", "Defaults nearer in"],
        rows,
        "Sizes at which the defaults are not lowest on average, and in how many of the repetitions"
        " they were nearer to the truth than the lowest all the same.",
    )


def _reading(found: ExtensionCurve) -> list[str]:
    """Say how often the defaults are lowest, and what they chose."""
    families: Counter[str] = Counter()
    for chosen in found.chosen:
        families.update(chosen)
    picked = ", ".join(f"{family} {count} times" for family, count in families.items())
    fitting = (
        f"The defaults choose by leave-one-out; here they chose: {picked}. A diffusion map is made"
        " of the very kernel that the Nyström extension uses, so that a model of that kind is bound"
        " to do well on it."
    )
    errors = {one.method: one.errors for one in found.curves}
    if np.all(errors["tangent"] > errors["nystroem"]):
        fitting += (
            " The paper's own weights are local averages and stay behind the kernel methods on"
            " this map."
        )
    return [f"Reading: {standing(found)}{_by_median(found)}", fitting]


def _by_median(found: ExtensionCurve) -> str:
    """Say how the defaults stand by the median, where a few hidden points decide the means."""
    if not found.auto_not_lowest:
        return ""
    medians = {one.method: one.medians for one in found.curves}
    least = sum(
        min(medians, key=lambda method: medians[method][at]) == AUTO
        for at in range(len(found.sizes))
    )
    return (
        f" By the median error of the hidden points they are lowest at {least} of"
        f" {plural(len(found.sizes), 'size')}: they choose for typical points, while a few"
        " minutes unlike all others, which no method places well, weigh most in a mean."
    )


def _chart(found: ExtensionCurve, suffix: str) -> Picture:
    auto_first = sorted(found.curves, key=lambda one: one.method != AUTO)
    curves = []
    for one, style in zip(auto_first, STYLES, strict=False):
        name = SHORT.get(one.method, one.title) + " *" * one.in_paper
        strong = one.method == AUTO
        curves.append(Curve(name, found.sizes, one.errors, style, one.spread, strong))
    return Picture(
        curve_chart(
            curves, title=f"Figure 7.3{suffix}", x_label="training points", height=4.8,
            y_label="mean error over size of the map", x_log=False,
        ),
        "Mean error of the methods against the size of the training set",
        "Bands: standard deviation over repetitions, cut off at half the mean below. *: one of the"
        " paper's four methods. The left scale is logarithmic.",
    )  # fmt: skip
