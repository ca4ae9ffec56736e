"""`outsample bench speed`: measure, write the results, and draw them."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from outsample.report.page import Table, check_writable
from outsample_lab.bench_files import EXACT, Bench, Benchmark, PathLike
from outsample_lab.environment import versions
from outsample_lab.json_records import plain, restored
from outsample_lab.progress import Progress
from outsample_lab.speed import parts, sizes
from outsample_lab.speed.speed_page import (
    load_words,
    part_report,
    speed_page,
    summary_tables,
    target_picture,
)
from outsample_lab.speed.speed_result import SpeedRun

PACKAGES = (
    "numpy", "scipy", "scikit-learn", "numba", "faiss-cpu", "umap-learn", "openTSNE", "dask",
)  # fmt: skip
PROTOCOL = (
    f"Compared programs run alternately, after one turn that is not counted; a ratio is the median"
    f" of the ratios of all turns, with its quartiles. Programs use {sizes.JOBS} threads and 15"
    " neighbours unless stated otherwise. Ratios are our time divided by the other."
)


def run_speed(
    out_dir: PathLike,
    *,
    names: Sequence[str] = (),
    quick: bool = False,
    folder: Path | None = None,
    progress: Progress | None = None,
    show: Callable[[str, Table | None], None] | None = None,
) -> Benchmark:
    """Measure, and write ``speed.json``, ``speed.png`` and ``speed.html``."""
    # `quick` uses small sizes and omits slow parts, unless they are named; `show` receives a title
    # and a table of each part as soon as it is measured.
    selected = parts.select(names, quick)
    check_writable(out_dir)
    empty = SpeedRun(PROTOCOL, quick, os.cpu_count() or 1, _load(), versions(PACKAGES), 0.0, [])
    if show is not None and empty.busy:
        show(f"Warning: {load_words(empty)}", None)
    on_part = None if show is None else lambda result: show(*part_report(result))
    begin = perf_counter()
    with threadpool_limits(sizes.JOBS):
        size = sizes.QUICK if quick else sizes.FULL
        results = parts.run_parts(selected, size, folder, progress, on_part)
    return SPEED.write(out_dir, empty._replace(seconds=perf_counter() - begin, parts=results))


def _load() -> float:
    """Return the load average of the last minute; 0 if unknown."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def run_record(run: SpeedRun) -> dict[str, Any]:
    """Return a run as plain values for JSON, including which targets were reached."""
    payload: dict[str, Any] = plain(run, EXACT)
    for part, result in zip(payload["parts"], run.parts, strict=True):
        for target, record in zip(part["targets"], result.targets, strict=True):
            target["met"] = record.met
    return payload


def restored_run(saved: dict[str, Any]) -> SpeedRun:
    """Return the run of a record of `run_record`."""
    cut = [
        part | {"targets": [{key: target[key] for key in target if key != "met"}
                            for target in part["targets"]]}
        for part in saved["parts"]
    ]  # fmt: skip
    run: SpeedRun = restored(SpeedRun, saved | {"parts": cut})
    return run


SPEED = Bench(
    "speed", run_speed, run_record, restored_run, tables=summary_tables, picture=target_picture,
    page=speed_page,
)  # fmt: skip
