"""The command line. Heavy imports live inside the commands, so that help is instant."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

import click

from outsample import __version__

if TYPE_CHECKING:
    from numpy import ndarray
    from rich.table import Table

    from outsample.comparison.compare import Comparison
    from outsample.lab.accuracy.errors import MapResult
    from outsample.lab.demo.demo import Result
    from outsample.lab.novelty.ranking import SetResult

__all__ = ["main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="outsample", message="%(prog)s %(version)s")
def main() -> None:
    """Place new points on an existing map, and say how far to trust it."""


@main.command(short_help="See it work: two experiments and a page.")
@click.option(
    "--out",
    type=click.Path(file_okay=False),
    default="outsample-demo",
    show_default=True,
    help="Folder of the page; made if missing.",
)
@click.option("--quick", is_flag=True, help="Smaller data: see in seconds that everything works.")
def demo(out: str, quick: bool) -> None:
    """Place points whose true place is known, and write a page that shows how well.

    Runs the sphere of the paper's Table 7.1 and a t-SNE map of handwritten digits, beside
    inverse-distance nearest neighbours.
    """
    from outsample.lab.demo.demo import FULL, QUICK, run_demo

    try:
        with _progress() as progress:
            result = run_demo(out, QUICK if quick else FULL, progress)
    except OSError as error:
        reason = error.strerror or str(error)
        raise click.ClickException(f"cannot write to {out}: {reason}") from error
    _print(_demo_table(result))
    _print(_belonging_table(result))
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
    from outsample.comparison.compare import ComparisonRow
    from outsample.comparison.compare import compare as measure_all
    from outsample.report.comparison_page import write_comparison
    from outsample.report.page import check_writable

    with _plain_errors(out):
        X, Y = _read_pair(points, map_)
        if out is not None:
            check_writable(out)
        with _progress() as progress:
            seen: list[ComparisonRow] = []

            def on_row(row: ComparisonRow) -> None:
                seen.append(row)
                progress(min(1.0, len(seen) / 4), f"{row.name} done")

            progress(0.0, "comparing")
            rows = measure_all(X, Y, n_splits=splits, random_state=seed, on_row=on_row)
            progress(1.0, "done")
        _print(_comparison_table(rows)) if sys.stdout.isatty() else click.echo(str(rows))
        if out is not None:
            facts = {"n_points": len(X), "n_columns": X.shape[1], "n_components": Y.shape[1]}
            for path in write_comparison(out, rows, facts | {"n_splits": splits, "seed": seed}):
                click.echo(f"Wrote {path}")


@main.group(invoke_without_command=True, short_help="Measure against other libraries.")
@click.pass_context
def bench(context: click.Context) -> None:
    """Measure this library and others on the same data; without a command: accuracy."""
    if context.invoked_subcommand is None:
        context.invoke(bench_accuracy)


@bench.command("accuracy", short_help="How near to the truth, on maps of every kind.")
@click.option("--quick", is_flag=True, help="Three small maps and one split: under a minute.")
@click.option(
    "--out",
    type=click.Path(file_okay=False),
    default="outsample-bench",
    show_default=True,
    help="Folder of the figures, the picture and the page; made if missing.",
)
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False),
    help="Folder with embedding/mnist.npz; else OUTSAMPLE_DATA, else ../shared/data.",
)
@click.option("--maps", multiple=True, metavar="NAME", help="Only these maps; may be repeated.")
def bench_accuracy(quick: bool, out: str, data: str | None, maps: tuple[str, ...]) -> None:
    """Hide points of many maps, place them again, and compare with other methods.

    Needs the extra outsample[bench] for UMAP and openTSNE; what is missing is skipped and said.
    """
    from outsample.lab.accuracy import accuracy_bench as benches
    from outsample.lab.environment import data_folder

    def show(result: MapResult) -> None:
        if result.skipped:
            click.echo(f"{result.spec.title}: skipped, {result.skipped}")
        else:
            _print(benches.map_table(result))

    with _plain_errors(out):
        with _progress() as progress:
            found = benches.run_accuracy(
                out,
                names=maps,
                quick=quick,
                folder=data_folder(data),
                progress=progress,
                on_map=show,
            )
        _print(benches.summary_table(found.results))
        click.echo(f"{found.seconds:.0f} s")
        for path in found.files:
            click.echo(f"Wrote {path}")


@bench.command("novelty", short_help="Strange rows among normal ones, on sets of every kind.")
@click.option("--quick", is_flag=True, help="A few small sets and one seed: under a minute.")
@click.option(
    "--out",
    type=click.Path(file_okay=False),
    default="outsample-bench",
    show_default=True,
    help="Folder of the figures, the picture and the page; made if missing.",
)
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False),
    help="Folder with outliers/, embedding/mnist.npz and darpa98/; else OUTSAMPLE_DATA, else"
    " ../shared/data.",
)
@click.option("--sets", multiple=True, metavar="NAME", help="Only these sets; may be repeated.")
@click.option(
    "--detectors", multiple=True, metavar="NAME", help="Only these detectors; may be repeated."
)
def bench_novelty(
    quick: bool, out: str, data: str | None, sets: tuple[str, ...], detectors: tuple[str, ...]
) -> None:
    """Let detectors learn normal rows, show them new ones, and compare how they rank them.

    Needs the extra outsample[bench] for PyOD, and torch for one of its detectors; what is missing
    is said. Without data files the digits are left, and simulated traffic.
    """
    from outsample.lab.environment import data_folder
    from outsample.lab.novelty import novelty_bench as benches

    def show(result: SetResult) -> None:
        if result.skipped:
            click.echo(f"{result.title}: skipped, {result.skipped}")
        else:
            _print(benches.set_table(result))

    with _plain_errors(out):
        with _progress() as progress:
            found = benches.run_novelty(
                out,
                names=sets,
                quick=quick,
                folder=data_folder(data),
                listed=detectors,
                progress=progress,
                on_set=show,
            )
        for table in benches.standing_tables(found.results):
            _print(table)
        click.echo(f"{found.seconds:.0f} s")
        for path in found.files:
            click.echo(f"Wrote {path}")


@main.command(short_help="Run the paper's experiments again.")
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False),
    help="Folder with darpa98/; else OUTSAMPLE_DATA, else ../shared/data, else simulated traffic.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False),
    default="outsample-reproduction",
    show_default=True,
    help="Folder of results.json and report.html; made if missing.",
)
@click.option("--quick", is_flag=True, help="Fewer grids, sizes and repetitions: under a minute.")
@click.option(
    "--from",
    "results_file",
    type=click.Path(exists=True, dir_okay=False),
    help="Run nothing: draw the page again from the results.json of an earlier run.",
)
def reproduce(data: str | None, out: str, quick: bool, results_file: str | None) -> None:
    """Run Section 7 of the paper whole, and write every number beside the paper's.

    Table 7.1 and Fig. 7.1 and 7.2 (the sphere), Fig. 7.3 (extensions of a diffusion map), Fig. 7.4
    to 7.6 (a day of network traffic and its odd minutes), and the costs of Section 6. Without the
    data files traffic is simulated, and labelled so.
    """
    from outsample.lab.environment import data_folder
    from outsample.lab.paper.reproduction import FULL, QUICK, draw_again, run_reproduction
    from outsample.lab.paper.reproduction_summary import summary_tables

    with _plain_errors(out):
        with _progress() as progress:
            found = draw_again(results_file, out) if results_file else run_reproduction(
                out, folder=data_folder(data), size=QUICK if quick else FULL, progress=progress
            )  # fmt: skip
        for table in summary_tables(found.results):
            _print(table)
        if found.results.data.notice:
            click.echo(found.results.data.notice)
        click.echo(f"{found.seconds:.0f} s")
        for path in found.files:
            click.echo(f"Wrote {path}")


@contextmanager
def _plain_errors(out: str | None) -> Iterator[None]:
    """Say in one line what is wrong with the input, or with the folder to write to."""
    try:
        yield
    except ValueError as error:
        raise click.ClickException(" ".join(str(error).split())) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise click.ClickException(f"cannot write to {out}: {reason}") from error


def _read_pair(points: str, map_: str | None) -> tuple[ndarray, ndarray]:
    """Read points and images, as many of the one as of the other."""
    from outsample.files.tables import read_table

    if map_ is None and not points.lower().endswith(".npz"):
        raise ValueError("MAP is missing; only an .npz file can hold both points and map")
    try:
        X, Y = read_table(points, "X"), read_table(map_ or points, "Y")
    except OSError as error:
        raise ValueError(f"{error.filename}: {error.strerror}") from error
    if len(X) != len(Y):
        raise ValueError(f"{points} has {len(X)} rows, but {map_ or points} has {len(Y)}")
    return X, Y


@contextmanager
def _progress() -> Iterator[Callable[[float, str], None]]:
    """Show a bar and the time left on a terminal, one plain line a step elsewhere."""
    if not sys.stderr.isatty():
        seen: set[str] = set()
        begin = monotonic()

        def tell(share: float, what_next: str) -> None:
            if what_next not in seen:
                seen.add(what_next)
                click.echo(f"[{share:4.0%}] {what_next}{_left(begin, share)}", err=True)

        yield tell
        return

    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description:<24}"),
        BarColumn(),
        TimeRemainingColumn(compact=True),
        TextColumn("left"),
    )
    # What is printed meanwhile goes above the bar; but never into it, when it goes to a file.
    above = sys.stdout.isatty()
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, redirect_stdout=above) as bar:
        task = bar.add_task("starting", total=1.0)
        yield lambda share, what_next: bar.update(task, completed=share, description=what_next)


def _left(begin: float, share: float) -> str:
    """Say how long the rest of a long task takes, if the past is a measure of it."""
    passed = monotonic() - begin
    if passed < 10 or not 0 < share < 1:
        return ""
    return f" ({passed * (1 - share) / share / 60:.1f} min left)"


def _demo_table(result: Result) -> Table:
    """Lay both experiments out, each error beside that of inverse-distance neighbours."""
    from rich.table import Table

    from outsample.lab.methods import REFERENCE, TITLES

    table = Table(title="Mean error of points whose true place is known", title_justify="left")
    table.add_column("Data")
    table.add_column("Method")
    for heading in ("Error", "vs 15-NN", "Paper"):
        table.add_column(heading, justify="right")
    grids = sorted({row.n_points for row in result.sphere})
    blocks = [(f"sphere, {n}", [row for row in result.sphere if row.n_points == n]) for n in grids]
    for name, rows in blocks:
        base = next(row.error for row in rows if row.method == REFERENCE)
        for row in rows:
            paper = "" if row.paper is None else f"{row.paper:.2e}"
            table.add_row(
                name, TITLES[row.method], f"{row.error:.2e}", _ratio(row.error, base), paper
            )
        table.add_section()
    base = result.digits[0].error
    for digits_row in result.digits:
        error, title = digits_row.error, TITLES[digits_row.method]
        table.add_row("digits t-SNE", title, f"{error:.2%}", _ratio(error, base), "")
    return table


def _belonging_table(result: Result) -> Table:
    """Lay out how many images of each kind were called strange."""
    from rich.table import Table

    from outsample.lab.demo.belonging import TITLES

    table = Table(title="Do they belong? Share called strange", title_justify="left")
    table.add_column("Images")
    table.add_column("p <= 0.05", justify="right")
    for row in result.belonging:
        table.add_row(TITLES[row.kind], f"{row.flagged:.1%}")
    return table


def _comparison_table(rows: Comparison) -> Table:
    """Lay a comparison out, the best row in bold."""
    from rich.box import SIMPLE
    from rich.table import Table

    title = "Hold-out errors over the size of the map"
    table = Table(title=title, title_justify="left", box=SIMPLE, pad_edge=False)
    for at, word in enumerate(rows.header()):
        table.add_column(word, justify="right" if at else "left")
    for at, row in enumerate(rows):
        cells = rows.cells(row)
        if row.failure:
            cells[0] += f"\n{row.failure}"
        table.add_row(*cells, style=None if at or row.failure else "bold")
    return table


def _ratio(error: float, base: float) -> str:
    """Say how many times smaller or larger than the reference an error is."""
    return f"{error / base:.2g} x" if error > 0.001 * base else "< 0.001 x"


def _print(table: Table) -> None:
    """Print a table; colours and line drawing only where the output can show them."""
    from rich.console import Console

    Console().print(table)
