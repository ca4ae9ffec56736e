"""The page of `outsample bench speed`, and its tables."""

import math
from collections.abc import Sequence

from outsample.plots.canvas import can_draw
from outsample.report.page import Picture, Section, Table, build_page
from outsample_lab.plots.curves import STYLES, curve_chart
from outsample_lab.plots.curves import Curve as Drawn
from outsample_lab.plots.targets import target_chart
from outsample_lab.serving.service_result import ServiceRun
from outsample_lab.speed.speed_result import Curve, PartResult, SpeedRun, Target, Timing
from outsample_lab.wording import number

HEADS = ("Task", "Target", "Measured", "Met", "Quartiles")
TIMES = ("Task", "Median", "Setting", "Quartiles", "99 %", "Repeats")
UNITS = {"times": "", "MB": " MB", "s": " s", "ms": " ms"}


def target_table(targets: Sequence[Target]) -> Table:
    """Return a table of targets and measured values; missed targets are highlighted."""
    missed = frozenset(
        at for at, target in enumerate(targets) if not target.met and not target.skipped
    )
    table = Table(HEADS, [_cells(target) for target in targets], highlight=missed)
    return _without_empty(table)


def _cells(target: Target) -> list[str]:
    sign, unit = ("≥" if target.at_least else "≤"), UNITS.get(target.unit, "")
    limit = f"{sign} {target.asked:g}{unit}"
    if target.skipped:
        return [target.work, limit, "skipped", "–", ""]
    spread = "" if math.isnan(target.low) else f"{number(target.low)}–{number(target.high)}"
    met = "yes" if target.met else "no"
    return [target.work, limit, f"{number(target.found)}{unit}", met, spread]


def part_report(part: PartResult) -> tuple[str, Table | None]:
    """Return a title and a table for the terminal, or the reason for skipping it."""
    title = f"{part.title} ({part.name}, {part.seconds:.0f} s)"
    notes = "\n".join(notes_of(part.targets))
    if part.targets:
        return title, target_table(part.targets)._replace(caption=notes)
    if part.skipped:
        return f"{title}: {part.skipped}", None
    if part.timings:
        return title, _timing_table(part.timings)
    return title, _curve_table(part.curves)


def summary_tables(run: SpeedRun) -> list[tuple[str, Table]]:
    """Return all targets under one title."""
    targets = all_targets(run)
    return [("Targets", target_table(targets))] if targets else []


def all_targets(run: SpeedRun) -> list[Target]:
    """Return the targets of all parts."""
    return [target for part in run.parts for target in part.targets]


def notes_of(targets: Sequence[Target]) -> list[str]:
    """Return the notes of targets, and why some were not measured."""
    noted = [f"{target.work}: {target.note}." for target in targets if target.note]
    reasons = {target.skipped for target in targets if target.skipped}
    return [*noted, *(f"Skipped: {reason}." for reason in sorted(reasons))]


def _duration(seconds: float) -> str:
    """Return a duration in a suitable unit."""
    if math.isnan(seconds):
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{number(seconds / size)} {unit}"
    return f"{number(seconds / 1e-6)} µs"


def _timing_table(timings: Sequence[Timing]) -> Table:
    rows = [
        [timing.work, _duration(timing.seconds), timing.setting,
         f"{_duration(timing.low)}–{_duration(timing.high)}" if timing.repeats > 1 else "",
         _duration(timing.p99), str(timing.repeats)]
        for timing in timings
    ]  # fmt: skip
    return _without_empty(Table(TIMES, rows))


def _without_empty(table: Table) -> Table:
    """Return a table without empty columns."""
    kept = [at for at in range(len(table.header)) if any(row[at] for row in table.rows)]
    cut = [[row[at] for at in kept] for row in table.rows]
    return table._replace(header=[table.header[at] for at in kept], rows=cut)


