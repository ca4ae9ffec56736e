"""Checks of user input; error messages name the value and what is allowed.

New points are converted to the container of the training points, dense or sparse: no kernel gets a
mixed pair.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from outsample._bad_entries import is_real_array, located_errors
from outsample.points import Points, float64_rows, largest_entry, map_size

# Beyond this, differences and distances could leave the range of a double.
LARGEST_VALUE = 1e300
# Maps whose largest entry is at most this, and at least one over it, are returned as float32.
MAX_FLOAT32_ENTRY = 1e18
FLOATS = [np.float64, np.float32]
# Sparse points with fewer columns are converted to dense ones.
MIN_SPARSE_COLUMNS = 100
GENERATORS = (np.random.RandomState, np.random.Generator)


@dataclass(frozen=True, eq=False)
class TrainingRecord:
    """Properties of the training data; queries are checked and converted by it, not by parameters.

    ``n_rows`` rows of X, sparse or not; metric and threads; for the map its number of columns (0
    without a map), its root mean square size, and whether float32 can represent it.
    """

    n_rows: int
    is_sparse: bool
    metric: str = "euclidean"
    n_jobs: int | None = None
    map_columns: int = 0
    map_size: float = 1.0
    fits_float32: bool = True

    @classmethod
    def of(
        cls, X: Points, Y: np.ndarray, metric: str = "euclidean", n_jobs: int | None = None
    ) -> TrainingRecord:
        """Return the record of points (n, D) and their images (n, d)."""
        size = map_size(np.asarray(Y, dtype=np.float64))
        is_sparse = sparse.issparse(X)
        return cls(len(Y), is_sparse, metric, n_jobs, Y.shape[1], size, fits_float32(Y))

    def answer_type(self, dtype: np.dtype) -> np.dtype:
        """Return the type of results: that of the queries, or float64 if float32 is not enough."""
        return dtype if self.fits_float32 else np.dtype(np.float64)


def check_training(
    estimator: BaseEstimator, X: Any, Y: Any, min_rows: int = 2
) -> tuple[Points, np.ndarray]:
    """Return checked points (n, D) and images (n, d) as float64; set ``n_features_in_``.

    They are copies, so that later changes of the caller's arrays do not affect the model.
    """
    Y = _dense(Y)
    X, Y = _validated(
        estimator, X=X, y=Y, multi_output=True, y_numeric=True, ensure_min_samples=min_rows
    )
    Y = np.array(Y, dtype=np.float64, order="C").reshape(X.shape[0], -1)
    _check_size("X", X)
    _check_size("y", Y)
    return float64_rows(_dense_if_narrow(X), copy=True), Y


def check_points(estimator: BaseEstimator, X: Any, min_rows: int = 2) -> tuple[Points, np.dtype]:
    """Return checked training points (n, D) as float64, and the type of results."""
    checked = _validated(estimator, X=X, ensure_min_samples=min_rows)
    _check_size("X", checked)
    return float64_rows(_dense_if_narrow(checked), copy=True), checked.dtype


def check_fitted(estimator: BaseEstimator) -> None:
    """Raise NotFittedError if the estimator is not fitted, fast if it is."""
    if not hasattr(estimator, "n_features_in_"):
        check_is_fitted(estimator)


def check_queries(estimator: BaseEstimator, X: Any) -> tuple[Points, np.dtype]:
    """Return checked new points (q, D) as float64, and the type of results."""
    checked, dtype = check_rows(estimator, X)
    return float64_rows(checked), dtype


def check_rows(estimator: BaseEstimator, X: Any) -> tuple[Points, np.dtype]:
    """Return checked new points (q, D) in their own real type, and the type of results.

    Arrays are not copied, so that a memory map of any length can be checked.
    """
    if _is_plain(estimator, X):
        return X, X.dtype
    keeps_type = is_real_array(X) and not estimator.training_.is_sparse
    checked = _validated(estimator, X=X, reset=False, dtype=None if keeps_type else FLOATS)
    _check_size("X", checked)
    return checked, checked.dtype if checked.dtype in FLOATS else np.dtype(np.float64)


def _is_plain(estimator: BaseEstimator, X: Any) -> bool:
    """Return True if X clearly passes `check_rows`: scikit-learn's checks take longer."""
    return (
        type(X) is np.ndarray
        and X.dtype in FLOATS
        and X.ndim == 2
        and X.shape[0] > 0
        and X.shape[1] == getattr(estimator, "n_features_in_", 0)
        and not hasattr(estimator, "feature_names_in_")
        and not estimator.training_.is_sparse
        and largest_entry(X) <= LARGEST_VALUE  # False for NaN
    )


def check_embedded(estimator: BaseEstimator, X: Any, min_rows: int) -> Points:
    """Return checked points to embed, in their own type and order."""
    return _dense_if_narrow(_validated(estimator, X=X, ensure_min_samples=min_rows))


def is_map(y: Any) -> bool:
    """Return True for images (two-dimensional numbers), False for class labels (1-D or strings)."""
    if y is None or sparse.issparse(y):
        return y is not None
    values = np.asarray(y)
    is_text = values.dtype.kind in "US" or (values.size > 0 and isinstance(values.flat[0], str))
    return values.ndim > 1 and not is_text


