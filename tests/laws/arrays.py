"""Hypothesis strategies for maps. Every entry is generated, so that a failure shrinks.

Entries are integers over a power of two: they print short, and float32 represents them exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

MAX_ROWS = 40
# If distances differ by less, rounding determines the neighbours.
MIN_DISTANCE_STEP = 1e-7
BALL_RADII = (0.4, 0.6)


class Map(NamedTuple):
    """Points, their images, queries."""

    X: np.ndarray
    Y: np.ndarray
    Q: np.ndarray


def tables(shape, dtype, decode):
    """Return a strategy for arrays made of bytes; one draw per entry would be much slower."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    drawn = st.binary(min_size=size, max_size=size)
    return drawn.map(lambda raw: decode(np.frombuffer(raw, dtype).reshape(shape)))


def coarse(shape):
    """Return a strategy for arrays with seven values, so that ties and duplicates are common."""
    return tables(shape, np.int8, lambda whole: (whole % 7 - 7 * (whole % 7 > 3)) / 4)


def fine(shape):
    """Return a strategy for arrays with 2048 values from -1 to 1."""
    return tables(shape, "<i2", lambda whole: (whole % 2048 - 2048 * (whole % 2048 > 1023)) / 1024)


@st.composite
def maps(draw, entries, rows=(4, MAX_ROWS), columns=(1, 3), images=(1, 3), queries=(1, 7)):
    """Draw a map with entries from `coarse` or `fine`."""
    n, D = draw(st.integers(*rows)), draw(st.integers(*columns))
    d, q = draw(st.integers(*images)), draw(st.integers(*queries))
    return Map(draw(entries((n, D))), draw(fine((n, d))), draw(entries((q, D))))


def any_map(**sizes):
    """Return a strategy for maps with or without ties and duplicates."""
    return st.one_of(maps(fine, **sizes), maps(coarse, **sizes))


def has_clear_neighbors(X, Q):
    """Return whether no two distances from a point are tied, nor a distance and a ball radius."""
    distances = np.linalg.norm(np.vstack([X, Q])[:, None] - X, axis=2)
    steps = np.diff(np.sort(distances, axis=1), axis=1)
    edges = np.abs(distances[:, :, None] - np.array(BALL_RADII))
    return steps.min() > MIN_DISTANCE_STEP and edges.min() > MIN_DISTANCE_STEP


@st.composite
def clear_maps(draw, rows=(8, MAX_ROWS), **sizes):
    """Draw a map without ties, for laws that hold up to rounding.

    Row numbers break ties, and a rounding error can create or remove a tie.
    """
    drawn_map = draw(maps(fine, rows=rows, columns=(2, 3), **sizes))
    assume(has_clear_neighbors(drawn_map.X, drawn_map.Q))
    return drawn_map


@st.composite
def distinct_maps(draw, min_rows=4):
    """Draw a map with ties but without duplicates."""
    X, Y, Q = draw(any_map())
    rows = np.sort(np.unique(X, axis=0, return_index=True)[1])
    assume(len(rows) >= min_rows)
    return Map(X[rows], Y[rows], Q)


angles = tables(6, np.int8, lambda whole: whole.astype(float))


def rotated(X, degrees):
    """Return points rotated in each pair of columns in turn."""
    X, D = X.copy(), X.shape[1]
    pairs = [(a, b) for a in range(D) for b in range(a)]
    for (a, b), angle in zip(pairs, degrees, strict=False):
        c, s = np.cos(np.radians(angle)), np.sin(np.radians(angle))
        X[:, [a, b]] = X[:, [a, b]] @ np.array([[c, s], [-s, c]])
    return X


shifts = tables(4, np.int8, lambda whole: whole / 64)
