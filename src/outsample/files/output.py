"""Files of placed rows: the writer of each format, and the last step that makes the file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from outsample.files.arrow_source import ARROW_FILES, ARROW_STREAMS, PARQUET
from outsample.files.atomic import atomic_write
from outsample.files.cells import write_cells
from outsample.files.partial import PartialFile
from outsample.files.table_writer import (
    ArraysWriter,
    ArrowWriter,
    NpyWriter,
    TextWriter,
    Writer,
    npy_header,
    read_arrays,
)
from outsample.files.tables import TEXT, ending, whole_column

ROW_GROUP_ROWS = 2**16
WRITERS: dict[str, Callable[[], Writer]] = {
    **dict.fromkeys((*PARQUET, *ARROW_FILES, *ARROW_STREAMS), ArrowWriter),
    ".npy": NpyWriter,
    ".npz": ArraysWriter,
    ".h5ad": ArraysWriter,
}


def writer_for(path: str, delimiter: str | None = None) -> Writer:
    """Return a writer of the format that the ending names; ValueError for an unknown ending."""
    kind = ending(path)
    if kind in TEXT:
        delimiter = delimiter or ("," if kind.startswith(".csv") else "\t")
        return TextWriter(delimiter, is_compressed=kind.endswith(".gz"))
    if kind not in WRITERS:
        formats = ", ".join([*TEXT, *WRITERS])
        raise ValueError(f"{path}: unknown ending; the formats are {formats}")
    return WRITERS[kind]()


def complete(
    partial: PartialFile, out: str, cells: str, map_names: Sequence[str], carried: Sequence[str]
) -> None:
    """Make the output file of the bytes that its writer has written, and give it its name.

    An ``.h5ad`` file is a copy of the input ``cells`` with the placement added.
    """
    kind = ending(out)
    if kind == ".npy":
        with open(partial.path, "r+b") as file:
            np.lib.format.read_magic(file)
            (_, n_columns), _, _ = np.lib.format.read_array_header_1_0(file)
            file.seek(0)
            file.write(npy_header(partial.position.row, n_columns))
    if kind not in (*PARQUET, *ARROW_FILES, ".npz", ".h5ad"):
        partial.finish()
        return
    with atomic_write(partial.out) as stream:
        if kind in PARQUET:
            _write_parquet(partial.path, stream)
        elif kind in ARROW_FILES:
            _write_arrow_file(partial.path, stream)
        else:
            chunks = read_arrays(partial.path)
            columns = {name: whole_column(arrays) for name, arrays in chunks.items()}
            if kind == ".npz":
                np.savez(stream, allow_pickle=False, **columns)
            else:
                coordinates = {name: columns.pop(name) for name in map_names}
                placed = {name: columns[name] for name in columns if name not in carried}
                write_cells(cells, stream, coordinates, placed)
    partial.remove()


def _write_parquet(path: Path, stream: BinaryIO) -> None:
    from pyarrow import OSFile, Table, ipc, parquet

    with OSFile(str(path)) as source, ipc.open_stream(source) as reader:
        with parquet.ParquetWriter(stream, reader.schema) as writer:
            batches, n_rows = [], 0
            for batch in reader:
                batches.append(batch)
                n_rows += batch.num_rows
                if n_rows >= ROW_GROUP_ROWS:
                    writer.write_table(Table.from_batches(batches), row_group_size=ROW_GROUP_ROWS)
                    batches, n_rows = [], 0
            table = Table.from_batches(batches, reader.schema)
            writer.write_table(table, row_group_size=ROW_GROUP_ROWS)


def _write_arrow_file(path: Path, stream: BinaryIO) -> None:
    from pyarrow import OSFile, ipc

    with OSFile(str(path)) as source, ipc.open_stream(source) as reader:
        with ipc.new_file(stream, reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
