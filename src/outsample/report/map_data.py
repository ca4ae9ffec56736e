"""Data of a map page: training points and new points as named columns.

User input of the page is validated here, and nowhere else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from outsample.placed_frame import PLACED_NUMBERS, map_names_for
from outsample.points import map_size

ERROR = "left_out_error"
# Numeric columns that the library computes; other columns of placed points are the user's own.
MEASURED = ("p_value", "abnormality", "error_bar", "bound", "n_neighbors")
REASON, NEIGHBORS, DISTANCES = "main_reason", "neighbors", "neighbor_distances"


class CandidateTrial(NamedTuple):
    """A candidate model in model selection: relative error, rows it was tried on, fit time."""

    name: str
    error: float
    n_rows: int
    seconds: float


class PointSet(NamedTuple):
    """Training or new points: coordinates (n, d), columns (n,) by name, neighbours (n, k)."""

    coordinates: np.ndarray
    columns: dict[str, np.ndarray]
    neighbors: np.ndarray | None = None  # rows among the training points, -1 if missing
    distances: np.ndarray | None = None

    def numbers(self, name: str) -> np.ndarray | None:
        """Return a column as float64; None if it is missing or holds text."""
        values = self.columns.get(name)
        return None if values is None or values.dtype.kind == "U" else values.astype(np.float64)


class MapData(NamedTuple):
    """Content of a page."""

    names: list[str]
    training: PointSet
    placed: PointSet | None
    size: float  # of the map, the unit of relative errors
    level: float  # of the error bars
    trials: list[CandidateTrial]
    in_use: str
    row_numbers: np.ndarray  # of the training points in the data passed to fit


def collect(
    model: Any,
    map_names: Iterable[str] | None,
    columns: Mapping[str, Any] | None,
    placed: Mapping[str, Any] | None,
) -> MapData:
    """Return the content of a page from a fitted model and columns about its points."""
    core, rows = _fitted_map(model)
    Y = np.asarray(core.embedding_, dtype=np.float64)
    d = Y.shape[1]
    names = None if map_names is None else [str(name) for name in map_names]
    names = map_names_for(d, names, taken=PLACED_NUMBERS)
    rows = np.arange(len(Y)) if rows is None else rows
    n_rows = _n_fitted_rows(columns or {}, rows)
    training_columns = {
        name: _column(f"columns[{name!r}]", values, n_rows)[rows]
        for name, values in (columns or {}).items()
        if name not in names
    }
    training = PointSet(Y, training_columns | {ERROR: left_out_errors(core, len(Y))})
    return MapData(
        names=names,
        training=training,
        placed=None if placed is None else _placed(placed, names, rows),
        size=float(map_size(Y)),
        level=float(core.level),
        trials=[
            CandidateTrial(str(trial.placer), float(trial.error), trial.n_rows, trial.seconds)
            for trial in core.selection_
        ],
        in_use=str(core.model_.fitted.placer),
        row_numbers=rows,
    )


def left_out_errors(core: Any, n: int) -> np.ndarray:
    """Return the leave-one-out errors (n,) of the training points; NaN for points not tried.

    Duplicate points share an error.
    """
    distinct_errors = np.full(len(core.distinct_.rows), np.nan)
    images = core.distinct_.means(np.asarray(core.embedding_))
    unit = map_size(images) or 1.0  # squares of a large map would overflow
    points = core.distinct_.groups[core.left_out_.rows]
    differences = (core.left_out_.coordinates - images[points]) / unit
    distinct_errors[points] = np.linalg.norm(differences, axis=1) * unit
    errors = distinct_errors[core.distinct_.groups]
    return errors if len(errors) == n else np.full(n, np.nan)


def _fitted_map(model: Any) -> tuple[Any, np.ndarray | None]:
    """Return the extension that holds the map, and the fitted rows that its points come from."""
    rows = getattr(model, "training_rows_", None)
    if hasattr(model, "training_rows_") and model.extension_ is None:
        raise ValueError(
            "The detector was fitted without a map, but a page shows a map; fit it to the points "
            "and their map: NoveltyDetector().fit(X, Y)."
        )
    core = model
    while hasattr(core, "extension_"):  # a detector around an Extended around the extension
        core = core.extension_
    if not hasattr(core, "left_out_") or not hasattr(core, "embedding_"):
        raise TypeError(
            f"model is {model!r}, but must be a fitted NoveltyDetector with a map, PCAExtension "
            "or Extended."
        )
    return core, rows


def _n_fitted_rows(columns: Mapping[str, Any], rows: np.ndarray) -> int:
    """Return the number of rows passed to fit, of which a split detector maps only half."""
    n_min = int(rows.max()) + 1
    if n_min == len(rows):
        return n_min
    return max([n_min, *map(len, columns.values())])


def _column(where: str, values: Any, n: int) -> np.ndarray:
    """Return a column (n,) as float64, integers or text; None and NaN become the empty text."""
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    array = np.asarray(values)
    if array.ndim != 1 or len(array) != n:
        raise ValueError(f"{where} has shape {array.shape}, but must be ({n},): one value per row.")
    if array.dtype.kind == "f":
        return array.astype(np.float64)
    if array.dtype.kind in "iuU":
        return array
    if array.dtype.kind == "b":
        return np.where(array, "yes", "no")
    if array.dtype.kind == "O" and all(_is_number(value) for value in array):
        return np.array([np.nan if value is None else float(value) for value in array])
    texts = ["" if value is None or value != value else _text(value) for value in array.tolist()]
    return np.array(texts, dtype=np.str_).reshape(n)


def _is_number(value: Any) -> bool:
    return value is None or (
        isinstance(value, int | float | np.number) and not isinstance(value, bool)
    )


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _placed(placed: Mapping[str, Any], names: list[str], rows: np.ndarray) -> PointSet:
    missing = [name for name in names if name not in placed]
    if missing:
        raise ValueError(
            f"placed has no column {missing[0]!r}; it needs the coordinates of the new points "
            f"as {', '.join(names)}. Its columns are {', '.join(map(str, placed))}."
        )
    q = len(placed[names[0]])
    if q == 0:
        raise ValueError("placed has no rows; to show the model alone, leave it out.")
    coordinates = np.empty((q, len(names)))
    for axis, name in enumerate(names):
        values = _numbers(f"placed[{name!r}]", _column(f"placed[{name!r}]", placed[name], q))
        if not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values))[0])
            raise ValueError(
                f"placed[{name!r}] is {values[row]} in row {row}, but coordinates must be finite."
            )
        coordinates[:, axis] = values
    columns = {}
    for name, values in placed.items():
        where = f"placed[{name!r}]"
        if name in names or name in (NEIGHBORS, DISTANCES):
            continue
        column = _column(where, values, q)
        columns[str(name)] = _numbers(where, column) if name in MEASURED else column
    if NEIGHBORS not in placed:
        return PointSet(coordinates, columns)
    ids, distances = _split(placed[NEIGHBORS], placed.get(DISTANCES))
    neighbors = _neighbors(ids, q, rows)
    if distances is not None:
        distances = _ragged(f"placed[{DISTANCES!r}]", distances, q, neighbors.shape[1])
    return PointSet(coordinates, columns, neighbors, distances)


def _split(neighbors: Any, distances: Any) -> tuple[Any, Any]:
    """Return ids and distances of neighbours, also if one column holds both as dicts or JSON."""
    scalars = (cell for cell in neighbors if cell is not None and np.ndim(cell) == 0)
    first = next(scalars, None)
    if isinstance(first, str) and first.lstrip().startswith("{"):
        neighbors = [
            json.loads(cell) if isinstance(cell, str) and cell.strip() else {} for cell in neighbors
        ]
    elif not isinstance(first, Mapping):
        return neighbors, distances
    records = [cell if isinstance(cell, Mapping) else {} for cell in neighbors]
    return [r.get("ids") for r in records], [r.get("distances") for r in records]


def _numbers(where: str, values: np.ndarray) -> np.ndarray:
    if values.dtype.kind != "U":
        return values.astype(np.float64)
    row = 0
    try:
        numbers = np.empty(len(values))
        for row, text in enumerate(values.tolist()):
            numbers[row] = float(text) if text.strip() else np.nan
        return numbers
    except ValueError:
        message = f"{where} is {str(values[row])!r} in row {row}, but must be a number."
        raise ValueError(message) from None


def _neighbors(ids: Any, q: int, rows: np.ndarray) -> np.ndarray:
    """Return neighbours (q, k) as positions among the training points, -1 if missing."""
    where = f"placed[{NEIGHBORS!r}]"
    numbers = _ragged(where, ids, q, None)
    is_present = np.isfinite(numbers)
    last = int(rows.max())
    wrong = is_present & ((numbers < 0) | (numbers > last) | (numbers != np.floor(numbers)))
    if wrong.any():
        row = int(np.flatnonzero(wrong.any(axis=1))[0])
        value = numbers[row][wrong[row]][0]
        raise ValueError(
            f"{where} is {value:g} in row {row}, but training rows of this model go from 0 to "
            f"{last}. Were the points placed by another model?"
        )
    position = np.full(last + 1, -1)
    position[rows] = np.arange(len(rows))
    return np.where(is_present, position[np.where(is_present, numbers, 0).astype(np.int64)], -1)


def _ragged(where: str, cells: Any, q: int, width: int | None) -> np.ndarray:
    """Return lists of numbers, or texts that contain numbers, as an array (q, k) padded by NaN."""
    if len(cells) != q:
        raise ValueError(f"{where} has {len(cells)} entries, but must have {q}: one per row.")
    if isinstance(cells, np.ndarray) and cells.ndim == 2 and width in (None, cells.shape[1]):
        return cells.astype(np.float64)
    lists = [_parse_numbers(cell) for cell in cells]
    k = max(map(len, lists), default=0) if width is None else width
    table = np.full((q, k), np.nan)
    for row, values in enumerate(lists):
        table[row, : len(values)] = values[:k]
    return table


def _parse_numbers(cell: Any) -> list[float]:
    if cell is None or isinstance(cell, float):  # None or NaN: an empty cell
        return [] if cell is None or cell != cell else [cell]
    if isinstance(cell, str):
        return [float(number) for number in re.findall(r"[-+0-9.eE]*\d[-+0-9.eE]*", cell)]
    return [float(value) for value in np.ravel(cell)]
