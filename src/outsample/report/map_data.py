"""What a map page draws: training points and new points as named columns, taken from a model.

Everything that users give is checked here, once, with words that say what is wrong and where.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from outsample.points import map_size

ERROR = "left_out_error"
# Columns of placed points that are not carried along but were measured.
MEASURED = ("p_value", "abnormality", "error_bar", "bound", "n_neighbors")
REASON, NEIGHBORS, DISTANCES = "main_reason", "neighbors", "neighbor_distances"


class Race(NamedTuple):
    """A row of the race's table: what was tried, its error, the rows it was tried on, the time."""

    name: str
    error: float
    n_rows: int
    seconds: float


class PointSet(NamedTuple):
    """Points of one kind: coordinates (n, d), columns (n,) by name, neighbours (n, k) or None."""

    coordinates: np.ndarray
    columns: dict[str, np.ndarray]
    neighbors: np.ndarray | None = None  # rows among the training points, -1 for none
    distances: np.ndarray | None = None

    def numbers(self, name: str) -> np.ndarray | None:
        """Return a column as float64, None if there is none such or it holds words."""
        values = self.columns.get(name)
        return None if values is None or values.dtype.kind == "U" else values.astype(np.float64)


class MapData(NamedTuple):
    """All that a page shows."""

    names: list[str]
    training: PointSet
    placed: PointSet | None
    size: float  # of the map, the unit of the race's errors
    level: float  # of the error bars
    race: list[Race]
    in_use: str
    row_numbers: np.ndarray  # of the training points in what was given to fit


def collect(
    model: Any,
    map_names: Iterable[str] | None,
    columns: Mapping[str, Any] | None,
    placed: Mapping[str, Any] | None,
) -> MapData:
    """Take from a fitted model, and from columns about its points, what a page shows."""
    core, rows = _fitted_map(model)
    Y = np.asarray(core.embedding_, dtype=np.float64)
    d = Y.shape[1]
    names = _map_names(map_names, d)
    rows = np.arange(len(Y)) if rows is None else rows
    n_given = _rows_given(columns or {}, rows)
    about = {
        name: _column(f"columns[{name!r}]", values, n_given)[rows]
        for name, values in (columns or {}).items()
        if name not in names
    }
    training = PointSet(Y, about | {ERROR: left_out_errors(core, len(Y))})
    return MapData(
        names,
        training,
        None if placed is None else _placed(placed, names, rows),
        float(map_size(Y)),
        float(core.level),
        [Race(str(t.placer), float(t.error), t.n_rows, t.seconds) for t in core.selection_],
        _in_use(core),
        rows,
    )


def left_out_errors(core: Any, n: int) -> np.ndarray:
    """Errors (n,) of the training points that were placed by all others; NaN for those not tried.

    Copies of a point share its error.
    """
    tried = np.full(len(core.distinct_.rows), np.nan)
    images = core.distinct_.means(np.asarray(core.embedding_))
    unit = map_size(images) or 1.0  # squares of a large map would overflow
    points = core.distinct_.groups[core.left_out_.rows]
    apart = (core.left_out_.coordinates - images[points]) / unit
    tried[points] = np.linalg.norm(apart, axis=1) * unit
    errors = tried[core.distinct_.groups]
    return errors if len(errors) == n else np.full(n, np.nan)


def _in_use(core: Any) -> str:
    """Say how the model places points, in the words of the race."""
    return str(core.model_.fitted.placer)


