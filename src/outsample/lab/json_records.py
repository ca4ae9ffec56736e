"""Typed records to JSON and back, so that a page can be drawn again from its file of results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

# Significant digits in the file.
DIGITS = 9


def plain(value: Any, digits: int = DIGITS) -> Any:
    """Return records as dicts and arrays as lists, numbers rounded; what is not finite is None.

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
    """Return what `plain` made of a value, as the type it had: the annotations tell which.

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
    if kind is float:
        return math.nan if value is None else float(value)
    if kind is np.ndarray or origin is np.ndarray:
        return np.array([math.nan if item is None else item for item in value])
    if hasattr(kind, "_fields"):
        hints = get_type_hints(kind)
        return kind(**{name: restored(hints[name], value[name]) for name in value})
    if origin is tuple and len(inner) == 2 and inner[1] is ...:
        return tuple(restored(inner[0], item) for item in value)
    if origin is tuple:
        return tuple(restored(part, item) for part, item in zip(inner, value, strict=True))
    if origin in (list, Sequence):
        return [restored(inner[0], item) for item in value]
    if origin is dict:
        return {key: restored(inner[1], item) for key, item in value.items()}
    return value
