"""The command line. Heavy imports live inside the commands, so that help is instant."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outsample import __version__
from outsample.report.terminal import shown_progress as _progress
from outsample.report.terminal import terminal_table

if TYPE_CHECKING:
    from outsample.lab.bench_files import Bench
    from outsample.report.page import Table


def _out(default: str, what: str) -> Callable[..., Any]:
    folder = click.Path(file_okay=False)
    words = f"Folder of {what}; made if missing."
    return click.option("--out", type=folder, default=default, show_default=True, help=words)


def _data(what: str, instead: str = "") -> Callable[..., Any]:
    words = f"Folder with {what}; else OUTSAMPLE_DATA, else ../shared/data{instead}."
    return click.option("--data", type=click.Path(exists=True, file_okay=False), help=words)


def _again(words: str) -> Callable[..., Any]:
    """Return the option that draws again from the file of an earlier run."""
    file = click.Path(exists=True, dir_okay=False)
    return click.option("--from", "results_file", type=file, help=f"{words} of an earlier run.")


def _quick(words: str) -> Callable[..., Any]:
    return click.option("--quick", is_flag=True, help=words)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="outsample", message="%(prog)s %(version)s")
def main() -> None:
    """Place new points on an existing map, and say how far to trust it."""


@main.command(short_help="See it work: two experiments and a page.")
@_out("outsample-demo", "the page")
@_quick("Smaller data: see in seconds that everything works.")
def demo(out: str, quick: bool) -> None:
    """Place points whose true place is known, and write a page that shows how well.

    Runs the sphere of the paper's Table 7.1 and a t-SNE map of handwritten digits, beside
    inverse-distance nearest neighbours.
    """
    from outsample.lab.demo.demo import FULL, QUICK, demo_tables, run_demo

    with _plain_errors():
        with _progress() as progress:
            result = run_demo(out, QUICK if quick else FULL, progress)
        for titled in demo_tables(result):
            _show(*titled)
        click.echo(f"Report: {result.page}")


@main.command(short_help="Which extension is best on your own map?")
@click.argument("points", type=click.Path())
@click.argument("map_", metavar="[MAP]", required=False, type=click.Path())
@click.option("--out", type=click.Path(file_okay=False), help="Folder for JSON, CSV and a page.")
@click.option("--splits", default=3, show_default=True, help="Random splits.")
@click.option("--seed", default=0, show_default=True, help="Seed of the splits.")
def compare(points: str, map_: str | None, out: str | None, splits: int, seed: int) -> None:
    """Hide a fifth of a map's images, place them again, and show how far off each method is.

    POINTS and MAP are files with one row a point: .npy, .npz (arrays X and Y), .csv or .parquet.
    MAP may be left out if POINTS is an .npz file with both.
    """
    from outsample.comparison.compare import compare as measure_all
    from outsample.files.tables import read_pair
    from outsample.report.comparison_page import Compared, comparison_table, write_comparison
    from outsample.report.page import check_writable

    with _plain_errors():
        X, Y = read_pair(points, map_)
        if out is not None:
            check_writable(out)
        with _progress() as progress:
            done = count(1)
            progress(0.0, "comparing")
            rows = measure_all(
                X, Y, n_splits=splits, random_state=seed,
                on_row=lambda row: progress(min(1.0, next(done) / 4), f"{row.name} done"),
            )  # fmt: skip
            progress(1.0, "done")
        written: list[Path] = []  # before anything is shown: a closed pipe must not cost them
        if out is not None:
            compared = Compared(len(X), X.shape[1], Y.shape[1], splits, seed)
            written = write_comparison(out, rows, compared)
        if sys.stdout.isatty():
            _show("Hold-out errors over the size of the map", comparison_table(rows))
        else:
            click.echo(str(rows))
        for path in written:
            click.echo(f"Wrote {path}")


@main.group(invoke_without_command=True, short_help="Measure against other libraries.")
@click.pass_context
def bench(context: click.Context) -> None:
    """Measure this library and others on the same data; without a command: accuracy."""
    if context.invoked_subcommand is None:
        context.invoke(bench_accuracy)


def _bench_options(quick: str, data: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator with the options of every benchmark; the words tell what differs."""
    options = [
        _quick(f"{quick}: under a minute."),
        _out("outsample-bench", "the figures, the picture and the page"),
        _data(data),
        _again("Measure nothing: draw picture and page again from the JSON"),
    ]

    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(options):
            command = option(command)
        return command

    return with_options


