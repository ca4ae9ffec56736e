"""What `outsample reproduce` does: run the paper's Section 7 whole, write figures and a page."""

import json
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from outsample.lab.environment import versions
from outsample.lab.paper import complexity, extension_curve, sphere_orders, traffic_day
from outsample.lab.paper.page import write_report
from outsample.report.page import check_writable, write_file

if TYPE_CHECKING:
    from rich.table import Table as RichTable

__all__ = ["FULL", "QUICK", "Reproduction", "Size", "run_reproduction", "summary_tables"]

Progress = Callable[[float, str], None]

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
DIGITS = 9
"""Significant digits in the file."""
N_WORKERS = 2


class Size(NamedTuple):
    """How much is computed."""

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
    """What was found, and the files that show it."""

    results: dict[str, Any]
    seconds: float
    files: list[Path]


def run_reproduction(
    out_dir: str | os.PathLike[str],
    *,
    folder: Path | None = None,
    size: Size = FULL,
    progress: Progress | None = None,
) -> Reproduction:
    """Run every experiment of Section 7 and write ``results.json`` and ``report.html``.

    Parameters
    ----------
    out_dir : path-like
        Folder of the files, made if missing.
    folder : Path, optional
        Where the data files are; without them traffic is simulated, and labelled so.
    size : Size, default=FULL
        `QUICK` takes less than a minute.
    progress : callable, optional
        Called with the share of the work done, from 0 to 1, and what is done next.

    Returns
    -------
    Reproduction

    Raises
    ------
    OSError
        If the folder cannot be written; found out before the work begins.
    """
    check_writable(out_dir)
    begin = perf_counter()
    with threadpool_limits(1):  # repetitions run side by side, and times are of one thread
        found = _run(folder, size, _Teller(progress, size))
    seconds = perf_counter() - begin
    results = plain(_frame(size, seconds) | found)
    text = json.dumps(results, indent=1, allow_nan=False) + "\n"
    files = [write_file(Path(out_dir) / "results.json", text.encode())]
    files.append(write_report(out_dir, results))
    if progress is not None:
        progress(1.0, "done")
    return Reproduction(results, seconds, files)


def plain(value: Any) -> Any:
    """Return records as dicts and arrays as lists, numbers rounded, ready for JSON.

    Parameters
    ----------
    value : object
        Records, dicts, sequences, arrays, numbers, strings.

    Returns
    -------
    object
        What is not finite becomes None.

    Examples
    --------
    >>> import numpy as np
    >>> from outsample.lab.paper.reproduction import plain
    >>> plain({"a": np.array([0.1 + 0.2, np.inf]), "b": (True, np.int64(3))})
    {'a': [0.3, None], 'b': [True, 3]}
    """
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    return value


def summary_tables(results: dict[str, Any]) -> "list[RichTable]":
    """Lay out for a terminal: Table 7.1, the lowest curves of Fig. 7.3, and the areas.

    Parameters
    ----------
    results : dict
        What `run_reproduction` found.

    Returns
    -------
    list of rich.table.Table
    """
    made_up = " (simulated)" if results["data"]["simulated"] else ""
    sphere_rows = [
        [row["title"], str(row["n_points"]), f"{row['error']:.2e}", f"{row['spread']:.0e}",
         _number(row["paper"], ".2e")]
        for row in results["sphere"]["table"]
    ]  # fmt: skip
    return [
        _rich("Table 7.1: mean error", ["Method", "points", "ours", "±", "paper"], sphere_rows),
        _rich(
            f"Fig. 7.3: error over the size of the map{made_up}",
            ["Lowest", "training points", "error", "PCAExtension()"],
            _curve_rows(results["extension_curve"]),
        ),
        _rich(
            f"Fig. 7.6: area under the ROC curve{made_up}",
            ["Score", "minutes", "all labelled", "loud", "labelled / mean", "paper"],
            [
                [score["name"], trial["name"], _number(score["auc"], ".3f"),
                 _number(score["auc_loud"], ".3f"), _number(score["best_ratio"], ".3g"),
                 _number(score["paper_ratio"], ".3g")]
                for trial in results["traffic_day"]["trials"]
                for score in trial["scores"]
            ],
        ),
    ]  # fmt: skip


