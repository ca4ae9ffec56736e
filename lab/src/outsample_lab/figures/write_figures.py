"""Write measured results to the documentation, so that no such number is typed by hand.

``make figures RESULTS=outsample-bench/accuracy.json`` keeps the results that the pages show in
``docs/figures`` and writes every table between ``<!-- figures: NAME -->`` and ``<!-- end -->``, in
README.md and docs/*.md. Without a file it writes the tables again from the kept results. Results
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
    speed,
    speed_errors,
    speed_kept,
    speed_sizes,
    speed_targets,
)
from outsample_lab.figures.stream_figures import stream_days, stream_kept

DOCS = Path(__file__).parents[4] / "docs"
KEPT = DOCS / "figures"
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
    "tangent": "tangent (Eq. 4.5)", "local_tangent": "tangent of each point",
    "PCAExtension(), all defaults": "all defaults",
}  # fmt: skip
GROUPS = {
    "outliers": "outlier benchmarks: mean AUC", "digits": "digits, one class new: mean AUC",
    "mnist": "MNIST, one class new: mean AUC", "fresh": "COIL-20 and NSL-KDD: mean AUC",
    "junk": "images that are none: mean AUC",
    "darpa": "DARPA 1998 traffic: AUC, average precision",
}  # fmt: skip

def condensed(results: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name of a bench, and the part of its results that the documentation needs."""
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
    raise ValueError(f"these are no results of {benches}")


