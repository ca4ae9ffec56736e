"""A table with a column of times, as a recording that can be replayed."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from outsample.files.matching import find_columns, match_features
from outsample.files.source import check_finite
from outsample.files.tables import open_table, read_columns, typed
from outsample.replay.feeding import Recording


def table_recording(path: str, time_column: str, about: dict[str, Any]) -> Recording:
    """Read the rows of a file with a column of times: dates and times, or seconds.

    ``about`` is the description of the model at ``/model``.
    """
    source = open_table(path)
    names = about.get("feature_names")
    (when,) = find_columns(source, [time_column])
    matched = match_features(source, names, int(about["n_features"]), carried=[time_column])
    X, carried = read_columns(source, matched.features, [when])
    check_finite(X, [source.names[at] for at in matched.features], path)
    seconds = as_seconds(carried[time_column], f"{path}: column {time_column!r}")
    order = np.argsort(seconds, kind="stable")
    return Recording(names, X[order], seconds[order] - seconds[order[0]])


def as_seconds(cells: NDArray[Any], where: str) -> NDArray[np.float64]:
    """Return times as seconds; ValueError, with the row, for a cell that is not a time.

    >>> as_seconds(np.array(["1998-07-20T08:00", "1998-07-20 08:01:30"], dtype=object), "").tolist()
    [900921600.0, 900921690.0]
    """
    values = typed(np.asarray(cells)) if cells.dtype.kind == "O" else np.asarray(cells)
    if values.dtype.kind in "fiu":
        seconds = values.astype(np.float64)
    else:
        seconds = np.empty(len(values))
        for row, cell in enumerate(values.tolist()):
            try:
                seconds[row] = np.datetime64(cell, "ms").astype(np.int64) / 1e3
            except ValueError as error:
                raise ValueError(f"{where}, row {row + 1}: {cell!r} is not a time") from error
    if not np.isfinite(seconds).all():
        raise ValueError(f"{where}, row {int(np.argmin(np.isfinite(seconds))) + 1} has no time")
    return seconds
