"""Where placed rows go: a file of any format, or a pipe, chunk by chunk."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from outsample.files.arrow_source import PARQUET
from outsample.files.batch_placing import EXPLAINED, NUMBERS
from outsample.files.h5ad_output import write_cells
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


def completed(
    path: Path, out: str, n_rows: int, *, cells: str = "", map_names: Sequence[str] = ()
) -> Path:
    """Turn the bytes that a writer has written into the file they are to be; return its path.

    An ``.h5ad`` file is a copy of the one that was read, ``cells``, with the places in it.
    """
    kind = ending(out)
    if kind == ".npy":
        with open(path, "r+b") as file:
            (shape, _, _) = _npy_shape(file)
            file.seek(0)
            file.write(npy_heading(n_rows, shape[1]))
        return path
    if kind not in (*CONVERSIONS, ".h5ad"):
        return path
    made = path.with_name(path.name + ".made")
    try:
        if kind == ".h5ad":
            _to_cells(path, made, cells, map_names)
        else:
            CONVERSIONS[kind](path, made)
        with open(made, "rb") as file:
            os.fsync(file.fileno())
    except BaseException:
        made.unlink(missing_ok=True)
        raise
    return made


def _npy_shape(file: Any) -> Any:
    np.lib.format.read_magic(file)
    return np.lib.format.read_array_header_1_0(file)


def _to_parquet(path: Path, made: Path) -> None:
    from pyarrow import OSFile, Table, ipc, parquet

    with OSFile(str(path)) as source, ipc.open_stream(source) as reader:
        with parquet.ParquetWriter(made, reader.schema) as writer:
            held, n = [], 0
            for batch in reader:
                held.append(batch)
                n += batch.num_rows
                if n >= GROUP:
                    writer.write_table(Table.from_batches(held), row_group_size=GROUP)
                    held, n = [], 0
            writer.write_table(Table.from_batches(held, reader.schema), row_group_size=GROUP)


def _to_arrow_file(path: Path, made: Path) -> None:
    from pyarrow import OSFile, ipc

    with OSFile(str(path)) as source, ipc.open_stream(source) as reader:
        with ipc.new_file(str(made), reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)


def _to_cells(path: Path, made: Path, cells: str, map_names: Sequence[str]) -> None:
    columns = _read_back(path)
    coordinates = {name: columns[name] for name in map_names}
    numbers = {name: columns[name] for name in (*NUMBERS, *EXPLAINED) if name in columns}
    write_cells(cells, made, coordinates, numbers)


def _to_npz(path: Path, made: Path) -> None:
    with open(made, "wb") as file:
        np.savez(file, allow_pickle=False, **_read_back(path))


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
CONVERSIONS: dict[str, Callable[[Path, Path], None]] = {
    **dict.fromkeys(PARQUET, _to_parquet),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), _to_arrow_file),
    ".npz": _to_npz,
}