def _curve_table(curves: Sequence[Curve]) -> Table:
    rows = [
        [f"{curve.chart}: {curve.name}", f"{curve.sizes[0]:,.0f}–{curve.sizes[-1]:,.0f}",
         f"{number(curve.figures[0])}", f"{number(curve.figures[-1])}", curve.y,
         "" if math.isnan(curve.exponent) else f"{curve.exponent:.2f}"]
        for curve in curves
    ]  # fmt: skip
    heads = ("Curve", "Sizes", "First", "Last", "Unit", "Exponent")
    return _without_empty(Table(heads, rows, "Exponent: slope of the larger half, log scales."))


def target_picture(run: SpeedRun) -> Picture | None:
    """Return a picture of all targets; None without targets or without matplotlib."""
    return target_picture_of(all_targets(run))


def target_picture_of(targets: Sequence[Target]) -> Picture | None:
    """Return a picture of targets; None without targets or without matplotlib."""
    shown = [target for target in targets if not target.skipped and target.share > 0]
    if not shown or not can_draw():
        return None
    cells = [_cells(target) for target in shown]
    picture = target_chart(
        [target.work for target in shown],
        [target.share for target in shown],
        [f"{measured} ({limit})" for _, limit, measured, *_ in cells],
    )
    return Picture(picture, "Measured values relative to their targets")


def _charts(part: PartResult) -> list[Picture]:
    """Return charts of the curves of a part, one per title."""
    titles = dict.fromkeys(curve.chart for curve in part.curves)
    pictures = []
    for title in titles if can_draw() else ():
        curves = [curve for curve in part.curves if curve.chart == title]
        drawn = [
            Drawn(_named(curve), curve.sizes, curve.figures, style)
            for curve, style in zip(curves, STYLES, strict=False)
        ]
        chart = curve_chart(drawn, title=title, x_label=curves[0].x, y_label=curves[0].y)
        pictures.append(Picture(chart, f"{title}: {', '.join(curve.name for curve in curves)}"))
    return pictures


def _named(curve: Curve) -> str:
    short = curve.name.replace("bare brute force of ", "").replace("bare ", "")
    return short if math.isnan(curve.exponent) else f"{short} ({curve.exponent:.2f})"


def _section(part: PartResult) -> Section:
    skipped = [f"Skipped: {part.skipped}."] if part.skipped and not part.targets else []
    tables = [target_table(part.targets)] if part.targets else []
    tables += [_timing_table(part.timings)] if part.timings else []
    tables += [_curve_table(part.curves)] if part.curves else []
    words = [*part.words, *skipped, *notes_of(part.targets)]
    return Section(part.title, words, tables, _charts(part))


def load_words(run: SpeedRun | ServiceRun) -> str:
    """Return a sentence on the load of the machine when the run began."""
    if not run.busy:
        return f"The machine was idle when it began: load {run.load:.2f} on {run.cores} cores."
    return (
        f"The machine was not idle when it began: load {run.load:.2f} on {run.cores} cores. Times"
        " are too long; ratios are affected less, because programs run alternately."
    )


def speed_page(run: SpeedRun, picture: Picture | None) -> str:
    """Return the page: the targets, the picture and one section per part."""
    targets = all_targets(run)
    met = sum(target.met for target in targets)
    skipped = sum(bool(target.skipped) for target in targets)
    made = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    short = ["A quick run with small sizes: its figures are not comparable with a full run."]
    facts = [(f"{met} of {len(targets)}", "targets met")]
    if skipped:
        facts.append((str(skipped), "not measured here"))
    words = [run.protocol, load_words(run), *(short if run.quick else [])]
    return build_page(
        "Speed and scale",
        [
            Section("Targets", words, [target_table(targets)] if targets else []),
            *map(_section, run.parts),
        ],
        lead="Run time and memory of this library relative to bare neighbour searches and to other"
        " libraries.",
        facts=facts,
        hero=picture,
        footer=f"Made by outsample bench speed on this computer, {run.seconds / 60:.0f} minutes."
        f" {made}.",
    )
