"""What `outsample bench accuracy` does: measure, then write figures, a picture and a page."""

import json
import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from outsample import plots
from outsample.comparison.compare import Comparison
from outsample.lab.accuracy import errors as accuracy
from outsample.lab.accuracy.errors import MapResult, Progress
from outsample.lab.accuracy.maps import QUICK
from outsample.lab.accuracy.peers import OURS, PEER
from outsample.lab.environment import versions
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

__all__ = ["Benchmark", "map_table", "run_accuracy", "summary_table"]

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "umap-learn", "openTSNE")
PROTOCOL = (
    "Each map is made of all points. The images of a random fifth are hidden and placed again from"
    " the points and the rest of the map; a figure is the mean distance from the true image over"
    " the root mean square size of the map, the mean of the splits. On the sphere the new points"
    " are drawn at random, and the mean distance is not divided. Every method runs on one thread."
)
BARS = (
    "Other: the best of the other methods. Bars: share of points within the error bar of"
    " PCAExtension(), which promises 90 %."
)
SUMMARY = ("Map", "Ours", "Other", "which", "Target", "met", "bars")


class Benchmark(NamedTuple):
    """What was found, and the files that show it."""

    results: list[MapResult]
    seconds: float
    files: list[Path]


def run_accuracy(
    out_dir: str | os.PathLike[str],
    *,
    names: Sequence[str] = (),
    quick: bool = False,
    folder: Path | None = None,
    progress: Progress | None = None,
    on_map: Callable[[MapResult], None] | None = None,
) -> Benchmark:
    """Run the benchmark and write ``accuracy.json``, ``accuracy.png`` and ``accuracy.html``.

    Parameters
    ----------
    out_dir : path-like
        Folder of the files, made if missing.
    names : sequence of str
        Maps, by name or its beginning; all if there are none.
    quick : bool, default=False
        Three small maps, unless others are named, and one split.
    folder : Path, optional
        Where the data files are.
    progress, on_map : callable, optional
        As in `outsample.lab.accuracy.errors.run`.

    Returns
    -------
    Benchmark

    Raises
    ------
    OSError
        If the folder cannot be written; found out before the work begins.
    ValueError
        If there is no map of a name.
    """
    maps = accuracy.select(names or (QUICK if quick else ()))
    check_writable(out_dir)
    seeds = (0,) if quick else (0, 1, 2)
    begin = perf_counter()
    with threadpool_limits(1):  # ours runs on one thread too, so that times compare
        results = accuracy.run(maps, seeds, folder, progress, on_map)
    seconds = perf_counter() - begin
    figures = _figures(results, seeds, seconds)
    text = json.dumps(figures, indent=2, allow_nan=False) + "\n"
    files = [write_file(Path(out_dir) / "accuracy.json", text.encode())]
    picture = _picture(results)
    if picture is not None:
        files.append(write_file(Path(out_dir) / "accuracy.png", picture.data))
    page = _page(results, figures["versions"], picture)
    files.append(write_page(Path(out_dir) / "accuracy.html", page))
    return Benchmark(results, seconds, files)


def map_table(result: MapResult) -> "RichTable":
    """Lay one map's rows out for a terminal.

    Parameters
    ----------
    result : MapResult
        A map that was not skipped.

    Returns
    -------
    rich.table.Table
    """
    from rich.box import SIMPLE
    from rich.table import Table as RichTable

    table = RichTable(
        title=f"{result.spec.title}: {_shape(result)}", title_justify="left",
        caption=_covered(result), caption_justify="left", box=SIMPLE, pad_edge=False,
    )  # fmt: skip
    for at, word in enumerate(Comparison.header()):
        table.add_column(word, justify="right" if at else "left")
    for row in result.rows:
        cells = Comparison.cells(row.result)
        if row.result.failure:
            cells[0] += f"\n{row.result.failure}"
        table.add_row(*cells, style="bold" if row.family == OURS else None)
    return table


def summary_table(results: Sequence[MapResult]) -> "RichTable":
    """Lay out one line a map: ours, the best other method, the target.

    Parameters
    ----------
    results : sequence of MapResult
        What was found.

    Returns
    -------
    rich.table.Table
    """
    from rich.box import SIMPLE
    from rich.table import Table as RichTable

    table = RichTable(title="Summary", title_justify="left", box=SIMPLE, pad_edge=False)
    for at, word in enumerate(SUMMARY):
        table.add_column(word, justify="right" if at in (1, 2, 4, 6) else "left")
    for result in results:
        table.add_row(*_summary(result))
    return table


