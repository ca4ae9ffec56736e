"""`outsample place`: new points on the map of a model, from a file, a pipe, or line by line."""

from __future__ import annotations

import os
import warnings
from time import perf_counter
from typing import Any

import click

from outsample.cli import options
from outsample.cli.exit_codes import BAD_USE, INTERRUPTED, Failure, plain_errors, reading
from outsample.cli.showing import note, row_progress, show_json
from outsample.files.atomic import check_target, is_input

STANDARD_OUTPUT = 1


@click.command(
    short_help="Place new points, and say how far to trust it.",
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
@options.columns("--columns", "Features in the model's order, where NEW has other names for them.")
@options.ids("Column carried into OUT; may be repeated. Those of the model are, where they exist.")
@options.delimiter()
@options.use_rep()
@click.option("--explain", is_flag=True, help="Add main_reason and neighbors.")
@click.option(
    "--bad-rows", type=click.Choice(["stop", "empty"]),
    help="Rows without a number in each feature: stop there, or leave their places empty. "
    "By default stop; with --follow, empty.",
)  # fmt: skip
@click.option("--follow", is_flag=True, help="Answer every line of the standard input at once.")
@click.option("--resume", is_flag=True, help="Go on where an interrupted run ended.")
@click.option("--restart", is_flag=True, help="Throw away what an interrupted run has done.")
@options.jobs("Threads; -1 for all cores.")
@options.as_json("Print one JSON document about the run; with --follow, one JSON object a line.")
def place(model: str, new: str, **given: Any) -> None:
    """Place the points of NEW on the map of MODEL, one row each: coordinates, error_bar,
    abnormality, p_value, bound, n_neighbors.

    NEW and OUT are .csv, .tsv, .txt (also .gz), .parquet, .arrow, .feather, .npy, .npz, or - for
    text in a pipe; or .h5ad, OUT then a copy of NEW with the places in obsm and obs. Columns are
    matched by name. Files may be larger than memory; OUT appears when it is complete, until then
    rows are in OUT.partial.
    """  # noqa: D205
    with plain_errors(), warnings.catch_warnings():
        # Columns are matched by name here, and given as plain arrays.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        _check_use(new, given)
        from outsample.cli.models import open_model
        from outsample.files.batch_placing import BatchPlacing

        with reading():
            opened = open_model(model)
        placing = BatchPlacing(
            opened.model,
            opened.map_names,
            explain=given["explain"],
            training_names=next(iter(opened.columns.values()), None),
        )
        if given["follow"]:
            from outsample.cli.following import follow

            follow(opened, placing, given)
        else:
            _place_table(model, new, opened, placing, given)


def _place_table(model: str, new: str, opened: Any, placing: Any, given: dict[str, Any]) -> None:
    from outsample.cli.placing_run import Run, run_into_pipe
    from outsample.cli.training_data import open_points
    from outsample.files.matching import check_apart, listed, match_features
    from outsample.files.tables import ending

    out, begin = given["out"], perf_counter()
    with reading():
        source = open_points(new, given["use_rep"], given["delimiter"])
    known = [*(["obs_names"] if ending(new) == ".h5ad" else []), *opened.columns]
    matched = match_features(
        source, opened.feature_names, opened.info.n_features, columns=given["columns"],
        carried=given["ids"], carried_if_there=list(dict.fromkeys(known)),
        hint=options.COLUMNS_HINT,
    )  # fmt: skip
    check_apart([source.names[at] for at in matched.carried], placing.names)
    if matched.unused:
        unused = listed([source.names[at] for at in matched.unused])
        note(f"left out of the answer, neither features nor named by --id: {unused}")
    jobs = (os.cpu_count() or 1) if given["jobs"] == -1 else given["jobs"]
    lenient = given["bad_rows"] == "empty"
    run = Run(source, matched, placing, jobs, lenient, given["delimiter"])
    with row_progress(source.size, silent=given["as_json"]) as tell:
        if out == "-":
            n_rows = run_into_pipe(run, tell)
        else:
            n_rows = _into_file(run, model, new, given, tell)
    seconds = perf_counter() - begin
    if out != "-" and not given["as_json"]:
        click.echo(f"Placed {n_rows:,} points in {seconds:.1f} s.\nWrote {out}")
    if given["as_json"]:
        names = [*(source.names[at] for at in matched.carried), *placing.names]
        told = {"out": out, "n_rows": n_rows, "columns": names, "seconds": round(seconds, 3)}
        show_json(told)


def _into_file(run: Any, model: str, new: str, given: dict[str, Any], tell: Any) -> int:
    from outsample import __version__
    from outsample.cli.placing_run import run_into_file
    from outsample.files.model_file import identity
    from outsample.files.partial import PartialFile
    from outsample.files.source import CellError

    task: dict[str, Any] = {
        "version": __version__,
        "model": identity(model),
        "columns": [list(run.matched.features), list(run.matched.carried)],
        "explain": given["explain"],
        "delimiter": given["delimiter"],
    }
    if new != "-":
        stat = os.stat(new)
        task["input"] = [os.path.abspath(new), stat.st_size, stat.st_mtime_ns]
    partial = PartialFile(given["out"], task)
    going_on = partial.open(resume=given["resume"], restart=given["restart"])
    if going_on:
        note(f"going on after {partial.position.row} rows")
    try:
        return int(run_into_file(run, partial, given["out"], tell))
    except BaseException as error:
        if new == "-":  # what came through a pipe cannot be read again
            partial.remove()
            raise
        partial.close()
        rows = partial.position.row
        if rows and isinstance(error, KeyboardInterrupt):
            click.echo(
                f"Interrupted after {rows} rows; the same command with --resume goes on.", err=True
            )
            raise click.exceptions.Exit(INTERRUPTED) from None
        if rows and isinstance(error, CellError):
            raise CellError(
                f"{error}; the {rows} rows before are kept: go on with --resume --bad-rows empty"
            ) from None
        raise


def _check_use(new: str, given: dict[str, Any]) -> None:
    """Refuse options that contradict one another."""
    if given["follow"] and (new != "-" or given["out"] != "-"):
        raise Failure("--follow reads - and writes to the standard output", BAD_USE)
    if given["resume"] and (new == "-" or given["out"] == "-"):
        raise Failure("--resume needs files: what came through a pipe is gone", BAD_USE)
    if given["resume"] and given["restart"]:
        raise Failure("--resume and --restart exclude one another", BAD_USE)
    if given["as_json"] and given["out"] == "-" and not given["follow"]:
        raise Failure("--json tells about the run: name a file for the rows with -o", BAD_USE)
    if given["out"] == "-" and is_input(STANDARD_OUTPUT):
        raise Failure("the standard output is an input of this command", BAD_USE)
    if given["out"] != "-":
        from outsample.files.output import writer_for
        from outsample.files.tables import ending

        try:
            if ending(given["out"]) == ".h5ad" != ending(new):
                raise ValueError("an .h5ad file is written as a copy of NEW: give one")
            writer_for(given["out"])
        except ValueError as error:
            raise Failure(str(error), BAD_USE) from error
        check_target(given["out"])