def _accuracy(results: dict[str, Any]) -> dict[str, Any]:
    maps = [
        {
            "title": each["title"],
            "kind": each["kind"],
            "n_points": each["n_points"],
            "coverage": each["coverage"],
            "worst": {key: min(each["tenths"][key]) for key in ("isolation", "density", "bar")},
            "errors": {row["name"]: _short(row["error"]) for row in each["rows"]},
            "families": {row["name"]: row["family"] for row in each["rows"]},
        }
        for each in results["maps"]
        if not each.get("skipped")
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
    """Return our error and that of the best other library on every map."""
    rows = []
    for each in _relative(figures):
        peers = {name: error for name, error in each["errors"].items()
                 if each["families"][name] == "peer" and name != LOO}  # fmt: skip
        best = min(peers, key=peers.__getitem__)
        errors = _bold_least([each["errors"][OURS], peers[best]])
        rows.append([each["title"], errors[0], f"{errors[1]} {best}"])
    return table(["map", "`PCAExtension()`", "best other library"], rows)


def all_methods(figures: dict[str, Any]) -> str:
    """Return the errors of all methods on all maps."""
    rows = []
    for each in _relative(figures):
        errors = dict(each["errors"])
        own = errors.get("umap-learn, own transform")
        if own is not None:
            errors["openTSNE, own transform"] = own
        rows.append([each["title"], *_bold_least([errors.get(name) for name in ALL])])
    return table(["map", *ALL.values()], rows)


def kernel_methods(figures: dict[str, Any]) -> str:
    """Return the errors of the kernel methods."""
    rows = [[each["title"], *_bold_least([each["errors"].get(name) for name in (OURS, *KERNELS)])]
            for each in _relative(figures) if each["errors"].get("MSE") is not None]  # fmt: skip
    return table(["map", "`PCAExtension()`", *KERNELS], rows)


def coverage(figures: dict[str, Any]) -> str:
    """Return the coverage of the error bars."""
    rows = []
    for each in figures["maps"]:
        worst = " / ".join(f"{100 * each['worst'][key]:.0f}" for key in each["worst"])
        rows.append([each["title"], f"{100 * each['coverage']:.1f}", worst])
    return table(["map", "held, %", "worst tenth by isolation / density / bar, %"], rows)


def sphere(figures: dict[str, Any]) -> str:
    """Return the table of the sphere, with the paper's numbers below ours."""
    rows = []
    for n in sorted({row["n_points"] for row in figures["sphere"]}):
        row_by_method = {row["method"]: row for row in figures["sphere"] if row["n_points"] == n}
        ours = [_scientific(row_by_method[name]["error"]) for name in WEIGHTS]
        paper = [row_by_method[name]["paper"] for name in WEIGHTS]
        rows.append([f"{n} points", *ours[:-1], f"**{ours[-1]}**"])
        rows.append(["*the paper*", *(f"*{_scientific(x)}*" if x else "" for x in paper)])
    return table(["", *WEIGHTS.values()], rows)


def belonging(figures: dict[str, Any]) -> str:
    """Return the results of our detector and of the best other one, by group."""
    rows = []
    for name, title in GROUPS.items():
        if name not in figures["groups"]:
            continue
        group = figures["groups"][name]
        ours = next(row for row in group["standings"] if row["family"] == "ours")
        peer = max((row for row in group["standings"] if row["family"] != "ours"),
                   key=lambda row: row["auc"])  # fmt: skip
        both = name == "darpa"
        areas = _bold_most([ours["auc"], peer["auc"]])
        precisions = _bold_most([ours["precision"], peer["precision"]])
        cells = [f"{a}, {p}" if both else a for a, p in zip(areas, precisions, strict=True)]
        where = title if both else f"{title} of {group['n_sets']} sets"
        rows.append([where, cells[0], f"{cells[1]} {peer['name']}"])
    return table(["", "`NoveltyDetector`", "best other"], rows)


def detectors(figures: dict[str, Any]) -> str:
    """Return the detectors that ran on every set: mean AUC, mean rank on the outlier sets."""
    groups = [name for name in GROUPS if name in figures["groups"]]
    areas: dict[str, dict[str, str]] = {}
    for name in groups:
        standings = figures["groups"][name]["standings"]
        shown = _bold_most([row["auc"] for row in standings])
        for row, auc in zip(standings, shown, strict=True):
            extra = {"outliers": f"; {row['rank']:.1f}", "darpa": f", {row['precision']:.3f}"}
            areas.setdefault(row["name"], {})[name] = auc + extra.get(name, "")
    heads = {"outliers": "20 outlier sets: AUC; mean rank", "digits": "digits, one class new",
             "mnist": "MNIST, one class new", "fresh": "COIL-20 and NSL-KDD",
             "junk": "images that are none",
             "darpa": "DARPA traffic: AUC, precision"}  # fmt: skip
    rows = [[f"`{name}`" if name.endswith("()") else name, *(values.get(g, "") for g in groups)]
            for name, values in areas.items() if len(values) == len(groups)]  # fmt: skip
    return table(["", *(heads[name] for name in groups)], rows)


def manners(figures: dict[str, Any]) -> str:
    """Return how the libraries treat single rows, training rows and junk."""
    heads = ["", "alone and in a batch", "known rows", "junk among known images",
             "junk told", "map from elsewhere"]  # fmt: skip
    rows = [
        [
            row["name"],
            *("0" if row[key] == 0 else f"{row[key]:.2g}" for key in ("alone", "known")),
            f"{100 * row['hidden']:.0f} %",
            "no" if row["told"] is None else f"{100 * row['told']:.0f} %",
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
    "belonging": ("novelty", belonging),
    "detectors": ("novelty", detectors),
    "manners": ("manners", manners),
    "speed": ("speed", speed),
    "speed_targets": ("speed", speed_targets),
    "speed_sizes": ("speed", speed_sizes),
    "speed_errors": ("speed", speed_errors),
    "stream_days": ("stream", stream_days),
    "service_targets": ("service", service_targets),
    "service_loads": ("service", service_loads),
}


def written(text: str) -> str:
    """Return a page with its tables updated from the saved results."""

    def region(match: re.Match[str]) -> str:
        bench, made = TABLES[match[2]]
        return f"{match[1]}\n{made(json.loads((KEPT / f'{bench}.json').read_text()))}\n{match[3]}"

    return REGION.sub(region, text)


def _relative(figures: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the maps with errors relative to the size of the map: all but the sphere."""
    return [each for each in figures["maps"] if each["kind"] != "sphere"]


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
    """Return the numbers as text; the best is bold, None is empty."""
    texts = ["" if value is None else shown(value) for value in values]
    top = shown(best(value for value in values if value is not None))
    return [f"**{text}**" if text == top else text for text in texts]


def main(results: list[str]) -> None:
    """Save the results, then write all tables."""
    for path in results:
        name, figures = condensed(json.loads(Path(path).read_text()))
        text = json.dumps(figures, indent=1, ensure_ascii=False)
        (KEPT / f"{name}.json").write_text(text + "\n")
    for page in PAGES:
        page.write_text(written(page.read_text()))


if __name__ == "__main__":
    main(sys.argv[1:])
