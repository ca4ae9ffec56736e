"""A placement as a data frame: one row per point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

# Numbers besides the coordinates, in the order of their columns in files, answers and frames.
PLACED_NUMBERS = ("error_bar", "abnormality", "p_value", "bound", "n_neighbors")
# Columns of data frames; those that a placement does not have are omitted.
FRAME_COLUMNS = (*PLACED_NUMBERS, "residual", "dispersion", "off_manifold", "isolation")


def map_names_for(
    d: int, names: Sequence[str] | None = None, taken: Sequence[str] = FRAME_COLUMNS
) -> list[str]:
    """Return valid names of the d coordinates, none of them taken; by default ``map_1``, ..."""
    names = [f"map_{axis}" for axis in range(1, d + 1)] if names is None else list(names)
    if len(names) != d:
        raise ValueError(f"There are {len(names)} names for the {d} coordinates of the map.")
    repeated = [name for name in names if names.count(name) > 1 or name in taken]
    if repeated:
        raise ValueError(f"A coordinate is called {repeated[0]!r}, the name of another column.")
    return names


def placed_columns(placed: Any, names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
    """Return the columns (q,) of a placement by name, coordinates first."""
    names = map_names_for(placed.coordinates.shape[1], names)
    columns = dict(zip(names, placed.coordinates.T, strict=True))
    return columns | {
        name: getattr(placed, name) for name in FRAME_COLUMNS if hasattr(placed, name)
    }


def frame(placed: Any, names: Sequence[str] | None, index: Any, kind: str) -> Any:
    """Return a pandas or polars data frame of a `Placement` or `JudgedPlacement`."""
    if kind not in ("pandas", "polars"):
        raise ValueError(f"kind is {kind!r}, but must be one of 'pandas', 'polars'.")
    columns = placed_columns(placed, names)
    q = len(placed.coordinates)
    if index is not None and len(index) != q:
        raise ValueError(f"index has {len(index)} entries, but there are {q} points.")
    if kind == "pandas":
        try:
            import pandas
        except ImportError:
            raise ImportError('to_frame needs pandas: pip install "outsample[tables]"') from None
        return pandas.DataFrame(columns, index=index)
    try:
        import polars
    except ImportError:
        raise ImportError(
            "to_frame(kind='polars') needs polars: pip install \"outsample[polars]\""
        ) from None
    table = polars.DataFrame({name: np.ascontiguousarray(c) for name, c in columns.items()})
    if index is None:
        return table
    name = getattr(index, "name", None) or "index"
    if name in columns:
        raise ValueError(f"index is called {name!r}, which is the name of another column.")
    return table.insert_column(0, polars.Series(name, list(index)))
