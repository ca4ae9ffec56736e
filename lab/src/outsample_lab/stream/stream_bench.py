"""`outsample bench stream`: learners on days of traffic in order."""

from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from outsample.report.page import Table, check_writable
from outsample_lab.bench_files import EXACT, Bench, Benchmark, PathLike, fields_of
from outsample_lab.environment import versions
from outsample_lab.json_records import plain, restored
from outsample_lab.progress import Progress, RunProgress, step_by_step
from outsample_lab.stream import stream_page
from outsample_lab.stream.arriving_days import EPISODE_GAP, FLOODED_FROM, arrivals
from outsample_lab.stream.learners import WINDOW, learners
from outsample_lab.stream.replaying import BATCH, chance, replayed
from outsample_lab.stream.stream_result import LEVEL, DayResult, LearnerRow, StreamRun
from outsample_lab.traffic.loud import LOUD_CONNECTIONS

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "river")
QUICK_DAYS = 4
PROTOCOL = {
    "days": "DARPA 1998: 14 counts of each minute with traffic, log(1 + x), standardised by the"
    " first day. Learners are fitted to the first day; the other days arrive in order,"
    f" {BATCH} minutes at a time, and each batch is scored before it is learned. Labels are not"
    f" used. Memory is limited to the last {WINDOW} minutes, about five days.",
    "figures": f"An alarm is a p-value of at most {LEVEL:g}; false alarms are those of minutes"
    " without any connection of an attack. An episode is a run of minutes with at least"
    f" {LOUD_CONNECTIONS} connections of attacks, at most {EPISODE_GAP} minutes apart; its"
    " delay is the time to the first alarm within it. Average precision ranks all minutes by"
    " p-value, and by score among equal p-values; or by score alone; or within each day with"
    " attacks by p-value, averaged over these days. A ranking of all minutes is largely a ranking"
    " of days: the share of minutes with attacks varies from 0 to 87 % between days.",
    "excluded": f"From {FLOODED_FROM} on one attack runs in nearly every minute: these days are"
    " replayed and listed, but not part of any summary.",
    "choice": "The rule that a run of unusual arrivals updates the calibration only once was chosen"
    " on these days, so the figures of StreamingExtension are optimistic. The delay before arrivals"
    " become neighbours, and higher guards, were first tried on these days, but chosen on other"
    " streams: the outlier sets and KDD Cup 1999.",
}


def run_stream(
    out_dir: PathLike,
    *,
    quick: bool = False,
    folder: Path | None = None,
    progress: Progress | None = None,
    show: Callable[[str, Table | None], None] | None = None,
) -> Benchmark:
    """Measure, and write ``stream.json``, ``stream.png`` and ``stream.html``."""
    # `quick` selects the first days; `show` receives a title and a table of each learner.
    check_writable(out_dir)
    arriving = arrivals(folder, QUICK_DAYS if quick else None)
    entries, missing = learners()
    begin, rows = perf_counter(), []
    run_progress = RunProgress(progress, dict.fromkeys((entry.name for entry in entries), 1.0))
    with threadpool_limits(1):
        for entry in entries:
            on_day = step_by_step(run_progress.part(entry.name), len(arriving.days) - 1, entry.name)
            rows.append(replayed(entry, arriving, on_day))
            if show is not None:
                show(f"{entry.name}, day by day", stream_page.day_table(rows[-1]))
    run_progress.finish()
    run = StreamRun(
        PROTOCOL, arriving.traffic.simulated, len(arriving.X), versions(PACKAGES),
        perf_counter() - begin, rows, missing, chance(arriving),
    )  # fmt: skip
    return STREAM.write(out_dir, run)


def run_record(run: StreamRun) -> dict[str, Any]:
    """Return a run as plain values for JSON, including the statistics derived from its rows."""
    return plain(run._replace(rows=()), EXACT) | {"rows": [_row_record(row) for row in run.rows]}


def restored_run(saved: dict[str, Any]) -> StreamRun:
    """Return the run of a record of `run_record`."""
    rows = [
        fields_of(LearnerRow, row) | {"days": [fields_of(DayResult, day) for day in row["days"]]}
        for row in saved["rows"]
    ]
    run: StreamRun = restored(StreamRun, fields_of(StreamRun, saved) | {"rows": rows})
    return run


def _row_record(row: LearnerRow) -> dict[str, Any]:
    worst = row.worst
    derived = {
        "median_rate": row.median_rate,
        "worst_day": None if worst is None else worst.day,
        "worst_rate": None if worst is None else worst.rate,
        "episodes": len(row.delays),
        "at_once": row.at_once,
    }
    return plain(row, EXACT) | plain(derived, EXACT)


STREAM = Bench(
    "stream", run_stream, run_record, restored_run,
    tables=lambda run: [("Days in their order", stream_page.summary_table(run))],
    picture=stream_page.rate_picture, page=stream_page.stream_page,
)  # fmt: skip
