"""Where placed rows go: a file of any format, or a pipe, chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from outsample.files.arrow_source import PARQUET
from outsample.files.atomic import atomic_write
from outsample.files.batch_placing import EXPLAINED, NUMBERS
from outsample.files.h5ad_output import write_cells
from outsample.files.partial import PartialFile
from outsample.files.table_writer import (
    ArrowWriter,
    GzipWriter,
    NpyWriter,
    TextWriter,
    Writer,
    npy_heading,
)
from outsample.files.tables import ending, open_table, whole_column

# Rows of a row group of Parquet.
GROUP = 2**16
STREAMS = (".arrows",)


def writer_for(path: str, delimiter: str | None = None) -> Writer:
    """Return a writer of the format that the ending tells.

    Raises ValueError for an unknown one.
    """
    kind = ending(path)
    made = WRITERS.get(kind)
    if made is None:
        raise ValueError(f"{path}: unknown ending; the formats are {', '.join(WRITERS)}")
    writer = made()
    text = writer.text if isinstance(writer, GzipWriter) else writer
    if isinstance(text, TextWriter) and delimiter is not None:
        text.delimiter = delimiter
    return writer


def complete(partial: PartialFile, out: str, cells: str, map_names: Sequence[str]) -> None:
    """Make the output file of the bytes that a writer has written, and give it its name.

    An ``.h5ad`` file is a copy of the one that was read, ``cells``, with the coordinates in it.
    """
    kind = ending(out)
    if kind == ".npy":
        with open(partial.path, "r+b") as file:
            (shape, _, _) = _npy_shape(file)
            file.seek(0)
            file.write(npy_heading(partial.position.row, shape[1]))
    if kind not in (*CONVERSIONS, ".h5ad"):
        partial.finish()
        return
    with atomic_write(partial.out) as stream:
        if kind == ".h5ad":
            _to_cells(partial.path, stream, cells, map_names)
        else:
            CONVERSIONS[kind](partial.path, stream)
    partial.remove()


def _npy_shape(file: Any) -> Any:
    np.lib.format.read_magic(file)
    return np.lib.format.read_array_header_1_0(file)


def _to_parquet(path: Path, stream: BinaryIO) -> None:
    from pyarrow import OSFile, Table, ipc, parquet

    with OSFile(str(path)) as source, ipc.open_stream(source) as reader:
        with parquet.ParquetWriter(stream, reader.schema) as writer:
            held, n = [], 0
            for batch in reader:
                held.append(batch)
                n += batch.num_rows
                if n >= GROUP:
                    writer.write_table(Table.from_batches(held), row_group_size=GROUP)
                    held, n = [], 0
            writer.write_table(Table.from_batches(held, reader.schema), row_group_size=GROUP)


def _to_arrow_file(path: Path, stream: BinaryIO) -> None:
    from pyarrow import OSFile, ipc

    with OSFile(str(path)) as source, ipc.open_stream(source) as reader:
        with ipc.new_file(stream, reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)


def _to_cells(path: Path, stream: BinaryIO, cells: str, map_names: Sequence[str]) -> None:
    columns = _read_back(path)
    coordinates = {name: columns[name] for name in map_names}
    numbers = {name: columns[name] for name in (*NUMBERS, *EXPLAINED) if name in columns}
    write_cells(cells, stream, coordinates, numbers)


def _to_npz(path: Path, stream: BinaryIO) -> None:
    np.savez(stream, allow_pickle=False, **_read_back(path))


def _read_back(path: Path) -> dict[str, np.ndarray]:
    """Columns of rows that were written as text; NaN where a number is missing."""
    with open(path, "rb") as stream:
        source = open_table(str(path), delimiter=",", stream=stream)
        parts = [part.carried for part in source.rows([], range(len(source.names)))]
    return {name: whole_column([part[name] for part in parts]) for name in source.names}


WRITERS: dict[str, Callable[[], Writer]] = {
    ".csv": TextWriter,
    ".tsv": lambda: TextWriter("\t"),
    ".txt": lambda: TextWriter("\t"),
    ".csv.gz": lambda: GzipWriter(TextWriter()),
    ".tsv.gz": lambda: GzipWriter(TextWriter("\t")),
    ".txt.gz": lambda: GzipWriter(TextWriter("\t")),
    **dict.fromkeys((*PARQUET, ".arrow", ".feather", ".ipc", *STREAMS), ArrowWriter),
    ".npy": NpyWriter,
    ".npz": TextWriter,
    ".h5ad": TextWriter,
}
CONVERSIONS: dict[str, Callable[[Path, BinaryIO], None]] = {
    **dict.fromkeys(PARQUET, _to_parquet),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), _to_arrow_file),
    ".npz": _to_npz,
}
