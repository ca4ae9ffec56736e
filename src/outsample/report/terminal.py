"""The same tables on a terminal as on a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outsample.report.page import Table

if TYPE_CHECKING:
    from rich.table import Table as RichTable


def terminal_table(title: str, table: Table) -> RichTable:
    """Lay a table out for a terminal: the first column is text, highlighted rows are bold."""
    from rich.box import SIMPLE
    from rich.table import Table as RichTable

    laid = RichTable(title=title, title_justify="left", box=SIMPLE, pad_edge=False)
    for at, word in enumerate(table.header):
        laid.add_column(word, justify="right" if at else "left")
    for at, row in enumerate(table.rows):
        laid.add_row(*row, style="bold" if at in table.highlight else None)
    return laid
