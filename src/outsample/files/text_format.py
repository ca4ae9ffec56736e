"""The layout of a table in text: the separator of its cells, and whether it has a heading."""

from __future__ import annotations

import csv
import re
from typing import NamedTuple

from outsample.files.source import CellError

DELIMITERS = (",", ";", "\t")
# Cells without a value; alone they do not make a heading.
MISSING = ("", "na", "n/a", "<na>", "null", "none", "?", "-")

# Words that `float` reads; alone they do not make a heading, next to other words they are names.
SPELLED_OUT = ("nan", "inf", "infinity", "+inf", "-inf", "+infinity", "-infinity")
SHOWN_CHARACTERS = 60  # characters of a cell in an error message
BOOLEANS = {"true": 1.0, "false": 0.0}
# Longest cell and row; a longer row is usually caused by a quotation mark without its partner.
MAX_ROW_BYTES = 2**26
csv.field_size_limit(max(csv.field_size_limit(), MAX_ROW_BYTES))  # 131,072 characters by default

# A cell between blanks: a word, or text in quotation marks, which are doubled or escaped inside.
BETWEEN_BLANKS = re.compile(r'"((?:[^"\\]|\\.|"")*)"(?!\S)|(\S+)')


class TextFormat(NamedTuple):
    """Layout of a table in text.

    Attributes
    ----------
    delimiter : str or None
        Separator of cells; None is any number of blanks.
    heading : bool
        Whether the first line names the columns.
    names : list of str
        Names of the columns; "column_1", ... without a heading.
    """

    delimiter: str | None
    heading: bool
    names: list[str]

    @property
    def feature_columns(self) -> range:
        """Columns that can be features: all but a first column without a name, the row names."""
        has_row_names = self.heading and len(self.names) > 1 and not self.names[0]
        return range(int(has_row_names), len(self.names))

    def with_row_names(self, second_line: str) -> TextFormat:
        """Add an unnamed first column if the heading is one cell short, as R writes row names.

        >>> text_format('"x" "y"').with_row_names('"first row" 1 2').names
        ['', 'x', 'y']
        """
        cells = split_line(second_line, self.delimiter)
        if self.heading and len(cells) == len(self.names) + 1:
            return self._replace(names=["", *self.names])
        return self


def text_format(first_line: str, delimiter: str | None = None) -> TextFormat:
    """Return the layout that the first line of a table has.

    >>> text_format("id;x;y")
    TextFormat(delimiter=';', heading=True, names=['id', 'x', 'y'])
    >>> text_format("1.5 2.5")
    TextFormat(delimiter=None, heading=False, names=['column_1', 'column_2'])
    """
    if delimiter is None:
        most_frequent = max(DELIMITERS, key=first_line.count)
        delimiter = most_frequent if most_frequent in first_line else None
    elif delimiter.isspace() and delimiter != "\t":
        delimiter = None
    cells = split_line(first_line, delimiter)
    heading = is_heading(cells)
    names = [cell.strip() for cell in cells] if heading else []
    return TextFormat(delimiter, heading, names or numbered(len(cells)))


def numbered(n: int) -> list[str]:
    """Return the names of n columns without a heading.

    >>> numbered(2)
    ['column_1', 'column_2']
    """
    return [f"column_{at + 1}" for at in range(n)]


def split_line(line: str, delimiter: str | None) -> list[str]:
    """Return the cells of a line.

    >>> split_line('1,"a, b"', ",")
    ['1', 'a, b']
    """
    line = line.strip("\r\n")
    if delimiter is None:
        return split_blanks(line)
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error as error:
        raise CellError(f"cannot be split into cells ({error})") from None


def split_blanks(line: str) -> list[str]:
    """Return the cells of a line that are separated by blanks outside quotation marks.

    >>> split_blanks('"two words" 1.5 it"s')
    ['two words', '1.5', 'it"s']
    """
    if '"' not in line:
        return line.split()
    cells = (match.group(1, 2) for match in BETWEEN_BLANKS.finditer(line))
    return [word if text is None else text.replace('""', '"') for text, word in cells]


def is_heading(cells: list[str]) -> bool:
    """Return whether a first line contains names, or pandas' column numbers, and not a row.

    >>> is_heading(["1_1", "1_2"]), is_heading(["1", "x"]), is_heading(["nan", ""])
    (True, False, False)
    """
    names = cells[1:] if len(cells) > 1 and not cells[0].strip() else cells
    if len(cells) > 1 and names == [str(at) for at in range(len(names))]:
        return True
    words = [cell.strip().lower() for cell in cells]
    if any(number(word) is not None and word not in SPELLED_OUT for word in words):
        return False
    return any(word not in (*MISSING, *SPELLED_OUT, *BOOLEANS) for word in words)


def number(cell: str) -> float | None:
    """Return the value of a cell, or None if it is not a number.

    >>> number(" 1.5e3 "), number("2024_01"), number("True")
    (1500.0, None, None)
    """
    text = cell.strip()
    try:
        return float(text) if has_plain_digits(text) else None
    except ValueError:
        return None


def has_plain_digits(text: str) -> bool:
    """Return False for text that only Python reads as numbers: ``2024_01``, non-ASCII digits.

    >>> has_plain_digits("202401"), has_plain_digits("2024_01"), has_plain_digits("\uff11\uff12")
    (True, False, False)
    """
    return text.isascii() and "_" not in text


def feature_value(cell: str) -> float | None:
    """Return the value of a cell as a feature: a number, or 1 and 0 for true and false.

    >>> feature_value("True"), feature_value("false"), feature_value("yes")
    (1.0, 0.0, None)
    """
    value = number(cell)
    return BOOLEANS.get(cell.strip().lower()) if value is None else value


def quoted(cell: str) -> str:
    """Return a cell in quotation marks for an error message, cut if it is long.

    >>> quoted(" two "), len(quoted("a" * 1000))
    ("'two'", 65)
    """
    text = cell.strip()
    return repr(text) if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]!r}..."
