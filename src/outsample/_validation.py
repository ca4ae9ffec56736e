"""User input to checked arrays and numbers; messages name the value and what is allowed.

Points to place are made dense or sparse as `fit` saw them: no kernel meets a mixed pair.
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
# The largest image of a map is no larger than this, nor smaller than one over it, for float32.
FLOAT32_MAP = 1e18
FLOATS = [np.float64, np.float32]
# Sparse points with fewer columns are fitted as dense ones.
SPARSE_COLUMNS = 100
GENERATORS = (np.random.RandomState, np.random.Generator)


@dataclass(frozen=True, eq=False)
class TrainingRecord:
    """What `fit` saw: queries are checked, converted and answered by it, not by parameters.

    ``n_rows`` rows of X, in a sparse matrix or not; metric and threads; of the map the number of
    columns, 0 without a map, the root mean square size, and whether float32 can hold it.
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
        """Record of points (n, D) and their images (n, d)."""
        size = map_size(np.asarray(Y, dtype=np.float64))
        is_sparse = sparse.issparse(X)
        return cls(len(Y), is_sparse, metric, n_jobs, Y.shape[1], size, fits_float32(Y))

    def answer_type(self, dtype: np.dtype) -> np.dtype:
        """Type to answer in: that of the queries, float64 where float32 cannot hold the map."""
        return dtype if self.fits_float32 else np.dtype(np.float64)


def check_training(
    estimator: BaseEstimator, X: Any, Y: Any, least_rows: int = 2
) -> tuple[Points, np.ndarray]:
    """Check points (n, D) and images (n, d): float64; ``n_features_in_`` is set.

    Copies, so that later changes of the caller's arrays do not reach the model.
    """
    Y = _dense(Y)
    X, Y = _validated(
        estimator, X=X, y=Y, multi_output=True, y_numeric=True, ensure_min_samples=least_rows
    )
    Y = np.array(Y, dtype=np.float64, order="C").reshape(X.shape[0], -1)
    _check_size("X", X)
    _check_size("y", Y)
    return float64_rows(_dense_if_narrow(X), copy=True), Y


def check_points(estimator: BaseEstimator, X: Any, least_rows: int = 2) -> tuple[Points, np.dtype]:
    """Check training points (n, D) without images: float64, and the type to answer in."""
    checked = _validated(estimator, X=X, ensure_min_samples=least_rows)
    _check_size("X", checked)
    return float64_rows(_dense_if_narrow(checked), copy=True), checked.dtype


def check_fitted(estimator: BaseEstimator) -> None:
    """Refuse an estimator that is not fitted; one that knows its columns is taken to be."""
    if not hasattr(estimator, "n_features_in_"):
        check_is_fitted(estimator)


def check_queries(estimator: BaseEstimator, X: Any) -> tuple[Points, np.dtype]:
    """Check new points (q, D) against what ``fit`` saw: float64, and the type to answer in."""
    checked, dtype = check_rows(estimator, X)
    return float64_rows(checked), dtype


def check_rows(estimator: BaseEstimator, X: Any) -> tuple[Points, np.dtype]:
    """Check new points as `check_queries` does, but leave them in the real type they came in.

    Arrays are not copied, so that a memory map of any length can be checked.
    """
    if _is_plain(estimator, X):
        return X, X.dtype
    as_it_is = is_real_array(X) and not estimator.training_.is_sparse
    checked = _validated(estimator, X=X, reset=False, dtype=None if as_it_is else FLOATS)
    _check_size("X", checked)
    return checked, checked.dtype if checked.dtype in FLOATS else np.dtype(np.float64)


def _is_plain(estimator: BaseEstimator, X: Any) -> bool:
    """Whether X obviously is what `check_rows` asks for: scikit-learn takes long to find out."""
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


def check_given(estimator: BaseEstimator, X: Any, least_rows: int) -> Points:
    """Check points to fit, at least so many, in the type and order they came in."""
    return _dense_if_narrow(_validated(estimator, X=X, ensure_min_samples=least_rows))


def is_map(y: Any) -> bool:
    """Tell images of points, two-dimensional numbers, from class labels: 1-D, or strings."""
    if y is None or sparse.issparse(y):
        return y is not None
    values = np.asarray(y)
    words = values.dtype.kind in "US" or (values.size > 0 and isinstance(values.flat[0], str))
    return values.ndim > 1 and not words


def check_images(Y: Any, shape: tuple[int, int]) -> np.ndarray:
    """Check images (q, d) that placed points of that shape are compared with: float64."""
    with located_errors({"y": Y}):
        Y = check_array(_dense(Y), dtype=np.float64, ensure_2d=False, input_name="y")
    check_consistent_length(Y, np.empty(shape))
    Y = Y.reshape(len(Y), -1)
    if Y.shape != shape:
        raise ValueError(f"y has {Y.shape[1]} columns, but the map has {shape[1]}.")
    _check_size("y", Y)
    return Y


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


def plain(value: Any) -> Any:
    """Return a NumPy scalar as Python's own: kernels are compiled for those, no sum overflows."""
    return value.item() if isinstance(value, np.generic) else value


def check_jobs(n_jobs: Any) -> None:
    """Refuse an ``n_jobs`` that is neither None nor an integer other than 0."""
    if n_jobs is None or (isinstance(n_jobs, Integral) and n_jobs != 0):
        return
    raise ValueError(f"n_jobs is {n_jobs!r}, but must be None, or an integer other than 0.")


def check_random(random_state: Any) -> None:
    """Refuse a ``random_state`` that is no seed, RandomState, Generator or None."""
    if random_state is not None and not isinstance(random_state, GENERATORS):
        check_number("random_state", random_state, 0, 2**32 - 1, whole=True)


def random_seed(random_state: Any) -> int:
    """Seed of one fit: the given one, or drawn from a generator; None draws afresh."""
    if isinstance(random_state, Integral):
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**32, dtype=np.uint32))
    return int(np.random.default_rng(random_state).integers(2**32))


def check_choice(name: str, value: Any, allowed: Collection[Any]) -> None:
    """Refuse a parameter that is not one of a few values.

    >>> check_choice("loss", "cubic", ["auto", "squared"])
    Traceback (most recent call last):
    ...
    ValueError: loss is 'cubic', but must be one of 'auto', 'squared'.
    """
    if not any(_same_kind(value, choice) and value == choice for choice in allowed):
        names = ", ".join(repr(choice) for choice in allowed)
        raise ValueError(f"{name} is {value!r}, but must be one of {names}.")


def _validated(estimator: BaseEstimator, **arguments: Any) -> Any:
    """Arrays checked by scikit-learn, which also notes or compares the columns.

    Queries are converted to the container that was fitted.
    """
    with located_errors({name: arguments[name] for name in ("X", "y") if name in arguments}):
        with np.errstate(invalid="ignore"):  # of sums by which scikit-learn looks for NaN
            given = {"dtype": FLOATS, **arguments}
            checked = validate_data(estimator, accept_sparse="csr", **given)
    if arguments.get("reset", True) or sparse.issparse(checked) == estimator.training_.is_sparse:
        return checked
    return checked.toarray() if sparse.issparse(checked) else sparse.csr_matrix(checked)


def _dense_if_narrow(X: Points) -> Points:
    """Points to fit; of few columns as an array, so that the container does not matter."""
    return X.toarray() if sparse.issparse(X) and X.shape[1] < SPARSE_COLUMNS else X


def _same_kind(value: Any, choice: Any) -> bool:
    """Tell strings and whole numbers apart, NumPy's among them; True is no 1."""
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
