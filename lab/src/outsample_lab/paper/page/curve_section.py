"""Fig. 7.3 on the page: error against the size of the training set."""

from collections import Counter

import numpy as np

from outsample.report.page import Picture, Section, Table
from outsample_lab.paper.extension_curve import AUTO, ExtensionCurve
from outsample_lab.paper.page.viewer import Part
from outsample_lab.plots.curves import STYLES, Curve, curve_chart
from outsample_lab.wording import measured, number, plural

# Names short enough for the end of a curve on a phone.
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


def lowest(curve: ExtensionCurve) -> tuple[int, int]:
    """Return the number of sizes at which the defaults have the lowest error, and of all sizes."""
    return sum(winner.method == AUTO for winner in curve.winners), len(curve.winners)


def standing(curve: ExtensionCurve) -> str:
    """Return a sentence on the sizes at which the defaults have the lowest error."""
    least, total = lowest(curve)
    sentence = (
        f"PCAExtension() with all defaults has the lowest mean error at {least} of"
        f" {plural(total, 'training size')}."
    )
    behind = [s.auto / s.error - 1 for s in curve.auto_not_lowest if s.error]
    if not behind:
        return sentence
    return f"{sentence} At the others it is above the lowest by at most {100 * max(behind):.1f} %."


def curve_part(curve: ExtensionCurve, suffix: str, drawing: bool) -> Part:
    """Return the section of Fig. 7.3; `suffix` of titles marks simulated data."""
    words = [
        "In the paper: the error norm of four methods on 50 of 800 points, against the size of the"
        " training set, as a picture without numbers.",
        f"Here: a diffusion map of {curve.n_points} minutes ({curve.n_distinct} of them"
        f" distinct) in five dimensions; {curve.n_hidden} held-out minutes are placed from random"
        f" training sets, {plural(curve.n_repeats, 'repetition')} each. The error is the mean"
        " distance to the true position relative to the size of the map. The numbers cannot be"
        " compared with those of the paper.",
        *_reading(curve),
    ]
    table = Table(
        ["Method", *(f"{size} points" for size in curve.sizes)],
        [
            [line.title + " *" * line.in_paper, *map(measured, line.errors, line.spread)]
            for line in curve.curves
        ],
        "Mean error ± standard deviation over repetitions. *: one of the paper's four methods."
        " Shaded: PCAExtension() with all defaults.",
        frozenset(at for at, line in enumerate(curve.curves) if line.method == AUTO),
    )  # fmt: skip
    heading = f"Example II, Figure 7.3: error against training size{suffix}"
    pictures = [_chart(curve, suffix)] if drawing else []
    tables = [table, _shortfalls(curve)] if curve.auto_not_lowest else [table]
    return Part(Section(heading, words, tables, pictures))


def _shortfalls(curve: ExtensionCurve) -> Table:
    """Return a table of the sizes at which the defaults do not have the lowest error."""
    titles = {item.method: item.title for item in curve.curves}
    rows = [
        [str(item.size), titles[item.method], number(item.error, 4),
         number(item.auto, 4), f"{item.wins} of {curve.n_repeats}"]
        for item in curve.auto_not_lowest
    ]  # fmt: skip
    return Table(
        ["Training points", "Lowest", "Its error", "Defaults", "Defaults lower in"],
        rows,
        "Sizes at which the defaults do not have the lowest mean error, and the number of"
        " repetitions in which their error was lower than that of the lowest method.",
    )


def _reading(curve: ExtensionCurve) -> list[str]:
    """Return sentences on how often the defaults are lowest, and what they selected."""
    families: Counter[str] = Counter()
    for counts in curve.chosen:
        families.update(counts)
    picked = ", ".join(f"{family} {count} times" for family, count in families.items())
    fitting = (
        f"The defaults select a model by leave-one-out error; here they selected: {picked}. A"
        " diffusion map uses the same kernel as the Nyström extension, which favours models of that"
        " kind."
    )
    errors = {line.method: line.errors for line in curve.curves}
    if np.all(errors["tangent"] > errors["nystroem"]):
        fitting += (
            " The paper's own weights are local averages and less accurate than the kernel methods"
            " on this map."
        )
    return [f"Reading: {standing(curve)}{_by_median(curve)}", fitting]


def _by_median(curve: ExtensionCurve) -> str:
    """Return a sentence on median errors, for means dominated by single hidden points."""
    if not curve.auto_not_lowest:
        return ""
    medians = {line.method: line.medians for line in curve.curves}
    least = sum(
        min(medians, key=lambda method: medians[method][at]) == AUTO
        for at in range(len(curve.sizes))
    )
    return (
        f" By the median error of the held-out points they are lowest at {least} of"
        f" {plural(len(curve.sizes), 'size')}: the selection favours typical points, while a few"
        " isolated minutes, which no method places well, dominate the mean."
    )


def _chart(curve: ExtensionCurve, suffix: str) -> Picture:
    auto_first = sorted(curve.curves, key=lambda line: line.method != AUTO)
    curves = []
    for line, style in zip(auto_first, STYLES, strict=False):
        name = SHORT.get(line.method, line.title) + " *" * line.in_paper
        strong = line.method == AUTO
        curves.append(Curve(name, curve.sizes, line.errors, style, line.spread, strong))
    return Picture(
        curve_chart(
            curves, title=f"Figure 7.3{suffix}", x_label="training points", height=4.8,
            y_label="mean error relative to the size of the map", x_log=False,
        ),
        "Mean error of the methods against the size of the training set",
        "Bands: standard deviation over repetitions, cut off at half the mean below. *: one of the"
        " paper's four methods. The left scale is logarithmic.",
    )  # fmt: skip
