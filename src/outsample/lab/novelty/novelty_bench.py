"""What `outsample bench novelty` does: measure, then write figures, a picture and a page."""

import json
import math
import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from outsample import plots
from outsample.lab.environment import versions
from outsample.lab.novelty import ranking as novelty
from outsample.lab.novelty.detectors import METHOD, OURS, PEER, detectors
from outsample.lab.novelty.ranking import Progress, SetResult, Standing, standings
from outsample.lab.novelty.splits import (
    FLOODED,
    GROUPS,
    IMAGES,
    JUNK_ROWS,
    NEW_ROWS,
    QUICK,
    TRAINING_ROWS,
)
from outsample.lab.traffic.loud import FLOODS_AND_SCANS, LOUD_CONNECTIONS
from outsample.report.page import (
    Picture,
    Section,
    Table,
    build_page,
    check_writable,
    write_file,
    write_page,
)

if TYPE_CHECKING:
    from rich.table import Table as RichTable

__all__ = ["NoveltyBenchmark", "run_novelty", "set_table", "standing_tables"]

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "pyod", "torch")
PROTOCOL = {
    "all": "Every detector learns from the same normal rows, then ranks the same new rows, some"
    " normal and some strange, on one thread. Figures are the area under the ROC curve and the"
    " average precision, means over the seeds. A detector that fails on a set has no figure there"
    " and is last in the ranking of that set; one that runs on no set of a group is not ranked.",
    "outliers": "Outlier sets: a random half of the normal rows to learn from, the rest and all"
    f" outliers as new rows; at most {TRAINING_ROWS} rows to learn from and {NEW_ROWS} new ones,"
    " both classes thinned at the same rate. Columns are standardised by the training rows; a"
    " column that is constant there is 0 everywhere. Some sets hold equal rows, so a new row may"
    " equal one that was learned from.",
    "images": "Digits and MNIST: half of nine classes to learn from, the other half and the whole"
    f" tenth class as new rows, for MNIST at most {TRAINING_ROWS} and {IMAGES}. Grey values"
    " from 0 to 1, not standardised. One seed for MNIST, three for all else.",
    "fresh": "Sets unseen while the score was made: the constants of NoveltyDetector() were chosen"
    " by the areas on the other sets; these came afterwards. COIL-20 like the digits, each object"
    " held out in turn; NSL-KDD with its numeric columns, log(1 + x), standardised, normal rows of"
    " its training file to learn from, and its test file.",
    "junk": f"Images that are none: half of all images to learn from; of each kind {JUNK_ROWS}"
    " against the other half: one random grey value all over, a real image times 10, uniform"
    " noise, the pixels of a real image shuffled, each in its own way.",
    "darpa": "Network traffic, DARPA 1998: 14 counts of each minute with traffic, log(1 + x),"
    " standardised by the training rows. One quiet day to learn from, then every later day with at"
    " least 3 minutes of either kind, each by itself; the figure is the mean over the days. Left"
    f" out: {', '.join(FLOODED)}, on which one attack runs in nearly every minute. Loud minutes"
    f" have more than {LOUD_CONNECTIONS} connections of {', '.join(FLOODS_AND_SCANS)}. The days do"
    " not depend on the seed, only the detectors do.",
}
STANDING = ("Detector", "Mean rank", "Mean AUC", "Mean AP", "s a set", "sets")
ROWS = ("Detector", "AUC", "±", "AP", "±", "s")
SUMMARY = ("Set", "rows", "columns", "new", "strange", "AUC", "best other", "which", "false alarms")


class NoveltyBenchmark(NamedTuple):
    """What was found, and the files that show it."""

    results: list[SetResult]
    seconds: float
    files: list[Path]


def run_novelty(
    out_dir: str | os.PathLike[str],
    *,
    names: Sequence[str] = (),
    quick: bool = False,
    folder: Path | None = None,
    listed: Sequence[str] = (),
    progress: Progress | None = None,
    on_set: Callable[[SetResult], None] | None = None,
) -> NoveltyBenchmark:
    """Run the benchmark and write ``novelty.json``, ``novelty.png`` and ``novelty.html``.

    Parameters
    ----------
    out_dir : path-like
        Folder of the files, made if missing.
    names : sequence of str
        Sets, by name or its beginning; all if there are none.
    quick : bool, default=False
        A few small sets, unless others are named, and one seed.
    folder : Path, optional
        Where the data files are.
    listed : sequence of str
        Detectors, by name; all if there are none.
    progress, on_set : callable, optional
        As in `outsample.lab.novelty.ranking.run`.

    Returns
    -------
    NoveltyBenchmark

    Raises
    ------
    OSError
        If the folder cannot be written; found out before the work begins.
    ValueError
        If there is no set or no detector of a name.
    """
    sources, lines = novelty.select(names or (QUICK if quick else ())), detectors(listed)
    check_writable(out_dir)
    seeds = (0,) if quick else (0, 1, 2)
    begin = perf_counter()
    with threadpool_limits(1):  # ours runs on one thread too, so that times compare
        results = novelty.run(
            sources, seeds, folder, listed=lines, progress=progress, on_set=on_set
        )
    seconds = perf_counter() - begin
    told = _figures(results, seeds, seconds)
    text = json.dumps(told, indent=2, allow_nan=False) + "\n"
    files = [write_file(Path(out_dir) / "novelty.json", text.encode())]
    picture = _picture(results)
    if picture is not None:
        files.append(write_file(Path(out_dir) / "novelty.png", picture.data))
    page = _page(results, told, picture)
    files.append(write_page(Path(out_dir) / "novelty.html", page))
    return NoveltyBenchmark(results, seconds, files)


