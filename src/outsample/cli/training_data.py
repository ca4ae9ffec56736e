"""The data of `outsample fit`: points, their map, and columns that are kept about them."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np

from outsample.cli.exit_codes import BAD_USE, Failure
from outsample.cli.showing import note
from outsample.files.array_source import npz_names
from outsample.files.arrow_source import STREAM_MARK, UNNAMED_INDEX, ArrowSource
from outsample.files.matching import ColumnError, find_columns, match_features
from outsample.files.source import CellError, Source, check_finite
from outsample.files.tables import ending, open_table, read_columns, typed
from outsample.opened_model import EXPLANATION_COLUMNS
from outsample.placed_frame import PLACED_NUMBERS, map_names_for

# Names that are rarely those of features.
LABEL_NAMES = {
    "id", "ids", "index", "row", "name", "label", "labels", "class", "cluster", "target",
}  # fmt: skip


class TrainingData(NamedTuple):
    """Points (n, D), their map (n, d) or None, and columns (n,) that are kept, with all names."""

    X: np.ndarray
    Y: np.ndarray | None
    feature_names: list[str] | None
    map_names: list[str]
    columns: dict[str, np.ndarray]


class TableOptions(NamedTuple):
    """Where points and map are in their files; values of the options of the same names."""

    columns: list[str] | None
    map_columns: list[str] | None
    ids: tuple[str, ...]
    delimiter: str | None
    use_rep: str | None
    basis: str | None
    embed: str | None = None
    can_embed: bool = False


def read_training(points: str, map_: str | None, options: TableOptions) -> TrainingData:
    """Read points and map; the map is in its own file, next to the points, or not made yet."""
    source = open_points(points, options.use_rep, options.delimiter)
    map_names = _map_columns_of_points(source, points, map_, options)
    ids = list(options.ids)
    if ending(points) == ".h5ad" and "obs_names" not in ids:
        ids.insert(0, "obs_names")
    matched = match_features(source, columns=options.columns, carried=[*ids, *map_names])
    features, map_columns = matched.features, find_columns(source, map_names)
    # All columns in one pass, because a pipe can be read only once.
    id_columns = find_columns(source, ids)
    numbers, columns = _read(source, [*features, *map_columns], id_columns, "--id")
    X, Y = numbers[:, : len(features)], None
    names = [source.names[at] for at in features] if source.has_names else None
    _note_labels(source, names or [], options)
    if options.embed is None and map_names:
        Y = numbers[:, len(features) :]
    elif options.embed is None:
        Y, map_names = _read_map(points, map_, options, columns)
    if Y is not None and len(Y) != len(X):
        raise CellError(f"{points} has {len(X)} rows, but {map_ or points} has {len(Y)}")
    written = [*ids, *map_names, *PLACED_NUMBERS, *EXPLANATION_COLUMNS]
    for name in (*ids, *map_names):
        if written.count(name) > 1:
            raise ColumnError(
                f"`outsample place` would write two columns {name!r}: rename the one in the input"
            )
    return TrainingData(X, Y, names, map_names, {k: typed(v) for k, v in columns.items()})


def open_points(path: str, array: str | None, delimiter: str | None) -> Source:
    """Open a file of points, or the standard input."""
    if path != "-":
        return open_table(path, array, delimiter=delimiter)
    stream = sys.stdin.buffer
    if hasattr(stream, "peek") and stream.peek(4)[:4] == STREAM_MARK:
        return ArrowSource("standard input", stream=stream)
    return open_table("standard input", delimiter=delimiter, stream=stream)


def _map_columns_of_points(
    source: Source, points: str, map_: str | None, options: TableOptions
) -> list[str]:
    """Return the columns of the map in the file of the points; none if the map is elsewhere."""
    if map_ is not None and options.embed is not None:
        raise Failure("give either MAP or --embed, not both", BAD_USE)
    if map_ is not None or options.embed is not None:
        return []
    if options.map_columns is not None:
        find_columns(source, options.map_columns)
        return options.map_columns
    if ending(points) == ".h5ad" or (ending(points) == ".npz" and "Y" in npz_names(points)):
        return []
    embed = ", or compute one with --embed" if options.can_embed else ""
    raise Failure(
        "MAP is missing: give its file, or name its columns in POINTS with --map-columns"
        f"{embed}; an .npz file may contain both as X and Y",
        BAD_USE,
    )


def _read_map(
    points: str, map_: str | None, options: TableOptions, columns: dict[str, Any]
) -> tuple[np.ndarray, list[str]]:
    """Read the map from its own file, or from another array of the file of the points."""
    path = map_ or points
    array = options.basis or ("X_umap" if ending(path) == ".h5ad" else "Y")
    source = open_table(path, array, delimiter=options.delimiter)
    shared = [name for name in columns if name in source.names]
    matched = match_features(source, columns=options.map_columns, carried=shared)
    Y, map_ids = _read(source, matched.features, matched.carried, "--map-columns")
    for name, values in map_ids.items():
        differs = len(columns[name]) == len(values) and columns[name] != values
        if np.any(differs):
            row = int(np.argmax(differs))
            raise ColumnError(
                f"{path}: row {row + 1} has {name} {values[row]!r}, but {points} has "
                f"{columns[name][row]!r} there; the rows of both must be in the same order"
            )
    names = [source.names[at] for at in matched.features] if source.has_names else None
    return Y, map_names_for(Y.shape[1]) if names is None else names


def _read(
    source: Source, features: list[int], carried: list[int], option: str
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Read whole columns; the message about a column of text names it and says what to do."""
    try:
        numbers, columns = read_columns(source, features, carried)
    except CellError as error:
        if error.column is None:
            raise
        name = source.names[error.column]
        advice = f"choose others with {option}"
        if option == "--id":
            label = name if source.has_names else error.column + 1
            advice = f"carry it with --id {label}, or choose others with --columns"
        raise CellError(f"{error} (column {name!r}: {advice})", error.column) from None
    check_finite(numbers, [source.names[at] for at in features], source.path)
    return numbers, columns


def _note_labels(source: Source, names: list[str], options: TableOptions) -> None:
    if options.columns is None:
        for name in getattr(source, "index_names", ()):
            if name not in options.ids and not UNNAMED_INDEX.fullmatch(name):
                note(f"column {name!r} is the index of a pandas frame, and not used as a feature")
        for name in names:
            if name.lower() in LABEL_NAMES:
                note(f"column {name!r} is used as a feature; --id {name} carries it instead")
