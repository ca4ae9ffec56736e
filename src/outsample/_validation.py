"""User input to checked arrays and numbers; messages name the value and what is allowed."""

from __future__ import annotations

import re
from collections.abc import Collection
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from outsample.points import Points, largest_entry

# Beyond this, differences and distances could leave the range of a double.
LARGEST_VALUE = 1e300
# The largest image of a map is no larger than this, nor smaller than one over it, for float32.
FLOAT32_MAP = 1e18
FLOATS = [np.float64, np.float32]


def check_training(
    estimator: BaseEstimator, X: Any, Y: Any, least_rows: int = 2
) -> tuple[Points, np.ndarray]:
    """Check points (n, D) and images (n, d): float64; ``n_features_in_`` is set.

    Copies, so that later changes of the caller's arrays do not reach the model.
    """
    X, Y = _validated(
        estimator, X=X, y=Y, multi_output=True, y_numeric=True, ensure_min_samples=least_rows
    )
    Y = np.array(Y, dtype=np.float64, order="C").reshape(X.shape[0], -1)
    _check_size("X", X)
    _check_size("y", Y)
    return _float64(X, copy=True), Y


def check_points(estimator: BaseEstimator, X: Any, least_rows: int = 2) -> tuple[Points, np.dtype]:
    """Check training points (n, D) without images: float64, and the type to answer in."""
    checked = _validated(estimator, X=X, ensure_min_samples=least_rows)
    _check_size("X", checked)
    return _float64(checked, copy=True), checked.dtype


def check_queries(estimator: BaseEstimator, X: Any) -> tuple[Points, np.dtype]:
    """Check new points (q, D) against what ``fit`` saw: float64, and the type to answer in."""
    checked = _validated(estimator, X=X, reset=False)
    _check_size("X", checked)
    return _float64(checked, copy=False), checked.dtype


def fits_float32(Y: np.ndarray) -> bool:
    """Whether float32 can answer for a map: its answers may be larger and finer than its images."""
    largest = largest_entry(Y)
    return largest == 0 or 1 / FLOAT32_MAP <= largest <= FLOAT32_MAP


def check_number(
    name: str,
    value: Any,
    least: float,
    most: float,
    *,
    whole: bool = False,
    open_below: bool = False,
) -> None:
    """Refuse a parameter that is no number or outside its range, ends included.

    >>> check_number("radius", -1.0, 0, np.inf, open_below=True)
    Traceback (most recent call last):
    ...
    ValueError: radius is -1.0, but must be a number above 0.
    """
    kind = Integral if whole else Real
    sound = isinstance(value, kind) and not isinstance(value, bool | np.bool_)
    if sound and (least < value if open_below else least <= value) and value <= most:
        if whole or np.isfinite(value):
            return
    noun = "an integer" if whole else "a number"
    if np.isinf(most):
        allowed = f"{noun} above {least}" if open_below else f"{noun} of {least} or more"
    else:
        allowed = f"{noun} {'above' if open_below else 'from'} {least}"
        allowed += f", at most {most}" if open_below else f" to {most}"
    raise ValueError(f"{name} is {value!r}, but must be {allowed}.")


def check_jobs(n_jobs: Any) -> None:
    """Refuse an ``n_jobs`` that is neither None nor an integer other than 0."""
    if n_jobs is None or (isinstance(n_jobs, Integral) and n_jobs != 0):
        return
    raise ValueError(f"n_jobs is {n_jobs!r}, but must be None, or an integer other than 0.")


def check_choice(name: str, value: Any, allowed: Collection[Any]) -> None:
    """Refuse a parameter that is not one of a few values.

    >>> check_choice("loss", "cubic", ["auto", "squared"])
    Traceback (most recent call last):
    ...
    ValueError: loss is 'cubic', but must be one of 'auto', 'squared'.
    """
    if not any(type(value) is type(choice) and value == choice for choice in allowed):
        names = ", ".join(repr(choice) for choice in allowed)
        raise ValueError(f"{name} is {value!r}, but must be one of {names}.")


def _validated(estimator: BaseEstimator, **arguments: Any) -> Any:
    """Arrays checked by scikit-learn, which also notes or compares the columns."""
    try:
        with np.errstate(invalid="ignore"):  # of sums by which scikit-learn looks for NaN
            return validate_data(estimator, accept_sparse="csr", dtype=FLOATS, **arguments)
    except ValueError as error:
        raise _located(error, arguments) from None


def _float64(X: Points, copy: bool) -> Points:
    """Points as the kernels read them: rows in C order, or CSR with sorted columns."""
    if sparse.issparse(X):
        X = X.astype(np.float64, copy=True)
        X.sum_duplicates()
        return X
    return np.array(X, dtype=np.float64, order="C", copy=copy or None)


def _check_size(name: str, array: Points) -> None:
    largest = largest_entry(array)
    if largest > LARGEST_VALUE:
        raise ValueError(
            f"Input {name} has an entry of size {largest:.3g}, but at most {LARGEST_VALUE:.0e} "
            "can be handled; scale it down."
        )


def _located(error: ValueError, arrays: dict[str, Any]) -> ValueError:
    """Add to scikit-learn's message where the first bad entry is."""
    named = re.match(r"Input (\w+) contains (NaN|infinity)", str(error))
    if named is None or named[1] not in arrays:
        return error
    if sparse.issparse(arrays[named[1]]):
        return error
    values = np.asarray(arrays[named[1]], dtype=np.float64)
    bad = np.argwhere(~np.isfinite(values))
    at = ", column ".join(str(int(place)) for place in bad[0])
    more = f" ({len(bad)} such entries)" if len(bad) > 1 else ""
    return ValueError(f"{error}\nFirst bad entry of {named[1]}: row {at}{more}.")
