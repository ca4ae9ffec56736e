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
    for each in figures["targets"]:
        unit = "" if each["unit"] == "times" else f" {each['unit']}"
        asked = f"{'≥' if each['at_least'] else '≤'} {each['asked']:g}{unit}"
        figure = f"{each['found']:.3g}{unit}"
        note = f" ({each['note']})" if each["note"] else ""
        rows.append([each["work"], asked, (f"**{figure}**" if each["met"] else figure) + note])
    return table(["", "asked", "found"], rows) if rows else NOT_YET


def service_loads(figures: dict[str, Any]) -> str:
    """Return a table with one row per load."""
    rows = [
        [each["name"], f"{each['per_second']:,.0f}", f"{each['seconds']:.0f}",
         f"{each['answered']:,}", f"{each['refused']:,}", f"{each['errors']:,}",
         f"{each['p50']:.1f}", f"{each['p99']:.1f}", f"{each['megabytes']:.0f}"]
        for each in figures["loads"]
    ]  # fmt: skip
    heads = ["load", "requests a second", "s", "answered", "refused", "errors", "p50, ms",
             "p99, ms", "MB"]  # fmt: skip
    return table(heads, rows) if rows else NOT_YET
