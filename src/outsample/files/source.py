"""Tables of rows: columns with names, and rows that are read in chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

# Rows and cells of a chunk: enough to keep the kernels busy, little to hold in memory.
CHUNK_ROWS, CHUNK_CELLS = 4096, 2**22


class Position(NamedTuple):
    """How far a table has been read.

    Attributes
    ----------
    row : int
        Rows read.
    offset : int
        Bytes of text read, decompressed; of other tables, rows.
    line : int
        Lines of text read.
    """

    row: int = 0
    offset: int = 0
    line: int = 0


class Rows(NamedTuple):
    """A chunk of a table.

    Attributes
    ----------
    numbers : ndarray of shape (m, D)
        The feature columns, float32 or float64; NaN for missing values.
    carried : dict of str to ndarray of shape (m,)
        The columns to copy, unchanged; cells of text files are strings.
    begin, end : Position
        Before and after these rows.
    """

    numbers: np.ndarray
    carried: dict[str, np.ndarray]
    begin: Position
    end: Position


class Columns(Protocol):
    """The columns of a table."""

    path: str  # name of the table in messages
    names: list[str]  # "column_1", ... if the table has no names
    has_names: bool

    @property
    def feature_columns(self) -> Sequence[int]:
        """Columns that can be features: no row names, no index of a data frame."""


class Source(Columns, Protocol):
    """A table whose rows can be read in chunks."""

    size: int | None  # the last `Position.offset`, None for a pipe

    def rows(
        self,
        features: Sequence[int],
        carried: Sequence[int] = (),
        start: Position = Position(),  # noqa: B008
        *,
        lenient: bool = False,
    ) -> Iterator[Rows]:
        """Read columns by number; with ``lenient``, cells that are not numbers become NaN."""


class CellError(ValueError):
    """A cell is not a number; `column` counts from 0 and is None if the whole line is wrong."""

    def __init__(self, message: str, column: int | None = None) -> None:
        super().__init__(message)
        self.column = column


def chunk_rows(n_columns: int) -> int:
    """Return the number of rows per chunk of a table with so many columns."""
    return int(min(CHUNK_ROWS, max(1, CHUNK_CELLS // max(1, n_columns))))


def check_finite(
    points: Any,
    column_names: Sequence[Any],
    path: str,
    first_row: int = 1,
    row_names: Sequence[Any] | None = None,
) -> None:
    """Raise CellError at the first value of points (q, D) that is missing or infinite.

    Parameters
    ----------
    points : ndarray or sparse matrix of shape (q, D)
        Rows of a table.
    column_names : sequence of D str
        Names of the columns.
    path : str
        Name of the table.
    first_row : int, default=1
        Number of the first row: rows of files count from 1, rows in memory from 0.
    row_names : sequence of q str, default=None
        Names of the rows.

    Examples
    --------
    >>> check_finite(np.array([[1.0, 2.0], [3.0, np.nan]]), ["a", "b"], "new.csv")
    Traceback (most recent call last):
    ...
    outsample.files.source.CellError: new.csv: row 2, column 'b' is missing or infinite
    """
    if sparse.issparse(points):
        entries = points.tocoo()
        is_bad = ~np.isfinite(entries.data)
        bad_cells = np.column_stack([entries.row[is_bad], entries.col[is_bad]])
        bad_cells = bad_cells[np.lexsort(bad_cells.T[::-1])]
    elif points.dtype.kind != "f" or np.isfinite(points).all():
        return
    else:
        bad_cells = np.argwhere(~np.isfinite(points))
    if len(bad_cells):
        row, column = bad_cells[0].tolist()
        row_name = "" if row_names is None else f" ({row_names[row]!r})"
        count = f" (at least {len(bad_cells)} such values)" if len(bad_cells) > 1 else ""
        raise CellError(
            f"{path}: row {first_row + row}{row_name}, column {column_names[column]!r} is missing "
            f"or infinite{count}"
        )
