"""Tables in files of every format: opened to be read in chunks, or read whole."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import IO

import numpy as np

from outsample.files.array_source import npy_source, npz_source
from outsample.files.arrow_source import ARROW_FILES, ARROW_STREAMS, PARQUET, ArrowSource
from outsample.files.cells import h5ad_source
from outsample.files.source import CellError, Source
from outsample.files.text_format import number
from outsample.files.text_source import TextSource

TEXT = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
ENDINGS = (".npy", ".npz", *TEXT, *PARQUET, *ARROW_FILES, *ARROW_STREAMS, ".h5ad")


def ending(path: str | os.PathLike[str]) -> str:
    """Return the ending that names the format, in lower case; ``.gz`` with the one before it.

    >>> ending("a/b.CSV.gz"), ending("c.v2.npy")
    ('.csv.gz', '.npy')
    """
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    return "".join(suffixes[-2:]) if suffixes[-1:] == [".gz"] else "".join(suffixes[-1:])


def open_table(
    path: str | os.PathLike[str],
    array: str | None = None,
    *,
    delimiter: str | None = None,
    stream: IO[bytes] | None = None,
) -> Source:
    """Open a table to read its rows in chunks.

    Parameters
    ----------
    path : str or path-like
        File; its ending names the format. With ``stream``, the name in messages.
    array : str, default=None
        Array of an ``.npz`` or ``.h5ad`` file, in the latter ``X`` or a key of ``obsm``. The
        default is ``X``, or ``X_pca`` of an ``.h5ad`` file that has it.
    delimiter : str, default=None
        Separator of the cells of a text file; detected by default.
    stream : binary file, default=None
        Pipe to read text from, once.

    Returns
    -------
    Source

    Raises
    ------
    ValueError
        If the file is not a table.
    OSError
        If the file cannot be read.
    """
    kind, name = ending(path), str(path)
    if stream is not None:
        return TextSource(name, delimiter=delimiter, stream=stream)
    if kind not in ENDINGS:
        raise ValueError(f"{path}: unknown ending; the formats are {', '.join(ENDINGS)}")
    if not os.path.exists(path):
        raise FileNotFoundError(errno.ENOENT, "no such file", name)
    if kind in TEXT:
        return TextSource(name, delimiter=delimiter)
    if kind == ".h5ad":
        return h5ad_source(name, array)
    if kind in (".npy", ".npz"):
        return npy_source(name) if kind == ".npy" else npz_source(name, array or "X")
    return ArrowSource(name)


def read_columns(
    source: Source, features: list[int], carried: list[int]
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Read whole columns: numbers (n, D), and carried columns by name."""
    chunks = list(source.rows(features, carried))
    if not chunks or not features:
        shape = (sum(len(chunk.numbers) for chunk in chunks), len(features))
        raise CellError(f"{source.path}: has shape {shape}, not rows and columns")
    names = [source.names[at] for at in carried]
    columns = {name: joined([chunk.carried[name] for chunk in chunks]) for name in names}
    return np.concatenate([chunk.numbers for chunk in chunks]), columns


def read_table(path: str | os.PathLike[str], array: str | None = None) -> np.ndarray:
    """Read a table of numbers (n, D): float32 if the file contains float32, else float64.

    The ending names the format:

    - ``.npy``: one array;
    - ``.npz``: the array called `array`, by default X, or the only one in the file;
    - ``.csv``, ``.tsv``, ``.txt``, also with ``.gz``: numbers separated by commas, semicolons, tabs
      or blanks. The first line is a heading if it has words and no number, or if it counts
      0, 1, 2, ... as pandas does. Under a heading whose first cell is empty, the first column is
      the row names that pandas writes, and is omitted;
    - ``.parquet``, ``.arrow``, ``.feather``: numeric columns, without the index of a pandas frame;
      needs pyarrow;
    - ``.h5ad``: ``X`` or a key of ``obsm``; needs anndata.

    Raises ValueError with the place where it is not a table of numbers, or OSError if the file
    cannot be read.
    """
    source = open_table(path, array)
    return read_columns(source, list(source.feature_columns), [])[0]


def joined(chunks: list[np.ndarray]) -> np.ndarray:
    """Return the chunks of a column end to end, masked if a chunk is."""
    is_masked = any(isinstance(chunk, np.ma.MaskedArray) for chunk in chunks)
    return np.ma.concatenate(chunks) if is_masked else np.concatenate(chunks)


def whole_column(chunks: list[np.ndarray]) -> np.ndarray:
    """Return the chunks of a column end to end; empty cells among numbers become NaN."""
    cells = joined(chunks or [np.empty(0, object)])
    if cells.dtype.kind in "OU":
        is_empty = np.array([isinstance(cell, str) and not cell for cell in cells], dtype=bool)
        values = typed(cells[~is_empty])
        if is_empty.any() and values.dtype.kind in "fi" and len(values):
            column = np.full(len(cells), np.nan)
            column[~is_empty] = values
            return column
    return typed(cells)


def typed(column: np.ndarray) -> np.ndarray:
    """Return a text column as numbers if all its cells are and no digit is lost, else as text.

    >>> typed(np.array(["1", "2"], dtype=object)), typed(np.array(["01", "2"], dtype=object))
    (array([1, 2]), array(['01', '2'], dtype='<U2'))
    """
    if np.ma.is_masked(column):
        return np.ma.filled(column.astype(np.float64), np.nan)
    if column.dtype.kind in "fiub":
        return np.asarray(column)
    cells = [str(cell) for cell in column.tolist()]
    values = [number(cell) for cell in cells]
    has_codes = any(cell[:1] == "0" and cell[1:2].isdigit() for cell in cells)
    if has_codes or None in values:
        return np.array(cells)
    with suppress(ValueError):  # a decimal point, or more than 64 bits
        integers = [int(cell) for cell in cells]
        if [str(value) for value in integers] == cells:
            array = np.array(integers)
            return array if array.dtype.kind == "i" else np.array(cells)
    return np.array(values, dtype=np.float64)
