"""The page of `outsample bench accuracy`, and its tables."""

from collections.abc import Sequence

import numpy as np

from outsample.comparison.compare import Comparison
from outsample.plots.canvas import can_draw
from outsample.report.page import Picture, Section, Table, build_page
from outsample_lab.accuracy.map_result import AccuracyRun, MapResult
from outsample_lab.accuracy.peers import OURS, PEER
from outsample_lab.bench_files import settings_section
from outsample_lab.plots.dots import ratio_chart

BARS = (
    "Other: the best of the other methods. Bars: coverage of the error bars of PCAExtension(); the"
    " target is 90 %."
)
SUMMARY = ("Map", "Ours", "Other", "which", "Target", "met", "bars")


def map_report(result: MapResult) -> tuple[str, Table | None]:
    """Return a title and a table for the terminal, or the reason for skipping it."""
    if result.skipped:
        return f"{result.title}: skipped, {result.skipped}", None
    failed = [f"{r.result.name}: {r.result.failure}" for r in result.rows if r.result.failure]
    words = "\n".join(filter(None, [_covered(result), *failed]))
    return f"{result.title}: {_shape(result)}", _table(result)._replace(caption=words)


def summary_table(results: Sequence[MapResult]) -> Table:
    """Return a table with one line per map: our error, the best other method, the target."""
    return Table(SUMMARY, [_summary(result) for result in results], BARS)


def _summary(result: MapResult) -> list[str]:
    ours, peer = result.ours, result.best_peer
    if ours is None:
        return [result.title, "skipped", "", "", "", "", ""]
    target = "lowest" if result.stated_target is None else f"{result.stated_target:g}"
    best = ["-", "-"] if peer is None else [f"{peer.error:#.3g}", peer.name]
    covered = "-" if result.coverage is None else f"{100 * result.coverage:.1f} %"
    met = "yes" if result.met else "no"
    return [result.title, f"{ours.error:#.3g}", *best, target, met, covered]


def _table(result: MapResult) -> Table:
    ours = frozenset(at for at, row in enumerate(result.rows) if row.family == OURS)
    rows = [Comparison.cells(row.result) for row in result.rows]
    return Table(Comparison.header(), rows, highlight=ours)


def _shape(result: MapResult) -> str:
    return f"{result.n_points} points, {result.n_columns} to {result.n_components} dimensions"


def _covered(result: MapResult) -> str:
    if result.coverage is None:
        return ""
    share = f"{100 * result.coverage:.1f} %"
    least = ""
    if result.tenths is not None:
        least = f", {100 * result.tenths.lowest:.0f} % in the worst decile"
    return f"The error bars of PCAExtension() cover {share} of the points{least}; target 90 %."


def tenths_table(result: MapResult) -> list[Table]:
    """Return the coverage by deciles of isolation, density and error bar."""
    if result.tenths is None:
        return []
    lines = {
        "isolation, from small to large": result.tenths.isolation,
        "density, from dense to sparse": result.tenths.density,
        "error bar, from narrow to wide": result.tenths.bar,
    }
    rows = [
        [name, *(f"{100 * share:.0f}" if np.isfinite(share) else "-" for share in shares)]
        for name, shares in lines.items()
    ]
    header = ("Coverage, %, by", *map(str, range(1, len(rows[0]))))
    return [Table(header, rows, "Coverage of the error bars in each decile of the points.")]


def ratios(results: Sequence[MapResult]) -> Picture | None:
    """Return a picture of all maps; None without results or without matplotlib."""
    shown = [result for result in results if result.ours and result.best_peer]
    if not shown or not can_draw():
        return None
    errors = [
        [row.result.error for row in result.rows if row.family == PEER and not row.result.failure]
        for result in shown
    ]
    ours = [result.ours.error for result in shown if result.ours]
    labels = [result.title for result in shown]
    return Picture(ratio_chart(labels, ours, errors), "Errors of all methods on all maps")


def accuracy_page(run: AccuracyRun, picture: Picture | None) -> str:
    """Return the page: the summary, the picture and one section per map."""
    done = [result for result in run.maps if not result.skipped]
    met = sum(result.met for result in done)
    first = sum(
        result.ours.error <= result.best_peer.error
        for result in done
        if result.ours and result.best_peer
    )
    skipped = [f"{r.title} was skipped: {r.skipped}." for r in run.maps if r.skipped]
    made = ", ".join(f"{name} {number}" for name, number in run.versions.items())
    pictures = [picture] if picture else []
    return build_page(
        "Accuracy of extensions",
        [
            Section("All maps", [run.protocol, *skipped], [summary_table(done)], pictures),
            *map(_section, done),
            settings_section(
                (row.result.name, row.parameters) for result in done for row in result.rows
            ),
        ],
        lead="Held-out points whose true position is known are placed by PCAExtension() with all"
        " defaults, by the paper's weights, and by other methods.",
        facts=[
            (f"{met} of {len(done)}", "targets met"),
            (f"{first} of {len(done)}", "maps on which no other method has a lower error"),
        ],
        footer=f"Made by outsample bench accuracy on this computer. {made}.",
    )


def _section(result: MapResult) -> Section:
    made = f"computed in {result.map_seconds:.1f} s"
    words = [f"{_shape(result)}; {made}. {_covered(result)}"]
    if result.chosen:
        words.append(f"PCAExtension() selected: {'; '.join(dict.fromkeys(result.chosen))}.")
    words += [
        f"{row.result.name} failed. {row.result.failure}." for row in result.rows
        if row.result.failure
    ]  # fmt: skip
    return Section(result.title, words, [_table(result), *tenths_table(result)])
