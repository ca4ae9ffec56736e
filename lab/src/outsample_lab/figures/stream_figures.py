"""Table of `outsample bench stream`."""

from __future__ import annotations

from typing import Any

from outsample_lab.figures.markdown_table import NOT_YET, table

OURS = "StreamingExtension"
PRECISIONS = ("precision", "loud_precision", "score_precision", "loud_score_precision",
              "daily_precision")  # fmt: skip


def stream_kept(results: dict[str, Any]) -> dict[str, Any]:
    """Return the part of the results that the pages show."""
    if results["simulated"]:
        raise ValueError("a run on simulated traffic: the table is of recorded days")
    keys = ("name", "median_rate", "worst_rate", "at_once", "episodes",
            *PRECISIONS)  # fmt: skip
    rows = [{key: row[key] for key in keys} for row in results["rows"]]
    return {"versions": results["versions"], "rows": rows, "chance": results["chance"]}


def stream_days(figures: dict[str, Any]) -> str:
    """Return a table with one row per learner: false alarms, detections, average precision."""
    rows = []
    for row in figures["rows"]:
        at_once = f"{round(row['at_once'] * row['episodes'])} of {row['episodes']}"
        name = f"**`{OURS}`**" if row["name"] == OURS else row["name"]
        rates = [_percent(row["median_rate"]), _percent(row["worst_rate"])]
        rows.append([name, *rates, at_once, *_precisions([row[key] for key in PRECISIONS])])
    if rows:
        attacks, loud, daily = figures["chance"].values()
        rows.append(["chance", "", "", "", *_precisions([attacks, loud, attacks, loud, daily])])
    heads = [
        "learner", "false alarms, median day", "worst day after the first week",
        "flagged in the first minute", "average precision by p-value: all attacks, loud minutes",
        "by score", "all attacks, mean day",
    ]  # fmt: skip
    return table(heads, rows) if rows else NOT_YET


def _precisions(parts: list[float]) -> list[str]:
    by_p, loud_by_p, by_score, loud_by_score, daily = (f"{part:.2f}" for part in parts)
    return [f"{by_p}, {loud_by_p}", f"{by_score}, {loud_by_score}", daily]


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"
