"""Tables of Arrow's family: Parquet, Arrow IPC files (Feather) and streams, in batches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any

import numpy as np

from outsample.files.source import CellError, Position, Rows, chunk_rows

PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc", ".arrows")
STREAM_BEGINS, PARQUET_BEGINS = b"\xff\xff\xff\xff", b"PAR1"
UNNAMED_INDEX = re.compile(r"__index_level_\d+__")  # how pandas stores an index without a name


class ArrowSource:
    """A Parquet file, an Arrow IPC file, or an Arrow IPC stream."""

    def __init__(self, path: str, *, stream: IO[bytes] | None = None) -> None:
        self.path = path
        with _faults_told(path):
            self._batches = _opened(path, stream)
            self._schema = self._batches.schema
        self.names = list(self._schema.names)
        self.index_names = pandas_index(self._schema)
        self.has_names = True
        self.size: int | None = self._batches.n_rows

    def rows(
        self,
        features: Sequence[int],
        carried: Sequence[int] = (),
        start: Position = Position(),  # noqa: B008
        *,
        lenient: bool = False,
    ) -> Iterator[Rows]:
        """Read columns by number; what is null is NaN."""
        self._check_numbers(features)
        columns = sorted({*features, *carried})
        places = {at: to for to, at in enumerate(columns)}
        row, step = start.row, chunk_rows(len(columns))
        with _faults_told(self.path):
            for batch in self._batches.read([self.names[at] for at in columns], start.row, step):
                table = [batch.column(place) for place in range(len(columns))]
                numbers = _matrix([table[places[at]] for at in features], batch.num_rows)
                named = {self.names[at]: _values(table[places[at]]) for at in carried}
                end = row + batch.num_rows
                if end > row:
                    yield Rows(numbers, named, Position(row, row), Position(end, end))
                row = end

    def _check_numbers(self, features: Sequence[int]) -> None:
        from pyarrow import types

        for at in features:
            kind = self._schema.field(at).type
            if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
                name = self.names[at]
                raise CellError(f"{self.path}: column {name!r} holds {kind}, not numbers", at)


def pandas_index(schema: Any) -> list[str]:
    """Return the columns of an Arrow schema that hold the index of a pandas frame."""
    index: list[Any] = []
    with suppress(ValueError, KeyError, TypeError):  # metadata that pandas did not write
        index = list(schema.pandas_metadata["index_columns"])
    return [name for name in schema.names if name in index or UNNAMED_INDEX.fullmatch(name)]


class _Parquet:
    def __init__(self, file: Any) -> None:
        self.file = file
        self.schema, self.n_rows = file.schema_arrow, file.metadata.num_rows

    def read(self, columns: list[str], start: int, step: int) -> Iterator[Any]:
        """Batches that begin at multiples of ``step`` rows of each row group."""
        first = 0
        for group in range(self.file.num_row_groups):
            n = self.file.metadata.row_group(group).num_rows
            if first + n > start:
                batches = self.file.iter_batches(step, row_groups=[group], columns=columns)
                yield from _from_row(batches, start - first, columns)
            first += n


class _IpcFile:
    def __init__(self, reader: Any) -> None:
        self.reader, self.schema = reader, reader.schema
        counts = (reader.get_batch(at).num_rows for at in range(reader.num_record_batches))
        self.n_rows = sum(counts)

    def read(self, columns: list[str], start: int, step: int) -> Iterator[Any]:
        batches = (self.reader.get_batch(at) for at in range(self.reader.num_record_batches))
        yield from _sliced(batches, start, step, columns)


class _IpcStream:
    n_rows = None

    def __init__(self, reader: Any) -> None:
        self.reader, self.schema = reader, reader.schema

    def read(self, columns: list[str], start: int, step: int) -> Iterator[Any]:
        yield from _sliced(self.reader, start, step, columns)


def _opened(path: str, stream: IO[bytes] | None) -> Any:
    """Open by what the file begins with, whatever its ending says."""
    from pyarrow import ipc, memory_map, parquet

    if stream is not None:
        return _IpcStream(ipc.open_stream(stream))
    with open(path, "rb") as file:
        begins = file.read(4)
    if begins == PARQUET_BEGINS:
        # Read as it is needed, not a row group of a million rows at once.
        return _Parquet(parquet.ParquetFile(path, pre_buffer=False, buffer_size=2**16))
    if begins == STREAM_BEGINS:
        return _IpcStream(ipc.open_stream(memory_map(path)))
    return _IpcFile(ipc.open_file(memory_map(path)))


def _from_row(batches: Any, skip: int, columns: list[str]) -> Iterator[Any]:
    for batch in batches:
        if skip < batch.num_rows:
            yield batch.slice(max(skip, 0)).select(columns)
        skip -= batch.num_rows


def _sliced(batches: Any, skip: int, step: int, columns: list[str]) -> Iterator[Any]:
    """Columns of batches in slices of at most ``step`` rows, the first rows left out."""
    for batch in batches:
        chosen = batch.select(columns)
        for first in range(max(skip, 0), batch.num_rows, step):
            yield chosen.slice(first, step)
        skip -= batch.num_rows


def _matrix(columns: list[Any], n_rows: int) -> np.ndarray:
    """Columns side by side, float32 if all of them are."""
    from pyarrow import float32, float64

    single = bool(columns) and all(column.type == float32() for column in columns)
    matrix = np.empty((n_rows, len(columns)), np.float32 if single else np.float64)
    for at, column in enumerate(columns):
        floats = column if single else _as_float(column, float64())
        matrix[:, at] = floats.to_numpy(zero_copy_only=False)
    return matrix


def _as_float(column: Any, kind: Any) -> Any:
    from pyarrow import int8, types

    column = column.cast(int8()) if types.is_boolean(column.type) else column
    return column.cast(kind, safe=False)


def _values(column: Any) -> np.ndarray:
    """Cells of a column that is carried: numbers, masked where they are null, or objects."""
    from pyarrow import types

    kind = column.type
    if types.is_integer(kind) or types.is_floating(kind):
        missing = column.is_null().to_numpy(zero_copy_only=False)
        values = column.fill_null(0).to_numpy(zero_copy_only=False)
        return np.ma.array(values, mask=missing) if missing.any() else values
    cells = np.empty(len(column), dtype=object)
    cells[:] = ["" if cell is None else cell for cell in column.to_pylist()]
    return cells


@contextmanager
def _faults_told(path: str) -> Iterator[None]:
    """Say in one sentence what pyarrow says of a damaged file, or that it is missing."""
    try:
        yield
    except ImportError:
        raise ValueError(
            f'{path}: Parquet and Arrow need pyarrow: pip install "outsample[tables]"'
        ) from None
    except Exception as error:  # pyarrow's own are of many kinds
        if not (isinstance(error, OSError) or type(error).__module__.startswith("pyarrow")):
            raise
        raise CellError(f"{path}: damaged ({' '.join(str(error).split())})") from None
