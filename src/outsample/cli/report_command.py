"""`outsample report`: a page that shows a map and what was placed on it."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import click

from outsample.cli import options
from outsample.cli.exit_codes import BAD_DATA, Failure, plain_errors, reading
from outsample.cli.showing import note, waiting
from outsample.files.atomic import check_target


@click.command(
    short_help="Write a page that shows the map and what was placed.",
    epilog=options.example("outsample report model.outsample placed.csv -o page.html"),
)
@click.argument("model", type=options.InputFile())
@click.argument("placed", metavar="[PLACED]", required=False, type=options.InputFile())
@click.option(
    "-o", "--out", type=click.Path(dir_okay=False),
    help="Page to write; by default the name of the model with .html.",
)  # fmt: skip
@click.option("--title", help="Title of the page; by default the name of the model.")
@options.delimiter()
def report(
    model: str, placed: str | None, out: str | None, title: str | None, delimiter: str | None
) -> None:
    """Write one HTML page that needs nothing else: the map of MODEL, and the points PLACED on it.

    PLACED is what `outsample place` has written, best with --explain; or new points, which are
    placed and explained first.
    """
    with plain_errors(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        from outsample.cli.models import open_model
        from outsample.report.map_page import write_map_page
        from outsample.report.page import check_writable

        page = out or str(Path(model).with_suffix(".html"))
        with reading():
            opened = open_model(model)
        check_writable(Path(page).absolute().parent)
        check_target(page)
        with reading():
            points = None if placed is None else _points(placed, delimiter, opened)
        if points is not None:
            points = _with_places(points, opened.map_names)
        with waiting("drawing", silent=False):
            write_map_page(
                page, opened.model, map_names=opened.map_names, columns=opened.columns,
                placed=points, title=title or Path(model).stem,
            )  # fmt: skip
        click.echo(f"Wrote {page}")


def _points(path: str, delimiter: str | None, opened: Any) -> dict[str, Any]:
    """Columns of placed points; new points are placed and explained here."""
    from outsample.files.tables import open_table

    source = open_table(path, delimiter=delimiter)
    if all(name in source.names for name in opened.map_names):
        return _read_placed(source)
    known = opened.feature_names or []
    if known and not any(name in source.names for name in known) and source.has_names:
        raise Failure(
            f"{path}: has neither the coordinates {', '.join(opened.map_names)} nor the features "
            "of the model",
            BAD_DATA,
        )
    return _placed_now(source, opened)


def _read_placed(source: Any) -> dict[str, Any]:
    from outsample.files.tables import feature_columns, joined, whole_column

    every = feature_columns(source)
    parts = [part.carried for part in source.rows([], every)]
    columns: dict[str, Any] = {}
    for name in (source.names[at] for at in every):
        cells = [part[name] for part in parts]
        columns[name] = joined(cells) if name == "neighbors" else whole_column(cells)
    return _near(columns)


def _placed_now(source: Any, opened: Any) -> dict[str, Any]:
    import numpy as np

    from outsample.files.batch_placing import BatchPlacing
    from outsample.files.matching import match_features
    from outsample.files.tables import feature_columns, read_columns, typed

    matched = match_features(
        source, opened.feature_names, opened.info.n_features, carried_if_there=list(opened.columns)
    )
    others = [at for at in feature_columns(source) if at not in matched.features]
    X, carried = read_columns(source, matched.features, others)
    explain = hasattr(opened.model, "explain")
    placing = BatchPlacing(opened.model, opened.map_names, explain=explain)
    columns = {name: typed(values) for name, values in carried.items()} | placing.columns(X)
    plain = {
        name: np.ma.filled(values.astype(float), np.nan) if np.ma.is_masked(values) else values
        for name, values in columns.items()
    }
    return _near(plain)


def _with_places(columns: dict[str, Any], map_names: list[str]) -> dict[str, Any]:
    """Leave out rows that could not be placed, and say how many they are."""
    import numpy as np

    there = np.isfinite([np.asarray(columns[name], dtype=float) for name in map_names]).all(axis=0)
    if there.all():
        return columns
    note(f"left out of the page: {int((~there).sum())} rows without a place")
    rows = np.flatnonzero(there)
    return {
        name: values[rows] if isinstance(values, np.ndarray) else [values[row] for row in rows]
        for name, values in columns.items()
    }


def _near(columns: dict[str, Any]) -> dict[str, Any]:
    """Neighbours as two lists a point, rows and distances, which the page takes."""
    cells = columns.pop("neighbors", None)
    if cells is None:
        return columns
    told = [json.loads(cell) if isinstance(cell, str) and cell else cell or {} for cell in cells]
    columns["neighbors"] = [one.get("ids", []) for one in told]
    columns["neighbor_distances"] = [one.get("distances", []) for one in told]
    return columns