def set_table(result: SetResult) -> "RichTable":
    """Lay one set's rows out for a terminal.

    Parameters
    ----------
    result : SetResult
        A set that was not skipped.

    Returns
    -------
    rich.table.Table
    """
    table = _rich(f"{result.title}: {_shape(result)}", ROWS, _alarmed(result))
    for row in result.rows:
        cells = _cells(row)
        if row.failure:
            cells[0] += f"\n{row.failure}"
        table.add_row(*cells, style="bold" if row.family == OURS else None)
    return table


def standing_tables(results: Sequence[SetResult]) -> "list[RichTable]":
    """Lay out the standing of all detectors, a table for each group of sets.

    Parameters
    ----------
    results : sequence of SetResult
        What was found.

    Returns
    -------
    list of rich.table.Table
    """
    found = []
    for group in GROUPS:
        if mine := _done(results, group):
            table = _rich(f"{_heading(group, mine)}: {_count(mine)}", STANDING)
            for line in standings(mine):
                style = "bold" if line.family == OURS else None
                table.add_row(*_standing_cells(line), style=style)
            found.append(table)
    return found


def _count(results: Sequence[SetResult]) -> str:
    return "1 set" if len(results) == 1 else f"{len(results)} sets"


def _rich(title: str, header: Sequence[str], caption: str = "") -> "RichTable":
    from rich.box import SIMPLE
    from rich.table import Table as RichTable

    table = RichTable(
        title=title, title_justify="left", caption=caption, caption_justify="left", box=SIMPLE,
        pad_edge=False,
    )  # fmt: skip
    for at, word in enumerate(header):
        table.add_column(word, justify="right" if at else "left")
    return table


def _done(results: Sequence[SetResult], group: str | None = None) -> list[SetResult]:
    """Return the sets of a group, or of all, that were not skipped."""
    return [r for r in results if not r.skipped and group in (None, r.group)]


def _heading(group: str, results: Sequence[SetResult]) -> str:
    """Name a group, and say so if its data are made up."""
    simulated = any(result.simulated for result in results)
    return f"{GROUPS[group]} (simulated)" if simulated else GROUPS[group]


def _shape(result: SetResult) -> str:
    (n, columns), (new, strange) = result.shape, result.counts
    days = f" on {len(result.parts)} days" if result.parts else ""
    return f"{n} rows, {columns} columns; {new} new, {strange} strange{days}"


def _alarmed(result: SetResult) -> str:
    """Say how often a p-value of at most 0.01 is given, and to which rows."""
    alarms = result.alarms
    if alarms is None:
        return ""
    words = (
        f"p-value at most {novelty.LEVEL:g}: {alarms.strange:.1%} of the strange rows,"
        f" {alarms.normal:.1%} of the normal ones."
    )
    if alarms.loud is None or alarms.normal_beside_loud is None:
        return words
    return (
        f"{words} Of {alarms.n_loud} loud minutes {alarms.loud:.1%}, beside"
        f" {alarms.normal_beside_loud:.1%} of the normal minutes of the same days."
    )


def _cells(row: novelty.Row) -> list[str]:
    if row.failure:
        return [row.name, "failed", "", "", "", ""]
    auc, precision = float(np.std(row.auc)), float(np.std(row.precision))
    return [
        row.name, f"{row.mean_auc:.4f}", f"{auc:.4f}", f"{row.mean_precision:.4f}",
        f"{precision:.4f}", f"{row.seconds:.2f}",
    ]  # fmt: skip


def _standing_cells(line: Standing) -> list[str]:
    sets = f"{line.n_sets} of {line.total}"
    if math.isnan(line.rank):
        return [line.name, "-", "-", "-", "-", sets]
    return [
        line.name, f"{line.rank:.2f}", f"{line.auc:.4f}", f"{line.precision:.4f}",
        f"{line.seconds:.2f}", sets,
    ]  # fmt: skip


