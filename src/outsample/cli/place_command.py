"""`outsample place`: new points on the map of a model, from a file, a pipe, or line by line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from outsample.cli import options
from outsample.cli.exit_codes import (
    BAD_USE,
    INTERRUPTED,
    Failure,
    existing_file,
    plain_errors,
    reading,
)
from outsample.cli.showing import note, row_progress, show_json
from outsample.files.atomic import check_target, is_input

if TYPE_CHECKING:
    from outsample.files.matching import Matched
    from outsample.files.source import Position, Source
    from outsample.files.table_writer import Writer
    from outsample.opened_model import OpenedModel

STANDARD_OUTPUT = 1
Progress = Callable[[int, int], None]


@click.command(
    short_help="Place new points, and report how far to trust the result.",
    epilog=options.example(
        "outsample place model.outsample new.csv -o placed.csv",
        "tail -f rows.csv | outsample place model.outsample - --follow",
    ),
)
@click.argument("model", type=options.InputFile())
@click.argument("new", type=options.InputFile())
@click.option(
    "-o", "--out", default="-", show_default=True, type=click.Path(dir_okay=False),
    help="File to write; - is the standard output, as text.",
)  # fmt: skip
@options.columns("--columns", "Features in the model's order, if NEW has other names for them.")
@options.ids("Column to copy to OUT; may be repeated. Those of the model are copied if present.")
@options.DELIMITER
@options.USE_REP
@click.option("--explain", is_flag=True, help="Add main_reason and neighbors.")
@click.option(
    "--bad-rows", type=click.Choice(["stop", "empty"]),
    help="Rows without a number in every feature: stop, or leave their results empty. "
    "Default: stop; with --follow, empty.",
)  # fmt: skip
@click.option("--follow", is_flag=True, help="Answer each line of the standard input at once.")
@click.option("--resume", is_flag=True, help="Continue an interrupted run.")
@click.option("--restart", is_flag=True, help="Discard the rows of an interrupted run.")
@options.jobs("Threads; -1 for all cores.")
@options.as_json("Print one JSON document about the run; with --follow, one JSON object per line.")
def place(model: str, new: str, **settings: Any) -> None:
    """Place the points of NEW on the map of MODEL, one row each: coordinates, error_bar,
    abnormality, p_value, bound, n_neighbors.

    NEW and OUT are .csv, .tsv, .txt (also .gz), .parquet, .arrow, .feather, .npy, .npz, or - for
    text in a pipe; or .h5ad, where OUT is a copy of NEW with the placement in obsm and obs. Columns
    are matched by name. Files may be larger than memory. OUT appears when it is complete; until
    then the rows are in OUT.partial.
    """  # noqa: D205
    with plain_errors():
        _check_use(new, settings)
        from outsample.opened_model import OpenedModel

        with reading():
            opened = OpenedModel.open(existing_file(model))
        opened.empty(explain=settings["explain"])  # raises if the model has no explanations
        if settings["follow"]:
            from outsample.cli.following import follow

            follow(opened, settings)
        else:
            _place_table(model, new, opened, settings)


def _place_table(model: str, new: str, opened: OpenedModel, settings: dict[str, Any]) -> None:
    from outsample.cli.training_data import open_points
    from outsample.files.matching import check_apart, listed
    from outsample.files.tables import ending

    out, start_time = settings["out"], perf_counter()
    with reading():
        source = open_points(new, settings["use_rep"], settings["delimiter"])
    cell_names = ["obs_names"] if ending(new) == ".h5ad" else []
    matched = opened.match(
        source, columns=settings["columns"], carried=settings["ids"],
        carried_if_present=list(dict.fromkeys([*cell_names, *opened.training_columns])),
        hint=options.COLUMNS_HINT,
    )  # fmt: skip
    run = _Run(opened, source, matched, settings)
    check_apart(run.carried, list(opened.empty()))
    if matched.unused:
        unused = listed([source.names[at] for at in matched.unused])
        note(f"not in the result, because neither features nor named by --id: {unused}")
    with row_progress(source.size, silent=settings["as_json"]) as show:
        if out == "-":
            n_rows = _into_pipe(run, show)
        else:
            n_rows = _into_file(run, model, new, show)
    seconds = perf_counter() - start_time
    if settings["as_json"]:
        names = list(run.empty())
        show_json({"out": out, "n_rows": n_rows, "columns": names, "seconds": round(seconds, 3)})
    elif out != "-":
        click.echo(f"Placed {n_rows:,} points in {seconds:.1f} s.\nWrote {out}")


class _Run:
    """A table that is placed chunk by chunk."""

    def __init__(
        self, opened: OpenedModel, source: Source, matched: Matched, settings: dict[str, Any]
    ) -> None:
        self.opened, self.source, self.matched, self.settings = opened, source, matched, settings
        self.carried = [source.names[at] for at in matched.carried]

    def empty(self) -> dict[str, Any]:
        """Return the columns of a result without rows."""
        import numpy as np

        carried = {name: np.empty(0, object) for name in self.carried}
        return carried | self.opened.empty(explain=self.settings["explain"])

    def encoded(
        self, writer: Writer, start: Position, show: Progress, *, is_resumed: bool = False
    ) -> Iterator[tuple[bytes, Position | None]]:
        """Yield the bytes of the result; with those of whole chunks, where their rows end."""
        n_jobs = self.settings["jobs"]
        placed = self.opened.place_table(
            self.source,
            self.matched,
            start,
            explain=self.settings["explain"],
            n_threads=(os.cpu_count() or 1) if n_jobs == -1 else n_jobs,
            allow_bad_rows=self.settings["bad_rows"] == "empty",
        )
        has_begun = False
        for rows, placement in placed:
            columns = rows.carried | placement
            header = b"" if has_begun else writer.begin(columns)
            yield (b"" if is_resumed else header) + writer.chunk(columns), rows.end
            has_begun = True
            show(rows.end.row, rows.end.offset)
        if not has_begun and not is_resumed:
            yield writer.begin(self.empty()), None
        yield writer.end(), None


def _into_pipe(run: _Run, show: Progress) -> int:
    """Write text to the standard output; return the number of rows."""
    from outsample.files.source import Position
    from outsample.files.table_writer import TextWriter, write_all

    writer, n_rows = TextWriter(run.settings["delimiter"] or ","), 0
    for data, end in run.encoded(writer, Position(), show):
        write_all(sys.stdout.buffer, data)
        n_rows = n_rows if end is None else end.row
    return n_rows


def _into_file(run: _Run, model: str, new: str, show: Progress) -> int:
    """Write to a file; an interrupted run keeps its rows, unless they came from a pipe."""
    from outsample import __version__
    from outsample.files.model_file import identity
    from outsample.files.output import complete, writer_for
    from outsample.files.partial import PartialFile
    from outsample.files.source import CellError

    settings, out = run.settings, run.settings["out"]
    task: dict[str, Any] = {
        "version": __version__,
        "model": identity(model),
        "columns": [list(run.matched.features), list(run.matched.carried)],
        "explain": settings["explain"],
        "delimiter": settings["delimiter"],
    }
    if new != "-":
        status = os.stat(new)
        task["input"] = [os.path.abspath(new), status.st_size, status.st_mtime_ns]
    writer, partial = writer_for(out, settings["delimiter"]), PartialFile(out, task)
    if partial.open(resume=settings["resume"], restart=settings["restart"]):
        note(f"continuing after {partial.position.row} rows")
    try:
        is_resumed = partial.n_bytes > 0
        for data, end in run.encoded(writer, partial.position, show, is_resumed=is_resumed):
            partial.append(data, end)
        n_rows = partial.position.row
        complete(partial, out, new, run.opened.map_names, run.carried)
        return n_rows
    except BaseException as error:
        if new == "-":  # a pipe cannot be read again
            partial.remove()
            raise
        partial.close()
        n_rows = partial.position.row
        if n_rows and isinstance(error, KeyboardInterrupt):
            message = f"Interrupted after {n_rows} rows; to continue, add --resume to the command."
            click.echo(message, err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None
        if n_rows and isinstance(error, CellError):
            raise CellError(
                f"{error}; the {n_rows} rows before are kept: continue with --resume --bad-rows "
                "empty"
            ) from None
        raise


def _check_use(new: str, settings: dict[str, Any]) -> None:
    """Reject options that contradict one another."""
    out = settings["out"]
    if settings["follow"] and (new != "-" or out != "-"):
        raise Failure("--follow reads - and writes to the standard output", BAD_USE)
    if settings["resume"] and (new == "-" or out == "-"):
        raise Failure("--resume needs files: a pipe cannot be read again", BAD_USE)
    if settings["resume"] and settings["restart"]:
        raise Failure("give either --resume or --restart, not both", BAD_USE)
    if settings["as_json"] and out == "-" and not settings["follow"]:
        raise Failure("--json describes the run: name a file for the rows with -o", BAD_USE)
    if out == "-" and is_input(STANDARD_OUTPUT):
        raise Failure("the standard output is an input of this command", BAD_USE)
    if out != "-":
        from outsample.files.output import writer_for
        from outsample.files.tables import ending

        try:
            if ending(out) == ".h5ad" != ending(new):
                raise ValueError("an .h5ad file is written as a copy of NEW: give one")
            writer_for(out)
        except ValueError as error:
            raise Failure(str(error), BAD_USE) from error
        check_target(out)
