"""`outsample bench accuracy`: measure, write the results, and draw them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from outsample.comparison.holdout import ComparisonRow
from outsample.report.page import Table, check_writable
from outsample_lab.accuracy import errors as accuracy
from outsample_lab.accuracy.accuracy_page import accuracy_page, map_report, ratios, summary_table
from outsample_lab.accuracy.map_result import AccuracyRun, MapResult, MapRow
from outsample_lab.accuracy.maps import QUICK, SPHERE
from outsample_lab.bench_files import EXACT, Bench, Benchmark, PathLike, fields_of
from outsample_lab.environment import versions
from outsample_lab.json_records import plain, restored
from outsample_lab.progress import Progress

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "umap-learn", "openTSNE")
PROTOCOL = (
    "Each map is computed from all points. The coordinates of a random fifth are held out and"
    " predicted from the other points. A figure is the mean distance to the true position divided"
    " by the root mean square size of the map, averaged over the splits. On the sphere the new"
    " points are random, and the mean distance is not divided. Every method runs on one thread."
)


def run_accuracy(
    out_dir: PathLike,
    *,
    names: Sequence[str] = (),
    quick: bool = False,
    folder: Path | None = None,
    progress: Progress | None = None,
    show: Callable[[str, Table | None], None] | None = None,
) -> Benchmark:
    """Measure, and write ``accuracy.json``, ``accuracy.png`` and ``accuracy.html``."""
    # `quick` selects three small maps, unless others are named, and one split; `show` receives a
    # title and a table of each map as soon as it is measured.
    maps = accuracy.select(names or (QUICK if quick else ()))
    check_writable(out_dir)
    seeds = (0,) if quick else (0, 1, 2)
    on_map = None if show is None else lambda result: show(*map_report(result))
    begin = perf_counter()
    with threadpool_limits(1):  # as our own code, so that times are comparable
        results = accuracy.run(maps, seeds, folder, progress, on_map)
    run = AccuracyRun(PROTOCOL, seeds, versions(PACKAGES), perf_counter() - begin, results)
    return ACCURACY.write(out_dir, run)


def run_record(run: AccuracyRun) -> dict[str, Any]:
    """Return a run as plain values for JSON, including the statistics derived from its rows."""
    maps = [_map_record(result) for result in run.maps]
    return plain(run._replace(maps=()), EXACT) | {"maps": maps}


def restored_run(saved: dict[str, Any]) -> AccuracyRun:
    """Return the run of a record of `run_record`."""
    maps = [_restored_map(record) for record in saved["maps"]]
    return restored(AccuracyRun, fields_of(AccuracyRun, saved) | {"maps": []})._replace(maps=maps)


def _map_record(result: MapResult) -> dict[str, Any]:
    start = {"name": result.name, "title": result.title, "kind": result.kind}
    if result.skipped:
        return start | {"skipped": result.skipped}
    rows = [
        plain(row.result, EXACT) | {"family": row.family, "parameters": row.parameters}
        for row in result.rows
    ]
    ours, peer = result.ours, result.best_peer
    derived = {
        "error": "absolute" if result.kind == SPHERE else "over the size of the map",
        "ours": None if ours is None else ours.error,
        "best_peer": None if peer is None else peer.name,
        "target": result.target,
        "met": result.met,
    }
    return plain(result._replace(rows=()), EXACT) | plain(derived, EXACT) | {"rows": rows}


def _restored_map(saved: dict[str, Any]) -> MapResult:
    rows = [
        MapRow(restored(ComparisonRow, fields_of(ComparisonRow, row)), row["family"],
               row["parameters"])
        for row in saved.get("rows", ())
    ]  # fmt: skip
    return restored(MapResult, fields_of(MapResult, saved) | {"rows": []})._replace(rows=rows)


ACCURACY = Bench(
    "accuracy", run_accuracy, run_record, restored_run,
    tables=lambda run: [("Summary", summary_table(run.maps))],
    picture=lambda run: ratios(run.maps), page=accuracy_page,
)  # fmt: skip
