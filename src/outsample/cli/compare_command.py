"""`outsample compare`: hold-out errors of several extensions on a map."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path
from typing import Any

import click

from outsample.cli import options
from outsample.cli.exit_codes import plain_errors, reading
from outsample.cli.showing import show, show_json
from outsample.files.atomic import check_target


@click.command(
    short_help="Which extension is best on your own map?",
    epilog=options.example("outsample compare points.csv map.csv --out comparison"),
)
@click.argument("points", type=options.InputFile())
@click.argument("map_", metavar="[MAP]", required=False, type=options.InputFile())
@click.option("--out", type=click.Path(file_okay=False), help="Folder for JSON, CSV and a page.")
@click.option(
    "--splits", type=click.IntRange(1), default=3, show_default=True, help="Random splits."
)
@click.option("--seed", default=0, show_default=True, help="Seed of the splits.")
@options.table_options
@options.as_json()
def compare(
    points: str,
    map_: str | None,
    out: str | None,
    splits: int,
    seed: int,
    as_json: bool,
    **settings: Any,
) -> None:
    """Hold out a fifth of the points, place them, and show the error of each method.

    POINTS and MAP have one row per point, as for `outsample fit`. MAP may be omitted if POINTS
    contains it.
    """
    from outsample.cli.training_data import TableOptions, read_training
    from outsample.comparison.compare import compare as measure_all
    from outsample.report.comparison_page import (
        FILES,
        Compared,
        comparison_record,
        comparison_table,
        write_comparison,
    )
    from outsample.report.page import check_writable
    from outsample.report.terminal import shown_progress

    with plain_errors():
        with reading():
            data = read_training(points, map_, TableOptions(**settings))
        X, Y = data.X, data.Y
        assert Y is not None
        if out is not None:
            check_writable(out)
            for name in FILES:
                check_target(Path(out) / name)
        with shown_progress(silent=as_json) as progress:
            done = count(1)
            progress(0.0, "comparing")
            rows = measure_all(
                X, Y, n_splits=splits, random_state=seed,
                on_row=lambda row: progress(min(1.0, next(done) / 4), f"{row.name} done"),
            )  # fmt: skip
            progress(1.0, "done")
        compared = Compared(len(X), X.shape[1], Y.shape[1], splits, seed)
        written: list[Path] = []  # before anything is printed, in case the pipe is closed
        if out is not None:
            written = write_comparison(out, rows, compared)
        if as_json:
            show_json(comparison_record(rows, compared))
            return
        if sys.stdout.isatty():
            show("Hold-out errors over the size of the map", comparison_table(rows))
        else:
            click.echo(str(rows))
        for path in written:
            click.echo(f"Wrote {path}")
