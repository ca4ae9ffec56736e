"""Writers of tables that grow chunk by chunk; a file can be cut back to any chunk and continued."""

from __future__ import annotations

import csv
import gzip
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import IO, Any

import numpy as np

# Columns of a chunk by name: arrays (m,), masked where a number is missing, or `Records`.
Columns = Mapping[str, Any]


class Records(list[dict[str, list[Any]] | None]):
    """A column of small records of lists; ``fields`` has the type of each list's entries."""

    def __init__(self, cells: Iterable[Any], fields: Mapping[str, type]) -> None:
        super().__init__(cells)
        self.fields = dict(fields)


class Writer(ABC):
    """Turns chunks of columns into bytes that are appended to a file."""

    def begin(self, sample: Columns) -> bytes:
        """Return the bytes before the first chunk, which has the columns of the sample."""
        return b""

    @abstractmethod
    def chunk(self, columns: Columns) -> bytes:
        """Return the bytes of a chunk."""

    def end(self) -> bytes:
        """Return the bytes after the last chunk."""
        return b""


class TextWriter(Writer):
    """Separated text with a heading, compressed by chunks if wanted; numbers read back exactly."""

    def __init__(self, delimiter: str = ",", *, is_compressed: bool = False) -> None:
        self.delimiter, self.is_compressed = delimiter, is_compressed

    def begin(self, sample: Columns) -> bytes:
        """Return the heading."""
        return self._encoded(self._lines([list(map(str, sample))]))

    def chunk(self, columns: Columns) -> bytes:
        """Return one line per row."""
        is_masked = any(np.ma.is_masked(values) for values in columns.values())
        if all(map(_is_number, columns.values())) and not is_masked:  # nothing to quote: faster
            form = self.delimiter.join(["%r"] * len(columns)) + "\n"
            rows = zip(*(values.tolist() for values in columns.values()), strict=True)
            return self._encoded("".join(map(form.__mod__, rows)))
        cells = [list(map(_text, _plain(values))) for values in columns.values()]
        return self._encoded(self._lines(zip(*cells, strict=True)))

    def _lines(self, rows: Any) -> str:
        out = io.StringIO()
        csv.writer(out, delimiter=self.delimiter, lineterminator="\n").writerows(rows)
        return out.getvalue()

    def _encoded(self, text: str) -> bytes:
        return gzip.compress(text.encode(), 6, mtime=0) if self.is_compressed else text.encode()


class JsonWriter(Writer):
    """One JSON object per line; missing values are null."""

    def chunk(self, columns: Columns) -> bytes:
        """Return one line per row."""
        names = list(columns)
        rows = zip(*(map(_json_value, _plain(values)) for values in columns.values()), strict=True)
        lines = (json.dumps(dict(zip(names, row, strict=True)), default=str) for row in rows)
        return "".join(line + "\n" for line in lines).encode()


class ArrowWriter(Writer):
    """An Arrow IPC stream, one batch per chunk."""

    def __init__(self) -> None:
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise ValueError(
                'writing Parquet and Arrow needs pyarrow: pip install "outsample[tables]"'
            ) from None
        self.schema: Any = None

    def begin(self, sample: Columns) -> bytes:
        """Return the schema."""
        import pyarrow

        kinds = {name: _arrow_type(values) for name, values in sample.items()}
        self.schema = pyarrow.schema(list(kinds.items()))
        return bytes(self.schema.serialize())

    def chunk(self, columns: Columns) -> bytes:
        """Return one batch."""
        import pyarrow

        arrays = [_arrow_array(columns[field.name], field.type) for field in self.schema]
        batch = pyarrow.RecordBatch.from_arrays(arrays, schema=self.schema)
        return bytes(batch.serialize())

    def end(self) -> bytes:
        """Return the end mark of the stream."""
        return b"\xff\xff\xff\xff\x00\x00\x00\x00"


class NpyWriter(Writer):
    """Rows of float64 of all numeric columns, after the header of an ``.npy`` file."""

    def begin(self, sample: Columns) -> bytes:
        """Return a header for no rows; `npy_header` has the same length for any number."""
        return npy_header(0, sum(map(_is_number, sample.values())))

    def chunk(self, columns: Columns) -> bytes:
        """Return the rows as bytes."""
        numbers = filter(_is_number, columns.values())
        floats = [np.ma.filled(values.astype("<f8"), np.nan) for values in numbers]
        return np.column_stack(floats).tobytes()


class ArraysWriter(Writer):
    """One ``.npy`` block per column and chunk, after one with the names: see `read_arrays`."""

    def begin(self, sample: Columns) -> bytes:
        """Return the names, and a chunk without rows that has the types."""
        return _npy_bytes(np.array(list(sample))) + self.chunk(
            {name: values[:0] for name, values in sample.items()}
        )

    def chunk(self, columns: Columns) -> bytes:
        """Return the columns one after the other; missing numbers are NaN."""
        return b"".join(map(_npy_bytes, map(_plain_array, columns.values())))


def read_arrays(path: Any) -> dict[str, list[np.ndarray]]:
    """Return the chunks of each column that an `ArraysWriter` has written."""
    with open(path, "rb") as stream:
        size = stream.seek(0, io.SEEK_END)
        stream.seek(0)
        chunks: dict[str, list[np.ndarray]] = {
            str(name): [] for name in np.load(stream, allow_pickle=False)
        }
        while stream.tell() < size:
            for name in chunks:
                chunks[name].append(np.load(stream, allow_pickle=False))
    return chunks


def npy_header(n_rows: int, n_columns: int) -> bytes:
    """Return the header of an ``.npy`` file of float64; its length depends on no number."""
    out = io.BytesIO()
    shape = {"descr": "<f8", "fortran_order": False, "shape": (n_rows, n_columns)}
    np.lib.format.write_array_header_1_0(out, shape)
    return out.getvalue()


def write_all(out: IO[bytes], data: bytes) -> None:
    """Write bytes to a pipe or file, and flush them for its reader."""
    out.write(data)
    out.flush()


def _is_number(values: Any) -> bool:
    return isinstance(values, np.ndarray) and values.dtype.kind in "fiub"


def _npy_bytes(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    return out.getvalue()


def _plain_array(values: Any) -> np.ndarray:
    if not _is_number(values):
        return np.array([_text(value) for value in _plain(values)], dtype=str)
    return np.ma.filled(values.astype(float), np.nan) if np.ma.is_masked(values) else values


def _plain(values: Any) -> list[Any]:
    """Return Python objects, None for masked values."""
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


def _json_value(value: Any) -> Any:
    """Return None for NaN and infinity, which JSON does not have."""
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _text(value: Any) -> str:
    """Return a cell as text; numbers read back exactly."""
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value) if isinstance(value, dict) else str(value)


def _arrow_type(values: Any) -> Any:
    import pyarrow

    if isinstance(values, Records):
        kinds = {int: pyarrow.int64(), float: pyarrow.float64(), str: pyarrow.string()}
        fields = [(name, pyarrow.list_(kinds[kind])) for name, kind in values.fields.items()]
        return pyarrow.struct(fields)
    return pyarrow.from_numpy_dtype(values.dtype) if _is_number(values) else pyarrow.string()


def _arrow_array(values: Any, kind: Any) -> Any:
    import pyarrow

    if _is_number(values):
        mask = np.ma.getmaskarray(values) if np.ma.is_masked(values) else None
        return pyarrow.array(np.ma.getdata(values), kind, mask=mask)
    if pyarrow.types.is_string(kind):
        return pyarrow.array([_text(value) for value in _plain(values)], kind)
    return pyarrow.array(list(values), kind)
