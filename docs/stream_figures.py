"""Table of `outsample bench stream`."""

from __future__ import annotations

from typing import Any

from markdown_table import NOT_YET, table

OURS = "StreamingExtension"


def stream_kept(results: dict[str, Any]) -> dict[str, Any]:
    """Return what the pages need of the results."""
    if results["simulated"]:
        raise ValueError("a run on simulated traffic: the table is of recorded days")
    keys = ("name", "median_rate", "worst_rate", "at_once", "episodes",
            "precision", "loud_precision")  # fmt: skip
    rows = [{key: row[key] for key in keys} for row in results["rows"]]
    return {"versions": results["versions"], "rows": rows}


def stream_days(figures: dict[str, Any]) -> str:
    """Return one line a learner: false alarms, attacks found at once, average precision."""
    rows = []
    for row in figures["rows"]:
        found = f"{round(row['at_once'] * row['episodes'])} of {row['episodes']}"
        name = f"**`{OURS}`**" if row["name"] == OURS else row["name"]
        rates = [_percent(row["median_rate"]), _percent(row["worst_rate"])]
        precision = f"{row['precision']:.2f}, {row['loud_precision']:.2f}"
        rows.append([name, *rates, found, precision])
    heads = [
        "learner", "false alarms, median day", "worst day after the first week",
        "flagged in the first minute", "average precision: all attacks, loud minutes",
    ]  # fmt: skip
    return table(heads, rows) if rows else NOT_YET


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"
