"""Convert typed records to JSON and back, so that a page can be drawn from a results file."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

DIGITS = 9  # Significant digits in the file


def plain(value: Any, digits: int = DIGITS) -> Any:
    """Return records as dicts and arrays as lists; numbers are rounded, NaN and inf are None.

    >>> plain({"a": np.array([0.1 + 0.2, np.inf]), "b": (True, np.int64(3))})
    {'a': [0.3, None], 'b': [True, 3]}
    """
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {str(key): plain(item, digits) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(item, digits) for item in value]
    if isinstance(value, float):
        return float(f"{value:.{digits}g}") if math.isfinite(value) else None
    return value


def restored(kind: Any, value: Any) -> Any:
    """Return a value of `plain` as its original type, according to the annotations.

    Raises ValueError, with the field in question, where the value is of another kind.

    >>> from typing import NamedTuple
    >>> Point = NamedTuple("Point", [("x", float), ("at", np.ndarray)])
    >>> restored(list[Point], plain([Point(math.nan, np.array([1.0, 2.0]))]))
    [Point(x=nan, at=array([1., 2.]))]
    """
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        if value is None and NoneType in inner:
            return None
        return restored(next(part for part in inner if part is not NoneType), value)
    if kind is np.ndarray or origin is np.ndarray:
        dtype = get_args(inner[1])[0] if inner else np.float64
        return np.array(_expected(list, value), dtype=dtype)  # None becomes NaN
    if hasattr(kind, "_fields"):
        return _record(kind, value)
    if origin is tuple and inner[-1] is not ...:
        pairs = zip(inner, _expected(list, value), strict=True)
        return tuple(restored(part, item) for part, item in pairs)
    if origin in (list, tuple, Sequence):
        items = [restored(inner[0], item) for item in _expected(list, value)]
        return tuple(items) if origin is tuple else items
    if origin is dict:
        pairs = _expected(dict, value).items()
        return {key: restored(inner[1], item) for key, item in pairs}
    if kind is float:
        return math.nan if value is None else float(_expected((int, float), value))
    return _expected(kind, value) if kind in (str, int, bool) else value


def read_record(kind: Any, path: str | os.PathLike[str]) -> Any:
    """Return the record of a JSON file; raise ValueError if the file does not match."""
    try:
        return restored(kind, json.loads(Path(path).read_bytes()))
    except ValueError as fault:
        reason = " ".join(str(fault).split())
        raise ValueError(f"{path} does not hold the results expected: {reason}") from fault


def _record(kind: Any, value: Any) -> Any:
    """Return the record of a dict; fields with a default may be missing."""
    keys, hints = set(_expected(dict, value)), get_type_hints(kind)
    if odd := (keys - {*hints}) | (hints.keys() - keys - kind._field_defaults.keys()):
        raise ValueError(f"missing or unknown in {kind.__name__}: {', '.join(sorted(odd))}")
    fields = {}
    for name in value:
        try:
            fields[name] = restored(hints[name], value[name])
        except (ValueError, TypeError) as fault:
            raise ValueError(f"{kind.__name__}.{name}: {fault}") from fault
    return kind(**fields)


def _expected(kinds: Any, value: Any) -> Any:
    if not isinstance(value, kinds):
        name = getattr(kinds, "__name__", "number")
        raise ValueError(f"expected {name}, got {type(value).__name__}")
    return value
