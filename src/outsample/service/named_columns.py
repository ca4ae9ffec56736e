"""Rows of a request as the model takes them: its columns, finite numbers, not too many."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outsample._validation import LARGEST_VALUE
from outsample.files.matching import listed
from outsample.service.refusal import Refusal


def matched(
    rows: np.ndarray,
    columns: Sequence[str] | None,
    feature_names: Sequence[str] | None,
    n_features: int,
    most_rows: int,
) -> np.ndarray:
    """Return rows (q, D) in the model's order of columns, or refuse with the row and column.

    Columns go by name where both have names, else in their order.
    """
    if len(rows) > most_rows:
        raise Refusal(422, f"{len(rows)} rows, but at most {most_rows} at once; send them in parts")
    if columns is not None and len(columns) != rows.shape[1]:
        raise Refusal(422, f"{len(columns)} columns are named, but rows have {rows.shape[1]}")
    if columns is not None and feature_names is not None:
        order = _order(list(columns), list(feature_names))
        if order is not None:
            rows = np.ascontiguousarray(rows[:, order])
    elif rows.shape[1] != n_features:
        raise Refusal(422, f"rows have {rows.shape[1]} columns, but the model takes {n_features}")
    fine = abs(rows) <= LARGEST_VALUE  # NaN is not
    if not fine.all():
        row, at = (int(place) for place in np.argwhere(~fine)[0])
        name = feature_names[at] if feature_names is not None else at
        allowed = "must be finite" if not np.isfinite(rows[row, at]) else "is too large"
        raise Refusal(
            422, f"row {row}, column {name!r} is {rows[row, at]}, but {allowed}",
            row=row, column=name,
        )  # fmt: skip
    return rows


def _order(columns: list[str], feature_names: list[str]) -> list[int] | None:
    """Return the columns in the model's order; None if they are."""
    if columns == feature_names:
        return None
    missing = [name for name in feature_names if name not in columns]
    if missing:
        raise Refusal(
            422, f"{len(missing)} of the model's columns are missing: {listed(missing)}",
            column=missing[0],
        )  # fmt: skip
    if len(columns) > len(feature_names):
        known = set(feature_names)
        wrong = next((name for name in columns if name not in known), None)
        if wrong is None:
            wrong = next(name for name in columns if columns.count(name) > 1)
        said = f"column {wrong[:60]!r} is there twice, or is not one of the model's"
        raise Refusal(422, said, column=wrong)
    return [columns.index(name) for name in feature_names]
