"""What `outsample fit` learns from: points, their map, and columns that are carried along."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np

from outsample.cli.exit_codes import BAD_USE, Failure
from outsample.cli.showing import note
from outsample.files.array_source import npz_names
from outsample.files.arrow_source import STREAM_BEGINS, UNNAMED_INDEX, ArrowSource
from outsample.files.batch_placing import EXPLAINED, NUMBERS
from outsample.files.matching import ColumnError, choose_features, find_columns
from outsample.files.source import CellError, Source
from outsample.files.tables import ending, open_table, read_columns, typed

# Names that are rarely those of features.
LABELS = {"id", "ids", "index", "row", "name", "label", "labels", "class", "cluster", "target"}


class TrainingData(NamedTuple):
    """Points (n, D), images (n, d) or None, and columns (n,) that are carried, with their names."""

    X: np.ndarray
    Y: np.ndarray | None
    feature_names: list[str] | None
    map_names: list[str]
    columns: dict[str, np.ndarray]


class Choice(NamedTuple):
    """What the options say of the files."""

    columns: list[str] | None
    map_columns: list[str] | None
    ids: tuple[str, ...]
    delimiter: str | None
    use_rep: str | None
    basis: str | None
    embed: str | None = None
    can_embed: bool = False


def read_training(points: str, map_: str | None, choice: Choice) -> TrainingData:
    """Read points and map, wherever the map is: in MAP, beside the points, or still to be made."""
    source = open_points(points, choice.use_rep, choice.delimiter)
    inside = _map_inside(source, points, map_, choice)
    ids = list(choice.ids)
    if ending(points) == ".h5ad" and "obs_names" not in ids:
        ids.insert(0, "obs_names")
    matched = choose_features(source, choice.columns, [*ids, *inside])
    features, images = matched.features, find_columns(source, inside)
    # At once, because a pipe can be read only once.
    numbers, carried = _read(source, [*features, *images], find_columns(source, ids), hint="--id")
    X = numbers[:, : len(features)]
    names = [source.names[at] for at in features] if source.has_names else None
    _note_labels(source, names or [], choice)
    Y, map_names = None, inside
    if choice.embed is None and inside:
        Y = numbers[:, len(features) :]
    elif choice.embed is None:
        Y, map_names = _read_map(points, map_, choice, ids, carried)
    if Y is not None and len(Y) != len(X):
        raise CellError(f"{points} has {len(X)} rows, but {map_ or points} has {len(Y)}")
    _check_names([*ids, *map_names])
    return TrainingData(X, Y, names, map_names, {k: typed(v) for k, v in carried.items()})


def open_points(path: str, array: str | None, delimiter: str | None) -> Source:
    """Open a file of points, or the standard input."""
    if path != "-":
        return open_table(path, array, delimiter=delimiter)
    stream = sys.stdin.buffer
    if hasattr(stream, "peek") and stream.peek(4)[:4] == STREAM_BEGINS:
        return ArrowSource("standard input", stream=stream)
    return open_table("standard input", delimiter=delimiter, stream=stream)


def _map_inside(
    source: Source, points: str, map_: str | None, choice: Choice
) -> list[str]:
    """Names of map columns that are in the file of the points; none if the map is elsewhere."""
    if map_ is not None and choice.embed is not None:
        raise Failure("MAP and --embed exclude one another: the map is there, or made", BAD_USE)
    if map_ is not None or choice.embed is not None:
        return []
    if choice.map_columns is not None:
        find_columns(source, choice.map_columns)
        return choice.map_columns
    if ending(points) == ".h5ad" or (ending(points) == ".npz" and "Y" in npz_names(points)):
        return []
    embed = ", or let --embed make one" if choice.can_embed else ""
    raise Failure(
        "MAP is missing: give its file, or name its columns in POINTS with --map-columns"
        f"{embed}; an .npz file may hold both as X and Y",
        BAD_USE,
    )


def _read_map(
    points: str, map_: str | None, choice: Choice, ids: list[str], carried: dict[str, Any]
) -> tuple[np.ndarray, list[str]]:
    """Read the map from its own file, or from another array of the same one."""
    path = map_ or points
    array = choice.basis or ("X_umap" if ending(path) == ".h5ad" else "Y")
    source = open_table(path, array, delimiter=choice.delimiter)
    shared = [name for name in ids if name in source.names]
    matched = choose_features(source, choice.map_columns, shared)
    Y, known = _read(source, matched.features, matched.carried, hint="--map-columns")
    for name in known:
        same = len(carried[name]) == len(known[name]) and carried[name] != known[name]
        if np.any(same):
            row = int(np.argmax(same))
            raise ColumnError(
                f"{path}: row {row + 1} has {name} {known[name][row]!r}, but {points} has "
                f"{carried[name][row]!r} there; the rows of both must be in one order"
            )
    if source.has_names:
        return Y, [source.names[at] for at in matched.features]
    return Y, [f"map_{at + 1}" for at in range(Y.shape[1])]


def _read(
    source: Source, features: list[int], carried: list[int], hint: str = ""
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Read columns whole; a column of text is told by name, with what to do about it."""
    try:
        numbers, kept = read_columns(source, features, carried)
    except CellError as error:
        if error.column is None or not hint:
            raise
        name = source.names[error.column]
        called = name if source.has_names else error.column + 1
        do = f"carry it with --id {called}, or choose others with --columns"
        if hint != "--id":
            do = f"choose others with {hint}"
        raise CellError(f"{error} (column {name!r}: {do})", error.column) from None
    bad = np.argwhere(~np.isfinite(numbers))
    if len(bad):
        row, at = bad[0].tolist()
        raise CellError(
            f"{source.path}: row {row + 1} has no finite number in column "
            f"{source.names[features[at]]!r} ({len(bad)} such cells in all)"
        )
    return numbers, kept


def _note_labels(source: Source, names: list[str], choice: Choice) -> None:
    if choice.columns is None:
        for name in getattr(source, "index_names", ()):
            if name not in choice.ids and not UNNAMED_INDEX.fullmatch(name):
                note(f"column {name!r} is the index of a pandas frame, and not taken for a feature")
        for name in names:
            if name.lower() in LABELS:
                note(f"column {name!r} is taken for a feature; --id {name} carries it instead")


def _check_names(names: list[str]) -> None:
    for name in names:
        if name in (*NUMBERS, *EXPLAINED) or names.count(name) > 1:
            raise ColumnError(
                f"column {name!r} would be twice in what `outsample place` writes: rename it"
            )
