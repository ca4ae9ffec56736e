"""The page of `outsample bench novelty`, and its tables."""

import math
from collections.abc import Sequence

from outsample.plots.canvas import can_draw
from outsample.report.page import Picture, Section, Table, build_page
from outsample_lab.bench_files import settings_section
from outsample_lab.novelty.detectors import METHOD, OURS, PEER
from outsample_lab.novelty.set_result import LEVEL, DetectorRow, NoveltyRun, SetResult
from outsample_lab.novelty.standings import Group, Standing, grouped
from outsample_lab.plots.dots import AreaGroup, area_chart
from outsample_lab.wording import plural

STANDING = ("Detector", "Mean rank", "Mean AUC", "Mean AP", "s per set", "sets")
ROWS = ("Detector", "AUC", "±", "AP", "±", "s")
SUMMARY = ("Set", "rows", "columns", "new", "unusual", "AUC", "best other", "which", "false alarms")
ALARMS = f"False alarms: share of the normal new rows with a p-value of at most {LEVEL:g}."


def set_report(result: SetResult) -> tuple[str, Table | None]:
    """Return a title and a table for the terminal, or the reason for skipping it."""
    if result.skipped:
        return f"{result.title}: skipped, {result.skipped}", None
    failed = [f"{row.name}: {row.failure}" for row in result.rows if row.failure]
    words = "\n".join(filter(None, [_alarmed(result), *failed]))
    return f"{result.title}: {_shape(result)}", _table(result)._replace(caption=words)


def standing_tables(results: Sequence[SetResult]) -> list[tuple[str, Table]]:
    """Return a title and a table of all detectors for each group of sets."""
    return [
        (f"{group.title}: {plural(len(group.sets), 'set')}", _standing_table(group))
        for group in grouped(results).values()
    ]


def _standing_table(group: Group) -> Table:
    ours = frozenset(at for at, line in enumerate(group.standings) if line.family == OURS)
    return Table(STANDING, [_standing_cells(line) for line in group.standings], highlight=ours)


def _standing_cells(line: Standing) -> list[str]:
    sets = f"{line.n_sets} of {line.total}"
    if math.isnan(line.rank):
        return [line.name, "-", "-", "-", "-", sets]
    figures = f"{line.rank:.2f}", f"{line.auc:.4f}", f"{line.precision:.4f}", f"{line.seconds:.2f}"
    return [line.name, *figures, sets]


def _table(result: SetResult) -> Table:
    ours = frozenset(at for at, row in enumerate(result.rows) if row.family == OURS)
    failed = [f"{row.name} failed. {row.failure}." for row in result.rows if row.failure]
    words = " ".join([f"{result.title}: {_shape(result)}.", *failed])
    return Table(ROWS, [_cells(row) for row in result.rows], words, ours)


def _cells(row: DetectorRow) -> list[str]:
    if row.failure:
        return [row.name, "failed", "", "", "", ""]
    auc, precision = row.spreads
    return [
        row.name, f"{row.auc:.4f}", f"{auc:.4f}", f"{row.precision:.4f}", f"{precision:.4f}",
        f"{row.seconds:.2f}",
    ]  # fmt: skip


def _shape(result: SetResult) -> str:
    days = f" on {len(result.parts)} days" if result.parts else ""
    return (
        f"{result.n_training} rows, {result.n_columns} columns; {result.n_new} new,"
        f" {result.n_anomalous} anomalous{days}"
    )


def _alarmed(result: SetResult) -> str:
    """Return a sentence on the share of rows with a p-value of at most 0.01."""
    alarms = result.alarms
    if alarms is None:
        return ""
    words = (
        f"p-value at most {alarms.level:g}: {alarms.anomalous:.1%} of the anomalous rows,"
        f" {alarms.normal:.1%} of the normal rows."
    )
    if alarms.loud is None or alarms.normal_on_loud_days is None:
        return words
    return (
        f"{words} Of {alarms.n_loud} loud minutes {alarms.loud:.1%}, compared with"
        f" {alarms.normal_on_loud_days:.1%} of the normal minutes of the same days."
    )


def area_picture(results: Sequence[SetResult]) -> Picture | None:
    """Return a picture of all sets; None without results or without matplotlib."""
    shown = [
        AreaGroup(
            group.title,
            [result.title for result in group.sets],
            [None if result.ours is None else result.ours.auc for result in group.sets],
            [[row.auc for row in result.ran if row.family == PEER] for result in group.sets],
        )
        for group in grouped(results).values()
    ]
    if not shown or not can_draw():
        return None
    return Picture(
        area_chart(shown, METHOD),
        "Areas under the ROC curve of all detectors on all sets",
        "One line per set. The number is ours; the dashed line is chance.",
    )


def novelty_page(run: NoveltyRun, picture: Picture | None) -> str:
    """Return the page: the picture, the standings and one table per set."""
    skipped = [f"{r.title} was skipped: {r.skipped}." for r in run.sets if r.skipped]
    done = [result for result in run.sets if not result.skipped]
    groups = list(grouped(run.sets).values())
    made = ", ".join(f"{name} {number}" for name, number in run.versions.items())
    return build_page(
        "Novelty detection",
        [
            Section("How it was measured", [*run.protocol.values(), _seeds(run.seeds), *skipped]),
            *map(_group, groups),
            Section("Every set", [], [_table(result) for result in done]),
            settings_section((row.name, row.parameters) for result in done for row in result.rows),
        ],
        lead="Detectors that have seen only normal rows rank new rows from anomalous to normal:"
        f" {METHOD} with all defaults, and detectors of scikit-learn and PyOD.",
        facts=[fact for group in groups for fact in _facts(group)],
        hero=picture,
        footer=f"Made by outsample bench novelty on this computer, {run.seconds / 60:.0f}"
        f" minutes. {made}.",
    )


def _seeds(seeds: Sequence[int]) -> str:
    if len(seeds) == 1:
        return f"One seed, {seeds[0]}: figures have no spread."
    return f"Seeds: {', '.join(map(str, seeds))}. ± is the standard deviation over them."


def _facts(group: Group) -> list[tuple[str, str]]:
    """Return our mean rank on a group, and that of the best other detector."""
    lines = [line for line in group.standings if not math.isnan(line.rank)]
    ours = next((line for line in lines if line.family == OURS), None)
    peer = next((line for line in lines if line.family == PEER), None)
    if ours is None or peer is None:
        return []
    words = f"mean rank of {len(lines)}; the best other is {peer.name}, {peer.rank:.2f}"
    return [(f"{ours.rank:.2f}", f"{group.title}: {words}")]


def _group(group: Group) -> Section:
    summary = Table(SUMMARY, [_summary(result) for result in group.sets], ALARMS)
    words = [f"{r.title}: {_alarmed(r)}" for r in group.sets if r.alarms and r.alarms.n_loud]
    return Section(group.title, words, [_standing_table(group), summary])


def _summary(result: SetResult) -> list[str]:
    ours, peer, alarms = result.ours, result.best_peer, result.alarms
    counts = result.n_training, result.n_columns, result.n_new, result.n_anomalous
    return [
        result.title,
        *map(str, counts),
        "failed" if ours is None else f"{ours.auc:.4f}",
        *(["-", "-"] if peer is None else [f"{peer.auc:.4f}", peer.name]),
        "-" if alarms is None else f"{alarms.normal:.1%}",
    ]
