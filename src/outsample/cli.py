"""The command line. Heavy imports live inside the commands, so that help is instant."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from outsample import __version__

if TYPE_CHECKING:
    from rich.table import Table

    from outsample.demo import Result

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
    from outsample.demo import FULL, QUICK, run_demo

    try:
        with _progress() as progress:
            result = run_demo(out, QUICK if quick else FULL, progress)
    except OSError as error:
        reason = error.strerror or str(error)
        raise click.ClickException(f"cannot write to {out}: {reason}") from error
    _print(_demo_table(result))
    click.echo(f"Report: {result.page}")


@contextmanager
def _progress() -> Iterator[Callable[[float, str], None]]:
    """Show a bar and the time left on a terminal, one plain line a step elsewhere."""
    if not sys.stderr.isatty():
        seen: set[str] = set()

        def tell(share: float, what_next: str) -> None:
            if what_next not in seen:
                seen.add(what_next)
                click.echo(f"[{share:4.0%}] {what_next}", err=True)

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
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=1.0)
        yield lambda share, what_next: bar.update(task, completed=share, description=what_next)


def _demo_table(result: Result) -> Table:
    """Lay both experiments out, each error beside that of inverse-distance neighbours."""
    from rich.table import Table

    from outsample.experiments import REFERENCE, TITLES

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


def _ratio(error: float, base: float) -> str:
    """Say how many times smaller or larger than the reference an error is."""
    return f"{error / base:.2g} x" if error > 0.001 * base else "< 0.001 x"


def _print(table: Table) -> None:
    """Print a table; colours and line drawing only where the output can show them."""
    from rich.console import Console

    Console().print(table)
