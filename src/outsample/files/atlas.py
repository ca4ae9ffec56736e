"""A map and what was placed into it, as one table for tools that draw maps.

Embedding Atlas reads its neighbours from a column of ``{"ids": [...], "distances": [...]}``, ids
being row numbers of the same table: so the reference comes first, what was placed after it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from outsample._validation import check_number
from outsample.estimators.neighbor_queries import TrainingState, nearest_rows
from outsample.files.atomic import atomic_write
from outsample.placed_frame import FRAME_COLUMNS, map_names_for, placed_columns

SOURCE, NEIGHBORS = "source", "neighbors"


def map_table(
    model: Any,
    X: Any = None,
    *,
    map_names: Sequence[str] | None = None,
    columns: Mapping[str, Any] | None = None,
    new_columns: Mapping[str, Any] | None = None,
    n_neighbors: int = 15,
) -> Any:
    """Make an Arrow table of a map and of new points placed into it.

    Parameters
    ----------
    model : PCAExtension, NoveltyDetector or Extended
        Fitted, with a map.
    X : array-like of shape (q, D), default=None
        New points; None is the map alone.
    map_names : sequence of d str, default=None
        Names of the coordinates; None is ``map_1``, ``map_2``, ...
    columns, new_columns : mapping of str to array-like, default=None
        More columns, about the training rows (n,) and about the new points (q,): ids, texts,
        labels. What one of the two lacks is empty there.
    n_neighbors : int, default=15
        Training rows to name for every row; a training row's own comes first, at distance 0.

    Returns
    -------
    pyarrow.Table
        Rows: the training rows in their order, then the new points. Columns: the coordinates;
        ``source``, "reference" or "new"; ``error_bar`` and the other numbers of the placement,
        empty for the reference; ``neighbors``, a struct of ``ids`` (row numbers of this table)
        and ``distances``; then the given ones. ``to_pandas()`` makes a frame of it.

    Examples
    --------
    >>> import numpy as np
    >>> from outsample import NoveltyDetector
    >>> from outsample.files.atlas import map_table
    >>> X = np.random.default_rng(0).random((50, 3))
    >>> table = map_table(NoveltyDetector().fit(X, X[:, :2]), X[:2] + 0.01, n_neighbors=3)
    >>> table.num_rows, table.column_names[:5]
    (52, ['map_1', 'map_2', 'source', 'error_bar', 'abnormality'])
    >>> table["neighbors"][0].as_py()["ids"][0]
    0
    """
    arrow = _arrow()
    check_is_fitted(model)
    extension = model if hasattr(model, "_known") else getattr(model, "extension_", None)
    if extension is None or not hasattr(extension, "_known"):
        raise TypeError(
            f"model is {model!r}, but must be a fitted PCAExtension or NoveltyDetector."
        )
    known = extension._training_state()
    if known.images is None:
        raise ValueError("There is no map: fit needs the images as well, shape (n, d).")
    n, d = known.images.shape
    check_number("n_neighbors", n_neighbors, 1, n, whole=True)
    names = map_names_for(d, map_names)
    coordinates, near, scores = known.images, [_own_neighbors(known, int(n_neighbors))], {}
    q = 0
    if X is not None:
        placed = model.place(X)
        q, found = len(placed.coordinates), placed_columns(placed, names)
        coordinates = np.concatenate([coordinates, placed.coordinates])
        scores = {name: found[name] for name in FRAME_COLUMNS if name in found}
        distances, rows = extension.kneighbors(X, n_neighbors)
        near.append((distances, np.searchsorted(known.rows, rows)))
    made = {name: arrow.array(column) for name, column in zip(names, coordinates.T, strict=True)}
    made[SOURCE] = arrow.array(["reference"] * n + ["new"] * q)
    for name, values in scores.items():
        made[name] = arrow.concat_arrays(
            [arrow.nulls(n, arrow.array(values).type), arrow.array(values)]
        )
    made[NEIGHBORS] = _struct(arrow, near)
    given = _given(columns, known.n_rows, "columns", known.rows)
    new = _given(new_columns, q, "new_columns", np.arange(q))
    for name in [*given, *(name for name in new if name not in given)]:
        if name in made:
            raise ValueError(f"columns names {name!r}, which is the name of another column.")
        made[name] = _stacked(arrow, given.get(name), new.get(name), n, q)
    return arrow.table(made)


def write_parquet(path: str | os.PathLike[str], model: Any, X: Any = None, **options: Any) -> None:
    """Write `map_table` to a Parquet file, which is there whole or not at all.

    ``embedding-atlas map.parquet --x map_1 --y map_2 --neighbors neighbors`` opens it.

    Parameters
    ----------
    path : str or path
        File to write, over what is there.
    model, X, **options
        As in `map_table`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from outsample import PCAExtension
    >>> from outsample.files.atlas import write_parquet
    >>> X = np.random.default_rng(0).random((50, 3))
    >>> with TemporaryDirectory() as folder:
    ...     write_parquet(folder + "/map.parquet", PCAExtension().fit(X, X[:, :2]))
    """
    table = map_table(model, X, **options)
    from pyarrow import parquet

    with atomic_write(path) as stream:
        parquet.write_table(table, stream)


def _arrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise ImportError('Arrow tables need pyarrow: pip install "outsample[tables]"') from None
    return pyarrow


def _own_neighbors(known: TrainingState, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Neighbours of the training rows, each one's own first: copies of it would hide that."""
    distances, rows = nearest_rows(known, known.index.X[known.distinct.groups], k)
    own = np.arange(len(rows))[:, None]
    at = np.where((rows == own).any(axis=1), (rows == own).argmax(axis=1), k - 1)
    # Nearer than its own row there are only copies, as far away: they move up by one.
    for row in np.flatnonzero(at > 0):
        rows[row, 1 : at[row] + 1] = rows[row, : at[row]].copy()
    rows[:, 0], distances[:, 0] = own[:, 0], 0.0
    return distances, rows


def _struct(arrow: Any, near: list[tuple[np.ndarray, np.ndarray]]) -> Any:
    distances, ids = (np.concatenate(part) for part in zip(*near, strict=True))
    ends = arrow.array(np.arange(len(ids) + 1) * ids.shape[1], type=arrow.int32())
    lists = [
        arrow.ListArray.from_arrays(ends, arrow.array(part.ravel())) for part in (ids, distances)
    ]
    return arrow.StructArray.from_arrays(lists, names=["ids", "distances"])


def _given(
    columns: Mapping[str, Any] | None, n: int, what: str, rows: np.ndarray
) -> dict[str, Any]:
    """Columns of the rows that are in the table, after a look at their lengths."""
    found = {}
    for name, values in (columns or {}).items():
        values = np.asarray(values)
        if values.shape != (n,):
            raise ValueError(f"{what}[{name!r}] has shape {values.shape}, not ({n},).")
        found[name] = values[rows]
    return found


def _stacked(arrow: Any, given: Any, new: Any, n: int, q: int) -> Any:
    """One column of both; null where one of the two has none."""
    parts = [arrow.array(part) if part is not None else None for part in (given, new)]
    kind = next(part.type for part in parts if part is not None)
    parts = [
        arrow.nulls(length, kind) if part is None else part.cast(kind)
        for part, length in zip(parts, (n, q), strict=True)
    ]
    return arrow.concat_arrays(parts)
