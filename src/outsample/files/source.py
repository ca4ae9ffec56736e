"""What every reader of tables offers: columns with names, and their rows in chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

# Rows of one chunk, and the most cells: enough to keep the kernels busy, little to hold in memory.
ROWS, CELLS = 4096, 2**22


class Position(NamedTuple):
    """How far a table has been read, to go on from there.

    Attributes
    ----------
    row : int
        Rows read.
    offset : int
        Bytes of text read, decompressed, for text; else as `row`.
    line : int
        Lines of text read.
    """

    row: int = 0
    offset: int = 0
    line: int = 0


class Rows(NamedTuple):
    """Some rows of a table.

    Attributes
    ----------
    numbers : ndarray of shape (m, D)
        The columns asked for as numbers, float32 or float64; NaN where there is none.
    carried : dict of str to ndarray of shape (m,)
        The columns asked for as they are; cells of text files as they are written.
    begin, end : Position
        Before and after these rows.
    """

    numbers: np.ndarray
    carried: dict[str, np.ndarray]
    begin: Position
    end: Position


class Columns(Protocol):
    """What is known of a table before its rows are read."""

    path: str
    names: list[str]  # of its columns; "column_1", ... where the file has none
    has_names: bool


class Source(Columns, Protocol):
    """A table whose rows can be read in chunks, as often as wanted."""

    size: int | None  # the last `Position.offset`, if it is known

    def rows(
        self,
        features: Sequence[int],
        carried: Sequence[int] = (),
        start: Position = Position(),  # noqa: B008
        *,
        lenient: bool = False,
    ) -> Iterator[Rows]:
        """Read columns by number; if lenient, cells that are no numbers are NaN."""


class CellError(ValueError):
    """A cell that is no number; `column` is its number, from 0, and None a whole line's fault."""

    def __init__(self, message: str, column: int | None = None) -> None:
        super().__init__(message)
        self.column = column


def chunk_rows(n_columns: int) -> int:
    """Rows of one chunk of a table that wide."""
    return int(min(ROWS, max(1, CELLS // max(1, n_columns))))


def float_table(values: np.ndarray) -> np.ndarray:
    """Numbers as the estimators take them: float32 stays, all else is float64."""
    return values if values.dtype == np.float32 else values.astype(np.float64)