def _summary(result: MapResult) -> list[str]:
    ours, peer = result.ours, result.best_peer
    if ours is None:
        return [result.spec.title, "skipped", "", "", "", "", ""]
    target = "lowest" if result.spec.target is None else f"{result.spec.target:g}"
    best = ["-", "-"] if peer is None else [f"{peer.error:#.3g}", peer.name]
    covered = "-" if result.coverage is None else f"{100 * result.coverage:.1f} %"
    met = "yes" if result.met else "no"
    return [result.spec.title, f"{ours.error:#.3g}", *best, target, met, covered]


def _shape(result: MapResult) -> str:
    n, columns, d = result.shape
    return f"{n} points, {columns} to {d} dimensions"


def _covered(result: MapResult) -> str:
    if result.coverage is None:
        return ""
    share = f"{100 * result.coverage:.1f} %"
    return f"The error bars of PCAExtension() hold {share} of the points; 90 % are promised."


def _figures(results: Sequence[MapResult], seeds: Sequence[int], seconds: float) -> dict[str, Any]:
    """Return every number, ready for JSON."""
    return {
        "protocol": PROTOCOL,
        "seeds": list(seeds),
        "versions": versions(PACKAGES),
        "seconds": seconds,
        "maps": [accuracy.figures(result) for result in results],
    }


def _picture(results: Sequence[MapResult]) -> Picture | None:
    """Draw all maps, if there is anything to draw and matplotlib to draw it."""
    shown = [result for result in results if result.ours and result.best_peer]
    if not shown or find_spec("matplotlib") is None:
        return None
    errors = [
        [row.result.error for row in result.rows if row.family == PEER and not row.result.failure]
        for result in shown
    ]
    ours = [result.ours.error for result in shown if result.ours]
    labels = [result.spec.title for result in shown]
    return Picture(plots.ratio_chart(labels, ours, errors), "Errors of all methods on all maps")


def _page(results: Sequence[MapResult], found: dict[str, str], picture: Picture | None) -> str:
    """Put the summary, the picture and a section for each map together."""
    done = [result for result in results if not result.skipped]
    met = sum(result.met for result in done)
    first = sum(
        result.ours.error <= result.best_peer.error
        for result in done
        if result.ours and result.best_peer
    )
    skipped = [f"{r.spec.title} was skipped: {r.skipped}." for r in results if r.skipped]
    summary = Table(SUMMARY, [_summary(result) for result in done], BARS)
    made = ", ".join(f"{name} {number}" for name, number in found.items())
    return build_page(
        "Accuracy of extensions",
        [
            Section("All maps", [PROTOCOL, *skipped], [summary], [picture] if picture else []),
            *map(_section, done),
            _settings(done),
        ],
        lead="Points whose true place on the map is known are hidden and placed again: by"
        " PCAExtension() with all defaults, by the paper's weights, and by other methods.",
        facts=[
            (f"{met} of {len(done)}", "targets met"),
            (f"{first} of {len(done)}", "maps on which no other method is nearer to the truth"),
        ],
        footer=f"Made by outsample bench accuracy on this computer. {made}.",
    )


def _section(result: MapResult) -> Section:
    ours = frozenset(at for at, row in enumerate(result.rows) if row.family == OURS)
    made = f"made in {result.map_seconds:.1f} s"
    words = [f"{_shape(result)}; {made}. {_covered(result)}"]
    if result.chosen:
        words.append(f"PCAExtension() chose: {'; '.join(dict.fromkeys(result.chosen))}.")
    words += [
        f"{row.result.name} failed. {row.result.failure}." for row in result.rows
        if row.result.failure
    ]  # fmt: skip
    rows = [Comparison.cells(row.result) for row in result.rows]
    return Section(result.spec.title, words, [Table(Comparison.header(), rows, highlight=ours)])


def _settings(results: Sequence[MapResult]) -> Section:
    """Say once how each method was set up."""
    notes = {row.result.name: row.note for result in results for row in result.rows if row.note}
    return Section("Settings", [f"{name}: {note}." for name, note in notes.items()])
