"""What commands show: tables, notes, JSON, and how far they have come."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from outsample.report.page import Table


def show(title: str, table: Table | None) -> None:
    """Print a table under its title, or the title alone."""
    from rich.console import Console

    from outsample.report.terminal import terminal_table

    if table is None:
        click.echo(title)
    else:  # colours and line drawing only where the output can show them
        console = Console()
        console.print(terminal_table(title, table, console.width))


def show_pairs(title: str, pairs: Mapping[str, str]) -> None:
    """Print names and what they mean side by side; long values are folded."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table as RichTable

    laid = RichTable(
        title=escape(title), title_justify="left", box=None, show_header=False, pad_edge=False,
    )  # fmt: skip
    laid.add_column(no_wrap=True)
    laid.add_column(overflow="fold")
    for name, value in pairs.items():
        laid.add_row(escape(name), escape(value))
    console = Console()
    console.print(laid)
    console.print()


def show_files(seconds: float, files: Sequence[Path]) -> None:
    """Say how long it took and what was written."""
    click.echo(f"{seconds:.0f} s")
    for path in files:
        click.echo(f"Wrote {path}")


def show_json(told: dict[str, Any]) -> None:
    """Print one JSON document, a line for each name."""
    pairs = (
        f"  {json.dumps(name)}: {json.dumps(value, default=str)}" for name, value in told.items()
    )
    click.echo("{\n" + ",\n".join(pairs) + "\n}")


def note(words: str) -> None:
    """Say something that is neither a result nor a failure."""
    click.echo(f"Note: {words}", err=True)


@contextmanager
def row_progress(total: int | None) -> Iterator[Callable[[int, int], None]]:
    """Show rows, rate and time left on a terminal, nothing elsewhere.

    What is yielded takes the rows done and the offset they end at, of ``total`` in all.
    """
    if not sys.stderr.isatty():
        yield lambda rows, offset: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.fields[rows]:,} rows"),
        BarColumn(),
        TextColumn("{task.fields[rate]:,.0f} rows/s"),
        TimeRemainingColumn(compact=True),
        TextColumn("left"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total, rows=0, rate=0.0)
        first: list[int] = []

        def tell(rows: int, offset: int) -> None:
            first[:] = first or [rows]
            passed = bar.tasks[0].elapsed or 0.0
            rate = (rows - first[0]) / passed if passed > 0 else 0.0
            bar.update(task, completed=offset, rows=rows, rate=rate)

        yield tell


@contextmanager
def waiting(what: str, *, silent: bool) -> Iterator[None]:
    """Show on a terminal that something takes its time."""
    if silent or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


def in_bytes(n: int) -> str:
    """Size of a file in words.

    >>> in_bytes(1_234_567)
    '1.2 MB'
    """
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n >= size:
            return f"{n / size:.1f} {unit}"
    return f"{n} bytes"