def _fitted_map(model: Any) -> tuple[Any, np.ndarray | None]:
    """Return the extension that holds the map, and which of the fitted rows its points are."""
    rows = getattr(model, "training_rows_", None)
    if hasattr(model, "training_rows_") and model.extension_ is None:
        raise ValueError(
            "The detector was fitted without a map, and a page shows a map: fit it to the points "
            "and their images, NoveltyDetector().fit(X, Y)."
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


def _rows_given(columns: Mapping[str, Any], rows: np.ndarray) -> int:
    """Length of columns about all rows that were fitted, of which a detector may hold half."""
    least = int(rows.max()) + 1
    if least == len(rows):
        return least
    return max([least, *map(len, columns.values())])


def _map_names(given: Iterable[str] | None, d: int) -> list[str]:
    if given is None:
        return [f"map_{axis + 1}" for axis in range(d)]
    names = [str(name) for name in given]
    if len(names) != d or len(set(names)) != d:
        raise ValueError(f"map_names is {names}, but the map has {d} columns, each with a name.")
    return names


def _column(where: str, values: Any, n: int) -> np.ndarray:
    """Return a column (n,) as float64, whole numbers or words; None and NaN among words are ''."""
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    array = np.asarray(values)
    if array.ndim != 1 or len(array) != n:
        raise ValueError(f"{where} has shape {array.shape}, but must hold one value for {n} rows.")
    if array.dtype.kind == "f":
        return array.astype(np.float64)
    if array.dtype.kind in "iuU":
        return array
    if array.dtype.kind == "b":
        return np.where(array, "yes", "no")
    if array.dtype.kind == "O" and all(_is_number(value) for value in array):
        return np.array([np.nan if value is None else float(value) for value in array])
    words = ["" if value is None or value != value else _words(value) for value in array.tolist()]
    return np.array(words, dtype=np.str_).reshape(n)


def _is_number(value: Any) -> bool:
    return value is None or (
        isinstance(value, int | float | np.number) and not isinstance(value, bool)
    )


def _words(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _placed(placed: Mapping[str, Any], names: list[str], rows: np.ndarray) -> PointSet:
    missing = [name for name in names if name not in placed]
    if missing:
        raise ValueError(
            f"placed has no column {missing[0]!r}; the coordinates of the new points are "
            f"expected under {', '.join(names)}. Columns: {', '.join(map(str, placed))}."
        )
    q = len(placed[names[0]])
    if q == 0:
        raise ValueError("placed has no rows; without new points, give the model alone.")
    coordinates = np.empty((q, len(names)))
    for at, name in enumerate(names):
        values = _numbers(f"placed[{name!r}]", _column(f"placed[{name!r}]", placed[name], q))
        if not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values))[0])
            raise ValueError(f"placed[{name!r}] is {values[row]} in row {row}; no place to draw.")
        coordinates[:, at] = values
    columns = {}
    for name, given in placed.items():
        where = f"placed[{name!r}]"
        if name in names or name in (NEIGHBORS, DISTANCES):
            continue
        column = _column(where, given, q)
        columns[str(name)] = _numbers(where, column) if name in MEASURED else column
    if NEIGHBORS not in placed:
        return PointSet(coordinates, columns)
    told, far = _split(placed[NEIGHBORS], placed.get(DISTANCES))
    near = _neighbors(told, q, rows)
    if far is None:
        return PointSet(coordinates, columns, near)
    apart = _ragged(f"placed[{DISTANCES!r}]", far, q, near.shape[1])
    return PointSet(coordinates, columns, near, apart)


def _split(told: Any, far: Any) -> tuple[Any, Any]:
    """Take neighbours and distances apart where both are in one column, as a dict or as JSON."""
    first = next((one for one in told if one is not None and len(np.shape(one)) == 0), None)
    if isinstance(first, str) and first.lstrip().startswith("{"):
        told = [json.loads(one) if isinstance(one, str) and one.strip() else {} for one in told]
    elif not isinstance(first, Mapping):
        return told, far
    both = [one if isinstance(one, Mapping) else {} for one in told]
    return [one.get("ids") for one in both], [one.get("distances") for one in both]


def _numbers(where: str, values: np.ndarray) -> np.ndarray:
    if values.dtype.kind != "U":
        return values.astype(np.float64)
    row = 0
    try:
        numbers = np.empty(len(values))
        for row, word in enumerate(values.tolist()):
            numbers[row] = float(word) if word.strip() else np.nan
        return numbers
    except ValueError:
        said = f"{where} is {str(values[row])!r} in row {row}, but must be a number."
        raise ValueError(said) from None


def _neighbors(given: Any, q: int, rows: np.ndarray) -> np.ndarray:
    """Return neighbours (q, k) as positions among the training points, -1 for none."""
    where = f"placed[{NEIGHBORS!r}]"
    numbers = _ragged(where, given, q, None)
    known = np.isfinite(numbers)
    top = int(rows.max())
    wrong = known & ((numbers < 0) | (numbers > top) | (numbers != np.floor(numbers)))
    if wrong.any():
        row = int(np.flatnonzero(wrong.any(axis=1))[0])
        value = numbers[row][wrong[row]][0]
        raise ValueError(
            f"{where} names training row {value:g} in row {row}; rows of this model go from 0 to "
            f"{top}. Were the points placed by another model?"
        )
    position = np.full(top + 1, -1)
    position[rows] = np.arange(len(rows))
    return np.where(known, position[np.where(known, numbers, 0).astype(np.int64)], -1)


def _ragged(where: str, given: Any, q: int, width: int | None) -> np.ndarray:
    """Return lists of numbers, or text with numbers in it, as an array (q, k) padded by NaN."""
    if len(given) != q:
        raise ValueError(f"{where} has {len(given)} entries, but must hold one for {q} rows.")
    if isinstance(given, np.ndarray) and given.ndim == 2 and width in (None, given.shape[1]):
        return given.astype(np.float64)
    lists = [_parsed(one) for one in given]
    k = max(map(len, lists), default=0) if width is None else width
    table = np.full((q, k), np.nan)
    for row, values in enumerate(lists):
        table[row, : len(values)] = values[:k]
    return table


def _parsed(one: Any) -> list[float]:
    if one is None or isinstance(one, float):  # nothing was written there
        return [] if one is None or one != one else [one]
    if isinstance(one, str):
        return [float(word) for word in re.findall(r"[-+0-9.eE]*\d[-+0-9.eE]*", one)]
    return [float(value) for value in np.ravel(one)]
