"""Tables of `outsample bench speed`."""

from __future__ import annotations

from typing import Any

from outsample_lab.figures.markdown_table import NOT_YET, table

HEADLINES = {  # Lines of the short table of speed: beginning of the work, words
    "exact, D = 14: distance, over": "time over the bare k-d tree search, D = 14",
    "exact, D = 50: distance, over": "time over the bare brute-force search, D = 50",
    "exact, D = 14: order 1, over": "the same with local planes (`order=1`), D = 14",
    "exact, D = 14: distance, against": "time against `KNeighborsRegressor`, D = 14",
    "approximate, D = 14: against": "the same, approximate search",
    "correlated, 50 neighbours, D = 14, against RBFInterpolator":
        "time of `correlated` against `RBFInterpolator`, D = 14",
    "all defaults, n = 10,000, 1,000 rows, against UMAP":
        "`PCAExtension().transform` against `UMAP.transform`",
    "all defaults, n = 10,000, 1,000 rows, against openTSNE":
        "`PCAExtension().transform` against openTSNE's",
    "all defaults, n = 10,000: fit": "`PCAExtension().fit` against fitting UMAP",
    "one row, median: against": "one row against `KNeighborsRegressor`",
    "10,000,000 rows": "memory to place 10⁷ rows of a memory map",
    "Dask": "two processes by Dask against one thread",
}  # fmt: skip


def speed_kept(results: dict[str, Any]) -> dict[str, Any]:
    """Return the part of the results that the documentation needs."""
    if results["quick"]:
        raise ValueError("a short run of bench speed: its sizes are not those of the tables")
    keys = ("work", "asked", "found", "low", "high", "unit", "at_least", "met", "skipped")
    targets = [{key: target[key] for key in keys}
               for part in results["parts"] for target in part["targets"]]  # fmt: skip
    curves = [curve for part in results["parts"] for curve in part["curves"]]
    about = {key: results[key] for key in ("cores", "load", "versions")}
    return about | {"targets": targets, "curves": curves}


def speed(figures: dict[str, Any]) -> str:
    """Return the most important results of the speed benchmark."""
    rows = []
    for start, words in HEADLINES.items():
        target = next((each for each in figures["targets"] if each["work"].startswith(start)), None)
        if target is not None and not target["skipped"]:
            rows.append([words, _reached(target), _asked(target)])
    return table(["", "found", "asked"], rows) if rows else NOT_YET


def speed_targets(figures: dict[str, Any]) -> str:
    """Return every target with its measured value."""
    rows = [[each["work"], _asked(each), _reached(each), _quartiles(each)]
            for each in figures["targets"]]  # fmt: skip
    return table(["work", "asked", "found", "quartiles"], rows) if rows else NOT_YET


def speed_sizes(figures: dict[str, Any]) -> str:
    """Return the time per row against the number of training points."""
    return _curves(figures, "Time of a row in a batch", "microseconds a row", exponent=True)


def speed_errors(figures: dict[str, Any]) -> str:
    """Return errors against the number of training points."""
    return _curves(figures, "Error against training points", "error over the size of the map")


def _curves(figures: dict[str, Any], chart: str, unit: str, exponent: bool = False) -> str:
    curves = [each for each in figures["curves"] if each["chart"].startswith(chart)]
    if not curves:
        return NOT_YET
    sizes = sorted({size for curve in curves for size in curve["sizes"]})
    rows = []
    for curve in curves:
        by_size = dict(zip(curve["sizes"], curve["figures"], strict=True))
        name = curve["name"] + curve["chart"][len(chart):]
        last = ["" if curve["exponent"] is None else f"{curve['exponent']:.2f}"] * exponent
        figure = (f"{by_size[size]:.3g}" if size in by_size else "" for size in sizes)
        rows.append([name, *figure, *last])
    heads = [f"{unit}, n =", *(f"{size:,.0f}" for size in sizes), *["exponent"] * exponent]
    return table(heads, rows)


def _asked(target: dict[str, Any]) -> str:
    return f"{'≥' if target['at_least'] else '≤'} {target['asked']:g}{_unit(target)}"


def _reached(target: dict[str, Any]) -> str:
    """Return the measured value, bold if it reaches the target."""
    if target["skipped"]:
        return f"not measured: {target['skipped']}"
    measured = f"{target['found']:.3g}{_unit(target)}"
    return f"**{measured}**" if target["met"] else measured


def _quartiles(target: dict[str, Any]) -> str:
    return "" if target["low"] is None else f"{target['low']:.3g}–{target['high']:.3g}"


def _unit(target: dict[str, Any]) -> str:
    return {"MB": " MB", "s": " s"}.get(target["unit"], "")
