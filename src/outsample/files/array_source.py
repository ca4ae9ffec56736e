"""NumPy's own files as tables: one array, mapped into memory, or several in an archive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from outsample.files.source import CellError, Position, Rows, chunk_rows, float_table
from outsample.files.text_format import numbered


class ArraySource:
    """A table of numbers without names, and columns beside it that have them."""

    def __init__(
        self,
        path: str,
        values: np.ndarray,
        beside: Mapping[str, np.ndarray] | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        self.path = path
        self._values = _table(path, values)
        n, width = self._values.shape
        self._beside = {
            name: array for name, array in (beside or {}).items() if np.shape(array) == (n,)
        }
        self.names = [*(names or numbered(width)), *self._beside]
        self.has_names = names is not None
        self.size: int | None = n

    @property
    def n_features(self) -> int:
        """Columns of the table itself; those beside it come after."""
        return int(self._values.shape[1])

    def rows(
        self,
        features: Sequence[int],
        carried: Sequence[int] = (),
        start: Position = Position(),  # noqa: B008
        *,
        lenient: bool = False,
    ) -> Iterator[Rows]:
        """Read columns by number; an array has no cells that are no numbers."""
        n, width = self._values.shape
        whole = list(features) == list(range(width))
        for at in features:
            if at >= width:
                raise CellError(f"{self.path}: column {self.names[at]!r} is no feature", at)
        step = chunk_rows(width)
        for row in range(start.row, n, step):
            block = slice(row, min(n, row + step))
            values = np.asarray(self._values[block])
            numbers = float_table(values if whole else values[:, list(features)])
            named = {self.names[at]: self._column(at, block) for at in carried}
            yield Rows(numbers, named, Position(row, row), Position(block.stop, block.stop))

    def _column(self, at: int, block: slice) -> np.ndarray:
        if at < self.n_features:
            return np.asarray(self._values[block, at])
        return np.asarray(self._beside[self.names[at]][block])


def npy_source(path: str) -> ArraySource:
    """Open an ``.npy`` file; its rows are read when they are asked for."""
    try:
        return ArraySource(path, np.load(path, mmap_mode="r", allow_pickle=False))
    except CellError:
        raise
    except Exception as error:  # damage shows in many ways
        raise CellError(f"{path}: {reason(error)}") from None


def npz_source(path: str, array: str) -> ArraySource:
    """Open one array of an ``.npz`` file, or its only one; those as long can be carried."""
    try:
        file = np.load(path, allow_pickle=False)
    except Exception as error:
        raise CellError(f"{path}: {reason(error)}") from None
    if not hasattr(file, "files"):
        return ArraySource(path, file)  # an .npy file under another name
    with file:
        if array not in file.files and len(file.files) != 1:
            held = ", ".join(file.files) or "nothing"
            raise CellError(f"{path}: no array called {array}; it holds {held}")
        name = array if array in file.files else file.files[0]
        try:
            values = file[name]
        except Exception as error:
            raise CellError(f"{path}: {reason(error)}") from None
        beside = {}
        for other in file.files:
            with suppress(ValueError):  # objects are not looked at
                beside[other] = file[other]
    beside.pop(name, None)
    return ArraySource(path, values, beside)


def npz_names(path: str) -> list[str]:
    """Names of the arrays in an ``.npz`` file."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return list(getattr(file, "files", []))
    except Exception as error:
        raise CellError(f"{path}: {reason(error)}") from None


def reason(error: Exception) -> str:
    """Say what is wrong with a file of NumPy's."""
    if "pickle" in str(error).lower() or "Python objects" in str(error):
        return "not a plain array of numbers (objects, or a damaged file)"
    return f"damaged ({' '.join(str(error).split()) or type(error).__name__})"


def _table(path: str | Path, values: Any) -> np.ndarray:
    """Check that an array is a table of real numbers."""
    if values.dtype.kind not in "fiub":
        raise CellError(f"{path}: holds {values.dtype}, not real numbers")
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or 0 in values.shape:
        raise CellError(f"{path}: has shape {values.shape}, not rows and columns")
    return values
