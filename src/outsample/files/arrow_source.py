"""Tables of the Arrow family: Parquet, Arrow IPC files (Feather) and streams, read in batches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any

import numpy as np

from outsample.files.source import CellError, Position, Rows, chunk_rows

PARQUET = (".parquet", ".pq")
ARROW_FILES = (".arrow", ".feather", ".ipc")
ARROW_STREAMS = (".arrows",)
# First bytes of a stream and of a Parquet file.
STREAM_MARK, PARQUET_MARK = b"\xff\xff\xff\xff", b"PAR1"
UNNAMED_INDEX = re.compile(r"__index_level_\d+__")  # how pandas stores an index without a name


class ArrowSource:
    """A Parquet file, an Arrow IPC file, or an Arrow IPC stream, whatever its ending."""

    def __init__(self, path: str, *, stream: IO[bytes] | None = None) -> None:
        self.path = path
        self.size: int | None = None
        with _readable_errors(path):
            from pyarrow import ipc, memory_map, parquet

            mark = STREAM_MARK
            if stream is None:
                with open(path, "rb") as file:
                    mark = file.read(4)
            if mark == PARQUET_MARK:
                # Without pre_buffer a row group of a million rows is not read at once.
                self._reader = parquet.ParquetFile(path, pre_buffer=False, buffer_size=2**16)
                self._schema = self._reader.schema_arrow
                self.size = self._reader.metadata.num_rows
            elif mark == STREAM_MARK:
                self._reader = ipc.open_stream(stream or memory_map(path))
                self._schema = self._reader.schema
            else:
                self._reader = ipc.open_file(memory_map(path))
                self._schema = self._reader.schema
                self.size = sum(len(batch) for _, batch in self._batches([], 0))
        self.names = list(self._schema.names)
        self.index_names = pandas_index(self._schema)
        self.has_names = True
        index = set(self.index_names)
        self.feature_columns = [at for at, name in enumerate(self.names) if name not in index]

    def rows(
        self,
        features: Sequence[int],
        carried: Sequence[int] = (),
        start: Position = Position(),  # noqa: B008
        *,
        lenient: bool = False,
    ) -> Iterator[Rows]:
        """Read columns by number; nulls are NaN."""
        for at in features:
            kind = self._schema.field(at).type
            if not is_numeric(kind):
                name = self.names[at]
                raise CellError(f"{self.path}: column {name!r} contains {kind}, not numbers", at)
        columns = [self.names[at] for at in sorted({*features, *carried})]
        step = chunk_rows(len(columns))
        with _readable_errors(self.path):
            for row, batch in self._batches(columns, start.row):
                for first in range(max(0, start.row - row), batch.num_rows, step):
                    chunk = batch.slice(first, step)
                    numbers = _matrix([chunk.column(self.names[at]) for at in features], len(chunk))
                    texts = {
                        self.names[at]: _carried_values(chunk.column(self.names[at]))
                        for at in carried
                    }
                    begin, end = row + first, row + first + len(chunk)
                    yield Rows(numbers, texts, Position(begin, begin), Position(end, end))

    def _batches(self, columns: list[str], start: int) -> Iterator[tuple[int, Any]]:
        """Yield the number of the first row and the columns of each batch that ends after start.

        Batches of Parquet begin at multiples of the chunk size in each row group, so that a
        resumed run makes the same chunks.
        """
        reader, row = self._reader, 0
        if hasattr(reader, "iter_batches"):
            groups: Any = (
                (reader.metadata.row_group(group).num_rows, [group])
                for group in range(reader.num_row_groups)
            )
        elif hasattr(reader, "get_batch"):
            batches = map(reader.get_batch, range(reader.num_record_batches))
            groups = ((len(batch), batch) for batch in batches)
        else:
            groups = ((len(batch), batch) for batch in reader)
        for n_rows, group in groups:
            if row + n_rows <= start:
                row += n_rows
            elif isinstance(group, list):
                for batch in reader.iter_batches(chunk_rows(len(columns)), group, columns):
                    yield row, batch
                    row += len(batch)
            else:
                yield row, group
                row += n_rows


def pandas_index(schema: Any) -> list[str]:
    """Return the columns of an Arrow schema that contain the index of a pandas frame."""
    index: list[Any] = []
    with suppress(ValueError, KeyError, TypeError):  # metadata that pandas did not write
        index = list(schema.pandas_metadata["index_columns"])
    return [name for name in schema.names if name in index or UNNAMED_INDEX.fullmatch(name)]


def is_numeric(kind: Any) -> bool:
    """Return whether an Arrow type can be a feature: integers, floats and booleans."""
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def to_float64(column: Any) -> np.ndarray:
    """Return an Arrow column of numbers or booleans as float64; nulls are NaN."""
    from pyarrow import float64, int8, types

    column = column.cast(int8()) if types.is_boolean(column.type) else column
    return np.asarray(column.cast(float64(), safe=False).to_numpy(zero_copy_only=False))


def _matrix(columns: list[Any], n_rows: int) -> np.ndarray:
    """Return columns side by side, float32 if all of them are."""
    from pyarrow import float32

    is_single = bool(columns) and all(column.type == float32() for column in columns)
    matrix = np.empty((n_rows, len(columns)), np.float32 if is_single else np.float64)
    for at, column in enumerate(columns):
        matrix[:, at] = column.to_numpy(zero_copy_only=False) if is_single else to_float64(column)
    return matrix


def _carried_values(column: Any) -> np.ndarray:
    """Return a column as numbers, masked where null, or as objects, "" where null."""
    from pyarrow import types

    if types.is_integer(column.type) or types.is_floating(column.type):
        is_null = column.is_null().to_numpy(zero_copy_only=False)
        values = column.fill_null(0).to_numpy(zero_copy_only=False)
        return np.ma.array(values, mask=is_null) if is_null.any() else values
    cells = np.empty(len(column), dtype=object)
    cells[:] = ["" if cell is None else cell for cell in column.to_pylist()]
    return cells


@contextmanager
def _readable_errors(path: str) -> Iterator[None]:
    """Turn pyarrow's errors into one sentence with the name of the file."""
    try:
        yield
    except ImportError:
        raise ValueError(
            f'{path}: Parquet and Arrow need pyarrow: pip install "outsample[tables]"'
        ) from None
    except Exception as error:  # pyarrow raises many types
        if not (isinstance(error, OSError) or type(error).__module__.startswith("pyarrow")):
            raise
        raise CellError(f"{path}: damaged ({' '.join(str(error).split())})") from None
