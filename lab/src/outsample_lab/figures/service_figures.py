"""Tables of `outsample bench service`."""

from __future__ import annotations

from typing import Any

from outsample_lab.figures.markdown_table import NOT_YET, table


def service_kept(results: dict[str, Any]) -> dict[str, Any]:
    """Return the part of the results that the pages show."""
    if results["quick"]:
        raise ValueError("a short run of bench service: its sizes are not those of the tables")
    about = {key: results[key] for key in ("cores", "load", "versions", "capacity", "loads")}
    return about | {"targets": results["targets"]}


def service_targets(figures: dict[str, Any]) -> str:
    """Return a table with one row per target."""
    rows = []
    for target in figures["targets"]:
        unit = "" if target["unit"] == "times" else f" {target['unit']}"
        limit = f"{'≥' if target['at_least'] else '≤'} {target['asked']:g}{unit}"
        figure = f"{target['found']:.3g}{unit}"
        note = f" ({target['note']})" if target["note"] else ""
        rows.append([target["work"], limit, (f"**{figure}**" if target["met"] else figure) + note])
    return table(["", "asked", "found"], rows) if rows else NOT_YET


def service_loads(figures: dict[str, Any]) -> str:
    """Return a table with one row per load."""
    rows = [
        [load["name"], f"{load['per_second']:,.0f}", f"{load['seconds']:.0f}",
         f"{load['answered']:,}", f"{load['refused']:,}", f"{load['errors']:,}",
         f"{load['p50']:.1f}", f"{load['p99']:.1f}", f"{load['megabytes']:.0f}"]
        for load in figures["loads"]
    ]  # fmt: skip
    heads = ["load", "requests a second", "s", "answered", "refused", "errors", "p50, ms",
             "p99, ms", "MB"]  # fmt: skip
    return table(heads, rows) if rows else NOT_YET
