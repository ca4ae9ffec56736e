"""Streams and several processes: memory of a stream, Dask, cold starts."""

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import outsample
from outsample_lab.speed import made_up
from outsample_lab.speed.errands import in_fresh_process
from outsample_lab.speed.exact_search import fitted
from outsample_lab.speed.made_up import TRAFFIC
from outsample_lab.speed.sizes import Ground, absent
from outsample_lab.speed.speed_result import PartResult, Target, Timing
from outsample_lab.speed.stopwatch import quartiles

TRAINING = 2000  # Points of the model that places a stream
PEAK_MB = 300.0
N_FILES = 20  # Files of rows that Dask places
COLD_RUNS = 5


def stream_memory(ground: Ground) -> PartResult:
    """Measure the memory of placing a memory-mapped file in chunks."""
    title, (n_first, many) = "Memory of a stream", ground.sizes.stream
    tasks = {n: f"{n:,} rows of a memory map through place: extra memory"
             for n in (n_first, many)}  # fmt: skip
    same = f"the same, {many:,} rows over {n_first:,}"
    targets, timings, peaks = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        model, points = Path(folder) / "model", Path(folder) / "points.npy"
        data = made_up.cloud(TRAFFIC, TRAINING, 10)
        outsample.save(fitted("distance", data), model)
        _write_rows(points, many)
        for at, (n, words) in enumerate(tasks.items()):
            ground.tell(0.1 + 0.8 * at / 2, f"{n:,} rows of a memory map")
            chunk = ground.sizes.stream_chunk
            result = in_fresh_process(
                "stream", path=str(model), points=str(points), rows=n, chunk=chunk
            )
            note = f"{result['rows'] / result['seconds']:,.0f} rows per second"
            peaks.append(result["peak"])
            targets.append(Target(words, PEAK_MB, result["peak"], unit="MB", note=note))
            where = f"n = {TRAINING:,}, D = {TRAFFIC.D}, {n:,} rows in chunks of {chunk:,}"
            timings.append(_once("place_batches", where, result["seconds"]))
    targets.append(Target(same, 1.25, max(peaks[1], 1.0) / max(peaks[0], 1.0)))
    notes = [
        made_up.words(TRAFFIC),
        "Memory is that of the process in addition to a loaded model and one placed chunk, without"
        " the pages of the mapped file, sampled every 4 ms. A ratio up to 1.25 counts as equal.",
    ]
    return PartResult("stream", title, notes, targets, timings, [])


def _write_rows(path: Path, n: int) -> None:
    """Write rows in bounded memory."""
    rows = np.lib.format.open_memmap(path, "w+", np.float32, (n, TRAFFIC.D))
    block = made_up.cloud(TRAFFIC, TRAINING, min(n, 100_000)).Q
    for at in range(0, n, len(block)):
        rows[at : at + len(block)] = block[: n - at]
    rows.flush()


def by_dask(ground: Ground) -> PartResult:
    """Measure placing by two Dask processes against one local thread."""
    title, n = "Many processes", ground.sizes.many
    words = f"Dask, 2 worker processes of one thread, against one thread, {n:,} rows"
    reason = absent("dask", "distributed")
    if reason:
        target = Target(words, 1.7, unit="times faster", at_least=True, skipped=reason)
        return PartResult("dask", title, [], [target], [], [], skipped=reason)
    with tempfile.TemporaryDirectory() as folder:
        data = made_up.cloud(TRAFFIC, TRAINING, n)
        path = Path(folder) / "model"
        outsample.save(fitted("distance", data, n_jobs=1), path)
        files = []
        for at, rows in enumerate(np.array_split(data.Q, N_FILES)):
            files.append(str(Path(folder) / f"{at}.npy"))
            np.save(files[-1], rows)
        result = in_fresh_process("by_dask", path=str(path), files=files)
    local, dask = result["local"], result["dask"]
    note = f"{local:.1f} s and {dask:.1f} s; sums differ by {result['differs']:.1g}"
    faster = local / dask
    target = Target(words, 1.7, faster, unit="times faster", at_least=True, note=note)
    where = f"n = {TRAINING:,}, D = {TRAFFIC.D}, {n:,} rows in {N_FILES} files"
    timings = [_once("one local thread", where, result["local"]),
               _once("Dask, two processes", where, result["dask"])]  # fmt: skip
    notes = ["Workers read files of rows, place them by BatchPlacer and return sums."]
    return PartResult("dask", title, notes, [target], timings, [])


@cache
def _placer(path: str) -> Any:
    return outsample.BatchPlacer(path)


def place_file(path: str, file: str) -> float:
    """Place the rows of a file with a saved model; return the sum of all numbers."""
    import pandas as pd

    rows = np.load(file)
    frame = pd.DataFrame(rows, columns=[f"x{at}" for at in range(rows.shape[1])])
    placed = _placer(path)(frame)
    return float(placed.select_dtypes("number").to_numpy().sum())


def cold_start(ground: Ground) -> PartResult:
    """Time the first result of a fresh process: import, load, one row; and a first fit."""
    n = ground.sizes.cold
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        data = made_up.cloud(TRAFFIC, n, 10)
        path = Path(folder) / "model"
        outsample.save(fitted("distance", data), path)
        runs = min(COLD_RUNS, ground.sizes.repeats)
        for run in range(-1, runs):  # the first run fills the cache of kernels and is not counted
            ground.tell((run + 1) / (runs + 1), "cold starts")
            result = in_fresh_process("cold_answer", path=str(path))
            result["import, load and first row"] = sum(result.values())
            result |= in_fresh_process("cold_fit", n=min(n, 2000), columns=10)
            if run >= 0:
                for step, seconds in result.items():
                    times.setdefault(step, []).append(seconds)
    setting = {step: f"model of n = {n:,}, D = {TRAFFIC.D}" for step in times}
    for step in ("first fit", "second fit"):
        setting[step] = f"all defaults, n = {min(n, 2000):,}, D = 10, with import if first"
    timings = [Timing(step, setting[step], *quartiles(np.array(seconds)), len(seconds))
               for step, seconds in times.items()]  # fmt: skip
    words = ["Each time in a new process, with cached kernels."]
    return PartResult("cold", "Cold start", words, [], timings, [])


def _once(work: str, setting: str, seconds: float) -> Timing:
    return Timing(work, setting, seconds, seconds, seconds, 1)
