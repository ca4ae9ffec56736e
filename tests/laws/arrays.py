"""What the laws are tried on. Hypothesis draws every entry, so that a failure shrinks.

Entries are whole numbers over a power of two, so that the arrays print short and that float32 holds
them exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

MOST_ROWS = 40
# Nearer than this to a tie, rounding decides which neighbours there are.
CLEAR = 1e-7
BALLS = (0.4, 0.6)


class Map(NamedTuple):
    """Points, their images, queries."""

    X: np.ndarray
    Y: np.ndarray
    Q: np.ndarray


def tables(shape, dtype, decode):
    """Arrays made of drawn bytes: far faster than one draw an entry, and byte 0 is the entry 0."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    drawn = st.binary(min_size=size, max_size=size)
    return drawn.map(lambda raw: decode(np.frombuffer(raw, dtype).reshape(shape)))


def coarse(shape):
    """Seven values an entry: ties everywhere, and copies."""
    return tables(shape, np.int8, lambda whole: (whole % 7 - 7 * (whole % 7 > 3)) / 4)


def fine(shape):
    """Thousands of values from -1 to 1."""
    return tables(shape, "<i2", lambda whole: (whole % 2048 - 2048 * (whole % 2048 > 1023)) / 1024)


@st.composite
def maps(draw, entries, rows=(4, MOST_ROWS), columns=(1, 3), images=(1, 3), queries=(1, 7)):
    """Maps with entries from `coarse` or `fine`."""
    n, D = draw(st.integers(*rows)), draw(st.integers(*columns))
    d, q = draw(st.integers(*images)), draw(st.integers(*queries))
    return Map(draw(entries((n, D))), draw(fine((n, d))), draw(entries((q, D))))


def any_map(**sizes):
    """Maps with or without ties and copies."""
    return st.one_of(maps(fine, **sizes), maps(coarse, **sizes))


def has_clear_neighbors(X, Q):
    """Whether no two distances from a point tie, nor one with the radius of a ball."""
    apart = np.linalg.norm(np.vstack([X, Q])[:, None] - X, axis=2)
    steps = np.diff(np.sort(apart, axis=1), axis=1)
    edges = np.abs(apart[:, :, None] - np.array(BALLS))
    return steps.min() > CLEAR and edges.min() > CLEAR


@st.composite
def clear_maps(draw, rows=(8, MOST_ROWS), **sizes):
    """Maps in general position: a law that holds up to rounding needs a clear last neighbour.

    A tie is decided by the row number, and a rounding error can make or break one.
    """
    found = draw(maps(fine, rows=rows, columns=(2, 3), **sizes))
    assume(has_clear_neighbors(found.X, found.Q))
    return found


@st.composite
def distinct_maps(draw, least=4):
    """Maps with ties, but without copies."""
    X, Y, Q = draw(any_map())
    rows = np.sort(np.unique(X, axis=0, return_index=True)[1])
    assume(len(rows) >= least)
    return Map(X[rows], Y[rows], Q)


angles = tables(6, np.int8, lambda whole: whole.astype(float))


def turned(X, degrees):
    """Points turned in each pair of columns after the other."""
    X, D = X.copy(), X.shape[1]
    pairs = [(a, b) for a in range(D) for b in range(a)]
    for (a, b), angle in zip(pairs, degrees, strict=False):
        c, s = np.cos(np.radians(angle)), np.sin(np.radians(angle))
        X[:, [a, b]] = X[:, [a, b]] @ np.array([[c, s], [-s, c]])
    return X


shifts = tables(4, np.int8, lambda whole: whole / 64)
