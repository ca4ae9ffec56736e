"""A k-d tree with the box of every node, and exact search in it.

Nodes are numbered as in a heap: the halves of node ``i`` are ``2 i + 1`` and ``2 i + 2``, and all
leaves are on one level. What is cut off lies beyond the k-th neighbour by more than rounding can
say; the distances are those of `search.distance`, so that the answer is that of a full scan.
"""

from __future__ import annotations

import numpy as np

from outsample._kernels.compiling import njit
from outsample._kernels.heap import is_after, rise, sink, sort_heap
from outsample._kernels.search import distance

# Squares of normalised distances below this have lost digits.
LOST = 1e-290


@njit
def part_at_middle(values, rows, first, last, middle):
    """Reorder so that no value of ``first:middle`` exceeds one of ``middle:last`` (Hoare)."""
    last -= 1
    while first < last:
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
def build_tree(X, rows, starts, boxes):
    """Sort ``rows`` (n,) into leaves; nodes begin at ``starts`` and fill ``boxes`` (2 D each).

    A node is halved at the median of its widest column. ``starts`` has one entry more than there
    are nodes on the last level, which begins with node ``len(starts) - 2``.
    """
    n, D = X.shape
    leaves = starts.size - 1
    begin, end = np.empty(2 * leaves - 1, np.int64), np.empty(2 * leaves - 1, np.int64)
    begin[0], end[0] = 0, n
    values = np.empty(n)
    waiting = np.zeros(64, np.int64)
    top = 1
    while top > 0:  # depth first: the points of a small node stay at hand
        top -= 1
        node = waiting[top]
        first, last = begin[node], end[node]
        box = boxes[node]
        for a in range(D):
            box[0, a] = np.inf
            box[1, a] = -np.inf
        for j in range(first, last):
            x = X[rows[j]]
            for a in range(D):
                box[0, a] = x[a] if x[a] < box[0, a] else box[0, a]
                box[1, a] = x[a] if x[a] > box[1, a] else box[1, a]
        if node >= leaves - 1:
            starts[node - leaves + 1] = first
            continue
        widest = 0
        for a in range(1, D):
            if box[1, a] - box[0, a] > box[1, widest] - box[0, widest]:
                widest = a
        for j in range(first, last):
            values[j] = X[rows[j], widest]
        middle = (first + last) // 2
        part_at_middle(values, rows, first, last, middle)
        begin[2 * node + 1], end[2 * node + 1] = first, middle
        begin[2 * node + 2], end[2 * node + 2] = middle, last
        waiting[top], waiting[top + 1] = 2 * node + 2, 2 * node + 1
        top += 2
    starts[leaves] = n


@njit
def box_square(box, x):
    """Square of the distance of a point from a box; 0 inside."""
    s0 = s1 = 0.0
    D = x.size
    for a in range(0, D - 1, 2):
        below, above = box[0, a] - x[a], x[a] - box[1, a]
        gap = below if below > above else above
        gap = gap if gap > 0.0 else 0.0
        s0 += gap * gap
        below, above = box[0, a + 1] - x[a + 1], x[a + 1] - box[1, a + 1]
        gap = below if below > above else above
        gap = gap if gap > 0.0 else 0.0
        s1 += gap * gap
    if D % 2 == 1:
        below, above = box[0, D - 1] - x[D - 1], x[D - 1] - box[1, D - 1]
        gap = below if below > above else above
        gap = gap if gap > 0.0 else 0.0
        s0 += gap * gap
    return s0 + s1


@njit
def leaf_squares(leaf, x, squares):
    """Squares of the distances of a point from those of a leaf (D, width)."""
    for j in range(squares.size):
        squares[j] = 0.0
    for a in range(x.size):
        at, column = x[a], leaf[a]
        for j in range(squares.size):
            apart = column[j] - at
            squares[j] += apart * apart


@njit
def home_leaves(start, stop, boxes, scale, Q, homes):
    """Find the leaf of each query, by the nearer of two boxes: who shares one is near."""
    first_leaf, x = boxes.shape[0] // 2, np.empty(Q.shape[1])
    for i in range(start, stop):
        for a in range(x.size):
            x[a] = Q[i, a] * scale
        node = 0
        while node < first_leaf:
            left, right = box_square(boxes[2 * node + 1], x), box_square(boxes[2 * node + 2], x)
            node = 2 * node + 2 if right < left else 2 * node + 1
        homes[i] = node - first_leaf


