"""Tables of `outsample bench speed`."""

from __future__ import annotations

from typing import Any

from outsample_lab.figures.markdown_table import NOT_YET, table


def speed_kept(results: dict[str, Any]) -> dict[str, Any]:
    """Return the part of the results that the pages show."""
    if results["quick"]:
        raise ValueError("results of bench speed --quick: the tables need a full run")
    keys = ("work", "asked", "found", "low", "high", "unit", "at_least", "met", "skipped")
    targets = [{key: target[key] for key in keys}
               for part in results["parts"] for target in part["targets"]]  # fmt: skip
    curves = [curve for part in results["parts"] for curve in part["curves"]]
    about = {key: results[key] for key in ("cores", "load", "versions")}
    return about | {"targets": targets, "curves": curves}


def speed_targets(figures: dict[str, Any]) -> str:
    """Return a table of all targets with the measured figures."""
    rows = [[target["work"], _measured(target), _quartiles(target), _target(target)]
            for target in figures["targets"]]  # fmt: skip
    return table(["", "measured", "quartiles", "target"], rows) if rows else NOT_YET


def speed_sizes(figures: dict[str, Any]) -> str:
    """Return a table of the time per row by number of training points."""
    return _curves(figures, "Time of a row in a batch", "microseconds per row", exponent=True)


def speed_errors(figures: dict[str, Any]) -> str:
    """Return a table of errors by number of training points."""
    return _curves(figures, "Error against training points", "relative error")


def _curves(figures: dict[str, Any], chart: str, unit: str, exponent: bool = False) -> str:
    curves = [curve for curve in figures["curves"] if curve["chart"].startswith(chart)]
    if not curves:
        return NOT_YET
    sizes = sorted({size for curve in curves for size in curve["sizes"]})
    rows = []
    for curve in curves:
        by_size = dict(zip(curve["sizes"], curve["figures"], strict=True))
        name = curve["name"] + curve["chart"][len(chart) :]
        last = ["" if curve["exponent"] is None else f"{curve['exponent']:.2f}"] * exponent
        figure = (f"{by_size[size]:.3g}" if size in by_size else "" for size in sizes)
        rows.append([name, *figure, *last])
    heads = [f"{unit}, n =", *(f"{size:,.0f}" for size in sizes), *["exponent"] * exponent]
    return table(heads, rows)


def _target(target: dict[str, Any]) -> str:
    return f"{'≥' if target['at_least'] else '≤'} {target['asked']:g}{_unit(target)}"


def _measured(target: dict[str, Any]) -> str:
    """Return the measured figure, bold if it meets the target."""
    if target["skipped"]:
        return f"not measured: {target['skipped']}"
    figure = f"{target['found']:.3g}{_unit(target)}"
    return f"**{figure}**" if target["met"] else figure


def _quartiles(target: dict[str, Any]) -> str:
    return "" if target["low"] is None else f"{target['low']:.3g}–{target['high']:.3g}"


def _unit(target: dict[str, Any]) -> str:
    return {"MB": " MB", "s": " s"}.get(target["unit"], "")
