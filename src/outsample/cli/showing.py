"""Output of commands: tables, notes, JSON and progress."""

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
    """Print names and values in two columns; long values are folded."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table as RichTable

    table = RichTable(
        title=escape(title), title_justify="left", box=None, show_header=False, pad_edge=False,
    )  # fmt: skip
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs.items():
        table.add_row(escape(name), escape(value))
    console = Console()
    console.print(table)
    console.print()


def show_files(seconds: float, files: Sequence[Path]) -> None:
    """Print the run time and the files that were written."""
    click.echo(f"{seconds:.0f} s")
    for path in files:
        click.echo(f"Wrote {path}")


def show_json(document: dict[str, Any]) -> None:
    """Print a JSON document with one line per name."""
    pairs = (
        f"  {json.dumps(name)}: {json.dumps(value, default=str)}"
        for name, value in document.items()
    )
    click.echo("{\n" + ",\n".join(pairs) + "\n}")


def note(message: str) -> None:
    """Print a note, which is neither a result nor an error, to the standard error."""
    click.echo(f"Note: {message}", err=True)


@contextmanager
def row_progress(
    total: int | None, *, silent: bool = False
) -> Iterator[Callable[[int, int], None]]:
    """Show rows, rate and time left on a terminal, and nothing elsewhere.

    The function that is yielded takes the number of rows done, and the offset where they end, of
    ``total``.
    """
    if silent or not sys.stderr.isatty():
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
        first_rows: list[int] = []  # those of a resumed run do not count

        def update(rows: int, offset: int) -> None:
            first_rows[:] = first_rows or [rows]
            seconds = bar.tasks[0].elapsed or 0.0
            rate = (rows - first_rows[0]) / seconds if seconds > 0 else 0.0
            bar.update(task, completed=offset, rows=rows, rate=rate)

        yield update


@contextmanager
def waiting(activity: str, *, silent: bool) -> Iterator[None]:
    """Show on a terminal what is going on."""
    if silent or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(activity):
        yield


def format_bytes(n: int) -> str:
    """Return a number of bytes as text.

    >>> format_bytes(1_234_567)
    '1.2 MB'
    """
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n >= size:
            return f"{n / size:.1f} {unit}"
    return f"{n} bytes"