@bench.command("accuracy", short_help="How near to the truth, on maps of every kind.")
@_bench_options("Three small maps and one split", "embedding/mnist.npz")
@click.option("--maps", multiple=True, metavar="NAME", help="Only these maps; may be repeated.")
def bench_accuracy(maps: tuple[str, ...], **options: Any) -> None:
    """Hide points of many maps, place them again, and compare with other methods.

    Needs the extra outsample[bench] for UMAP and openTSNE; what is missing is skipped and said.
    """
    from outsample.lab.accuracy.accuracy_bench import ACCURACY

    _bench(ACCURACY, **options, names=maps)


@bench.command("novelty", short_help="Strange rows among normal ones, on sets of every kind.")
@_bench_options("A few small sets and one seed", "outliers/, embedding/mnist.npz and darpa98/")
@click.option("--sets", multiple=True, metavar="NAME", help="Only these sets; may be repeated.")
@click.option(
    "--detectors", multiple=True, metavar="NAME", help="Only these detectors; may be repeated."
)
def bench_novelty(sets: tuple[str, ...], detectors: tuple[str, ...], **options: Any) -> None:
    """Let detectors learn normal rows, show them new ones, and compare how they rank them.

    Needs the extra outsample[bench] for PyOD, and torch for one of its detectors; what is missing
    is said. Without data files the digits are left, and simulated traffic.
    """
    from outsample.lab.novelty.novelty_bench import NOVELTY

    _bench(NOVELTY, **options, names=sets, listed=detectors)


def _bench(
    bench: Bench[Any], *, out: str, data: str | None, results_file: str | None, **choice: Any
) -> None:
    """Measure, or draw again what was measured; then show it."""
    from outsample.lab.environment import data_folder

    with _plain_errors():
        if results_file is not None:
            found = bench.draw_again(out, results_file)
        else:
            with _progress() as progress:
                given = {"folder": data_folder(data), "progress": progress, "show": _show}
                found = bench.run(out, **given, **choice)
        for titled in found.tables:
            _show(*titled)
        _show_files(found.seconds, found.files)


@main.command(short_help="Run the paper's experiments again.")
@_data("darpa98/", ", else simulated traffic")
@_out("outsample-reproduction", "results.json and report.html")
@_quick("Fewer grids, sizes and repetitions: under a minute.")
@_again("Run nothing: draw the page again from the results.json")
def reproduce(data: str | None, out: str, quick: bool, results_file: str | None) -> None:
    """Run Section 7 of the paper whole, and write every number beside the paper's.

    Table 7.1 and Fig. 7.1 and 7.2 (the sphere), Fig. 7.3 (extensions of a diffusion map), Fig. 7.4
    to 7.6 (a day of network traffic and its odd minutes), and the costs of Section 6. Without the
    data files traffic is simulated, and labelled so.
    """
    from outsample.lab.environment import data_folder
    from outsample.lab.paper.reproduction import FULL, QUICK, draw_again, run_reproduction
    from outsample.lab.paper.reproduction_summary import summary_tables

    with _plain_errors():
        with _progress() as progress:
            found = draw_again(results_file, out) if results_file else run_reproduction(
                out, folder=data_folder(data), size=QUICK if quick else FULL, progress=progress
            )  # fmt: skip
        for titled in summary_tables(found.results):
            _show(*titled)
        if found.results.data.notice:
            click.echo(found.results.data.notice)
        _show_files(found.seconds, found.files)


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Say in one line what is wrong with the input, or with the file to write to."""
    try:
        yield
    except ValueError as error:
        raise click.ClickException(" ".join(str(error).split())) from error
    except BrokenPipeError:  # whoever read has seen enough: click ends without a word
        raise
    except OSError as error:
        # Files are written by `write_file`, which names them; printing does not.
        target = error.filename or "the standard output"
        reason = error.strerror or str(error)
        raise click.ClickException(f"cannot write to {target}: {reason}") from error


def _show(title: str, table: Table | None) -> None:
    """Print a table under its title, or the title alone."""
    from rich.console import Console

    if table is None:
        click.echo(title)
    else:  # colours and line drawing only where the output can show them
        console = Console()
        console.print(terminal_table(title, table, console.width))


def _show_files(seconds: float, files: Sequence[Path]) -> None:
    click.echo(f"{seconds:.0f} s")
    for path in files:
        click.echo(f"Wrote {path}")
