"""Construction of a k-d tree: nodes are halved at the median of their widest column."""

from __future__ import annotations

import numpy as np

from outsample._compiled.compiling import njit

# About this many rows of a node determine its widest column, which affects the time only.
MEASURED_ROWS = 64
# From this many values on, the pivot comes from a sample of this size.
SAMPLED_FROM, PIVOT_SAMPLE = 600, 31


@njit
def sampled_pivot(values, middle):
    """Return a sampled value slightly beyond rank ``middle``, seen from the nearer end.

    A partition at that value leaves few values on the side that contains the rank.
    """
    n, sample = values.size, np.empty(PIVOT_SAMPLE)
    for s in range(PIVOT_SAMPLE):
        value, position = values[(2 * s + 1) * n // (2 * PIVOT_SAMPLE)], s
        while position > 0 and sample[position - 1] > value:
            sample[position] = sample[position - 1]
            position -= 1
        sample[position] = value
    rank = middle * PIVOT_SAMPLE // n + (2 if 2 * middle < n else -2)
    return sample[min(max(rank, 0), PIVOT_SAMPLE - 1)]


@njit
def partition_at_middle(values, rows, first, last, middle):
    """Reorder so that no value of ``first:middle`` exceeds one of ``middle:last`` (quickselect)."""
    last -= 1
    while first < last:
        if last - first >= SAMPLED_FROM:
            pivot = sampled_pivot(values[first : last + 1], middle - first)
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
    """Return the column with the largest range over a sample of rows; low, high are workspace."""
    for a in range(X.shape[1]):
        low[a], high[a] = np.inf, -np.inf
    for j in range(0, rows.size, max(1, rows.size // MEASURED_ROWS)):
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
def halve(start, stop, X, rows, values, starts, size, min_size):
    """Halve nodes of ``size`` leaves at the median of their widest column, down to ``min_size``.

    Leaf i owns ``rows[starts[i]:starts[i + 1]]``; the starts of nodes of ``size`` leaves are input,
    the starts between them are written. ``values`` (n,) is workspace.
    """
    low, high = np.empty(X.shape[1]), np.empty(X.shape[1])
    stack, sizes = np.empty(64, np.int64), np.empty(64, np.int64)
    for i in range(start, stop):
        stack[0], sizes[0], depth = i * size, size, 1
        while depth > 0:  # depth first: the points of a small node stay in the cache
            depth -= 1
            leaf, half = stack[depth], sizes[depth] // 2
            if half < min_size:
                continue
            first, last = starts[leaf], starts[leaf + 2 * half]
            widest = widest_column(X, rows[first:last], low, high)
            for j in range(first, last):
                values[j] = X[rows[j], widest]
            middle = (first + last) // 2
            partition_at_middle(values, rows, first, last, middle)
            starts[leaf + half] = middle
            stack[depth], stack[depth + 1] = leaf + half, leaf
            sizes[depth], sizes[depth + 1] = half, half
            depth += 2


@njit
def fill_leaves(start, stop, X, rows, starts, leaves, boxes):
    """Copy the rows of each leaf to ``leaves`` (l, D, width), by columns, and write its box."""
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