def _curve_rows(curve: dict[str, Any]) -> list[list[str]]:
    titles = {one["method"]: one["title"] for one in curve["curves"]}
    ours = next(one for one in curve["curves"] if one["method"] == extension_curve.AUTO)
    return [
        [titles[best["method"]], str(best["size"]), f"{best['error']:.4f}", f"{error:.4f}"]
        for best, error in zip(curve["winners"], ours["errors"], strict=True)
    ]


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else f"{value:{form}}"


def _rich(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> "RichTable":
    from rich.box import SIMPLE
    from rich.table import Table as RichTable

    table = RichTable(title=title, title_justify="left", box=SIMPLE, pad_edge=False)
    for at, word in enumerate(header):
        table.add_column(word, justify="right" if at else "left")
    for row in rows:
        table.add_row(*row)
    return table


class _Teller:
    """Turns the progress of each experiment into that of the whole; weights are rough seconds."""

    WEIGHTS: dict[str, dict[str, float]] = {  # noqa: RUF012
        "full": {"data": 4, "sphere": 9, "curve": 200, "traffic": 6, "complexity": 15, "page": 5},
        "quick": {"data": 4, "sphere": 8, "curve": 12, "traffic": 6, "complexity": 4, "page": 5},
    }

    def __init__(self, progress: Progress | None, size: Size) -> None:
        self.progress, self.done = progress, 0.0
        self.weights = self.WEIGHTS.get(size.name, self.WEIGHTS["quick"])
        self.total = sum(self.weights.values())

    def part(self, name: str) -> Progress:
        """Return the progress callback of one experiment; those before it are done."""
        begin, weight = self.done, self.weights[name]
        self.done += weight

        def tell(share: float, what_next: str) -> None:
            if self.progress is not None:
                self.progress((begin + share * weight) / self.total, what_next)

        return tell


def _run(folder: Path | None, size: Size, teller: _Teller) -> dict[str, Any]:
    """Run all experiments; each is told with its parameters and the seconds it took."""
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
    simulated = source.day.simulated
    return {
        "data": {
            "simulated": simulated,
            "notice": SIMULATED if simulated else None,
            "not_public": NOT_PUBLIC,
            "source": "simulated traffic" if simulated else "DARPA 1998",
            "features": source.features,
            "map_day": str(source.day.days[0]),
            "new_day": str(source.new_day.days[0]),
        },
        "sphere": ball,
        "extension_curve": curve,
        "traffic_day": day,
        "complexity": cost,
    }


def _timed(experiment: Callable[..., Any], *arguments: Any, progress: Progress) -> dict[str, Any]:
    """Run one experiment; return its fields and the seconds it took."""
    begin = perf_counter()
    found: dict[str, Any] = experiment(*arguments, progress=progress)._asdict()
    return found | {"seconds": perf_counter() - begin}


def _frame(size: Size, seconds: float) -> dict[str, Any]:
    """Return what is told of the run itself."""
    return {
        "paper": CITATION,
        "size": size.name,
        "parameters": {
            **size._asdict(),
            "scales": size.scales._asdict(),
            "sphere": {
                "radius": f"{sphere_orders.RADIUS} grid steps",
                "tangent_radius": "1.5 grid steps",
                "curvature": 2,
                "n_neighbors of orders 1 and 2": sphere_orders.NEIGHBORS,
                "K": sphere_orders.LIPSCHITZ,
            },
            "diffusion_map": "DiffusionMaps(n_components=5), log(1 + x), standardised",
            "extension_curve": "all methods with their defaults; the paper's weights with order 0"
            " and squared loss, neighbours by leave-one-out",
            "traffic_day": "PCAExtension(weighting='tangent', order=0, loss='squared')",
        },
        "seeds": {
            "sphere": list(range(size.n_seeds)),
            "extension_curve": list(range(size.n_repeats)),
            "complexity": 0,
            "simulated traffic": 0,
        },
        "versions": versions(PACKAGES),
        "seconds": seconds,
    }
