"""Which columns of a table are the features of a model, which are carried along, which are left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from outsample.files.source import Columns
from outsample.files.tables import feature_columns

SHOWN = 5


class ColumnError(ValueError):
    """A table lacks columns, or has them in a way that leaves open what they are."""


class Matched(NamedTuple):
    """Columns of a table by number: features in the model's order, carried ones, and the rest."""

    features: list[int]
    carried: list[int]
    unused: list[int]


def find_columns(source: Columns, names: Sequence[str]) -> list[int]:
    """Columns by name, refusing what is not there or there twice; without names, by number."""
    if not source.has_names:
        names = [f"column_{name}" if name.isdigit() else name for name in names]
    missing = [name for name in names if name not in source.names]
    if missing:
        held = listed(source.names)
        raise ColumnError(f"{source.path}: no column {listed(missing)}; it has {held}")
    for name in names:
        if source.names.count(name) > 1:
            raise ColumnError(f"{source.path}: column {name!r} is there more than once")
    return [source.names.index(name) for name in names]


def choose_features(
    source: Columns, columns: Sequence[str] | None, carried: Sequence[str]
) -> Matched:
    """Columns to learn from: those named, or all that are not carried."""
    kept = find_columns(source, carried)
    features = [at for at in feature_columns(source) if at not in kept]
    if columns is not None:
        features = find_columns(source, columns)
    elif source.has_names:
        find_columns(source, [source.names[at] for at in features])
    if not features:
        raise ColumnError(f"{source.path}: no column is left that could be a feature")
    return _matched(source, features, kept)


def match_features(
    source: Columns,
    feature_names: Sequence[str] | None,
    n_features: int,
    *,
    columns: Sequence[str] | None = None,
    carried: Sequence[str] = (),
    carried_if_there: Sequence[str] = (),
    hint: str = "",
) -> Matched:
    """Find a model's features in a table: by name where both have names, else in their order.

    ``hint`` ends the error of a table with another number of columns: what to do about it.
    """
    known = [name for name in carried_if_there if name in source.names and name not in carried]
    if columns is not None:
        known = [name for name in known if name not in columns]
    kept = find_columns(source, [*known, *carried])
    if columns is None and feature_names is not None and source.has_names:
        missing = [name for name in feature_names if name not in source.names]
        if missing:
            raise ColumnError(
                f"{source.path}: lacks {len(missing)} of the model's {n_features} features: "
                f"{listed(missing)}"
            )
        return _matched(source, find_columns(source, feature_names), kept)
    features = [at for at in feature_columns(source) if at not in kept]
    if columns is not None:
        features = find_columns(source, columns)
    if len(features) != n_features:
        raise ColumnError(
            f"{source.path}: has {len(features)} columns for the model's {n_features} features"
            f"{hint if columns is None else ''}"
        )
    return _matched(source, features, kept)


def check_apart(carried: Sequence[str], placed: Sequence[str]) -> None:
    """Refuse columns to carry that have the names of those to be written."""
    both = [name for name in carried if name in placed]
    if both:
        raise ColumnError(f"{listed(both)} cannot be carried: the answer has a column of that name")


def listed(names: Sequence[str]) -> str:
    """Name the first of many.

    >>> listed(list("abcdefg"))
    "'a', 'b', 'c', 'd', 'e' and 2 more"
    """
    shown = ", ".join(repr(name) for name in names[:SHOWN])
    return shown + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def _matched(source: Columns, features: list[int], carried: list[int]) -> Matched:
    used = {*features, *carried}
    unused = [at for at in feature_columns(source) if at not in used]
    return Matched(features, carried, unused)
