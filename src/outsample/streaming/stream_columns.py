"""The per-point columns of a stream: one record for original and learned points."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from outsample.points import Points
from outsample.records import Frames

# Rows for which a growing table has room at least.
MIN_FREE_ROWS = 256


class StreamColumns(NamedTuple):
    """Points (l, D) in the metric, and what a stream keeps of them.

    ``images`` (l, d) are coordinates, ``frames`` has one record for each part of the placer that
    keeps them, ``widths`` (l,) are logarithms of neighbourhood widths, and ``counts`` (l,) numbers
    of duplicate rows; both are None without a detector.
    """

    points: Points
    images: np.ndarray
    frames: tuple[Frames, ...]
    widths: np.ndarray | None = None
    counts: np.ndarray | None = None

    @property
    def n_rows(self) -> int:
        """Return the number l of points."""
        return self.points.shape[0]

    def arrays(self) -> list[Any]:
        """Return all columns as a list."""
        arrays = [self.points, self.images, *(array for pair in self.frames for array in pair)]
        return arrays if self.widths is None else [*arrays, self.widths, self.counts]

    def with_arrays(self, arrays: Iterable[Any]) -> StreamColumns:
        """Return a record of other columns, in the order of `arrays`."""
        points, images, *others = arrays
        n_frames = 2 * len(self.frames)
        pairs = zip(others[0:n_frames:2], others[1:n_frames:2], strict=True)
        return StreamColumns(points, images, tuple(Frames(*p) for p in pairs), *others[n_frames:])

    def rows(self, selection: Any) -> StreamColumns:
        """Return the selected rows of all columns."""
        return self.with_arrays(array[selection] for array in self.arrays())

    def combine(self, join: Callable[[Any, Any], Any], other: StreamColumns) -> StreamColumns:
        """Return the columns that ``join`` makes of each column and that of another record."""
        return self.with_arrays(map(join, self.arrays(), other.arrays()))


def stacked(first: Points, second: Points) -> Points:
    """Return the rows of two arrays, or of two sparse matrices."""
    if sparse.issparse(first):
        return sparse.vstack([first, second], format="csr")
    return np.concatenate([first, second])


class GrowingTable:
    """Columns to which rows are appended without copying the others.

    Columns that were returned do not change: new rows are written after them. One thread appends,
    others may read. Sparse rows are copied.

    >>> columns = StreamColumns(np.zeros((2, 1)), np.zeros((2, 1)), ())
    >>> table = GrowingTable(columns, room=1)
    >>> first = table.with_rows(2, StreamColumns(np.ones((1, 1)), np.ones((1, 1)), ()))
    >>> table.with_rows(3, columns.rows([0, 0])._replace(points=np.full((2, 1), 2.0))).points.T
    array([[0., 0., 1., 2., 2.]])
    >>> first.points.T
    array([[0., 0., 1.]])
    """

    def __init__(self, columns: StreamColumns, room: int = MIN_FREE_ROWS) -> None:
        self.columns = columns.with_arrays(
            _with_room(array, array.shape[0], room) for array in columns.arrays()
        )

    def first_rows(self, length: int) -> StreamColumns:
        """Return the first ``length`` rows."""
        return self.columns.rows(slice(length))

    def with_rows(self, length: int, new: StreamColumns) -> StreamColumns:
        """Return the first ``length`` rows followed by new rows."""
        total = length + new.n_rows

        def append(column: Any, rows: Any) -> Any:
            if sparse.issparse(column):
                return stacked(column[:length], rows)
            if len(column) < total:
                room = max(MIN_FREE_ROWS, new.n_rows, length // 8)
                column = _with_room(column, length, new.n_rows + room)
            column[length:total] = rows
            return column

        self.columns = self.columns.combine(append, new)
        return self.first_rows(total)


def _with_room(column: Any, length: int, room: int) -> Any:
    """Return a copy of the first ``length`` rows of a column, with room after them."""
    if sparse.issparse(column):
        return column
    copy = np.empty((length + room, *column.shape[1:]), dtype=column.dtype)
    copy[:length] = column[:length]
    return copy
