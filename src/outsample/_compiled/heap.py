"""Max-heap of one query's neighbours: the root is the farthest and is replaced first."""

from __future__ import annotations

from outsample._compiled.compiling import njit


@njit
def is_after(r, row, other, other_row):
    """Return whether a neighbour sorts after another: farther, or as far with a larger index."""
    return r > other or (r == other and row > other_row)


@njit
def sink(indices, distances, size, r, row):
    """Replace the root, the farthest neighbour, by a nearer one and restore the heap order."""
    position = 0
    while True:
        child = 2 * position + 1
        if child >= size:
            break
        sibling = child + 1
        if sibling < size and is_after(
            distances[sibling], indices[sibling], distances[child], indices[child]
        ):
            child = sibling
        if not is_after(distances[child], indices[child], r, row):
            break
        distances[position], indices[position] = distances[child], indices[child]
        position = child
    distances[position], indices[position] = r, row


@njit
def rise(indices, distances, size, r, row):
    """Add a neighbour to a heap of ``size`` neighbours."""
    position = size
    while position > 0:
        parent = (position - 1) // 2
        if not is_after(r, row, distances[parent], indices[parent]):
            break
        distances[position], indices[position] = distances[parent], indices[parent]
        position = parent
    distances[position], indices[position] = r, row


@njit
def sort_heap(indices, distances):
    """Sort a heap in place, nearest neighbour first."""
    for end in range(indices.size - 1, 0, -1):
        r, row = distances[end], indices[end]
        distances[end], indices[end] = distances[0], indices[0]
        sink(indices, distances, end, r, row)
