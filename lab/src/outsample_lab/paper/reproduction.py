"""`outsample reproduce`: run Section 7 of the paper, write the results and a page."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from outsample.report.page import check_writable, write_file
from outsample_lab.environment import versions
from outsample_lab.json_records import plain, read_record, restored
from outsample_lab.paper import (
    complexity,
    extension_curve,
    sphere_orders,
    traffic_day,
    traffic_map,
)
from outsample_lab.paper.page.report_page import write_report
from outsample_lab.paper.reproduction_results import Data, Results
from outsample_lab.progress import Progress, Teller

PathLike = str | os.PathLike[str]

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")
CITATION = (
    "Y. Aizenbud, A. Bermanis, A. Averbuch, PCA-Based Out-of-Sample Extension for Dimensionality"
    " Reduction, arXiv:1511.00831"
)
NOT_PUBLIC = (
    "The paper's own 14 features and its matrix are not public. The traffic here is that of the"
    " DARPA 1998 evaluation, one row a minute, with 14 features of our own choice, so that the"
    " figures of Section 7.2 can be compared in kind, not number by number."
)
SIMULATED = (
    "Simulated: no DARPA files were found, so the traffic was made up by a simulator. Its figures"
    " say nothing about real traffic."
)
N_WORKERS = 2
# Rough seconds of each part, for the time left.
WEIGHTS = {
    "full": {"data": 4, "sphere": 9, "curve": 200, "traffic": 6, "complexity": 15, "page": 5},
    "quick": {"data": 4, "sphere": 8, "curve": 12, "traffic": 6, "complexity": 4, "page": 5},
}


class Size(NamedTuple):
    """Sizes of the experiments."""

    name: str = "full"
    table_grids: Sequence[int] = (30, 50)
    grids: Sequence[int] = sphere_orders.GRIDS
    n_new: int = 100
    n_seeds: int = 8
    n_map_points: int = extension_curve.N_POINTS
    curve_sizes: Sequence[int] = extension_curve.SIZES
    n_hidden: int = extension_curve.N_HIDDEN
    n_repeats: int = 20
    n_minutes: int | None = None
    scales: complexity.Scales = complexity.FULL


FULL = Size()
QUICK = Size(
    name="quick",
    grids=(10, 20, 40),
    curve_sizes=(100, 400, 750),
    n_repeats=3,
    scales=complexity.Scales(
        n=(500, 2000, 8000), k=(5, 20, 80), d=(1, 4, 16), D=(2, 20, 200), n_queries=500, repeats=2
    ),
)


class Reproduction(NamedTuple):
    """Results and files of a reproduction."""

    results: Results  # As its file holds them: numbers with nine digits
    seconds: float
    files: list[Path]


def run_reproduction(
    out_dir: PathLike,
    *,
    folder: Path | None = None,
    size: Size = FULL,
    progress: Progress | None = None,
) -> Reproduction:
    """Run every experiment of Section 7 and write ``results.json`` and ``report.html``."""
    # Without data files in `folder` traffic is simulated, and labelled so. OSError if the folder
    # cannot be written; found out before the work begins.
    check_writable(out_dir)
    begin = perf_counter()
    teller = Teller(progress, WEIGHTS.get(size.name, WEIGHTS["quick"]))
    with threadpool_limits(1):  # repetitions run side by side, and times are of one thread
        measured = _run(folder, size, teller)
    seconds = perf_counter() - begin
    payload = plain(measured._replace(seconds=seconds))
    text = json.dumps(payload, indent=1, allow_nan=False) + "\n"
    files = [write_file(Path(out_dir) / "results.json", text)]
    results = restored(Results, payload)  # so that a page drawn again from the file is the same
    files.append(write_report(out_dir, results))
    teller.finish()
    return Reproduction(results, seconds, files)


def draw_again(results_file: PathLike, out_dir: PathLike) -> Reproduction:
    """Write ``report.html`` from a ``results.json``; raise ValueError for another file."""
    begin = perf_counter()
    results = read_record(Results, results_file)
    check_writable(out_dir)
    files = [write_report(out_dir, results)]
    return Reproduction(results, perf_counter() - begin, files)


def _run(folder: Path | None, size: Size, teller: Teller) -> Results:
    """Run all experiments; return the results with the versions and the data used."""
    tell = teller.part("data")
    tell(0.0, "features from connections")
    source = traffic_day.load_days(folder)
    ball = _timed(
        sphere_orders.run, size.table_grids, size.grids, size.n_new, size.n_seeds,
        progress=teller.part("sphere"),
    )  # fmt: skip
    tell = teller.part("curve")
    tell(0.0, "Fig. 7.3: diffusion map")
    data = extension_curve.embed(source.day, size.n_map_points)
    curve = _timed(
        extension_curve.run, data, size.curve_sizes, size.n_repeats, size.n_hidden, N_WORKERS,
        progress=tell,
    )  # fmt: skip
    day = _timed(traffic_day.run, source, size.n_minutes, progress=teller.part("traffic"))
    cost = _timed(complexity.run, size.scales, progress=teller.part("complexity"))
    teller.part("page")(0.0, "report")
    seeds = {
        "sphere": list(range(size.n_seeds)), "extension_curve": list(range(size.n_repeats)),
        "complexity": 0, "simulated traffic": 0,
    }  # fmt: skip
    return Results(
        CITATION, size.name, _parameters(size), seeds, versions(PACKAGES), 0.0, _data(source),
        sphere=ball, extension_curve=curve, traffic_day=day, complexity=cost,
    )  # fmt: skip


def _timed(experiment: Callable[..., Any], *arguments: Any, progress: Progress) -> Any:
    """Run one experiment; return its record with the seconds it took."""
    begin = perf_counter()
    result = experiment(*arguments, progress=progress)
    return result._replace(seconds=perf_counter() - begin)


def _data(source: traffic_day.Source) -> Data:
    simulated = source.day.simulated
    notice, name = (SIMULATED, "simulated traffic") if simulated else (None, "DARPA 1998")
    map_day, new_day = str(source.day.days[0]), str(source.new_day.days[0])
    return Data(simulated, notice, NOT_PUBLIC, name, source.features, map_day, new_day)


def _parameters(size: Size) -> dict[str, Any]:
    return size._asdict() | {
        "sphere": {
            "radius": f"{sphere_orders.RADIUS} grid steps",
            "tangent_radius": "1.5 grid steps",
            "curvature": 2,
            "n_neighbors of orders 1 and 2": sphere_orders.NEIGHBORS,
            "K": sphere_orders.LIPSCHITZ,
        },
        "diffusion_map": f"DiffusionMaps(n_components={traffic_map.N_COMPONENTS},"
        f" bandwidth={traffic_map.BANDWIDTH}, n_neighbors={traffic_map.NEIGHBORS}), log(1 + x),"
        " standardised",
        "extension_curve": "all methods with their defaults; the paper's weights with order 0"
        " and squared loss, neighbours by leave-one-out",
        "traffic_day": "PCAExtension(weighting='tangent', order=0, loss='squared')",
    }
