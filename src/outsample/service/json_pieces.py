"""Many rows of JSON, a piece at a time: others have their turn in between.

A parser of JSON holds the interpreter for as long as it takes, a second for the largest bodies, in
whatever thread it runs. Here rows are cut between two of them, at places that are found without
parsing: a table of numbers has brackets, but no quotes.
"""

from __future__ import annotations

import re
import time
from typing import Any

import numpy as np
import orjson

from outsample.service.json_rows import numbers, read_json, refuse_literal, to_json
from outsample.service.refusal import Refusal

PIECE = 2**15
PIECE_ROWS = 2000
ROWS = re.compile(rb'"rows"\s*:\s*\[')
BETWEEN = re.compile(rb"\s*(,?)\s*")
NOTHING_MORE = re.compile(rb"\s*\Z")


def in_pieces(body: bytes, most_rows: int) -> tuple[np.ndarray, dict[str, Any]] | None:
    """Return rows (q, D) and the body without them; None if it cannot be cut.

    Rows beyond ``most_rows`` are refused when they are met.
    """
    begin = ROWS.search(body)
    if begin is None or body.count(b'"rows"') > 1:
        return None
    quote = body.find(b'"', begin.end())
    end = body.rfind(b"]", begin.end(), quote if quote >= 0 else len(body))
    if end < 0:
        return None
    try:
        told = read_json(body[: begin.end()] + body[end:])
    except Refusal as refusal:
        _refuse_first_text(body, begin.end(), quote)
        raise refusal
    if not isinstance(told, dict) or told.get("rows") != []:
        return None
    pieces, done, at = [], 0, begin.end()
    while at < end:
        stop = body.find(b"]", min(at + PIECE, end - 1), end) + 1 or end
        text = body[at:stop]
        rows, doubtful = _rows(text, done), b"u" in text or b"f" in text  # true, null, false
        pieces.append(numbers(rows, doubtful, done))
        if pieces[-1].shape[1] != pieces[0].shape[1]:
            widths = f"{pieces[-1].shape[1]} numbers, but row 0 has {pieces[0].shape[1]}"
            raise Refusal(422, f"row {done} has {widths}", row=done)
        done += len(rows)
        if done > most_rows:
            raise Refusal(422, f"at most {most_rows} rows at once; send them in parts")
        at = _next(body, stop, end, done)
        time.sleep(0)  # lets others have the interpreter
    return (np.concatenate(pieces), told) if pieces else None


def many_to_json(told: dict[str, Any]) -> bytes:
    """Write an answer as `to_json` does, arrays a piece at a time.

    >>> many_to_json({"n": 2, "x": np.array([[0.5, 1.5], [2.5, np.nan]])})
    b'{"n":2,"x":[[0.5,1.5],[2.5,null]]}'
    """
    fields = []
    for name, values in told.items():
        text = to_json(values) if not isinstance(values, np.ndarray) else _array(values)
        fields.append(to_json(name) + b":" + text)
    return b"{" + b",".join(fields) + b"}"


def _array(values: np.ndarray) -> bytes:
    pieces = []
    for at in range(0, len(values), PIECE_ROWS):
        pieces.append(to_json(values[at : at + PIECE_ROWS])[1:-1])
        time.sleep(0)
    return b"[" + b",".join(pieces) + b"]"


def _refuse_first_text(body: bytes, begin: int, quote: int) -> None:
    """Say where among the rows a text stands, if that is what is wrong."""
    first = body.rfind(b"[", begin, max(quote, begin))
    stop = body.find(b"]", quote) + 1
    if quote >= 0 and first >= 0 and stop:
        done = body.count(b"[", begin, first)
        numbers(_rows(body[first:stop], done), True, done)


def _rows(text: bytes, done: int) -> list[Any]:
    try:
        found: list[Any] = orjson.loads(b"[" + text + b"]")
    except orjson.JSONDecodeError as error:
        refuse_literal(b'{"rows": [' + text + b"]}", done)
        raise Refusal(422, f"the body is no JSON, after row {done}: {error}") from None
    return found


def _next(body: bytes, stop: int, end: int, done: int) -> int:
    """Return where the next row begins: behind a comma, or at the end."""
    between = BETWEEN.match(body, stop, end)
    assert between is not None
    if between[1] and NOTHING_MORE.match(body, between.end(), end):
        raise Refusal(422, f"the body is no JSON: a comma after row {done - 1}, but no row")
    if not between[1] and between.end() < end:
        raise Refusal(422, f"the body is no JSON: no comma after row {done - 1}")
    return between.end()
