"""Where the first bad entry of a user's array is, added to scikit-learn's messages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse


@contextmanager
def located_errors(arrays: dict[str, Any]) -> Iterator[None]:
    """Reject masked entries, and add the first bad entry to scikit-learn's message."""
    for name, array in arrays.items():
        if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
            raise ValueError(
                f"Input {name} is a masked array (numpy.ma), {np.ma.count_masked(array)} entries "
                "of which are masked; fill them, or leave their rows out."
            )
    try:
        yield
    except ValueError as error:
        named = re.match(r"Input (\w+) contains (NaN|infinity)", str(error))
        if named is None or named[1] not in arrays:
            raise
        raise ValueError(f"{error}\n{_first_bad(named[1], arrays[named[1]])}") from None
    except TypeError:  # an object array with pandas.NA
        for name, array in arrays.items():
            if not sparse.issparse(array) and any(map(_is_na, np.ravel(_objects(array)))):
                raise ValueError(f"Input {name} contains NaN.\n{_first_bad(name, array)}") from None
        raise


def _first_bad(name: str, array: Any) -> str:
    """Return the row and column of the first entry that is not finite, and their number."""
    if sparse.issparse(array):
        array = array.tocoo()
        wrong = ~np.isfinite(array.data)
        bad = np.column_stack([array.row[wrong], array.col[wrong]])
        bad = bad[np.lexsort(bad.T[::-1])]
    elif is_real_array(array):  # it may be a memory map: no copy
        starts = range(0, len(array), 4096)
        parts = [np.argwhere(~np.isfinite(array[start : start + 4096])) for start in starts]
        for start, part in zip(starts, parts, strict=True):
            part[:, 0] += start
        bad = np.concatenate(parts)
    else:
        values = _objects(array)
        finite = [not _is_na(value) and np.isfinite(float(value)) for value in values.ravel()]
        bad = np.argwhere(~np.reshape(finite, values.shape))
    position = ", column ".join(str(int(at)) for at in bad[0])
    count = f" ({len(bad)} such entries)" if len(bad) > 1 else ""
    return f"First bad entry of {name}: row {position}{count}."


def _objects(array: Any) -> np.ndarray:
    return np.asarray(array, dtype=object)


def _is_na(value: Any) -> bool:
    """Return True for None and pandas' missing values, which are not floats."""
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def is_real_array(X: Any) -> bool:
    """Return True for an array of real numbers, which scikit-learn would copy to float64."""
    return isinstance(X, np.ndarray) and X.dtype.kind in "biuf"
