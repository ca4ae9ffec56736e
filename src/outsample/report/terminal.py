"""What a terminal shows: the tables of the pages, and how far a long task has come."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from textwrap import fill
from time import monotonic
from typing import TYPE_CHECKING

from outsample.report.page import Table

if TYPE_CHECKING:
    from rich.table import Table as RichTable

# Columns of a terminal between two columns of a table, and the least that its text is folded to.
BETWEEN = 3
LEAST_TEXT = 12


def terminal_table(title: str, table: Table, width: int) -> RichTable:
    """Lay a table out for a terminal: the first column is text, highlighted rows are bold.

    Figures are never cut. Where the width does not do, headings and the first column are folded;
    then columns are left out from the right, and the last line says which.
    """
    from rich.box import SIMPLE
    from rich.markup import escape
    from rich.table import Table as RichTable

    header, kept = _fitted(table, width)
    gone = ", ".join(table.header[kept:])
    left_out = f"Left out in {width} columns: {gone}." if gone else ""
    caption = "\n".join(filter(None, [table.caption, left_out]))
    laid = RichTable(
        title=escape(title), title_justify="left", caption=escape(caption),
        caption_justify="left", box=SIMPLE, pad_edge=False,
    )  # fmt: skip
    for at, words in enumerate(header):
        laid.add_column(
            escape(words), justify="right" if at else "left", no_wrap=at > 0, overflow="fold"
        )
    for at, row in enumerate(table.rows):
        laid.add_row(*map(escape, row[:kept]), style="bold" if at in table.highlight else None)
    return laid


def _fitted(table: Table, width: int) -> tuple[list[str], int]:
    """Headings, folded if need be, of the columns that fit; and the number of these."""
    columns = list(zip(*table.rows, strict=True)) or [()] * len(table.header)
    cells = [max(map(len, column), default=0) for column in columns]
    wide = [max(n, len(head)) for n, head in zip(cells, table.header, strict=True)]
    if sum(wide) + BETWEEN * len(wide) <= width:
        return list(table.header), len(wide)
    least = [max([n, *map(len, head.split())]) for n, head in zip(cells, table.header, strict=True)]
    header = [fill(head, max(n, 1)) for n, head in zip(least, table.header, strict=True)]
    kept = len(least)
    while kept > 2 and min(least[0], LEAST_TEXT) + sum(least[1:kept]) + BETWEEN * kept > width:
        kept -= 1
    return [table.header[0], *header[1:kept]], kept


@contextmanager
def shown_progress(silent: bool = False) -> Iterator[Callable[[float, str], None]]:
    """Show a bar and the time left on a terminal, one plain line a step elsewhere, or nothing."""
    if silent:
        yield lambda share, what_next: None
        return
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
