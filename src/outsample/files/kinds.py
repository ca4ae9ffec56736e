"""Kinds of values in a model file: a kind is a function that raises unless a value is valid.

Sides of arrays can be letters (`scope`), which mean the same size in the whole model.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from outsample._validation import LARGEST_VALUE
from outsample.files.scope import Kind, SchemaError, Scope, invalid, require

LARGEST_FLOAT = float(np.finfo(np.float64).max)
# Sums of a few of these do not overflow.
LARGEST_TERM = 1e306
# Scores are logarithms of lengths in units of their spread, which are far below this.
LARGEST_SCORE = 1e9
MAX_THREADS = 1024
MAX_ITEMS = 100_000
# Array entries that are checked at a time.
CHUNK_ENTRIES = 2**16

# Numbers and strings.


def instance(*types: type) -> Kind:
    """Accept values of exactly these types, such as ``bool`` or ``str``."""
    expected = " or ".join(cls.__name__ for cls in types)
    return require(lambda value, scope: type(value) in types, expected)


boolean, string = instance(bool), instance(str)
any_float = instance(float, np.float64, np.float32, np.float16)  # NaN included


def integer(low: int | str = 0, high: int | str = 2**62) -> Kind:
    """Accept integers from ``low`` to ``high``, which may be letters."""

    def is_valid(value: Any, scope: Scope) -> bool:
        is_integer = type(value) is int or isinstance(value, np.integer)
        return is_integer and scope.size(low) <= int(value) <= scope.size(high)

    return require(is_valid, f"an integer from {low} to {high}")


def size(letter: str) -> Kind:
    """Accept integers that set the size with a letter, or agree with it."""

    def check(value: Any, scope: Scope) -> None:
        integer(1)(value, scope)
        scope.set_size(letter, int(value))

    return check


def _in_range(low: float, high: float, open_low: bool, types: tuple[type, ...], name: str) -> Kind:
    def is_valid(value: Any, scope: Scope) -> bool:
        is_number = isinstance(value, types) and not isinstance(value, bool)
        # The limits are beyond the range of smaller NumPy types.
        value = value.item() if isinstance(value, np.generic) else value
        return is_number and low <= value <= high and not (open_low and value == low)

    return require(is_valid, f"{name} {'above' if open_low else 'from'} {low} to {high}")


def real(
    low: float = -LARGEST_FLOAT, high: float = LARGEST_FLOAT, *, open_low: bool = False
) -> Kind:
    """Accept float64 in a range, without ``low`` itself if ``open_low``.

    Integers are rejected because kernels are compiled for floats.
    """
    return _in_range(low, high, open_low, (float,), "a float")


def number(low: float, high: float, *, open_low: bool = False) -> Kind:
    """Accept Python and NumPy numbers in a range, as users pass them for parameters."""
    types = (float, int, np.floating, np.integer)
    return _in_range(low, high, open_low, types, "a number")


def one_of(*choices: Any) -> Kind:
    """Accept one of a few values, of the same type."""

    def is_valid(value: Any, scope: Scope) -> bool:
        return any(type(value) is type(choice) and value == choice for choice in choices)

    return require(is_valid, f"one of {choices}")


# Kinds made of kinds.


def optional(kind: Kind) -> Kind:
    """Accept None or a kind."""

    def check(value: Any, scope: Scope) -> None:
        if value is not None:
            kind(value, scope)

    return check


def either(*alternatives: Kind) -> Kind:
    """Accept any of several kinds; the error is that of the last one."""

    def check(value: Any, scope: Scope) -> None:
        for kind in alternatives[:-1]:
            try:
                return kind(value, scope)
            except SchemaError:
                continue
        return alternatives[-1](value, scope)

    return check


# Threads, as in scikit-learn.
n_jobs = either(one_of(None), integer(1, MAX_THREADS), integer(-MAX_THREADS, -1))


def sequence(kind: Kind, high: int = MAX_ITEMS, container: Any = list, low: int = 0) -> Kind:
    """Accept a list or tuple of ``low`` to ``high`` items of one kind."""

    def check(value: Any, scope: Scope) -> None:
        if type(value) is not container or not low <= len(value) <= high:
            raise invalid(value, f"a {container.__name__} of {low} to {high} items")
        for item in value:
            kind(item, scope)

    return check


def record(*items: Kind) -> Kind:
    """Accept a tuple with one item of each kind."""

    def check(value: Any, scope: Scope) -> None:
        if type(value) is not tuple or len(value) != len(items):
            raise invalid(value, f"a tuple of {len(items)} items")
        for kind, item in zip(items, value, strict=True):
            kind(item, scope)

    return check


def mapping(kind: Kind, keys: Kind = string) -> Kind:
    """Accept a dict with keys of one kind and values of another."""

    def check(value: Any, scope: Scope) -> None:
        if type(value) is not dict or len(value) > MAX_ITEMS:
            raise invalid(value, "a dict")
        for key, item in value.items():
            keys(key, scope)
            kind(item, scope)

    return check


def separate(kind: Kind) -> Kind:
    """Accept a kind whose letters mean sizes of its own, such as the model of prepared columns."""
    return lambda value, scope: kind(value, scope.separate())


# Arrays.


def array(
    *sides: str | int | None,
    dtype: Any = np.float64,
    low: float | str = -LARGEST_FLOAT,
    high: float | str = LARGEST_FLOAT,
    open_low: bool = False,
    ascending: bool = False,
    has_nan: bool = False,
) -> Kind:
    """Accept arrays of one dtype, with sides that are letters or numbers (None: any), in a range.

    A letter as ``high`` means row numbers below that size. ``open_low`` excludes ``low`` itself,
    ``ascending`` requires that entries do not decrease, ``has_nan`` also accepts NaN.
    """

    def check(value: Any, scope: Scope) -> None:
        if type(value) is not np.ndarray or value.dtype != dtype or value.ndim != len(sides):
            raise invalid(value, f"one of {np.dtype(dtype)} with {len(sides)} dimensions")
        _check_sides(value, sides, scope)
        lowest = scope.size(low) if isinstance(low, str) else low
        highest = scope.size(high) - 1 if isinstance(high, str) else high
        for entries in chunks(value):
            in_range = (entries > lowest if open_low else entries >= lowest) & (entries <= highest)
            if not (in_range | np.isnan(entries) if has_nan else in_range).all():
                raise SchemaError("has entries outside their range")
        if ascending and (value[1:] < value[:-1]).any():
            raise SchemaError("decreases, but must not")

    return check


def chunks(value: np.ndarray) -> Iterable[np.ndarray]:
    """Yield the entries of an array in chunks, so that checking them takes little memory."""
    flat = value.reshape(-1) if value.flags.c_contiguous else value.T.reshape(-1)
    return (flat[at : at + CHUNK_ENTRIES] for at in range(0, len(flat), CHUNK_ENTRIES))


# Coordinates, as large as `fit` accepts them.
coordinates = partial(array, low=-LARGEST_VALUE, high=LARGEST_VALUE)
# Terms of sums that give coordinates; these sums do not overflow.
coefficients = partial(array, low=-LARGEST_TERM, high=LARGEST_TERM)
# Density weights, which are powers of sums of kernels.
densities = partial(array, low=1e-200, high=1e200)


def row_numbers(*sides: str | int | None, below: str) -> Kind:
    """Accept arrays of row numbers from 0 to below the size with a letter."""
    return array(*sides, dtype=np.int64, low=0, high=below)


def points(rows: str | None, columns: str | None = "D") -> Kind:
    """Accept points (rows, columns), dense in C order or sparse like the other points."""
    dense, entries = coordinates(rows, columns), coordinates(None)

    def check(value: Any, scope: Scope) -> None:
        if rows:
            scope.set_sparse(sparse.issparse(value))
        if sparse.issparse(value):
            _check_sides(value, (rows, columns), scope)
            entries(value.data, scope)
        else:
            dense(value, scope)
            if not value.flags.c_contiguous:
                raise SchemaError("is not in C order")

    return check


def objects(*sides: str | int | None, types: tuple[type, ...] = (str,)) -> Kind:
    """Accept object arrays whose entries have these types, by default strings."""

    def check(value: Any, scope: Scope) -> None:
        is_valid = type(value) is np.ndarray and value.dtype == object and value.ndim == len(sides)
        if not is_valid or not all(type(item) in types for item in value.flat):
            raise invalid(value, f"one of {', '.join(cls.__name__ for cls in types)}")
        _check_sides(value, sides, scope)

    return check


def _check_sides(value: Any, sides: tuple[str | int | None, ...], scope: Scope) -> None:
    for side, length in zip(sides, value.shape, strict=True):
        if isinstance(side, str):
            scope.set_size(side, length)
        elif side is not None and side != length:
            raise SchemaError(f"has a side of {length}, but must have {side}")


# Types of single category values, as OneHotEncoder has them.
CATEGORY_TYPES = (str, int, float, bool, type(None))
column_names = objects("D")


def categories(value: Any, scope: Scope) -> None:
    """Accept one-dimensional arrays of category values: numbers, strings, or objects of both."""
    if type(value) is not np.ndarray or value.ndim != 1 or value.dtype.kind not in "biufUO":
        raise invalid(value, "a one-dimensional array of numbers or strings")
    if value.dtype == object:
        objects(None, types=CATEGORY_TYPES)(value, scope)


any_dtype = require(lambda value, scope: isinstance(value, np.dtype), "a NumPy dtype")
# A dtype or a type such as ``np.float64``.
numeric_dtype = require(
    lambda value, scope: isinstance(value, np.dtype | type) and np.dtype(value).kind in "biuf",
    "a NumPy type of numbers",
)


def slices(value: Any, scope: Scope) -> None:
    """Accept slices of integers or column names."""
    instance(slice)(value, scope)
    for bound in (value.start, value.stop, value.step):
        optional(instance(int, str))(bound, scope)


# What ColumnTransformer accepts as columns of one transformer, apart from functions.
column_selection = either(
    instance(int, str), slices,
    sequence(instance(int)), sequence(instance(str)), sequence(instance(bool)), objects(None),
    array(None, dtype=np.int64), array(None, dtype=np.bool_),
)  # fmt: skip


def named_steps(*items: Kind) -> Kind:
    """Accept a list of tuples of a name and these kinds, as in Pipeline and ColumnTransformer."""
    return sequence(record(string, *items), 1000)
