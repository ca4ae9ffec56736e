"""`outsample report`: a page that shows a map and the points placed on it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outsample.cli import options
from outsample.cli.exit_codes import BAD_DATA, Failure, existing_file, plain_errors, reading
from outsample.cli.showing import note, waiting
from outsample.files.atomic import check_target

if TYPE_CHECKING:
    from outsample.opened_model import OpenedModel


@click.command(
    short_help="Write a page that shows the map and the placed points.",
    epilog=options.example("outsample report model.outsample placed.csv -o page.html"),
)
@click.argument("model", type=options.InputFile())
@click.argument("placed", metavar="[PLACED]", required=False, type=options.InputFile())
@click.option(
    "-o", "--out", type=click.Path(dir_okay=False),
    help="Page to write; by default the name of the model with .html.",
)  # fmt: skip
@click.option("--title", help="Title of the page; by default the name of the model.")
@options.DELIMITER
def report(
    model: str, placed: str | None, out: str | None, title: str | None, delimiter: str | None
) -> None:
    """Write one self-contained HTML page: the map of MODEL, and the points PLACED on it.

    PLACED is a file written by `outsample place`, best with --explain; or new points, which are
    placed and explained first.
    """
    with plain_errors():
        from outsample.opened_model import OpenedModel
        from outsample.report.map_page import write_map_page
        from outsample.report.page import check_writable

        page = out or str(Path(model).with_suffix(".html"))
        with reading():
            opened = OpenedModel.open(existing_file(model))
        check_writable(Path(page).absolute().parent)
        check_target(page)
        with reading():
            points = None if placed is None else _placed_points(placed, delimiter, opened)
        with waiting("drawing", silent=False):
            write_map_page(
                page, opened.model, map_names=opened.map_names, columns=opened.training_columns,
                placed=points, title=title or Path(model).stem,
            )  # fmt: skip
        click.echo(f"Wrote {page}")


def _placed_points(path: str, delimiter: str | None, opened: OpenedModel) -> dict[str, Any]:
    """Return the columns of placed points; new points are placed and explained first."""
    import numpy as np

    from outsample.files.tables import joined, open_table, read_columns, whole_column

    source = open_table(path, delimiter=delimiter)
    every, feature_names = list(source.feature_columns), opened.feature_names
    if all(name in source.names for name in opened.map_names):
        chunks = [rows.carried for rows in source.rows([], every)]
        names = [source.names[at] for at in every]
        columns: dict[str, Any] = {
            name: joined([chunk[name] for chunk in chunks] or [np.empty(0, object)])
            for name in names
        }
    elif feature_names and source.has_names and not {*feature_names} & {*source.names}:
        raise Failure(
            f"{path}: has neither the coordinates {', '.join(opened.map_names)} nor the features "
            "of the model",
            BAD_DATA,
        )
    else:
        matched = opened.match(source, carried_if_present=list(opened.training_columns))
        others = [at for at in every if at not in matched.features]
        X, carried = read_columns(source, matched.features, others)
        columns = carried | opened.place_rows(X, explain=opened.can_explain)
    cells = columns.pop("neighbors", None)
    columns = {name: whole_column([values]) for name, values in columns.items()}
    if cells is not None:
        records = [json.loads(cell) if isinstance(cell, str) and cell else cell for cell in cells]
        columns["neighbors"] = [(record or {}).get("ids", []) for record in records]
        columns["neighbor_distances"] = [(record or {}).get("distances", []) for record in records]
    return _with_coordinates(columns, opened.map_names)


def _with_coordinates(columns: dict[str, Any], map_names: list[str]) -> dict[str, Any]:
    """Return the rows that have coordinates, and print how many have none."""
    import numpy as np

    coordinates = [np.asarray(columns[name], dtype=float) for name in map_names]
    is_placed = np.isfinite(coordinates).all(axis=0)
    if is_placed.all():
        return columns
    note(f"not on the page: {int((~is_placed).sum())} rows without coordinates")
    rows = np.flatnonzero(is_placed)
    return {
        name: values[rows] if isinstance(values, np.ndarray) else [values[row] for row in rows]
        for name, values in columns.items()
    }