@njit
def nearest_in_tree(
    start, stop, X, rows, starts, boxes, leaves, scale, Q, share, order, indices, distances
):
    """Find the k nearest rows; ties by index. Boxes and leaves hold rows times the scale.

    Boxes are looked at up to a share of the way from the square of the nearest distance to that of
    the k-th, so that being off the points' manifold does not count: all that can matter if it is 1,
    or if the query lies away from all points. Queries are taken in the order (q,) given, which
    changes the time only.
    """
    D, k, first_leaf = X.shape[1], indices.shape[1], starts.size - 2
    slack = 1.0 + (D + 8) * 2.0**-50
    waiting, lowest = np.empty(64, np.int64), np.empty(64)
    squares = np.empty(leaves.shape[2])
    x, row = np.empty(D), np.empty(D)
    for at in range(start, stop):
        i = order[at]
        for a in range(D):
            x[a] = Q[i, a] * scale
        found, closest, limit, near = 0, np.inf, np.inf, np.inf
        outside = box_square(boxes[0], x)
        waiting[0], lowest[0], top = 0, 0.0, 1
        while top > 0:
            top -= 1
            node, lower = waiting[top], lowest[top]
            while lower <= near and node < first_leaf:
                left = box_square(boxes[2 * node + 1], x)
                right = box_square(boxes[2 * node + 2], x)
                node, lower, later, farther = 2 * node + 1, left, 2 * node + 2, right
                if right < left:
                    node, lower, later, farther = later, right, node, left
                if farther <= near:
                    waiting[top], lowest[top] = later, farther
                    top += 1
            if not lower <= near:
                continue
            leaf = node - first_leaf
            leaf_squares(leaves[leaf], x, squares)
            first = starts[leaf]
            for j in range(starts[leaf + 1] - first):
                if not squares[j] <= limit:
                    continue
                index = rows[first + j]
                if scale == 1.0:  # the same numbers, nearer at hand
                    for a in range(D):
                        row[a] = leaves[leaf, a, j]
                    r = distance(Q[i], row)
                else:
                    r = distance(Q[i], X[index])
                if r > 0.0:  # a training point is searched as one beside it is
                    closest = min(closest, squares[j])
                if found < k:
                    # as a number of its own type: numba would compile it for a constant 0 too
                    rise(indices[i], distances[i], np.int64(found), r, index)
                    found += 1
                elif is_after(distances[i, 0], indices[i, 0], r, index):
                    sink(indices[i], distances[i], k, r, index)
                if found == k:
                    last = distances[i, 0] * scale
                    limit = last * last * slack + LOST
                    near = limit
                    if share < 1.0 and 4.0 * outside < limit < np.inf:
                        near -= (1.0 - share) * max(limit - closest, 0.0)
        sort_heap(indices[i], distances[i])


@njit
def counts_in_tree(start, stop, X, rows, starts, boxes, leaves, scale, Q, radius, counts):
    """Count the rows within the radius of each query."""
    D, first_leaf = X.shape[1], starts.size - 2
    slack = 1.0 + (D + 8) * 2.0**-50
    square = (radius * scale) * (radius * scale)
    outside = square * slack + LOST
    inside = square / slack - LOST if square < np.inf else -1.0
    waiting = np.empty(64, np.int64)
    squares, x = np.empty(leaves.shape[2]), np.empty(D)
    for i in range(start, stop):
        for a in range(D):
            x[a] = Q[i, a] * scale
        counts[i] = 0
        waiting[0], top = 0, 1
        while top > 0:
            top -= 1
            node = waiting[top]
            if box_square(boxes[node], x) > outside:
                continue
            if node < first_leaf:
                waiting[top], waiting[top + 1] = 2 * node + 1, 2 * node + 2
                top += 2
                continue
            leaf = node - first_leaf
            leaf_squares(leaves[leaf], x, squares)
            first = starts[leaf]
            for j in range(starts[leaf + 1] - first):
                if squares[j] <= inside:
                    counts[i] += 1
                elif squares[j] <= outside:
                    counts[i] += distance(Q[i], X[rows[first + j]]) <= radius
