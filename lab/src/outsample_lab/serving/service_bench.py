"""`outsample bench service`: latency and throughput of a service under load."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from outsample import save
from outsample.report.page import Table, check_writable
from outsample_lab.bench_files import EXACT, Bench, Benchmark, PathLike
from outsample_lab.environment import versions
from outsample_lab.json_records import plain, restored
from outsample_lab.progress import Progress
from outsample_lab.serving import measures
from outsample_lab.serving.service_page import load_table, service_page, target_picture
from outsample_lab.serving.service_process import ServiceProcess
from outsample_lab.serving.service_result import LoadRow, ServiceRun
from outsample_lab.serving.unruly_clients import WORDS
from outsample_lab.speed.speed_page import target_table

PACKAGES = ("numpy", "scikit-learn", "numba", "fastapi", "uvicorn", "uvloop", "orjson", "pyarrow")
PROTOCOL = [
    "The service runs in a process of its own, those who ask in another, on the same machine. They"
    " ask for one row, each, by a timetable, whatever becomes of the requests before; times count"
    " from when a request was due. Capacity is what is answered when"
    f" {measures.CLIENTS} clients ask without a pause.",
    f"Unruly: {WORDS}. They take turns with none of them.",
]


def run_service(
    out_dir: PathLike,
    *,
    quick: bool = False,
    folder: Path | None = None,
    progress: Progress | None = None,
    show: Callable[[str, Table | None], None] | None = None,
) -> Benchmark:
    """Measure, and write ``service.json``, ``service.png`` and ``service.html``."""
    # `folder`, of data, is not needed: the points are made up.
    check_writable(out_dir)
    lengths, begin = measures.QUICK if quick else measures.FULL, perf_counter()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    rows: list[LoadRow] = []

    def tell(row: LoadRow) -> None:
        rows.append(row)
        if show is not None:
            show(row.name, load_table([row]))

    def step(share: float, what: str) -> None:
        if progress is not None:
            progress(share, what)

    step(0.0, "fits a model")
    model = measures.fitted(lengths)
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "model.outsample"
        save(model, path)
        with ServiceProcess(path, "--no-learn") as service:
            row, many = (rng.normal(size=(q, lengths.columns)) for q in (1, lengths.rows))
            ground = measures.Ground(service, model, row, many)
            step(0.05, "one row, many rows")
            targets = [measures.one_row(ground), measures.many_rows(ground, lengths.turns)]
            step(0.15, "capacity")
            rate = measures.capacity(ground, lengths.capacity)
            step(0.2, "80 % of capacity")
            measured, usual = measures.below_capacity(ground, rate, lengths.below, tell)
            targets += measured
            step(0.7, "300 % of capacity")
            targets += measures.above_capacity(
                ground, rate, lengths.above, lengths.after, usual, tell
            )
            step(0.8, "unruly clients")
            targets.append(
                measures.among_unruly_clients(
                    ground, rate, lengths.among, lengths.among_turns, tell
                )
            )
    step(1.0, "done")
    run = ServiceRun(
        PROTOCOL, quick, os.cpu_count() or 1, load, versions(PACKAGES), perf_counter() - begin,
        rate, targets, rows,
    )  # fmt: skip
    return SERVICE.write(out_dir, run)


def run_record(run: ServiceRun) -> dict[str, Any]:
    """Return a run as plain values for JSON, including which targets were reached."""
    payload: dict[str, Any] = plain(run, EXACT)
    for target, record in zip(payload["targets"], run.targets, strict=True):
        target["met"] = record.met
    return payload


def restored_run(saved: dict[str, Any]) -> ServiceRun:
    """Return the run of a record of `run_record`."""
    cut = [{key: each[key] for key in each if key != "met"} for each in saved["targets"]]
    run: ServiceRun = restored(ServiceRun, saved | {"targets": cut})
    return run


SERVICE = Bench(
    "service", run_service, run_record, restored_run,
    tables=lambda run: [("Loads", load_table(run.loads)),
                        ("Figures to reach", target_table(run.targets))],
    picture=target_picture, page=service_page,
)  # fmt: skip
