"""Tables that grow row by row: what is written can be cut back and gone on with."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterable, Mapping
from typing import IO, Any, Protocol

import numpy as np

# Columns of a chunk by name: arrays (m,), masked where a number is not known, or `Records`.
Columns = Mapping[str, Any]


class Records(list[dict[str, list[Any]] | None]):
    """A column of small records of lists; ``fields`` tells what is in the lists."""

    def __init__(self, cells: Iterable[Any], fields: Mapping[str, type]) -> None:
        super().__init__(cells)
        self.fields = dict(fields)


class Writer(Protocol):
    """Turns chunks into bytes that are appended to a file."""

    def begin(self, sample: Columns) -> bytes:
        """Return what comes before the first chunk, which looks like the sample."""

    def chunk(self, columns: Columns) -> bytes:
        """Return the rows of one chunk."""

    def end(self) -> bytes:
        """Return what comes after the last chunk."""


class TextWriter:
    """Comma or tab separated text with a heading; numbers that read back to the last bit."""

    def __init__(self, delimiter: str = ",") -> None:
        self.delimiter = delimiter

    def begin(self, sample: Columns) -> bytes:
        """Return the heading."""
        return self._lines([list(map(str, sample))])

    def chunk(self, columns: Columns) -> bytes:
        """Return one line a row."""
        masked = any(np.ma.is_masked(values) for values in columns.values())
        if all(map(_is_number, columns.values())) and not masked:  # nothing to quote or leave out
            form = self.delimiter.join(["%r"] * len(columns)) + "\n"
            rows = zip(*(values.tolist() for values in columns.values()), strict=True)
            return "".join(map(form.__mod__, rows)).encode()
        cells = [list(map(_text, _plain(values))) for values in columns.values()]
        return self._lines(zip(*cells, strict=True))

    def end(self) -> bytes:
        """Return nothing."""
        return b""

    def _lines(self, rows: Any) -> bytes:
        out = io.StringIO()
        csv.writer(out, delimiter=self.delimiter, lineterminator="\n").writerows(rows)
        return out.getvalue().encode()


class GzipWriter:
    """Text compressed chunk by chunk, so that it can be cut back to any of them."""

    def __init__(self, text: TextWriter) -> None:
        self.text = text

    def begin(self, sample: Columns) -> bytes:
        """Return the heading."""
        return gzip.compress(self.text.begin(sample), mtime=0)

    def chunk(self, columns: Columns) -> bytes:
        """Return one line a row."""
        return gzip.compress(self.text.chunk(columns), 6, mtime=0)

    def end(self) -> bytes:
        """Return nothing."""
        return b""


class JsonWriter:
    """One JSON object a line; what is not known is null."""

    def begin(self, sample: Columns) -> bytes:
        """Return nothing."""
        return b""

    def chunk(self, columns: Columns) -> bytes:
        """Return one line a row."""
        names = list(columns)
        rows = zip(*(map(_in_json, _plain(values)) for values in columns.values()), strict=True)
        lines = (json.dumps(dict(zip(names, row, strict=True)), default=str) for row in rows)
        return "".join(line + "\n" for line in lines).encode()

    def end(self) -> bytes:
        """Return nothing."""
        return b""


class ArrowWriter:
    """An Arrow IPC stream, one batch a chunk."""

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
        """Return the mark of the end."""
        return b"\xff\xff\xff\xff\x00\x00\x00\x00"


class NpyWriter:
    """Rows of float64 of all columns that are numbers, under the heading of an ``.npy`` file."""

    def begin(self, sample: Columns) -> bytes:
        """Return a heading for no rows; it has room for any number of them."""
        return npy_heading(0, len(_numbers_of(sample)))

    def chunk(self, columns: Columns) -> bytes:
        """Return the rows as bytes."""
        floats = [np.ma.filled(values.astype("<f8"), np.nan) for values in _numbers_of(columns)]
        return np.column_stack(floats).tobytes()

    def end(self) -> bytes:
        """Return nothing."""
        return b""


def npy_heading(n_rows: int, n_columns: int) -> bytes:
    """Heading of an ``.npy`` file, as long for any number of rows."""
    out = io.BytesIO()
    shape = {"descr": "<f8", "fortran_order": False, "shape": (n_rows, n_columns)}
    np.lib.format.write_array_header_1_0(out, shape)
    return out.getvalue()


def write_all(out: IO[bytes], data: bytes) -> None:
    """Write bytes to a pipe or file, and let others see them."""
    out.write(data)
    out.flush()


def _is_number(values: Any) -> bool:
    return isinstance(values, np.ndarray) and values.dtype.kind in "fiub"


def _numbers_of(columns: Columns) -> list[np.ndarray]:
    return [values for values in columns.values() if _is_number(values)]


def _plain(values: Any) -> list[Any]:
    """Python's own values, None for what is masked."""
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


def _in_json(value: Any) -> Any:
    """Return None for the numbers that JSON has no words for."""
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _text(value: Any) -> str:
    """Return one cell as text; numbers read back to the last bit."""
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
