"""Neighbours of one query as a heap: the last of them is the first, and is replaced."""

from __future__ import annotations

from outsample._kernels.compiling import njit


@njit
def is_after(r, row, other, other_row):
    """Tell whether a neighbour comes after another one: farther, or as far with a larger index."""
    return r > other or (r == other and row > other_row)


@njit
def sink(indices, distances, size, r, row):
    """Put a neighbour in place of the first of a heap, which is the last of all in it."""
    at = 0
    while True:
        down = 2 * at + 1
        if down >= size:
            break
        other = down + 1
        if other < size and is_after(
            distances[other], indices[other], distances[down], indices[down]
        ):
            down = other
        if not is_after(distances[down], indices[down], r, row):
            break
        distances[at], indices[at] = distances[down], indices[down]
        at = down
    distances[at], indices[at] = r, row


@njit
def rise(indices, distances, size, r, row):
    """Add a neighbour to a heap."""
    at = size
    while at > 0:
        up = (at - 1) // 2
        if not is_after(r, row, distances[up], indices[up]):
            break
        distances[at], indices[at] = distances[up], indices[up]
        at = up
    distances[at], indices[at] = r, row


@njit
def sort_heap(indices, distances):
    """Sort a heap, nearest first."""
    for end in range(indices.size - 1, 0, -1):
        r, row = distances[end], indices[end]
        distances[end], indices[end] = distances[0], indices[0]
        sink(indices, distances, end, r, row)
