"""Write benchmark results into the tables of the documentation.

``make figures RESULTS=outsample-bench/accuracy.json`` stores the results that the pages show in
``docs/figures`` and writes every table between ``<!-- figures: NAME -->`` and ``<!-- end -->`` in
README.md and docs/*.md. Without a file it writes the tables from the stored results. Results
come from ``outsample bench accuracy``, ``bench novelty``, ``bench speed``, ``bench stream``,
``bench service`` and ``reproduce``.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from outsample_lab.figures.markdown_table import table
from outsample_lab.figures.service_figures import service_kept, service_loads, service_targets
from outsample_lab.figures.speed_figures import (
    speed_errors,
    speed_kept,
    speed_sizes,
    speed_targets,
)
from outsample_lab.figures.stream_figures import stream_days, stream_kept

DOCS = Path(__file__).parents[4] / "docs"
STORED = DOCS / "figures"
PAGES = [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))]
REGION = re.compile(r"(<!-- figures: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

OURS, LOO = "PCAExtension()", "LOO-map"
KERNELS = ("Nystroem", "geometric harmonics", "Laplacian pyramids", "MSE")
ALL = {  # Columns of the large table: method, heading
    OURS: "`PCAExtension()`", LOO: "LOO-map", "openTSNE, own transform": "own transform",
    "5-NN": "5-NN", "LLE weights": "LLE weights", "RBF thin plate": "RBF thin plate",
    "RBF linear": "RBF linear", "kernel ridge": "kernel ridge",
    "Gaussian process": "Gaussian process", "paper: tangent": "the paper's tangent",
}  # fmt: skip
WEIGHTS = {  # Columns of the sphere's table
    "inverse-distance 15-NN": "15-NN", "distance": "distance (Eq. 4.3)",
    "tangent": "tangent (Eq. 4.5)", "local_tangent": "local tangent",
    "PCAExtension(), all defaults": "`PCAExtension()`",
}  # fmt: skip
GROUPS = {  # Columns of the table of detectors
    "outliers": "20 outlier sets: mean AUC; mean rank",
    "digits": "digits, one class held out: mean AUC",
    "mnist": "MNIST, one class held out: mean AUC",
    "fresh": "COIL-20 and NSL-KDD: mean AUC",
    "junk": "non-digit images (noise, constant, shuffled): mean AUC",
    "darpa": "DARPA 1998 traffic: AUC, average precision",
}  # fmt: skip


def condensed(results: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name of the benchmark and the part of its results that the pages show."""
    if "maps" in results:
        return "accuracy", _accuracy(results)
    if "groups" in results:
        return "novelty", _novelty(results)
    if "parts" in results:
        return "speed", speed_kept(results)
    if "loads" in results:
        return "service", service_kept(results)
    if "n_minutes" in results:
        return "stream", stream_kept(results)
    if "sphere" in results:
        table = [{key: row[key] for key in ("method", "n_points", "error", "paper")}
                 for row in results["sphere"]["table"]]  # fmt: skip
        return "reproduction", {"versions": results["versions"], "sphere": table}
    benches = "bench accuracy, novelty, speed, stream, service or reproduce"
    raise ValueError(f"not results of {benches}")


def _accuracy(results: dict[str, Any]) -> dict[str, Any]:
    maps = [
        {
            "title": result["title"],
            "kind": result["kind"],
            "n_points": result["n_points"],
            "coverage": result["coverage"],
            "worst": {key: min(result["tenths"][key]) for key in ("isolation", "density", "bar")},
            "errors": {row["name"]: _short(row["error"]) for row in result["rows"]},
            "families": {row["name"]: row["family"] for row in result["rows"]},
        }
        for result in results["maps"]
        if not result.get("skipped")
    ]
    return {"seeds": results["seeds"], "versions": results["versions"], "maps": maps}


def _novelty(results: dict[str, Any]) -> dict[str, Any]:
    keys = ("name", "family", "auc", "precision", "rank", "n_sets", "total")
    groups = {
        name: {
            "n_sets": group["n_sets"],
            "standings": [{key: row[key] for key in keys} for row in group["standings"]
                          if row["n_sets"] == row["total"]],
        }
        for name, group in results["groups"].items()
    }  # fmt: skip
    return {"seeds": results["seeds"], "versions": results["versions"], "groups": groups}


def best_others(figures: dict[str, Any]) -> str:
    """Return a table of our error and the lowest error of other libraries on each map."""
    rows = []
    for result in _relative(figures):
        peers = {name: error for name, error in result["errors"].items()
                 if result["families"][name] == "peer" and name != LOO}  # fmt: skip
        best = min(peers, key=peers.__getitem__)
        errors = _bold_least([result["errors"][OURS], peers[best]])
        rows.append([result["title"], errors[0], f"{errors[1]} {best}"])
    return table(["map", "`PCAExtension()`", "best other library"], rows)


def all_methods(figures: dict[str, Any]) -> str:
    """Return a table of the errors of all methods on all maps."""
    rows = []
    for result in _relative(figures):
        errors = dict(result["errors"])
        own = errors.get("umap-learn, own transform")
        if own is not None:
            errors["openTSNE, own transform"] = own
        rows.append([result["title"], *_bold_least([errors.get(name) for name in ALL])])
    return table(["map", *ALL.values()], rows)


