"""Rows as JSON: ``{"rows": [[...], ...], "columns": [...]}``, and answers as JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import orjson

from outsample.service.refusal import Refusal

# Bodies up to this size are read a second time to say where a NaN stands.
READ_AGAIN = 2**20
KNOWN = {"rows", "columns"}


def read_json(body: bytes) -> Any:
    """Parse a body strictly: no NaN, no number beyond a double, no deep nesting."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if len(body) <= READ_AGAIN and (b"NaN" in body or b"Infinity" in body):
            refuse_literal(body)
        raise Refusal(422, f"the body is no JSON: {error}") from None


def rows_of_json(body: bytes) -> tuple[np.ndarray, list[str] | None]:
    """Return rows (q, D) and the names of their columns, if any; finiteness is looked at later."""
    told = read_json(body)
    columns = columns_of(told)
    # True and null would pass for numbers inside an array.
    doubtful = b"true" in body or b"false" in body or b"null" in body
    return numbers(told["rows"], doubtful), columns


def columns_of(told: Any) -> list[str] | None:
    """Return the names of the columns, if any, of a body that is what it should be."""
    if not isinstance(told, dict) or "rows" not in told:
        raise Refusal(422, 'the body must be an object with "rows", a list of lists of numbers')
    unknown = sorted(set(told) - KNOWN)
    if unknown:
        raise Refusal(422, f'the body has {unknown[0][:60]!r}; only "rows", "columns" are known')
    columns = told.get("columns")
    if columns is not None and not (
        isinstance(columns, list) and all(isinstance(name, str) for name in columns)
    ):
        raise Refusal(422, '"columns" must be a list of names')
    return columns


def numbers(rows: Any, doubtful: bool = True, first: int = 0) -> np.ndarray:
    """Return lists of numbers as an array (q, D), saying where they are something else.

    ``first`` is the number of the first of them.
    """
    if not isinstance(rows, list):
        raise Refusal(422, '"rows" must be a list of lists of numbers')
    if not rows:
        raise Refusal(422, '"rows" is empty; send at least one row')
    try:
        array = np.array(rows)
    except ValueError:  # of different lengths
        array = np.empty(0)
    if doubtful or array.ndim != 2 or not array.size or array.dtype.kind not in "iuf":
        _check_each(rows, first)
    return np.ascontiguousarray(array, dtype=np.float64)


def to_json(told: Any) -> bytes:
    """Write an answer; arrays become lists, what is not finite null."""
    return orjson.dumps(told, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS)


def _check_each(rows: list[Any], first: int) -> None:
    width = len(rows[0]) if isinstance(rows[0], list) else 0
    for at, row in enumerate(rows, first):
        if not isinstance(row, list):
            raise Refusal(422, f"row {at} is no list of numbers", row=at)
        if len(row) != width:
            said = f"row {at} has {len(row)} numbers, but row {first} has {width}"
            raise Refusal(422, said, row=at)
        for column, value in enumerate(row):
            if isinstance(value, bool) or not isinstance(value, int | float):
                kind = {"str": "a text", "NoneType": "null", "bool": "true or false"}
                what = kind.get(type(value).__name__, "no number")
                raise Refusal(
                    422, f"row {at}, column {column} is {what}, but must be a number",
                    row=at, column=column,
                )  # fmt: skip
    if width == 0:
        raise Refusal(422, f"row {first} has no numbers", row=first)


def refuse_literal(body: bytes, first: int = 0) -> None:
    """Say where NaN or Infinity stands, which JSON does not know; ``first`` is the first row."""
    try:
        told = json.loads(body)
        rows = told["rows"]
        for at, row in enumerate(rows, first):
            for column, value in enumerate(row):
                if isinstance(value, float) and not np.isfinite(value):
                    raise Refusal(
                        422, f"row {at}, column {column} is {value}, but must be finite",
                        row=at, column=column,
                    )  # fmt: skip
    except (ValueError, TypeError, KeyError, RecursionError):
        return
