"""`outsample bench novelty`: measure, write the results, and draw them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from outsample.report.page import Table, check_writable
from outsample_lab.bench_files import EXACT, Bench, Benchmark, PathLike, fields_of
from outsample_lab.environment import versions
from outsample_lab.json_records import plain, restored
from outsample_lab.novelty import novelty_page
from outsample_lab.novelty import ranking as novelty
from outsample_lab.novelty.detectors import detectors
from outsample_lab.novelty.set_result import DetectorRow, NoveltyRun, SetResult
from outsample_lab.novelty.splits import FLOODED, IMAGES, JUNK_ROWS, NEW_ROWS, QUICK, TRAINING_ROWS
from outsample_lab.novelty.standings import grouped
from outsample_lab.progress import Progress
from outsample_lab.traffic.loud import FLOODS_AND_SCANS, LOUD_CONNECTIONS

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "pyod", "torch")
PROTOCOL = {
    "all": "Every detector learns from the same normal rows, then ranks the same new rows, some"
    " normal and some anomalous, on one thread. Figures are the area under the ROC curve and the"
    " average precision, means over the seeds. A detector that fails on a set has no figure there"
    " and the last rank on that set; a detector that runs on no set of a group is not ranked.",
    "outliers": "Outlier sets: a random half of the normal rows for training, the other half and"
    f" all outliers as new rows; at most {TRAINING_ROWS} training rows and {NEW_ROWS} new rows,"
    " both classes sampled at the same rate. Columns are standardised by the training rows; a"
    " column that is constant in them is set to 0. Some sets contain duplicate rows, so a new row"
    " can equal a training row.",
    "images": "Digits and MNIST: half of nine classes for training, the other half and the whole"
    f" tenth class as new rows, for MNIST at most {TRAINING_ROWS} and {IMAGES}. Grey values"
    " from 0 to 1, not standardised. One seed for MNIST, three for the others.",
    "fresh": "Sets that were not used to choose the score: the constants of NoveltyDetector() were"
    " chosen by AUC on outlier sets and digits; NSL-KDD was inspected during development. COIL-20"
    " as the digits, each object held out in turn; NSL-KDD with its numeric columns, log(1 + x),"
    " standardised, normal rows of its training file for training, and its test file.",
    "junk": f"Non-digit images: half of all images for training; {JUNK_ROWS} images of each kind"
    " against the other half: constant with a random grey value, a real image times 10, uniform"
    " noise, a real image with shuffled pixels.",
    "darpa": "Network traffic, DARPA 1998: 14 counts of each minute with traffic, log(1 + x),"
    " standardised by the training rows. One quiet day for training, then every later day with at"
    " least 3 minutes of either class, each separately; the figure is the mean over the days."
    f" Omitted: {', '.join(FLOODED)}, on which one attack runs in nearly every minute. Loud minutes"
    f" have more than {LOUD_CONNECTIONS} connections of {', '.join(FLOODS_AND_SCANS)}. Only the"
    " detectors depend on the seed, not the days.",
}


def run_novelty(
    out_dir: PathLike,
    *,
    names: Sequence[str] = (),
    quick: bool = False,
    folder: Path | None = None,
    listed: Sequence[str] = (),
    progress: Progress | None = None,
    show: Callable[[str, Table | None], None] | None = None,
) -> Benchmark:
    """Measure, and write ``novelty.json``, ``novelty.png`` and ``novelty.html``."""
    # `quick` selects a few small sets, unless others are named, and one seed; `listed` names
    # detectors; `show` receives a title and a table of each set as soon as it is measured.
    sources, lines = novelty.select(names or (QUICK if quick else ())), detectors(listed)
    check_writable(out_dir)
    seeds = (0,) if quick else (0, 1, 2)
    on_set = None if show is None else lambda result: show(*novelty_page.set_report(result))
    begin = perf_counter()
    with threadpool_limits(1):  # as our own code, so that times are comparable
        sets = novelty.run(sources, seeds, folder, listed=lines, progress=progress, on_set=on_set)
    run = NoveltyRun(PROTOCOL, seeds, versions(PACKAGES), perf_counter() - begin, sets)
    return NOVELTY.write(out_dir, run)


def run_record(run: NoveltyRun) -> dict[str, Any]:
    """Return a run as plain values for JSON, including the statistics derived from its rows."""
    groups = {
        name: {
            "title": group.title,
            "n_sets": len(group.sets),
            "simulated": group.simulated,
            "standings": plain(group.standings, EXACT),
        }
        for name, group in grouped(run.sets).items()
    }
    sets = [_set_record(result) for result in run.sets]
    return plain(run._replace(sets=()), EXACT) | {"groups": groups, "sets": sets}


def restored_run(saved: dict[str, Any]) -> NoveltyRun:
    """Return the run of a record of `run_record`."""
    sets = [
        fields_of(SetResult, record)
        | {"rows": [fields_of(DetectorRow, row) for row in record.get("rows", ())]}
        for record in saved["sets"]
    ]
    run: NoveltyRun = restored(NoveltyRun, fields_of(NoveltyRun, saved) | {"sets": sets})
    return run


def _set_record(result: SetResult) -> dict[str, Any]:
    start = {"name": result.name, "title": result.title, "group": result.group}
    if result.skipped:
        return start | {"skipped": result.skipped}
    ours, peer = result.ours, result.best_peer
    derived = {
        "ours": None if ours is None else ours.auc,
        "best_peer": None if peer is None else peer.name,
        "best_peer_auc": None if peer is None else peer.auc,
        "rows": [_row_record(row) for row in result.rows],
    }
    return plain(result._replace(rows=()), EXACT) | plain(derived, EXACT)


def _row_record(row: DetectorRow) -> dict[str, Any]:
    record = row._asdict()
    if row.failure:
        return record
    auc, precision = row.spreads
    means = {"auc": row.auc, "precision": row.precision}
    return record | means | {"auc_spread": auc, "precision_spread": precision}


NOVELTY = Bench(
    "novelty", run_novelty, run_record, restored_run,
    tables=lambda run: novelty_page.standing_tables(run.sets),
    picture=lambda run: novelty_page.area_picture(run.sets), page=novelty_page.novelty_page,
)  # fmt: skip
