"""What an AnnData holds, as points: a slot of ``obsm`` or the matrix itself, columns by name."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from outsample.points import Points


def open_cells(cells: Any, role: str) -> Any:
    """Return an AnnData; one in an .h5ad file is opened, its matrix left on disk."""
    if isinstance(cells, str | os.PathLike):
        if not Path(cells).is_file():
            raise FileNotFoundError(errno.ENOENT, "no such file", str(cells))
        try:
            from anndata import read_h5ad
        except ImportError:
            raise ImportError(
                'Reading .h5ad files needs anndata: pip install "outsample[anndata]"'
            ) from None
        return read_h5ad(cells, backed="r")
    if not all(hasattr(cells, name) for name in ("obs", "obsm", "uns", "var_names")):
        raise TypeError(f"{role} is a {type(cells).__name__}, but must be an AnnData.")
    return cells


def slot(cells: Any, role: str, key: str) -> np.ndarray:
    """Return numbers (n, columns) of ``obsm``."""
    if key not in cells.obsm:
        held = ", ".join(map(repr, cells.obsm)) or "nothing"
        raise KeyError(f"{role}.obsm has no {key!r}; it holds {held}.")
    values = cells.obsm[key]
    values = values.toarray() if sparse.issparse(values) else np.asarray(values)
    if values.ndim != 2 or values.dtype.kind not in "fiub":
        told = f"{values.dtype} of shape {values.shape}"
        raise ValueError(f"{role}.obsm[{key!r}] is {told}, not a table of numbers.")
    return values


@dataclass(frozen=True, eq=False)
class Representation:
    """Cells as points: ``names`` (D,) are those of the columns, None if they have none."""

    cells: Any
    label: str
    key: str
    values: np.ndarray | None
    names: np.ndarray | None
    width: int

    @classmethod
    def of(cls, cells: Any, role: str, key: str) -> Representation:
        """Look a representation up; ``"X"`` is the matrix, whose columns are genes."""
        if key == "X":
            if cells.X is None:
                raise ValueError(f"{role}.X is empty; name a key of obsm as use_rep.")
            genes = np.asarray(cells.var_names, dtype=object)
            _refuse_repeated(genes, f"{role}.var_names")
            return cls(cells, f"{role}.X", key, None, genes, len(genes))
        values = slot(cells, role, key)
        given = getattr(cells.obsm[key], "columns", None)
        names = None if given is None else np.asarray(given, dtype=object)
        return cls(cells, f"{role}.obsm[{key!r}]", key, values, names, values.shape[1])

    def rows(self, start: int, stop: int, order: np.ndarray | None = None) -> Points:
        """Cells of a range, columns in an order; read from disk if they are there."""
        if self.values is not None:
            values = self.values[start:stop]
        else:
            values = self.cells[start:stop].X
            values = values.tocsr() if sparse.issparse(values) else np.asarray(values)
        return values if order is None else values[:, order]

    def order(self, names: np.ndarray | None, width: int) -> np.ndarray | None:
        """Columns, in the order of the reference's; by name if both have names."""
        if names is not None and self.names is not None:
            if np.array_equal(np.asarray(names, dtype=object), self.names):
                return None
            at = {name: number for number, name in enumerate(self.names)}
            missing = [name for name in names if name not in at]
            if missing:
                some = ", ".join(map(str, missing[:5])) + (", ..." if len(missing) > 5 else "")
                raise ValueError(
                    f"{self.label} lacks {len(missing)} of the reference's {len(names)} columns: "
                    f"{some}. Fit the reference to what both have."
                )
            return np.array([at[name] for name in names])
        if self.width != width:
            raise ValueError(
                f"{self.label} has {self.width} columns, but the reference has {width}: the query "
                "needs the same representation, by the reference's own loadings or integration."
            )
        return None

    def check_finite(self, points: Points, start: int) -> None:
        """Refuse cells with numbers that are none, and say which."""
        values = points.data if sparse.issparse(points) else points
        if values.dtype.kind != "f" or np.isfinite(values).all():
            return
        if sparse.issparse(points):
            found = points.tocoo()
            bad = found.row[~np.isfinite(found.data)]
        else:
            bad = np.flatnonzero(~np.isfinite(points).all(axis=1))
        rows = np.unique(bad) + start
        some = f" ({len(rows)} such cells)" if len(rows) > 1 else ""
        raise ValueError(
            f"{self.label} contains NaN or infinity in cell {self.cells.obs_names[rows[0]]!r}, "
            f"row {rows[0]}{some}; leave such cells out."
        )


def _refuse_repeated(names: np.ndarray, label: str) -> None:
    kept, counts = np.unique(names.astype(str), return_counts=True)
    if (counts > 1).any():
        first = str(kept[np.argmax(counts > 1)])
        raise ValueError(f"{label} has {first!r} more than once: call var_names_make_unique().")
