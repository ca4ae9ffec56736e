"""Points packed small: typed columns, bytes of one rank together, deflated, in base64.

What users write, ids above all, is inside the packing: none of it can end the element that holds
it. The viewer's ``packing.js`` reads it.
"""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64encode
from typing import Any

import numpy as np

from outsample.report.map_data import ERROR, MEASURED, MapData, PointSet

# Axes that a page can show; further columns of the map would only make the file larger.
MOST_AXES = 6
LONGEST_WORDS = 200
# Neighbours of a point that are linked to it.
MOST_NEIGHBORS = 5
# Words that repeat are categories; others, such as ids, are kept one by one.
MOST_CATEGORIES = 65535
# Whole numbers with no more values than this are categories too.
FEW = 24
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class _Packing:
    """Sections of bytes laid end to end, and where each is."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.at = 0

    def add(self, values: np.ndarray) -> dict[str, Any]:
        """Lay an array down, first bytes of all numbers first; return where it is."""
        little = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
        shuffled = little.view(np.uint8).reshape(-1, little.itemsize).T.tobytes()
        kind = f"{little.dtype.kind}{little.itemsize}"
        return {"type": kind} | self._place(shuffled, little.size)

    def add_words(self, words: list[str]) -> dict[str, Any]:
        """Lay words down, a line each."""
        return self._place("\n".join(words).encode("utf-8", "replace"), len(words))

    def _place(self, data: bytes, count: int) -> dict[str, Any]:
        placed = {"at": self.at, "bytes": len(data), "count": count}
        self.parts.append(data)
        self.at += len(data)
        return placed


def pack(data: MapData, about: dict[str, Any]) -> str:
    """Return the points of a page, and what else its script should know, as base64."""
    return b64encode(packed(data, about)).decode("ascii")


def packed(data: MapData, about: dict[str, Any]) -> bytes:
    """Return the points of a page, and what else its script should know, as deflated bytes."""
    packing = _Packing()
    axes = data.names[:MOST_AXES]
    middle, half = _frame(data.training.coordinates[:, :MOST_AXES])
    header = about | {
        "axes": axes,
        "middle": middle.tolist(),
        "half": half.tolist(),
        "training": _points(packing, data.training, middle, half),
        "placed": data.placed and _points(packing, data.placed, middle, half),
        "rows": packing.add(_whole(data.row_numbers)),
    }
    told = json.dumps(header, allow_nan=False).encode()
    body = b"".join([len(told).to_bytes(4, "little"), told, *packing.parts])
    return zlib.compress(body, 6)


def shortened(words: str) -> str:
    r"""Words on one line, not too long, without control characters and lone halves of letters.

    >>> shortened("a\tb" + 300 * "c")[-4:], len(shortened(300 * "c"))
    ('ccc…', 200)
    """
    plain = UNPRINTABLE.sub(" ", words)
    return plain if len(plain) <= LONGEST_WORDS else plain[: LONGEST_WORDS - 1] + "…"


def is_naming(values: np.ndarray) -> bool:
    """Tell words that hardly repeat, such as ids, from categories."""
    return len(set(values.tolist())) > min(MOST_CATEGORIES, max(FEW, len(values) // 2))


def _frame(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Middle and half of the map's range: in these units float32 is finer than any screen."""
    low, high = Y.min(axis=0), Y.max(axis=0)
    half = high / 2 - low / 2
    return low / 2 + high / 2, np.where(half > 0, half, 1.0)


def _points(
    packing: _Packing, points: PointSet, middle: np.ndarray, half: np.ndarray
) -> dict[str, Any]:
    with np.errstate(over="ignore"):
        apart = (points.coordinates[:, : len(middle)] - middle) / half
    told: dict[str, Any] = {
        "count": len(apart),
        "coordinates": [packing.add(_single(column)) for column in apart.T],
        "columns": [_column(packing, *named) for named in points.columns.items()],
    }
    if points.neighbors is not None and points.neighbors.shape[1]:
        near = points.neighbors[:, :MOST_NEIGHBORS]
        told["width"] = near.shape[1]
        told["neighbors"] = packing.add(_whole(near.T.ravel() + 1))  # 0 is none
        if points.distances is not None:
            far = points.distances[:, : near.shape[1]]
            told["distances"] = packing.add(_single(far.T.ravel()))
    return told


def _column(packing: _Packing, name: str, values: np.ndarray) -> dict[str, Any]:
    told: dict[str, Any] = {"name": shortened(name)}
    if values.dtype.kind != "U":
        few = None if name in (*MEASURED, ERROR) else _few_whole(values)
        if few is None:
            return told | {"kind": "number", "data": packing.add(_narrow(values))}
        words, codes = few
    elif is_naming(values):
        return told | {"kind": "text", "words": packing.add_words(_short(values))}
    else:
        words, codes = np.unique(_short(values), return_inverse=True)
    return told | {
        "kind": "category",
        "words": packing.add_words(words.tolist()),
        "data": packing.add(_whole(codes)),
    }


def _short(values: np.ndarray) -> list[str]:
    words = values.tolist()
    # One look at all of them is a tenth of the time of one at each.
    if values.itemsize <= 4 * LONGEST_WORDS and not UNPRINTABLE.search("".join(words)):
        return words
    return [shortened(one) for one in words]


def _few_whole(values: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Words and codes of whole numbers that are names rather than amounts, as labels 0 to 9."""
    found, codes = np.unique(values, return_inverse=True)
    known = found[np.isfinite(found)]
    if len(found) > FEW or (known != np.floor(known)).any() or abs(known).max(initial=0) > 1e9:
        return None
    return np.array([f"{one:.0f}" if np.isfinite(one) else "" for one in found]), codes


def _narrow(values: np.ndarray) -> np.ndarray:
    """Numbers in the narrowest type that tells them apart as the page does."""
    if values.dtype.kind in "iu":
        return _whole(values) if abs(values).max(initial=0) < 2**31 else values.astype(np.float64)
    finite = values[np.isfinite(values)]
    if not len(finite):
        return _single(values)
    spread = finite.max() / 2 - finite.min() / 2
    lost = abs(_single(finite) - finite).max()  # of a time in seconds, say, it is too much
    return _single(values) if lost <= 1e-5 * spread else values.astype(np.float64)


def _single(values: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def _whole(values: np.ndarray) -> np.ndarray:
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    for kind in (np.uint8, np.uint16, np.int32):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return values.astype(kind)
    return values.astype(np.float64)
