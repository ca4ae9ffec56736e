"""Files of `outsample compare --out`: the results as JSON, CSV and an HTML page."""

import csv
import json
import math
import os
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from outsample import plots
from outsample.comparison.compare import Comparison
from outsample.plots.canvas import can_draw
from outsample.report.page import Picture, Section, Table, build_page, write_file

CODE = """from outsample import compare

rows = compare(X, Y)       # X: points, Y: their map
print(rows)                # or pandas.DataFrame(rows)
"""
FILES = ("compare.json", "compare.csv", "compare.html")
CAPTION = (
    "Error: mean distance of a hidden point from its true position, relative to the root mean"
    " square size of the map. +-: standard deviation over splits. Median, 90 %: quantiles of the"
    " relative distances."
)


class Compared(NamedTuple):
    """Shapes of the points and the map, and how they were split."""

    n_points: int
    n_columns: int
    n_components: int
    n_splits: int
    seed: int


def write_comparison(
    out_dir: str | os.PathLike[str], comparison: Comparison, compared: Compared
) -> list[Path]:
    """Write ``compare.json``, ``compare.csv`` and ``compare.html``; return their paths."""
    record = comparison_record(comparison, compared)
    records = record["rows"]
    text = json.dumps(record, indent=2, allow_nan=False) + "\n"
    lines = StringIO()
    writer = csv.DictWriter(lines, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    contents = (text, lines.getvalue(), _page(comparison, compared))
    files = zip(FILES, contents, strict=True)
    return [write_file(Path(out_dir) / name, content) for name, content in files]


def comparison_record(comparison: Comparison, compared: Compared) -> dict[str, Any]:
    """Return the shapes, the splits and the rows as plain values; NaN becomes None."""
    rows = [
        {key: None if _is_nan(value) else value for key, value in record.items()}
        for record in comparison.to_records()
    ]
    return compared._asdict() | {"rows": rows}


def comparison_table(comparison: Comparison, caption: str = "") -> Table:
    """Return a table with the best row highlighted; the default caption lists the failures."""
    failed = "\n".join(f"{row.name}: {row.failure}" for row in comparison if row.failure)
    return Table(
        Comparison.header(),
        [Comparison.cells(row) for row in comparison],
        caption or failed,
        frozenset() if comparison[0].failure else frozenset({0}),
    )


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _page(comparison: Comparison, compared: Compared) -> str:
    best = comparison[0]
    failed = [f"{row.name} failed. {row.failure}." for row in comparison if row.failure]
    table = comparison_table(comparison, CAPTION)
    pictures = []
    if can_draw():
        pictures = [Picture(plots.comparison(comparison), "Errors of the extensions, best first")]
    facts = [] if best.failure else [(f"{best.error:.3g}", f"error of {best.name}, the best")]
    return build_page(
        "Which extension is best for this map?",
        [
            Section("Hold-out errors", failed, [table], pictures),
            Section("Python code", code=CODE),
        ],
        lead=f"{compared.n_points} points with {compared.n_columns} columns, and a map with"
        f" {compared.n_components} dimensions. In each of {compared.n_splits} random splits, a"
        " fifth of the points was hidden from the extensions and then placed by them.",
        facts=facts,
        footer="Made by outsample compare.",
    )
