"""A map and the points placed into it as one table, for tools that draw maps.

Embedding Atlas reads neighbours from a column of ``{"ids": [...], "distances": [...]}``, where ids
are row numbers of the same table: the training rows come first, the placed points after them.
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
    """Return an Arrow table of a map and of new points placed into it.

    Parameters
    ----------
    model : PCAExtension, NoveltyDetector or Extended
        Fitted model with a map.
    X : array-like of shape (q, D), default=None
        New points; None for the map alone.
    map_names : sequence of d str, default=None
        Names of the coordinates; the default is ``map_1``, ``map_2``, ...
    columns, new_columns : mapping of str to array-like, default=None
        Columns about the training rows (n,) and about the new points (q,): ids, texts, labels.
        A column that only one of the two has is null for the other.
    n_neighbors : int, default=15
        Number of nearest training rows; the first of a training row is the row itself.

    Returns
    -------
    pyarrow.Table
        The training rows in their order, then the new points. Columns: the coordinates;
        ``source``, "reference" or "new"; ``error_bar`` and the other numbers of the placement,
        null for the reference; ``neighbors``, a struct of ``ids`` (row numbers of this table)
        and ``distances``; then the columns that were passed. ``to_pandas()`` makes a frame.

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
    try:
        import pyarrow
    except ImportError:
        raise ImportError('Arrow tables need pyarrow: pip install "outsample[tables]"') from None
    check_is_fitted(model)
    extension: Any = model
    if not hasattr(model, "_training_state"):
        extension = getattr(model, "extension_", None)
    if not hasattr(extension, "_training_state"):
        raise TypeError(
            f"model is {model!r}, but must be a fitted PCAExtension or NoveltyDetector."
        )
    training = extension._training_state()
    if training.images is None:
        raise ValueError("There is no map: fit needs the images as well, shape (n, d).")
    n, d = training.images.shape
    check_number("n_neighbors", n_neighbors, 1, n, whole=True)
    names = map_names_for(d, map_names)
    coordinates, q, numbers = training.images, 0, dict[str, Any]()
    neighbors = [_own_neighbors(training, int(n_neighbors))]
    if X is not None:
        placed = model.place(X)
        q = len(placed.coordinates)
        coordinates = np.concatenate([coordinates, placed.coordinates])
        placement = placed_columns(placed, names)
        numbers = {name: placement[name] for name in FRAME_COLUMNS if name in placement}
        distances, rows = extension.kneighbors(X, n_neighbors)
        neighbors.append((distances, np.searchsorted(training.rows, rows)))
    table = {name: pyarrow.array(axis) for name, axis in zip(names, coordinates.T, strict=True)}
    table[SOURCE] = pyarrow.array(["reference"] * n + ["new"] * q)
    for name, values in numbers.items():
        table[name] = _stacked(None, values, n, q)
    table[NEIGHBORS] = _neighbor_records(neighbors)
    about_training = _checked_columns(columns, training.n_rows, "columns", training.rows)
    about_new = _checked_columns(new_columns, q, "new_columns", np.arange(q))
    for name in dict.fromkeys([*about_training, *about_new]):
        if name in table:
            raise ValueError(f"columns contains {name!r}, which is the name of another column.")
        table[name] = _stacked(about_training.get(name), about_new.get(name), n, q)
    return pyarrow.table(table)


def write_parquet(path: str | os.PathLike[str], model: Any, X: Any = None, **options: Any) -> None:
    """Write `map_table` to a Parquet file, which appears when it is complete.

    ``embedding-atlas map.parquet --x map_1 --y map_2 --neighbors neighbors`` opens it.

    Parameters
    ----------
    path : str or path
        File to write; an existing file is replaced.
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


def _own_neighbors(training: TrainingState, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the neighbours of the training rows, each row itself before its duplicates."""
    distances, rows = nearest_rows(training, training.index.X[training.duplicates.groups], k)
    own = np.arange(len(rows))[:, None]
    at = np.where((rows == own).any(axis=1), (rows == own).argmax(axis=1), k - 1)
    for row in np.flatnonzero(at > 0):  # before it are only duplicates, which move up by one
        rows[row, 1 : at[row] + 1] = rows[row, : at[row]].copy()
    rows[:, 0], distances[:, 0] = own[:, 0], 0.0
    return distances, rows


def _neighbor_records(neighbors: list[tuple[np.ndarray, np.ndarray]]) -> Any:
    import pyarrow

    distances, ids = (np.concatenate(part) for part in zip(*neighbors, strict=True))
    ends = pyarrow.array(np.arange(len(ids) + 1) * ids.shape[1], type=pyarrow.int32())
    flat = pyarrow.array(ids.ravel()), pyarrow.array(distances.ravel())
    lists = [pyarrow.ListArray.from_arrays(ends, values) for values in flat]
    return pyarrow.StructArray.from_arrays(lists, names=["ids", "distances"])


def _checked_columns(
    columns: Mapping[str, Any] | None, n: int, parameter: str, rows: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the entries of columns (n,) for some rows, after a check of their lengths."""
    checked = {}
    for name, values in (columns or {}).items():
        values = np.asarray(values)
        if values.shape != (n,):
            raise ValueError(f"{parameter}[{name!r}] has shape {values.shape}, not ({n},).")
        checked[name] = values[rows]
    return checked


def _stacked(training: Any, new: Any, n: int, q: int) -> Any:
    """Return one column of the training rows and the new points; None is a column of nulls."""
    import pyarrow

    arrays = [None if values is None else pyarrow.array(values) for values in (training, new)]
    kind = next(array.type for array in arrays if array is not None)
    return pyarrow.concat_arrays(
        pyarrow.nulls(length, kind) if array is None else array.cast(kind)
        for array, length in zip(arrays, (n, q), strict=True)
    )
