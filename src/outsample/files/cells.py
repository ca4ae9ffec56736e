"""Cells of an AnnData: its matrix or a slot of ``obsm`` as a table, results written to a file."""

from __future__ import annotations

import errno
import os
import re
import shutil
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from scipy import sparse

from outsample.files.array_source import ArraySource
from outsample.files.source import CellError


class CellMatrix:
    """The matrix of an AnnData, read by rows: ``.X`` of a backed view would read all of it."""

    def __init__(self, cells: Any) -> None:
        self.cells, self.shape = cells, cells.shape
        self.dtype = self[:1].dtype

    def __getitem__(self, rows: Any) -> Any:
        values = self.cells[rows].X
        return values.tocsr() if sparse.issparse(values) else np.asarray(values)


def open_cells(cells: Any, role: str = "") -> Any:
    """Return an AnnData; an .h5ad file is opened and its matrix left on disk."""
    if not isinstance(cells, str | os.PathLike):
        if not all(hasattr(cells, name) for name in ("obs", "obsm", "uns", "var_names")):
            raise TypeError(f"{role} is a {type(cells).__name__}, but must be an AnnData.")
        return cells
    if not Path(cells).is_file():
        raise FileNotFoundError(errno.ENOENT, "no such file", str(cells))
    try:
        from anndata import read_h5ad
    except ImportError:
        raise ImportError(
            'Reading .h5ad files needs anndata: pip install "outsample[anndata]"'
        ) from None
    try:
        return read_h5ad(cells, backed="r")
    except Exception as error:  # HDF5 and anndata raise many types
        reason = " ".join(str(error).split())
        raise CellError(f"{cells}: is not an AnnData file ({reason})") from None


def h5ad_source(path: str, array: str | None) -> ArraySource:
    """Open ``X`` or an array of ``obsm`` of an ``.h5ad`` file, ``X_pca`` by default.

    The columns of ``obs`` can be carried; the names of the cells are ``obs_names``.
    """
    try:
        cells = open_cells(path)
    except ImportError as error:
        raise ValueError(f"{path}: {error}") from None
    array = array or ("X_pca" if "X_pca" in cells.obsm else "X")
    try:
        points = cell_points(cells, f"{path}: ", array)
    except KeyError as error:
        raise CellError(error.args[0]) from None
    names = points.names
    if not points.has_names:
        names = [f"{array.removeprefix('X_')}_{at + 1}" for at in points.feature_columns]
    columns = {name: _carried_values(cells.obs[name]) for name in cells.obs}
    obs_names = np.array(cells.obs_names, dtype=object)
    return ArraySource(points.path, points.values, {"obs_names": obs_names, **columns}, names)


def cell_points(cells: Any, where: str, key: str) -> ArraySource:
    """Return cells as points: the matrix, with genes as columns, or an array of ``obsm``."""
    if key == "X":
        if cells.X is None:
            raise CellError(f"{where}X is empty; use a key of obsm")
        genes = [str(name) for name in cells.var_names]
        if not cells.var_names.is_unique:
            repeated = cells.var_names[cells.var_names.duplicated()][0]
            raise CellError(
                f"{where}var_names contains {repeated!r} more than once: call "
                "var_names_make_unique()"
            )
        return ArraySource(f"{where}X", CellMatrix(cells), names=genes)
    if key not in cells.obsm:
        keys = ", ".join(map(repr, cells.obsm)) or "nothing"
        raise KeyError(f"{where}obsm has no {key!r}; it contains {keys}")
    values = cells.obsm[key]
    names = getattr(values, "columns", None)
    values = values.toarray() if sparse.issparse(values) else np.asarray(values)
    return ArraySource(
        f"{where}obsm[{key!r}]", values, names=None if names is None else [*map(str, names)]
    )


def write_cells(
    path: str, stream: BinaryIO, coordinates: dict[str, Any], columns: dict[str, Any]
) -> None:
    """Copy an ``.h5ad`` file, with coordinates added to ``obsm`` and columns to ``obs``.

    Coordinates named ``umap_1``, ``umap_2`` become ``obsm["X_umap"]``; the columns of ``obs`` are
    named ``outsample_error_bar`` and so on. The matrix is copied unread.
    """
    import h5py
    from anndata.io import read_elem, write_elem

    with open(path, "rb") as source:
        shutil.copyfileobj(source, stream)
    with h5py.File(stream, "r+") as file:
        if coordinates:
            array = np.column_stack(list(coordinates.values()))
            write_elem(file.require_group("obsm"), basis_of(list(coordinates)), array)
        obs = read_elem(file["obs"])
        for name, values in columns.items():
            obs[f"outsample_{name}"] = values
        write_elem(file, "obs", obs)


def basis_of(names: list[str]) -> str:
    """Return the key of ``obsm`` for coordinates.

    >>> basis_of(["umap_1", "umap_2"]), basis_of(["x", "y"])
    ('X_umap', 'X_map')
    """
    stems = {re.sub(r"_\d+$", "", name) for name in names}
    return f"X_{stems.pop()}" if len(stems) == 1 else "X_map"


def _carried_values(column: Any) -> np.ndarray:
    """Return a pandas column as numbers, masked where missing, or as objects, "" where missing."""
    dtype, is_missing = column.dtype, column.isna().to_numpy()
    if isinstance(dtype, np.dtype) and dtype.kind in "fiub":
        return np.asarray(column)
    if getattr(dtype, "kind", "O") in "fiu":  # one of pandas' nullable types
        return np.ma.array(column.fillna(0).to_numpy(dtype.numpy_dtype), mask=is_missing)
    return np.where(is_missing, "", column.astype(object).to_numpy())
