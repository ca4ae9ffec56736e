"""Places of cells written into a copy of their AnnData file, where its tools look for them."""

from __future__ import annotations

import os
import re
import shutil
from typing import Any, BinaryIO

import numpy as np

# Versions of AnnData's way of storing arrays and texts.
ARRAY = {"encoding-type": "array", "encoding-version": "0.2.0"}
TEXTS = {"encoding-type": "string-array", "encoding-version": "0.2.0"}


def write_cells(
    cells: str | os.PathLike[str],
    stream: BinaryIO,
    coordinates: dict[str, Any],
    numbers: dict[str, Any],
) -> None:
    """Copy an ``.h5ad`` file, with coordinates in ``obsm`` and numbers and texts in ``obs``.

    Coordinates named ``umap_1``, ``umap_2`` become ``obsm["X_umap"]``; the columns of obs are named
    ``outsample_error_bar`` and so on.
    """
    import h5py

    with open(cells, "rb") as source:
        shutil.copyfileobj(source, stream)
    with h5py.File(stream, "r+") as file:
        obsm = file.require_group("obsm")
        table = np.column_stack(list(coordinates.values())) if coordinates else None
        if table is not None:
            _put(obsm, basis_of(list(coordinates)), table)
        obs = file["obs"]
        order = [str(name) for name in obs.attrs.get("column-order", ())]
        for name, values in numbers.items():
            _put(obs, f"outsample_{name}", values)
            order += [f"outsample_{name}"] if f"outsample_{name}" not in order else []
        obs.attrs["column-order"] = np.array(order, dtype=h5py.string_dtype())


def basis_of(names: list[str]) -> str:
    """Name in ``obsm`` for coordinates.

    >>> basis_of(["umap_1", "umap_2"]), basis_of(["x", "y"])
    ('X_umap', 'X_map')
    """
    stems = {re.sub(r"_\d+$", "", name) for name in names}
    return f"X_{stems.pop()}" if len(stems) == 1 else "X_map"


def _put(group: Any, name: str, values: np.ndarray) -> None:
    """Store an array, in place of what has that name."""
    import h5py

    if name in group:
        del group[name]
    if values.dtype.kind in "fiub":
        group.create_dataset(name, data=values).attrs.update(ARRAY)
    else:
        texts = [str(value) for value in values.tolist()]
        group.create_dataset(name, data=texts, dtype=h5py.string_dtype()).attrs.update(TEXTS)
