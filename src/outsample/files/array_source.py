"""Matrices as tables: arrays in NumPy's files, mapped into memory, or the matrix of an AnnData."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from scipy import sparse

from outsample.files.source import CellError, Position, Rows, chunk_rows
from outsample.files.text_format import numbered


class ArraySource:
    """A matrix with one row per point, sliced when it is read, and named columns beside it.

    Parameters
    ----------
    path : str
        Name in messages.
    values : array-like or sparse matrix of shape (n, D), or of shape (n,)
        The matrix; anything with ``shape`` and ``dtype`` whose slices are arrays or sparse.
    columns : mapping of str to ndarray, default=None
        Columns to carry; those that do not have n entries are ignored.
    names : sequence of D str, default=None
        Names of the columns of the matrix.
    """

    def __init__(
        self,
        path: str,
        values: Any,
        columns: Mapping[str, np.ndarray] | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        if values.dtype.kind not in "fiub":
            raise CellError(f"{path}: contains {values.dtype}, not real numbers")
        values = values[:, None] if len(values.shape) == 1 else values
        if len(values.shape) != 2:
            raise CellError(f"{path}: has shape {values.shape}, not rows and columns")
        self.path, self.values = path, values
        n, width = values.shape
        self.columns = {
            name: column for name, column in (columns or {}).items() if np.shape(column) == (n,)
        }
        self.names = [*(numbered(width) if names is None else names), *self.columns]
        self.has_names = names is not None
        self.size: int | None = n
        self.feature_columns = range(width)

    def rows(
        self,
        features: Sequence[int],
        carried: Sequence[int] = (),
        start: Position = Position(),  # noqa: B008
        *,
        lenient: bool = False,
    ) -> Iterator[Rows]:
        """Read columns by number; all values are numbers, so that ``lenient`` changes nothing."""
        n, width = self.values.shape
        for at in features:
            if at >= width:
                reason = f"{self.names[at]!r} is not a column of the matrix, so it is no feature"
                raise CellError(f"{self.path}: {reason}", at)
        step = chunk_rows(width)
        for row in range(start.row, n, step):
            block = slice(row, min(n, row + step))
            values = self.values[block]
            values = values.toarray() if sparse.issparse(values) else np.asarray(values)
            numbers = values if list(features) == list(range(width)) else values[:, list(features)]
            if numbers.dtype != np.float32:
                numbers = numbers.astype(np.float64)
            texts = {
                self.names[at]: (
                    values[:, at] if at < width else self.columns[self.names[at]][block]
                )
                for at in carried
            }
            yield Rows(numbers, texts, Position(row, row), Position(block.stop, block.stop))


def npy_source(path: str) -> ArraySource:
    """Open an ``.npy`` file, memory-mapped."""
    return ArraySource(path, _loaded(path, lambda: np.load(path, "r", allow_pickle=False)))


def npz_source(path: str, array: str) -> ArraySource:
    """Open an array of an ``.npz`` file, or its only one; arrays of its length can be carried."""
    file = _loaded(path, lambda: np.load(path, allow_pickle=False))
    if not hasattr(file, "files"):
        return ArraySource(path, file)  # an .npy file under another name
    with file:
        if array not in file.files and len(file.files) != 1:
            names = ", ".join(file.files) or "nothing"
            raise CellError(f"{path}: no array called {array}; it contains {names}")
        name = array if array in file.files else file.files[0]
        values = _loaded(path, lambda: file[name])
        columns = {}
        for other in file.files:
            with suppress(ValueError):  # objects would need pickle
                columns[other] = file[other]
    del columns[name]
    return ArraySource(path, values, columns)


def npz_names(path: str) -> list[str]:
    """Return the names of the arrays in an ``.npz`` file."""
    with _loaded(path, lambda: np.load(path, allow_pickle=False)) as file:
        return list(getattr(file, "files", []))


def _loaded(path: str, read: Callable[[], Any]) -> Any:
    """Return what NumPy reads, or raise CellError with the reason."""
    try:
        return read()
    except Exception as error:  # a damaged file raises many types
        reason = f"damaged ({' '.join(str(error).split()) or type(error).__name__})"
        if "pickle" in str(error).lower() or "Python objects" in str(error):
            reason = "not a plain array of numbers (objects, or a damaged file)"
        raise CellError(f"{path}: {reason}") from None