def _figures(results: Sequence[SetResult], seeds: Sequence[int], seconds: float) -> dict[str, Any]:
    """Return every number, ready for JSON."""
    groups = {}
    for group in GROUPS:
        if mine := _done(results, group):
            groups[group] = {
                "title": _heading(group, mine),
                "n_sets": len(mine),
                "simulated": any(result.simulated for result in mine),
                "standings": [_finite(line._asdict()) for line in standings(mine)],
            }
    return {
        "protocol": PROTOCOL,
        "seeds": list(seeds),
        "versions": versions(PACKAGES),
        "seconds": seconds,
        "groups": groups,
        "sets": [novelty.figures(result) for result in results],
    }


def _finite(line: dict[str, Any]) -> dict[str, Any]:
    return {
        key: None if isinstance(value, float) and math.isnan(value) else value
        for key, value in line.items()
    }


def _picture(results: Sequence[SetResult]) -> Picture | None:
    """Draw all sets, if there is anything to draw and matplotlib to draw it."""
    shown = [
        plots.AreaGroup(
            _heading(group, mine),
            [result.title for result in mine],
            [None if result.ours is None else result.ours.mean_auc for result in mine],
            [[row.mean_auc for row in result.ran if row.family == PEER] for result in mine],
        )
        for group in GROUPS
        if (mine := _done(results, group))
    ]
    if not shown or find_spec("matplotlib") is None:
        return None
    return Picture(
        plots.area_chart(shown, METHOD),
        "Areas under the ROC curve of all detectors on all sets",
        "A line a set. The number is ours; the dashed line is chance.",
    )


def _page(results: Sequence[SetResult], told: dict[str, Any], picture: Picture | None) -> str:
    """Put the picture, the standings and a table for each set together."""
    skipped = [f"{r.title} was skipped: {r.skipped}." for r in results if r.skipped]
    done = _done(results)
    made = ", ".join(f"{name} {number}" for name, number in told["versions"].items())
    return build_page(
        "Novelty detection",
        [
            Section("How it was measured", [*PROTOCOL.values(), _seeds(told["seeds"]), *skipped]),
            *(_group(group, mine) for group in GROUPS if (mine := _done(results, group))),
            Section("Every set", [], [_table(result) for result in done]),
            _settings(done),
        ],
        lead="Detectors that have seen only normal rows rank new rows from strange to normal:"
        f" {METHOD} with all defaults, beside those of scikit-learn and PyOD.",
        facts=_facts(results),
        hero=picture,
        footer=f"Made by outsample bench novelty on this computer, {told['seconds'] / 60:.0f}"
        f" minutes. {made}.",
    )


def _seeds(seeds: Sequence[int]) -> str:
    if len(seeds) == 1:
        return f"One seed, {seeds[0]}: figures have no spread."
    return f"Seeds: {', '.join(map(str, seeds))}. ± is the standard deviation over them."


def _facts(results: Sequence[SetResult]) -> list[tuple[str, str]]:
    """Our mean rank on each group, beside the best of the others."""
    found = []
    for group in GROUPS:
        mine = _done(results, group)
        lines = [line for line in standings(mine) if not math.isnan(line.rank)]
        ours = next((line for line in lines if line.family == OURS), None)
        peer = next((line for line in lines if line.family == PEER), None)
        if ours is not None and peer is not None:
            words = f"mean rank of {len(lines)}; the best other is {peer.name}, {peer.rank:.2f}"
            found.append((f"{ours.rank:.2f}", f"{_heading(group, mine)}: {words}"))
    return found


def _group(group: str, results: Sequence[SetResult]) -> Section:
    lines = standings(results)
    ours = frozenset(at for at, line in enumerate(lines) if line.family == OURS)
    table = Table(STANDING, [_standing_cells(line) for line in lines], highlight=ours)
    summary = Table(SUMMARY, [_summary(result) for result in results], ALARMS)
    words = [f"{r.title}: {_alarmed(r)}" for r in results if r.alarms and r.alarms.n_loud]
    return Section(_heading(group, results), words, [table, summary])


ALARMS = f"False alarms: share of the normal new rows with a p-value of at most {novelty.LEVEL:g}."


def _summary(result: SetResult) -> list[str]:
    ours, peer, alarms = result.ours, result.best_peer, result.alarms
    return [
        result.title,
        *(str(count) for count in (*result.shape, *result.counts)),
        "failed" if ours is None else f"{ours.mean_auc:.4f}",
        *(["-", "-"] if peer is None else [f"{peer.mean_auc:.4f}", peer.name]),
        "-" if alarms is None else f"{alarms.normal:.1%}",
    ]


def _table(result: SetResult) -> Table:
    ours = frozenset(at for at, row in enumerate(result.rows) if row.family == OURS)
    failed = [f"{row.name} failed. {row.failure}." for row in result.rows if row.failure]
    words = " ".join([f"{result.title}: {_shape(result)}.", *failed])
    return Table(ROWS, [_cells(row) for row in result.rows], words, ours)


def _settings(results: Sequence[SetResult]) -> Section:
    """Say once how each detector was set up."""
    notes = {row.name: row.note for result in results for row in result.rows if row.note}
    return Section("Settings", [f"{name}: {note}." for name, note in notes.items()])