def check_images(Y: Any, shape: tuple[int, int]) -> np.ndarray:
    """Return checked images (q, d) of that shape as float64, to compare placed points with."""
    with located_errors({"y": Y}):
        Y = check_array(_dense(Y), dtype=np.float64, ensure_2d=False, input_name="y")
    check_consistent_length(Y, np.empty(shape))
    Y = Y.reshape(len(Y), -1)
    if Y.shape != shape:
        raise ValueError(f"y has {Y.shape[1]} columns, but the map has {shape[1]}.")
    _check_size("y", Y)
    return Y


def fits_float32(Y: np.ndarray) -> bool:
    """Return True if float32 can represent placements, which may exceed the range of the images."""
    largest = largest_entry(Y)
    return largest == 0 or 1 / MAX_FLOAT32_ENTRY <= largest <= MAX_FLOAT32_ENTRY


def check_number(
    name: str,
    value: Any,
    lower: float,
    upper: float,
    *,
    whole: bool = False,
    open_below: bool = False,
) -> None:
    """Raise ValueError if a parameter is not a number within its range, ends included.

    >>> check_number("radius", -1.0, 0, np.inf, open_below=True)
    Traceback (most recent call last):
    ...
    ValueError: radius is -1.0, but must be a number above 0.
    """
    kind = Integral if whole else Real
    is_number = isinstance(value, kind) and not isinstance(value, bool | np.bool_)
    if is_number and (lower < value if open_below else lower <= value) and value <= upper:
        if whole or np.isfinite(value):
            return
    noun = "an integer" if whole else "a number"
    if np.isinf(upper):
        allowed = f"{noun} above {lower}" if open_below else f"{noun} of {lower} or more"
    else:
        allowed = f"{noun} {'above' if open_below else 'from'} {lower}"
        allowed += f", at most {upper}" if open_below else f" to {upper}"
    raise ValueError(f"{name} is {value!r}, but must be {allowed}.")


def plain(value: Any) -> Any:
    """Return a NumPy scalar as a Python number, for which the kernels are compiled."""
    return value.item() if isinstance(value, np.generic) else value


def check_jobs(n_jobs: Any) -> None:
    """Raise ValueError if ``n_jobs`` is neither None nor an integer other than 0."""
    if n_jobs is None or (isinstance(n_jobs, Integral) and n_jobs != 0):
        return
    raise ValueError(f"n_jobs is {n_jobs!r}, but must be None, or an integer other than 0.")


def check_random(random_state: Any) -> None:
    """Raise ValueError if ``random_state`` is not a seed, RandomState, Generator or None."""
    if random_state is not None and not isinstance(random_state, GENERATORS):
        check_number("random_state", random_state, 0, 2**32 - 1, whole=True)


def random_seed(random_state: Any) -> int:
    """Return the seed of a fit: the integer itself, or drawn from a generator; None is random."""
    if isinstance(random_state, Integral):
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**32, dtype=np.uint32))
    return int(np.random.default_rng(random_state).integers(2**32))


def check_choice(name: str, value: Any, allowed: Collection[Any]) -> None:
    """Raise ValueError if a parameter is not one of the allowed values.

    >>> check_choice("loss", "cubic", ["auto", "squared"])
    Traceback (most recent call last):
    ...
    ValueError: loss is 'cubic', but must be one of 'auto', 'squared'.
    """
    if not any(_same_kind(value, choice) and value == choice for choice in allowed):
        names = ", ".join(repr(choice) for choice in allowed)
        raise ValueError(f"{name} is {value!r}, but must be one of {names}.")


def _validated(estimator: BaseEstimator, **arguments: Any) -> Any:
    """Return arrays checked by scikit-learn, which also records or compares the columns.

    Queries are converted to the container of the training points.
    """
    with located_errors({name: arguments[name] for name in ("X", "y") if name in arguments}):
        with np.errstate(invalid="ignore"):  # scikit-learn detects NaN by sums
            options = {"dtype": FLOATS, **arguments}
            checked = validate_data(estimator, accept_sparse="csr", **options)
    if arguments.get("reset", True) or sparse.issparse(checked) == estimator.training_.is_sparse:
        return checked
    return checked.toarray() if sparse.issparse(checked) else sparse.csr_matrix(checked)


def _dense_if_narrow(X: Points) -> Points:
    """Return sparse points with few columns as an array, so that the container does not matter."""
    return X.toarray() if sparse.issparse(X) and X.shape[1] < MIN_SPARSE_COLUMNS else X


def _same_kind(value: Any, choice: Any) -> bool:
    """Return True if both are strings, or both integers; a bool is not an integer."""
    if isinstance(choice, str):
        return isinstance(value, str)
    return isinstance(value, Integral) and not isinstance(value, bool)


def _dense(Y: Any) -> Any:
    return Y.toarray() if sparse.issparse(Y) else Y


def _check_size(name: str, array: Points) -> None:
    largest = largest_entry(array)
    if largest > LARGEST_VALUE:
        raise ValueError(
            f"Input {name} has an entry of size {largest:.3g}, but at most {LARGEST_VALUE:.0e} "
            "can be handled; scale it down."
        )
