"""How a text file lays out its table: what separates cells, and whether there is a heading."""

from __future__ import annotations

import csv
import re
from typing import NamedTuple

from outsample.files.source import CellError

DELIMITERS = (",", ";", "\t")
# What stands in a cell without a value, and makes no heading.
MISSING = ("", "na", "n/a", "<na>", "null", "none", "?", "-")

# Words that are numbers to `float`; alone they make no heading, beside other words they are names.
SPELLED_OUT = ("nan", "inf", "infinity", "+inf", "-inf", "+infinity", "-infinity")
SHOWN_CHARACTERS = 60  # characters of a cell in an error message
BOOLEANS = {"true": 1.0, "false": 0.0}
# Longest cell and row. A row without end is most often a quotation mark without its partner.
MAX_ROW_BYTES = 2**26
csv.field_size_limit(max(csv.field_size_limit(), MAX_ROW_BYTES))  # 131,072 characters by default

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
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error as error:
        raise CellError(f"cannot be split into cells ({error})") from None


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
    """Return whether a first line holds names, or pandas' count of columns, and not a row.

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
    """Return False where `float` reads what no table means: ``2024_01``, digits of other scripts.

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
