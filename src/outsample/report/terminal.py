"""Tables and progress bars on a terminal."""

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

# In characters.
COLUMN_GAP = 3
MIN_TEXT_WIDTH = 12
# Before this, a guess of the time left would be too rough.
MIN_SECONDS_TO_ESTIMATE = 10


def terminal_table(title: str, table: Table, width: int) -> RichTable:
    """Return a table for a terminal of `width` characters; highlighted rows are bold.

    Numbers are never truncated. If the table is too wide, headings and the first column are
    wrapped; then columns are omitted from the right, and the caption lists them.
    """
    from rich.box import SIMPLE
    from rich.markup import escape
    from rich.table import Table as RichTable

    header, n_columns = _fit_columns(table, width)
    omitted = ", ".join(table.header[n_columns:])
    note = f"Too wide for {width} characters; omitted: {omitted}." if omitted else ""
    caption = "\n".join(filter(None, [table.caption, note]))
    rich_table = RichTable(
        title=escape(title), title_justify="left", caption=escape(caption),
        caption_justify="left", box=SIMPLE, pad_edge=False,
    )  # fmt: skip
    for at, heading in enumerate(header):
        rich_table.add_column(
            escape(heading), justify="right" if at else "left", no_wrap=at > 0, overflow="fold"
        )
    for at, row in enumerate(table.rows):
        style = "bold" if at in table.highlight else None
        rich_table.add_row(*map(escape, row[:n_columns]), style=style)
    return rich_table


def _fit_columns(table: Table, width: int) -> tuple[list[str], int]:
    """Return the headings, wrapped if necessary, of the columns that fit, and their number."""
    columns = list(zip(*table.rows, strict=True)) or [()] * len(table.header)
    cell_widths = [max(map(len, column), default=0) for column in columns]
    pairs = list(zip(cell_widths, table.header, strict=True))
    widths = [max(n, len(heading)) for n, heading in pairs]
    if sum(widths) + COLUMN_GAP * len(widths) <= width:
        return list(table.header), len(widths)
    min_widths = [max([n, *map(len, heading.split())]) for n, heading in pairs]
    header = [fill(h, max(n, 1)) for n, h in zip(min_widths, table.header, strict=True)]
    first_width, n_columns = min(min_widths[0], MIN_TEXT_WIDTH), len(min_widths)
    while (
        n_columns > 2
        and first_width + sum(min_widths[1:n_columns]) + COLUMN_GAP * n_columns > width
    ):
        n_columns -= 1
    return [table.header[0], *header[1:n_columns]], n_columns


@contextmanager
def shown_progress(silent: bool = False) -> Iterator[Callable[[float, str], None]]:
    """Yield a function ``report(share, step)`` that shows the progress of a long task.

    It draws a progress bar on a terminal, and prints one line per step elsewhere.
    """
    if silent:
        yield lambda share, step: None
        return
    if not sys.stderr.isatty():
        printed: set[str] = set()
        begin = monotonic()

        def report(share: float, step: str) -> None:
            if step not in printed:
                printed.add(step)
                print(f"[{share:4.0%}] {step}{time_left(begin, share)}", file=sys.stderr)

        yield report
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
    # Output to a terminal is printed above the bar; output to a file must not be redirected.
    redirect = sys.stdout.isatty()
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, redirect_stdout=redirect) as bar:
        task = bar.add_task("starting", total=1.0)
        yield lambda share, step: bar.update(task, completed=share, description=step)


def time_left(begin: float, share: float) -> str:
    """Return an estimate of the remaining time, in parentheses; empty in the first 10 seconds."""
    elapsed = monotonic() - begin
    if elapsed < MIN_SECONDS_TO_ESTIMATE or not 0 < share < 1:
        return ""
    return f" ({elapsed * (1 - share) / share / 60:.1f} min left)"
