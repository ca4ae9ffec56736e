"""AnnData files (.h5ad) as tables: a matrix of cells, read in slices, and columns of ``obs``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from outsample.files.source import CellError, Position, Rows, chunk_rows, float_table


class H5adSource:
    """One matrix of an ``.h5ad`` file: ``X`` or an entry of ``obsm``, by default ``X_pca``.

    The columns of ``obs``, the names of the cells first, come after those of the matrix.
    """

    def __init__(self, path: str, array: str | None) -> None:
        try:
            import h5py
        except ImportError:
            raise ValueError(
                f'{path}: reading .h5ad needs h5py: pip install "outsample[anndata]"'
            ) from None
        self.path = path
        try:
            self._file = h5py.File(path, "r")
            obs = self._file["obs"]
            index = str(obs.attrs["_index"])
            self._obs = [index, *(str(name) for name in obs.attrs.get("column-order", ()))]
            self._cells = _cells(obs[index], slice(None))
        except (OSError, KeyError, AttributeError) as error:
            raise CellError(f"{path}: is no AnnData file ({error})") from None
        self.array = array or ("X_pca" if "X_pca" in self._file.get("obsm", ()) else "X")
        self._matrix = self._found(self.array)
        self.size: int | None = len(self._cells)
        if self._shape[0] != self.size:
            words = f"{self.array} has shape {self._shape} for {self.size} cells"
            raise CellError(f"{path}: {words}")
        self.n_features = int(self._shape[1])
        self.names = [*self._feature_names(), "obs_names", *self._obs[1:]]
        self.has_names = True

    def rows(
        self,
        features: Sequence[int],
        carried: Sequence[int] = (),
        start: Position = Position(),  # noqa: B008
        *,
        lenient: bool = False,
    ) -> Iterator[Rows]:
        """Read columns by number."""
        assert self.size is not None
        for at in features:
            if at >= self.n_features:
                raise CellError(f"{self.path}: {self.names[at]!r} is a column of obs", at)
        step = chunk_rows(self.n_features)
        for row in range(start.row, self.size, step):
            block = slice(row, min(self.size, row + step))
            numbers = float_table(self._dense(block)[:, list(features)])
            named = {self.names[at]: self._column(at, block) for at in carried}
            yield Rows(numbers, named, Position(row, row), Position(block.stop, block.stop))

    @property
    def _shape(self) -> tuple[int, ...]:
        matrix = self._matrix
        return tuple(matrix.attrs["shape"] if _is_sparse(matrix) else matrix.shape)

    def _found(self, array: str) -> Any:
        try:
            matrix = self._file["X"] if array == "X" else self._file["obsm"][array]
        except KeyError:
            held = ", ".join(["X", *self._file.get("obsm", ())])
            raise CellError(f"{self.path}: no array called {array}; it holds {held}") from None
        kind = matrix.attrs.get("encoding-type", "array")
        if kind not in ("array", "csr_matrix") or (kind == "array" and matrix.ndim != 2):
            raise CellError(f"{self.path}: {array} is stored as {kind}; arrays and CSR are read")
        return matrix

    def _feature_names(self) -> list[str]:
        if self.array == "X":
            var = self._file["var"]
            return [str(name) for name in _cells(var[str(var.attrs["_index"])], slice(None))]
        stem = self.array.removeprefix("X_")
        return [f"{stem}_{at + 1}" for at in range(self.n_features)]

    def _dense(self, block: slice) -> np.ndarray:
        if not _is_sparse(self._matrix):
            return np.asarray(self._matrix[block])
        from scipy.sparse import csr_matrix

        starts = self._matrix["indptr"][block.start : block.stop + 1]
        held = slice(int(starts[0]), int(starts[-1]))
        parts = self._matrix["data"][held], self._matrix["indices"][held], starts - starts[0]
        return csr_matrix(parts, shape=(block.stop - block.start, self.n_features)).toarray()

    def _column(self, at: int, block: slice) -> np.ndarray:
        if at < self.n_features:
            return self._dense(block)[:, at]
        if at == self.n_features:
            return self._cells[block]
        return _cells(self._file["obs"][self._obs[at - self.n_features]], block)


def _is_sparse(matrix: Any) -> bool:
    return matrix.attrs.get("encoding-type") == "csr_matrix"


def _cells(column: Any, block: slice) -> np.ndarray:
    """Values of one column of obs or var; categories by name."""
    if "categories" in column:
        names, codes = _cells(column["categories"], slice(None)), column["codes"][block]
        return np.array([names[code] if code >= 0 else "" for code in codes], dtype=object)
    if "values" in column:  # with a mask of what is missing
        values, missing = column["values"][block], column["mask"][block].astype(bool)
        if values.dtype.kind in "fiu":
            return np.ma.array(values, mask=missing) if missing.any() else values
        pairs = zip(values, missing, strict=True)
        return np.array(["" if gone else _text(value) for value, gone in pairs], dtype=object)
    values = column[block]
    if values.dtype.kind in "OS":
        return np.array([_text(value) for value in values], dtype=object)
    return values


def _text(value: Any) -> str:
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)
