"""What a terminal shows: the tables of the pages, and how far a long task has come."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from outsample.report.page import Table

if TYPE_CHECKING:
    from rich.table import Table as RichTable


def terminal_table(title: str, table: Table) -> RichTable:
    """Lay a table out for a terminal: the first column is text, highlighted rows are bold."""
    from rich.box import SIMPLE
    from rich.markup import escape
    from rich.table import Table as RichTable

    laid = RichTable(
        title=escape(title), title_justify="left", caption=escape(table.caption),
        caption_justify="left", box=SIMPLE, pad_edge=False,
    )  # fmt: skip
    for at, word in enumerate(table.header):
        laid.add_column(escape(word), justify="right" if at else "left")
    for at, row in enumerate(table.rows):
        laid.add_row(*map(escape, row), style="bold" if at in table.highlight else None)
    return laid


@contextmanager
def shown_progress() -> Iterator[Callable[[float, str], None]]:
    """Show a bar and the time left on a terminal, one plain line a step elsewhere."""
    if not sys.stderr.isatty():
        seen: set[str] = set()
        begin = monotonic()

        def tell(share: float, what_next: str) -> None:
            if what_next not in seen:
                seen.add(what_next)
                print(f"[{share:4.0%}] {what_next}{time_left(begin, share)}", file=sys.stderr)

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


def time_left(begin: float, share: float) -> str:
    """Say how long the rest of a long task takes, if the past is a measure of it."""
    passed = monotonic() - begin
    if passed < 10 or not 0 < share < 1:
        return ""
    return f" ({passed * (1 - share) / share / 60:.1f} min left)"