def kernel_methods(figures: dict[str, Any]) -> str:
    """Return a table of the errors of the kernel methods."""
    methods = (OURS, *KERNELS)
    maps = [result for result in _relative(figures) if result["errors"].get("MSE") is not None]
    rows = [
        [result["title"], *_bold_least([result["errors"].get(name) for name in methods])]
        for result in maps
    ]
    return table(["map", "`PCAExtension()`", *KERNELS], rows)


def coverage(figures: dict[str, Any]) -> str:
    """Return a table of the coverage of the error bars."""
    rows = []
    for result in figures["maps"]:
        worst = " / ".join(f"{100 * result['worst'][key]:.0f}" for key in result["worst"])
        rows.append([result["title"], f"{100 * result['coverage']:.1f}", worst])
    heads = ["map", "coverage, %", "lowest decile by isolation / density / bar width, %"]
    return table(heads, rows)


def sphere(figures: dict[str, Any]) -> str:
    """Return the table of the sphere, with the paper's numbers below ours."""
    rows = []
    for n in sorted({row["n_points"] for row in figures["sphere"]}):
        by_method = {row["method"]: row for row in figures["sphere"] if row["n_points"] == n}
        ours = [_scientific(by_method[name]["error"]) for name in WEIGHTS]
        paper = [by_method[name]["paper"] for name in WEIGHTS]
        rows.append([f"{n} points", *ours[:-1], f"**{ours[-1]}**"])
        rows.append(["*the paper*", *(f"*{_scientific(x)}*" if x else "" for x in paper)])
    return table(["", *WEIGHTS.values()], rows)


def detectors(figures: dict[str, Any]) -> str:
    """Return a table of the detectors that ran on every set."""
    groups = [name for name in GROUPS if name in figures["groups"]]
    areas: dict[str, dict[str, str]] = {}
    for name in groups:
        standings = figures["groups"][name]["standings"]
        shown = _bold_most([row["auc"] for row in standings])
        for row, auc in zip(standings, shown, strict=True):
            extra = {"outliers": f"; {row['rank']:.1f}", "darpa": f", {row['precision']:.3f}"}
            areas.setdefault(row["name"], {})[name] = auc + extra.get(name, "")
    rows = [[f"`{name}`" if name.endswith("()") else name, *(cells[group] for group in groups)]
            for name, cells in areas.items() if len(cells) == len(groups)]  # fmt: skip
    return table(["", *(GROUPS[name] for name in groups)], rows)


def manners(figures: dict[str, Any]) -> str:
    """Return a table of how the libraries treat single rows, training rows and noise."""
    heads = ["", "single row vs. batch", "training rows", "noise near training points",
             "noise detected", "any map"]  # fmt: skip
    rows = [
        [
            row["name"],
            *("0" if row[key] == 0 else f"{row[key]:.2g}" for key in ("alone", "known")),
            f"{100 * row['hidden']:.0f} %",
            "no" if row["detected"] is None else f"{100 * row['detected']:.0f} %",
            row["any_map"],
        ]
        for row in figures["rows"]
    ]
    return table(heads, rows)


TABLES: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "best_others": ("accuracy", best_others),
    "all_methods": ("accuracy", all_methods),
    "kernel_methods": ("accuracy", kernel_methods),
    "coverage": ("accuracy", coverage),
    "sphere": ("reproduction", sphere),
    "detectors": ("novelty", detectors),
    "manners": ("manners", manners),
    "speed_targets": ("speed", speed_targets),
    "speed_sizes": ("speed", speed_sizes),
    "speed_errors": ("speed", speed_errors),
    "stream_days": ("stream", stream_days),
    "service_targets": ("service", service_targets),
    "service_loads": ("service", service_loads),
}


def written(text: str) -> str:
    """Return a page with its tables generated from the stored results."""

    def region(match: re.Match[str]) -> str:
        bench, made = TABLES[match[2]]
        return f"{match[1]}\n{made(json.loads((STORED / f'{bench}.json').read_text()))}\n{match[3]}"

    return REGION.sub(region, text)


def _relative(figures: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the maps with relative errors: all but the sphere."""
    return [result for result in figures["maps"] if result["kind"] != "sphere"]


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


def _scientific(value: float) -> str:
    return f"{value:.2e}".replace("e-0", "e-")


def _bold_least(values: Iterable[float | None]) -> list[str]:
    return _bold(list(values), min, lambda value: f"{value:#.3g}")


def _bold_most(values: Iterable[float | None]) -> list[str]:
    return _bold(list(values), max, lambda value: f"{value:.3f}")


def _bold(
    values: list[float | None], best: Callable[..., float], shown: Callable[[float], str]
) -> list[str]:
    """Return the numbers as text: bold if equal to the best as printed, empty for None."""
    texts = ["" if value is None else shown(value) for value in values]
    top = shown(best(value for value in values if value is not None))
    return [f"**{text}**" if text == top else text for text in texts]


def main(results: list[str]) -> None:
    """Store these results, then write all tables."""
    for path in results:
        name, figures = condensed(json.loads(Path(path).read_text()))
        text = json.dumps(figures, indent=1, ensure_ascii=False)
        (STORED / f"{name}.json").write_text(text + "\n")
    for page in PAGES:
        page.write_text(written(page.read_text()))


if __name__ == "__main__":
    main(sys.argv[1:])
