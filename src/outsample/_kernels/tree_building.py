"""Rows sorted into the leaves of a k-d tree, by halving nodes at the median of a column."""

from __future__ import annotations

import numpy as np

from outsample._kernels.compiling import njit

# Rows of a node, about, by which its widest column is told: which one it is changes the time only.
MEASURED = 64
# Values that are parted by a sample of so many.
MANY, SAMPLED = 600, 31


@njit
def pivot_beyond(values, middle):
    """Choose a value that is likely to lie just beyond the one of rank ``middle``, on its far side.

    Beyond it seen from the nearer end of the values, so that parting by it leaves few of them.
    """
    n, sample = values.size, np.empty(SAMPLED)
    for s in range(SAMPLED):
        value, at = values[(2 * s + 1) * n // (2 * SAMPLED)], s
        while at > 0 and sample[at - 1] > value:
            sample[at] = sample[at - 1]
            at -= 1
        sample[at] = value
    rank = middle * SAMPLED // n + (2 if 2 * middle < n else -2)
    return sample[min(max(rank, 0), SAMPLED - 1)]


@njit
def part_at_middle(values, rows, first, last, middle):
    """Reorder so that no value of ``first:middle`` exceeds one of ``middle:last`` (Hoare)."""
    last -= 1
    while first < last:
        if last - first >= MANY:
            pivot = pivot_beyond(values[first : last + 1], middle - first)
        else:
            low, high = values[first], values[last]
            pivot = values[(first + last) // 2]
            pivot = max(min(low, high), min(max(low, high), pivot))
        i, j = first, last
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                rows[i], rows[j] = rows[j], rows[i]
                i += 1
                j -= 1
        if middle <= j:
            last = j
        elif middle >= i:
            first = i
        else:
            return


@njit
def widest_column(X, rows, low, high):
    """Find the column in which some of the rows are widest apart; ``low`` and ``high`` are room."""
    for a in range(X.shape[1]):
        low[a], high[a] = np.inf, -np.inf
    for j in range(0, rows.size, max(1, rows.size // MEASURED)):
        x = X[rows[j]]
        for a in range(x.size):
            low[a] = x[a] if x[a] < low[a] else low[a]
            high[a] = x[a] if x[a] > high[a] else high[a]
    widest = 0
    for a in range(1, X.shape[1]):
        if high[a] - low[a] > high[widest] - low[widest]:
            widest = a
    return widest


@njit
def halve(start, stop, X, rows, values, starts, size, least):
    """Halve nodes of ``size`` leaves, at the median of their widest column, down to ``least``.

    Leaf ``i`` has ``rows`` (n,) from ``starts[i]`` on, its node those of all its leaves; where
    nodes of ``size`` start has to be known. ``values`` (n,) is room.
    """
    low, high = np.empty(X.shape[1]), np.empty(X.shape[1])
    waiting, sizes = np.empty(64, np.int64), np.empty(64, np.int64)
    for i in range(start, stop):
        waiting[0], sizes[0], top = i * size, size, 1
        while top > 0:  # depth first: the points of a small node stay at hand
            top -= 1
            leaf, half = waiting[top], sizes[top] // 2
            if half < least:
                continue
            first, last = starts[leaf], starts[leaf + 2 * half]
            widest = widest_column(X, rows[first:last], low, high)
            for j in range(first, last):
                values[j] = X[rows[j], widest]
            middle = (first + last) // 2
            part_at_middle(values, rows, first, last, middle)
            starts[leaf + half] = middle
            waiting[top], waiting[top + 1] = leaf + half, leaf
            sizes[top], sizes[top + 1] = half, half
            top += 2


@njit
def fill_leaves(start, stop, X, rows, starts, leaves, boxes):
    """Copy the rows of leaves to ``leaves`` (l, D, width), column by column, and find the boxes."""
    for i in range(start, stop):
        leaf, box, first = leaves[i], boxes[i], starts[i]
        count = starts[i + 1] - first
        for a in range(X.shape[1]):
            box[0, a], box[1, a] = np.inf, -np.inf
            for j in range(count, leaf.shape[1]):
                leaf[a, j] = np.inf
        for j in range(count):
            x = X[rows[first + j]]
            for a in range(x.size):
                leaf[a, j] = x[a]
                box[0, a] = x[a] if x[a] < box[0, a] else box[0, a]
                box[1, a] = x[a] if x[a] > box[1, a] else box[1, a]
