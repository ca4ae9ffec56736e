"""Tables of users, by the endings of their files: opened to be read in chunks, or read whole."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import IO

import numpy as np

from outsample.files.array_source import ArraySource, npy_source, npz_source
from outsample.files.arrow_source import ARROW, PARQUET, ArrowSource
from outsample.files.h5ad_source import H5adSource
from outsample.files.source import CellError, Columns, Source
from outsample.files.text_format import number
from outsample.files.text_source import TextSource

TEXT = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
ENDINGS = (".npy", ".npz", *TEXT, *PARQUET, *ARROW, ".h5ad")


def ending(path: str | os.PathLike[str]) -> str:
    """Return the ending that tells the format, in small letters, ``.gz`` with what is before it.

    >>> ending("a/b.CSV.gz"), ending("c.v2.npy")
    ('.csv.gz', '.npy')
    """
    parts = [part.lower() for part in Path(path).suffixes]
    return "".join(parts[-2:]) if parts[-1:] == [".gz"] else "".join(parts[-1:])


def open_table(
    path: str | os.PathLike[str],
    array: str | None = None,
    *,
    delimiter: str | None = None,
    stream: IO[bytes] | None = None,
) -> Source:
    """Open a table to read its rows in chunks, however many there are.

    Parameters
    ----------
    path : str or path-like
        File; its ending tells the format. With ``stream``, what to call it.
    array : str, default=None
        Which array of an ``.npz`` or ``.h5ad`` file, there ``X`` or a name in ``obsm``. By default
        ``X``, but ``X_pca`` of an ``.h5ad`` file that has it.
    delimiter : str, default=None
        What separates the cells of a text file; found out by default.
    stream : binary file, default=None
        Read text from there, once.

    Returns
    -------
    Source

    Raises
    ------
    ValueError
        Where it is no table; OSError if the file cannot be read.
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
    if kind in (*PARQUET, *ARROW):
        return ArrowSource(name)
    if kind == ".h5ad":
        return H5adSource(name, array)
    return npy_source(name) if kind == ".npy" else npz_source(name, array or "X")


def feature_columns(source: Columns) -> list[int]:
    """Columns that can be features: not those beside an array, nor the index of a pandas frame."""
    if isinstance(source, ArraySource | H5adSource):
        return list(range(source.n_features))
    if isinstance(source, ArrowSource):
        names = enumerate(source.names)
        return [at for at, name in names if name not in source.index_names]
    unnamed = source.has_names and len(source.names) > 1 and not source.names[0]
    return list(range(int(unnamed), len(source.names)))


def read_columns(
    source: Source, features: list[int], carried: list[int]
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Read columns whole: numbers (n, D), and those that are carried, by name."""
    parts = list(source.rows(features, carried))
    if not parts or not features:
        shape = (sum(len(part.numbers) for part in parts), len(features))
        raise CellError(f"{source.path}: has shape {shape}, not rows and columns")
    names = [source.names[at] for at in carried]
    kept = {name: joined([part.carried[name] for part in parts]) for name in names}
    return np.concatenate([part.numbers for part in parts]), kept


def whole_column(parts: list[np.ndarray]) -> np.ndarray:
    """Chunks of a column end to end; if all but empty cells are numbers, these are NaN."""
    cells = joined([np.empty(0, object), *parts] if not parts else parts)
    empty = np.array([isinstance(cell, str) and not cell for cell in cells], dtype=bool)
    if cells.dtype.kind != "O" or empty.all() or not empty.any():
        return typed(cells)
    known = typed(cells[~empty])
    if known.dtype.kind not in "fi":
        return typed(cells)
    filled = np.full(len(cells), np.nan)
    filled[~empty] = known
    return filled


def joined(parts: list[np.ndarray]) -> np.ndarray:
    """Chunks of a column end to end, masked where they are."""
    masked = any(isinstance(part, np.ma.MaskedArray) for part in parts)
    return np.ma.concatenate(parts) if masked else np.concatenate(parts)


def read_table(path: str | os.PathLike[str], array: str | None = None) -> np.ndarray:
    """Read a table of numbers, shape (n, columns), as float32 if the file holds that, else float64.

    The ending tells the format:

    - ``.npy``: one array;
    - ``.npz``: the array called `array`, by default X, or the only one in the file;
    - ``.csv``, ``.tsv``, ``.txt``, also with ``.gz`` after it: numbers separated by commas,
      semicolons, tabs or blanks. The first line may be a heading: it is one if it has words and no
      number at all, or if it counts 0, 1, 2, ... as pandas does. Under a heading whose first cell
      is empty, the first column is the row numbers pandas writes, and is left out;
    - ``.parquet``, ``.arrow``, ``.feather``: numeric columns, without the index of a pandas frame;
      needs pyarrow;
    - ``.h5ad``: ``X`` or an entry of ``obsm``; needs h5py.

    Raises ValueError, saying where it is no table of numbers, or OSError if it cannot be read.
    """
    source = open_table(path, array)
    return read_columns(source, feature_columns(source), [])[0]


def typed(column: np.ndarray) -> np.ndarray:
    """Numbers where all cells of a text column are numbers that text tells fully; else text.

    >>> typed(np.array(["1", "2"], dtype=object)), typed(np.array(["01", "2"], dtype=object))
    (array([1, 2]), array(['01', '2'], dtype='<U2'))
    """
    if np.ma.is_masked(column):
        return np.ma.filled(column.astype(np.float64), np.nan)
    if column.dtype.kind in "fiub":
        return np.asarray(column)
    cells = [str(cell) for cell in column.tolist()]
    values = [number(cell) for cell in cells]
    codes = any(cell[:1] == "0" and cell[1:2].isdigit() for cell in cells)
    if codes or None in values:
        return np.array(cells)
    with suppress(ValueError):  # a decimal point, or more than 64 bits
        whole = [int(cell) for cell in cells]
        if [str(value) for value in whole] == cells:
            array = np.array(whole)
            return array if array.dtype.kind == "i" else np.array(cells)
    return np.array(values, dtype=np.float64)
