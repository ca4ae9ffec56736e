"""Tasks in a fresh process, to measure memory and cold starts."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

PROGRAM = "from outsample_lab.speed.errands import answer; answer()"
MEGABYTE = 1e6


def in_fresh_process(errand: str, **arguments: Any) -> dict[str, Any]:
    """Run one of the functions below in a new process and return its result."""
    request = json.dumps({"errand": errand, "arguments": arguments})
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, request], capture_output=True, text=True
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(f"{errand} failed in its own process: {last}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def answer() -> None:
    """Run the task named on the command line; the last line is its result as JSON."""
    request = json.loads(sys.argv[-1])
    print(json.dumps(ERRANDS[request["errand"]](**request["arguments"])))


class PeakMemory:
    """Peak memory of a block beyond that before it, in MB.

    Sampled every few milliseconds, without the pages of memory-mapped files, which the system can
    reclaim; where the system does not report these separately, they are included.
    """

    extra = 0.0

    def __enter__(self) -> PeakMemory:
        self.before, self.peak, self.over = _resident(), 0.0, threading.Event()
        self.watcher = threading.Thread(target=self._watch, daemon=True)
        self.watcher.start()
        return self

    def _watch(self) -> None:
        while not self.over.is_set():
            self.peak = max(self.peak, _resident())
            sleep(0.004)

    def __exit__(self, *fault: object) -> None:
        self.over.set()
        self.watcher.join()
        self.extra = max(self.peak, _resident()) - self.before


def _resident() -> float:
    """Return the resident memory of this process, in MB."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        return float(lines["RssAnon"].split()[0]) * 1024 / MEGABYTE
    import resource  # without /proc: the peak of the whole process

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(most) * (1 if sys.platform == "darwin" else 1024) / MEGABYTE


def fit_and_place(who: str, shape: list[int], n: int, rows: int) -> dict[str, float]:
    """Return the peak memory of fitting and placing synthetic points, by us or scikit-learn."""
    from sklearn.neighbors import KNeighborsRegressor

    from outsample_lab.speed import exact_search, made_up

    def run(data: made_up.Cloud) -> None:
        if who == exact_search.REGRESSOR:
            regressor = KNeighborsRegressor(exact_search.K, weights="distance", n_jobs=2)
            regressor.fit(data.X, data.Y).predict(data.Q)
        else:
            exact_search.fitted(who, data).transform(data.Q)

    run(made_up.cloud(made_up.Shape(*shape), 200, 20))
    data = made_up.cloud(made_up.Shape(*shape), n, rows)
    with PeakMemory() as memory:
        run(data)
    return {"peak": memory.extra}


def cold_answer(path: str) -> dict[str, float]:
    """Return the seconds to import the library, to load a model and to place one row."""
    begin = perf_counter()
    import numpy as np

    import outsample

    imported = perf_counter()
    model = outsample.load(path)
    loaded = perf_counter()
    model.transform(np.zeros((1, model.n_features_in_)))
    return {"import": imported - begin, "load": loaded - imported,
            "first row": perf_counter() - loaded}  # fmt: skip


def cold_fit(n: int, columns: int) -> dict[str, float]:
    """Return the seconds of a first fit with all defaults, including imports, and of a second."""
    begin = perf_counter()
    import numpy as np

    import outsample

    X = np.random.default_rng(0).standard_normal((n, columns))
    Y = np.sin(X[:, :2] + X[:, 2:4] if columns > 3 else X[:, :2])
    outsample.PCAExtension().fit(X, Y)
    first = perf_counter()
    outsample.PCAExtension().fit(X, Y)
    return {"first fit": first - begin, "second fit": perf_counter() - first}


def error_at(folder: str, name: str, n: int, parameters: dict[str, Any]) -> dict[str, Any]:
    """Fit the first n rows of a saved map, and return the error of its held-out rows."""
    import numpy as np

    from outsample import PCAExtension

    X, Y, Q, truth = (np.load(Path(folder) / f"{name}-{part}.npy") for part in "XYQT")
    X, Y = X[:n], Y[:n]
    n_rows = min(200, n)
    PCAExtension(n_jobs=2).fit(X[:n_rows], Y[:n_rows]).transform(Q[:20])  # loads the kernels
    begin = perf_counter()
    with PeakMemory() as memory:
        model = PCAExtension(n_jobs=2, **parameters).fit(X, Y)
    seconds = perf_counter() - begin
    size = np.sqrt(((truth - truth.mean(axis=0)) ** 2).sum(axis=1).mean())
    error = np.linalg.norm(model.transform(Q) - truth, axis=1).mean() / size
    selected_model = f"{model.weighting_}"
    return {"error": float(error), "seconds": seconds, "peak": memory.extra,
            "chosen": selected_model}  # fmt: skip


def stream(path: str, points: str, rows: int, chunk: int) -> dict[str, float]:
    """Place the rows of a memory-mapped file in chunks."""
    import numpy as np

    import outsample

    model = outsample.load(path)
    X = np.load(points, mmap_mode="r")[:rows]
    model.place(X[:chunk])
    begin, n = perf_counter(), 0
    with PeakMemory() as memory:
        chunks = (X[at : at + chunk] for at in range(0, rows, chunk))
        for placed in outsample.place_batches(model, chunks):
            n += len(placed.coordinates)
    return {"peak": memory.extra, "seconds": perf_counter() - begin, "rows": n}


def by_dask(path: str, files: list[str]) -> dict[str, float]:
    """Time placing of files by one local thread, and by two Dask processes."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    from outsample_lab.speed.many_machines import place_file

    dask: Any = import_module("dask")
    distributed: Any = import_module("distributed")
    two = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    with (
        distributed.LocalCluster(**two, dashboard_address=None) as cluster,
        distributed.Client(cluster),
    ):
        work = [dask.delayed(place_file)(path, file) for file in files]
        dask.compute(*work[:2])  # every worker opens the model
        begin = perf_counter()
        far = sum(dask.compute(*work))
        seconds = perf_counter() - begin
    with threadpool_limits(1):
        place_file(path, files[0])
        begin = perf_counter()
        near = sum(place_file(path, file) for file in files)
        local = perf_counter() - begin
    return {"local": local, "dask": seconds, "differs": abs(far - near)}


ERRANDS: dict[str, Callable[..., dict[str, Any]]] = {
    task.__name__: task
    for task in (fit_and_place, cold_answer, cold_fit, error_at, stream, by_dask)
}
