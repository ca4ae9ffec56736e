"""`outsample bench tables`: errors of preparations on maps of real tables, and p-values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.manifold import TSNE

from outsample import NoveltyDetector, PCAExtension, PreparedModel
from outsample.points import map_size, relative_error
from outsample.preparation.columns import Columns
from outsample.preparation.recipes import Recipe, build_pipeline, output_sources
from outsample.preparation.table_cells import read_table
from outsample.preparation.table_preparation import TablePreparation
from outsample_lab.tables.real_tables import SOURCES, read

N_ROWS, QUICK_ROWS, TRAINING_SHARE, MISSING_SHARE = 600, 200, 0.75, 0.2
QUICK = ("penguins", "Chile")
# Preparations that maps are made of, and that new rows are placed from.
FIXED = {
    "standard": Recipe(),
    "robust": Recipe("robust"),
    "rank": Recipe("rank"),
    "range": Recipe("range"),
    "numbers": Recipe(has_categories=False),
    "raw numbers": Recipe("raw", has_categories=False),
}
MAPS = ("standard", "rank", "range", "numbers", "raw numbers", "unknown weights")


def run_tables(
    out: Path, *, quick: bool = False, names: tuple[str, ...] = (), show: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Measure every table and map, write ``tables.json``, and return the rows."""
    rows: list[dict[str, Any]] = []
    out.mkdir(parents=True, exist_ok=True)
    for name in names or (QUICK if quick else SOURCES):
        for row in measure(name, read(name, QUICK_ROWS if quick else N_ROWS)):
            rows.append(row)
            show(describe(row))
        (out / "tables.json").write_text(json.dumps(rows, indent=1))
    for line in summary(rows):
        show(line)
    return rows


def measure(name: str, table: Any) -> Iterator[dict[str, Any]]:
    """Yield the errors on each map of a table, then the p-values of its rows."""
    n_train = int(TRAINING_SHARE * len(table))
    train, test = slice(0, n_train), slice(n_train, None)
    # Maps are made of all rows, positions are computed from the training rows alone.
    all_columns, all_encoded = _encode(table, table)
    columns, encoded = _encode(table[train], table)
    has_numbers = any(c.kind in ("number", "date", "vector") for c in columns)
    fixed = {k: r for k, r in FIXED.items() if has_numbers or k == "standard"}
    for map_name in MAPS:
        if map_name not in (*fixed, "unknown weights"):
            continue
        points = _points(map_name, all_columns, all_encoded, name)
        Y = TSNE(random_state=0).fit_transform(points).astype(np.float64)
        row: dict[str, Any] = {"table": name, "map": map_name, "n": n_train, "fixed": {}}
        for label, recipe in fixed.items():
            pipeline = build_pipeline(recipe, columns, encoded[train])
            extension = PCAExtension().fit(pipeline.transform(encoded[train]), Y[train])
            placed = extension.transform(pipeline.transform(encoded[test]))
            row["fixed"][label] = relative_error(placed, Y[test], map_size(Y))
        started = perf_counter()
        model = PreparedModel(PCAExtension()).fit(table[train], Y[train])
        row["fit_seconds"] = perf_counter() - started
        placement = model.place(table[test])
        row["error"] = relative_error(placement.coordinates, Y[test], map_size(Y))
        errors = np.linalg.norm(placement.coordinates - Y[test], axis=1)
        row["coverage"] = float((errors <= placement.error_bar).mean())
        row["chosen"] = [t.preparation for t in model.selection_ if t.is_chosen]
        yield row
    detector = PreparedModel(NoveltyDetector()).fit(table[train])
    new = table[test]
    gaps = new.mask(np.random.default_rng(1).random(new.shape) < MISSING_SHARE)
    yield {
        "table": name,
        "fresh": float((detector.p_values(new) <= 0.05).mean()),
        "fresh_with_gaps": float((detector.p_values(gaps) <= 0.05).mean()),
    }


def _encode(training: Any, table: Any) -> tuple[Columns, np.ndarray]:
    """Return the columns that the training rows have, and all rows encoded by them."""
    columns = TablePreparation().fit(training).columns_
    cells = zip(columns, read_table(table).columns, strict=True)
    return columns, np.hstack([c.encode(values) for c, values in cells if c.outputs])


def _points(map_name: str, columns: Columns, encoded: np.ndarray, name: str) -> np.ndarray:
    """Return the points that a map is made of; with unknown weights, none of the searched ones."""
    if map_name != "unknown weights":
        return build_pipeline(FIXED[map_name], columns, encoded).transform(encoded)
    rng = np.random.default_rng(sum(map(ord, name)))
    weights = np.exp(rng.uniform(-1.5, 1.5, len(columns)))
    points = build_pipeline(Recipe(), columns, encoded).transform(encoded)
    return points * weights[output_sources(Recipe(), columns, encoded)]


def describe(row: dict[str, Any]) -> str:
    """Return one line about a row."""
    if "map" not in row:
        return f"{row['table']}: P(p <= 0.05) {row['fresh']:.3f}, gaps {row['fresh_with_gaps']:.3f}"
    best = min(row["fixed"], key=row["fixed"].get)
    ratios = row["error"] / row["fixed"][best], row["error"] / row["fixed"]["standard"]
    return (
        f"{row['table']}, map of {row['map']}: error {row['error']:.4f}, {ratios[0]:.3f} of the"
        f" best fixed ({best}), {ratios[1]:.3f} of standard, bars hold {row['coverage']:.2f},"
        f" {row['chosen']}, {row['fit_seconds']:.1f} s"
    )


def summary(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the figures over all tables."""
    maps = [row for row in rows if "map" in row]
    for label, part in (
        ("maps of a fixed preparation", [r for r in maps if r["map"] != "unknown weights"]),
        ("maps with unknown weights", [r for r in maps if r["map"] == "unknown weights"]),
    ):
        if part:
            to_best = [r["error"] / min(r["fixed"].values()) for r in part]
            to_standard = [r["error"] / r["fixed"]["standard"] for r in part]
            yield (
                f"{label}: {len(part)}; error over that of the best fixed preparation"
                f" {np.exp(np.mean(np.log(to_best))):.3f} (largest {max(to_best):.3f}), over"
                f" standard {np.exp(np.mean(np.log(to_standard))):.3f} (largest"
                f" {max(to_standard):.3f}); bars hold {np.mean([r['coverage'] for r in part]):.3f}"
            )
    tables = [row for row in rows if "map" not in row]
    if tables:
        fresh, gaps = (np.array([r[k] for r in tables]) for k in ("fresh", "fresh_with_gaps"))
        yield (
            f"P(p <= 0.05) of new rows {fresh.mean():.3f} (largest {fresh.max():.3f}), with"
            f" {MISSING_SHARE:.0%} of the cells missing {gaps.mean():.3f}"
            f" (largest {gaps.max():.3f})"
        )
