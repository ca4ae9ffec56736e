"""Which columns of a table are features, which are carried to the result, which are unused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from outsample.files.source import Columns

MAX_NAMES_LISTED = 5


class ColumnError(ValueError):
    """Columns of a table are missing, repeated or too many."""


class Matched(NamedTuple):
    """Columns of a table by number: features in the model's order, carried and unused columns."""

    features: list[int]
    carried: list[int]
    unused: list[int]


def find_columns(table: Columns, names: Sequence[str]) -> list[int]:
    """Return columns by name; in a table without names "1", "2", ... are its columns.

    Raises ColumnError for a column that does not exist, or exists more than once.
    """
    if not table.has_names:
        names = [f"column_{name}" if name.isdigit() else name for name in names]
    positions: dict[Any, list[int]] = {}
    for at, name in enumerate(table.names):
        positions.setdefault(name, []).append(at)
    missing = [name for name in names if name not in positions]
    if missing:
        raise ColumnError(
            f"{table.path}: no column {listed(missing)}; it has {listed(table.names)}"
        )
    for name in names:
        if len(positions[name]) > 1:
            raise ColumnError(f"{table.path}: column {name!r} occurs more than once")
    return [positions[name][0] for name in names]


def match_features(
    table: Columns,
    feature_names: Sequence[str] | None = None,
    n_features: int | None = None,
    *,
    columns: Sequence[str] | None = None,
    carried: Sequence[str] = (),
    carried_if_present: Sequence[str] = (),
    hint: str = "",
) -> Matched:
    """Find the features in a table: by name if both have names, otherwise by position.

    Parameters
    ----------
    table : Columns
        The table.
    feature_names : sequence of str, default=None
        Names of the model's features.
    n_features : int, default=None
        Number of the model's features; None takes all columns that are not carried.
    columns : sequence of str, default=None
        Columns of the table that are the features, in the model's order.
    carried, carried_if_present : sequence of str
        Columns to copy to the result; those of the second list may be missing.
    hint : str
        What to do about a wrong number of columns, at the end of the message.
    """
    optional = [name for name in carried_if_present if name in table.names and name not in carried]
    if columns is not None:
        optional = [name for name in optional if name not in columns]
    carried_columns = find_columns(table, [*optional, *carried])
    if columns is not None:
        features = find_columns(table, columns)
    elif feature_names is not None and table.has_names:
        table_names = set(table.names)
        missing = [name for name in feature_names if name not in table_names]
        if missing:
            raise ColumnError(
                f"{table.path}: lacks {len(missing)} of the model's {len(feature_names)} "
                f"features: {listed(missing)}"
            )
        features = find_columns(table, feature_names)
    else:
        features = [at for at in table.feature_columns if at not in carried_columns]
        if n_features is None and table.has_names:
            find_columns(table, [table.names[at] for at in features])
    if not features:
        raise ColumnError(f"{table.path}: no column is left that could be a feature")
    if n_features not in (None, len(features)):
        raise ColumnError(
            f"{table.path}: has {len(features)} columns for the model's {n_features} features"
            f"{hint if columns is None else ''}"
        )
    used = {*features, *carried_columns}
    return Matched(
        features, carried_columns, [at for at in table.feature_columns if at not in used]
    )


def check_apart(carried: Sequence[str], placed: Sequence[str]) -> None:
    """Raise ColumnError if a column to carry has the name of a column of the result."""
    shared = [name for name in carried if name in placed]
    if shared:
        raise ColumnError(
            f"{listed(shared)} cannot be carried: the result has a column of that name"
        )


def listed(names: Sequence[Any]) -> str:
    """Return the first names in quotation marks, and the number of the others.

    >>> listed(list("abcdefg"))
    "'a', 'b', 'c', 'd', 'e' and 2 more"
    """
    shown = ", ".join(repr(name) for name in names[:MAX_NAMES_LISTED])
    n_hidden = len(names) - MAX_NAMES_LISTED
    return shown + (f" and {n_hidden} more" if n_hidden > 0 else "")
