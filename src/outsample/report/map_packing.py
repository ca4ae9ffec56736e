"""Compact encoding of a page's points: byte-shuffled typed columns, deflated, in base64.

User text, such as ids, is inside the encoding, so that it cannot close the HTML element that
contains it. ``viewer/packing.js`` decodes it.
"""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64encode
from typing import Any

import numpy as np

from outsample.report.map_data import ERROR, MEASURED, MapData, PointSet

# Columns of the map that a page offers as axes.
MAX_AXES = 6
MAX_TEXT_CHARACTERS = 200
# Neighbours of a point that the page draws lines to.
MAX_NEIGHBORS = 5
# Text with more distinct values than this is stored value by value.
MAX_CATEGORIES = 65535
# Integers with at most this many distinct values are categories, such as the labels 0 to 9.
MAX_INTEGER_CATEGORIES = 24
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class _Packing:
    """Concatenated byte sections with their offsets."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.at = 0

    def add(self, values: np.ndarray) -> dict[str, Any]:
        """Append an array, all first bytes first (they compress better); return its location."""
        little_endian = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
        shuffled = little_endian.view(np.uint8).reshape(-1, little_endian.itemsize).T.tobytes()
        kind = f"{little_endian.dtype.kind}{little_endian.itemsize}"
        return {"type": kind} | self._append(shuffled, little_endian.size)

    def add_texts(self, texts: list[str]) -> dict[str, Any]:
        """Append texts, one per line; return their location."""
        return self._append("\n".join(texts).encode("utf-8", "replace"), len(texts))

    def _append(self, data: bytes, count: int) -> dict[str, Any]:
        location = {"at": self.at, "bytes": len(data), "count": count}
        self.parts.append(data)
        self.at += len(data)
        return location


def pack(data: MapData, metadata: dict[str, Any]) -> str:
    """Return a page's points and metadata as base64 text."""
    return b64encode(packed(data, metadata)).decode("ascii")


def packed(data: MapData, metadata: dict[str, Any]) -> bytes:
    """Return a page's points and metadata as deflated bytes."""
    packing = _Packing()
    axes = data.names[:MAX_AXES]
    middle, half = _frame(data.training.coordinates[:, :MAX_AXES])
    header = metadata | {
        "axes": axes,
        "middle": middle.tolist(),
        "half": half.tolist(),
        "training": _points(packing, data.training, middle, half),
        "placed": data.placed and _points(packing, data.placed, middle, half),
        "rows": packing.add(_as_integers(data.row_numbers)),
    }
    header_bytes = json.dumps(header, allow_nan=False).encode()
    body = b"".join([len(header_bytes).to_bytes(4, "little"), header_bytes, *packing.parts])
    return zlib.compress(body, 6)


def shortened(text: str) -> str:
    r"""Return at most 200 characters of a text, without control characters and lone surrogates.

    >>> shortened("a\tb" + 300 * "c")[-4:], len(shortened(300 * "c"))
    ('ccc…', 200)
    """
    plain = UNPRINTABLE.sub(" ", text)
    if len(plain) <= MAX_TEXT_CHARACTERS:
        return plain
    return plain[: MAX_TEXT_CHARACTERS - 1] + "…"


def is_identifying(values: np.ndarray) -> bool:
    """Return True for texts that hardly repeat, such as ids; False for categories."""
    max_distinct = min(MAX_CATEGORIES, max(MAX_INTEGER_CATEGORIES, len(values) // 2))
    return len(set(values.tolist())) > max_distinct


def _frame(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the middle and half the range of the map: in these units float32 is precise enough."""
    low, high = Y.min(axis=0), Y.max(axis=0)
    half = high / 2 - low / 2
    return low / 2 + high / 2, np.where(half > 0, half, 1.0)


def _points(
    packing: _Packing, points: PointSet, middle: np.ndarray, half: np.ndarray
) -> dict[str, Any]:
    with np.errstate(over="ignore"):
        scaled = (points.coordinates[:, : len(middle)] - middle) / half
    header: dict[str, Any] = {
        "count": len(scaled),
        "coordinates": [packing.add(_as_float32(column)) for column in scaled.T],
        "columns": [_column(packing, name, values) for name, values in points.columns.items()],
    }
    if points.neighbors is not None and points.neighbors.shape[1]:
        neighbors = points.neighbors[:, :MAX_NEIGHBORS]
        width = neighbors.shape[1]
        header["width"] = width
        header["neighbors"] = packing.add(_as_integers(neighbors.T.ravel() + 1))  # 0: missing
        if points.distances is not None:
            distances = points.distances[:, :width].T.ravel()
            header["distances"] = packing.add(_as_float32(distances))
    return header


def _column(packing: _Packing, name: str, values: np.ndarray) -> dict[str, Any]:
    header: dict[str, Any] = {"name": shortened(name)}
    if values.dtype.kind != "U":
        categories = None if name in (*MEASURED, ERROR) else _integer_categories(values)
        if categories is None:
            return header | {"kind": "number", "data": packing.add(_compact(values))}
        labels, codes = categories
    elif is_identifying(values):
        return header | {"kind": "text", "words": packing.add_texts(_shortened_all(values))}
    else:
        labels, codes = np.unique(_shortened_all(values), return_inverse=True)
    return header | {
        "kind": "category",
        "words": packing.add_texts(labels.tolist()),
        "data": packing.add(_as_integers(codes)),
    }


def _shortened_all(values: np.ndarray) -> list[str]:
    texts = values.tolist()
    # One search over all texts takes a tenth of the time of one search per text.
    is_short = values.itemsize <= 4 * MAX_TEXT_CHARACTERS
    if is_short and not UNPRINTABLE.search("".join(texts)):
        return texts
    return [shortened(text) for text in texts]


def _integer_categories(values: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return labels and codes of integers with few distinct values; None for other numbers."""
    distinct, codes = np.unique(values, return_inverse=True)
    finite = distinct[np.isfinite(distinct)]
    has_fractions = (finite != np.floor(finite)).any()
    if len(distinct) > MAX_INTEGER_CATEGORIES or has_fractions or abs(finite).max(initial=0) > 1e9:
        return None
    return np.array([f"{value:.0f}" if np.isfinite(value) else "" for value in distinct]), codes


def _compact(values: np.ndarray) -> np.ndarray:
    """Return numbers in the smallest type that is precise enough for the page."""
    if values.dtype.kind in "iu":
        is_small = abs(values).max(initial=0) < 2**31
        return _as_integers(values) if is_small else values.astype(np.float64)
    finite = values[np.isfinite(values)]
    if not len(finite):
        return _as_float32(values)
    half_range = finite.max() / 2 - finite.min() / 2
    rounding = abs(_as_float32(finite) - finite).max()  # too large for Unix times, for example
    return _as_float32(values) if rounding <= 1e-5 * half_range else values.astype(np.float64)


def _as_float32(values: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def _as_integers(values: np.ndarray) -> np.ndarray:
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    for kind in (np.uint8, np.uint16, np.int32):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return values.astype(kind)
    return values.astype(np.float64)
