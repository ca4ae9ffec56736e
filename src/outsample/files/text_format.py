"""How a text file lays out its table: what separates cells, and whether there is a heading."""

from __future__ import annotations

import csv
import re
from typing import NamedTuple

DELIMITERS = (",", ";", "\t")
# What stands in a cell without a value, and makes no heading.
MISSING = ("", "na", "n/a", "<na>", "null", "none", "?", "-")

# A cell between blanks: in quotation marks, which may be doubled or escaped inside, or a word.
BETWEEN_BLANKS = re.compile(r'"((?:[^"\\]|\\.|"")*)"(?!\S)|(\S+)')


class TextFormat(NamedTuple):
    """Layout of a table in text.

    Attributes
    ----------
    delimiter : str or None
        What separates cells; None is any number of blanks.
    heading : bool
        Whether the first line names the columns.
    names : list of str
        Names of the columns; without a heading they count from "column_1".
    """

    delimiter: str | None
    heading: bool
    names: list[str]

    def with_row_names(self, second_line: str) -> TextFormat:
        """Add an unnamed first column if the heading is one cell short: R writes row names so.

        >>> text_format('"x" "y"').with_row_names('"first row" 1 2').names
        ['', 'x', 'y']
        """
        cells = split_line(second_line, self.delimiter)
        if self.heading and len(cells) == len(self.names) + 1:
            return self._replace(names=["", *self.names])
        return self


def text_format(first_line: str, delimiter: str | None = None) -> TextFormat:
    """Find out the layout from the first line that is not empty.

    >>> text_format("id;x;y")
    TextFormat(delimiter=';', heading=True, names=['id', 'x', 'y'])
    >>> text_format("1.5 2.5")
    TextFormat(delimiter=None, heading=False, names=['column_1', 'column_2'])
    """
    if delimiter is None:
        most = max(DELIMITERS, key=first_line.count)
        delimiter = most if most in first_line else None
    elif delimiter.isspace() and delimiter != "\t":
        delimiter = None
    cells = split_line(first_line, delimiter)
    heading = is_heading(cells)
    names = [cell.strip() for cell in cells] if heading else []
    return TextFormat(delimiter, heading, names or numbered(len(cells)))


def numbered(n: int) -> list[str]:
    """Names of columns that have none.

    >>> numbered(2)
    ['column_1', 'column_2']
    """
    return [f"column_{at + 1}" for at in range(n)]


def split_line(line: str, delimiter: str | None) -> list[str]:
    """Cells of one line.

    >>> split_line('1,"a, b"', ",")
    ['1', 'a, b']
    """
    line = line.strip("\r\n")
    if delimiter is None:
        return split_blanks(line)
    return next(csv.reader([line], delimiter=delimiter), [])


def split_blanks(line: str) -> list[str]:
    """Cells of a line that are separated by blanks; blanks in quotation marks separate nothing.

    >>> split_blanks('"two words" 1.5 it"s')
    ['two words', '1.5', 'it"s']
    """
    if '"' not in line:
        return line.split()
    found = (match.group(1, 2) for match in BETWEEN_BLANKS.finditer(line))
    return [word if quoted is None else quoted.replace('""', '"') for quoted, word in found]


def is_heading(cells: list[str]) -> bool:
    """Tell words, or pandas' count of columns, from a row of numbers with a cell missing."""
    names = cells[1:] if len(cells) > 1 and not cells[0].strip() else cells
    if len(cells) > 1 and names == [str(at) for at in range(len(names))]:
        return True
    if any(number(cell) is not None for cell in cells):
        return False
    return any(cell.strip().lower() not in MISSING for cell in cells)


def number(cell: str) -> float | None:
    """Value of a cell, or None if it is no number."""
    try:
        return float(cell)
    except ValueError:
        return None
