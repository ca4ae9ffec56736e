"""Exact search in a k-d tree with a bounding box per node.

All leaves are on one level, and their number is a power of two. The tree is built by halving
(`tree_building`) and searched in fans: an inner node holds the boxes of its `FAN` children, four
halvings below, which are compared with a query at once in vector registers. Nodes are numbered
level by level, leaves last, so that the children of a node have consecutive numbers; the root has
the remaining children, in its last places. Boxes are skipped only if they are beyond the k-th
neighbour by more than rounding; distances are those of `search.distance`, so that the result equals
that of a full scan.
"""

from __future__ import annotations

import numpy as np

from outsample._compiled.compiling import njit
from outsample._compiled.heap import is_after, rise, sink, sort_heap
from outsample._compiled.search import distance

# Added to squared limits: squares of normalised distances below this have lost digits.
SQUARE_SLACK = 1e-290
# Children of a node.
FAN = 16
# Size of the stack of open nodes: one fan per level, for up to 2^60 leaves.
STACK_SIZE = 16 * FAN


@njit
def gap_square(low, high, x):
    """Return the squared distance of a number from an interval; 0 inside."""
    below, above = low - x, x - high
    gap = below if below > above else above
    gap = gap if gap > 0.0 else 0.0
    return gap * gap


@njit
def box_square(box, x):
    """Return the squared distance of a point from a box (2, D); 0 inside."""
    square = 0.0
    for a in range(x.size):
        square += gap_square(box[0, a], box[1, a], x[a])
    return square


@njit
def fan_squares(fan, x, squares):
    """Write the squared distances of a point from the boxes of a fan (2, D, FAN)."""
    low, high, odd = fan[0], fan[1], x.size % 2
    for j in range(FAN):
        squares[j] = gap_square(low[0, j], high[0, j], x[0]) if odd else 0.0
    for a in range(odd, x.size, 2):  # two columns at a time halve the memory traffic
        for j in range(FAN):
            gap = gap_square(low[a, j], high[a, j], x[a])
            squares[j] += gap + gap_square(low[a + 1, j], high[a + 1, j], x[a + 1])


@njit
def leaf_squares(leaf, x, squares):
    """Write the squared distances of a point from the points of a leaf (D, width)."""
    width, last = squares.size, x.size - x.size % 4
    for j in range(width):
        squares[j] = 0.0
    for a in range(0, last, 4):
        for j in range(width):
            d0, d1 = leaf[a, j] - x[a], leaf[a + 1, j] - x[a + 1]
            d2, d3 = leaf[a + 2, j] - x[a + 2], leaf[a + 3, j] - x[a + 3]
            squares[j] += (d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3)
    for a in range(last, x.size):
        for j in range(width):
            difference = leaf[a, j] - x[a]
            squares[j] += difference * difference


@njit
def first_child(node, fans, leaves):
    """Return the number of an inner node's first child; numbers below 1 are empty places."""
    return FAN * (node - fans.shape[0]) + fans.shape[0] + leaves


@njit
def home_leaves(start, stop, fans, leaves, scale, Q, homes):
    """Write the leaf that each query reaches by descending to the nearest boxes."""
    x, squares = np.empty(Q.shape[1]), np.empty(FAN)
    for i in range(start, stop):
        for a in range(x.size):
            x[a] = Q[i, a] * scale
        node = 0
        while node < fans.shape[0]:
            fan_squares(fans[node], x, squares)
            first = first_child(node, fans, leaves)
            nearest = max(1 - first, 0)
            for j in range(nearest + 1, FAN):
                if squares[j] < squares[nearest]:
                    nearest = j
            node = first + nearest
        homes[i] = node - fans.shape[0]


@njit
def nearest_in_tree(
    start, stop, X, rows, starts, box, fans, leaves, scale, Q, share, order, indices, distances
):
    """Write the k nearest rows; ties by index. Boxes and leaves hold rows times the scale.

    ``share`` 1 is the exact search. With a smaller share, boxes are opened up to that part of the
    way from the nearest squared distance to the k-th; counting from the nearest, a query off the
    points' manifold is searched as thoroughly as one on it. Queries far from all points are always
    searched exactly. ``order`` (q,) changes the time only.
    """
    D, k, inner = X.shape[1], indices.shape[1], fans.shape[0]
    rounding = 1.0 + (D + 8) * 2.0**-50
    stack, stack_squares = np.empty(STACK_SIZE, np.int64), np.empty(STACK_SIZE)
    box_squares, squares = np.empty(FAN), np.empty(leaves.shape[2])
    x, row = np.empty(D), np.empty(D)
    for position in range(start, stop):
        i = order[position]
        for a in range(D):
            x[a] = Q[i, a] * scale
        n_found, nearest_square, limit, box_limit = 0, np.inf, np.inf, np.inf
        outside = box_square(box, x)
        stack[0], stack_squares[0], depth = 0, 0.0, 1
        while depth > 0:
            depth -= 1
            node = stack[depth]
            if not stack_squares[depth] <= box_limit:
                continue
            if node < inner:
                fan_squares(fans[node], x, box_squares)
                first = first_child(node, fans, leaves.shape[0])
                bottom = depth
                for j in range(max(1 - first, 0), FAN):
                    if box_squares[j] <= box_limit:  # insert so that the nearest box is on top
                        slot = depth
                        while slot > bottom and stack_squares[slot - 1] < box_squares[j]:
                            stack[slot] = stack[slot - 1]
                            stack_squares[slot] = stack_squares[slot - 1]
                            slot -= 1
                        stack[slot], stack_squares[slot] = first + j, box_squares[j]
                        depth += 1
                continue
            leaf = node - inner
            leaf_squares(leaves[leaf], x, squares)
            first = starts[leaf]
            for j in range(starts[leaf + 1] - first):
                if not squares[j] <= limit:
                    continue
                index = rows[first + j]
                if scale == 1.0:  # the same numbers, already in the cache
                    for a in range(D):
                        row[a] = leaves[leaf, a, j]
                    r = distance(Q[i], row)
                else:
                    r = distance(Q[i], X[index])
                if r > 0.0:  # a training point is searched like a point next to it
                    nearest_square = min(nearest_square, squares[j])
                if n_found < k:
                    # int64: numba compiles `rise` again for a constant 0
                    rise(indices[i], distances[i], np.int64(n_found), r, index)
                    n_found += 1
                elif is_after(distances[i, 0], indices[i, 0], r, index):
                    sink(indices[i], distances[i], k, r, index)
                if n_found == k:
                    last = distances[i, 0] * scale
                    limit = last * last * rounding + SQUARE_SLACK
                    box_limit = limit
                    if share < 1.0 and 4.0 * outside < limit < np.inf:
                        box_limit -= (1.0 - share) * max(limit - nearest_square, 0.0)
        sort_heap(indices[i], distances[i])


@njit
def counts_in_tree(start, stop, X, rows, starts, box, fans, leaves, scale, Q, radius, counts):
    """Write the number of rows within the radius of each query."""
    D, inner = X.shape[1], fans.shape[0]
    rounding = 1.0 + (D + 8) * 2.0**-50
    square = (radius * scale) * (radius * scale)
    outside = square * rounding + SQUARE_SLACK
    inside = square / rounding - SQUARE_SLACK if square < np.inf else -1.0
    stack, box_squares = np.empty(STACK_SIZE, np.int64), np.empty(FAN)
    squares, x = np.empty(leaves.shape[2]), np.empty(D)
    for i in range(start, stop):
        for a in range(D):
            x[a] = Q[i, a] * scale
        counts[i] = 0
        stack[0], depth = 0, 1
        if box_square(box, x) > outside:
            continue
        while depth > 0:
            depth -= 1
            node = stack[depth]
            if node < inner:
                fan_squares(fans[node], x, box_squares)
                first = first_child(node, fans, leaves.shape[0])
                for j in range(max(1 - first, 0), FAN):
                    if not box_squares[j] > outside:
                        stack[depth] = first + j
                        depth += 1
                continue
            leaf = node - inner
            leaf_squares(leaves[leaf], x, squares)
            first = starts[leaf]
            for j in range(starts[leaf + 1] - first):
                if squares[j] <= inside:
                    counts[i] += 1
                elif squares[j] <= outside:
                    counts[i] += distance(Q[i], X[rows[first + j]]) <= radius


@njit
def rows_in_reach(start, stop, starts, fans, leaves, Q, reach, counts):
    """Write the number of rows in leaves whose boxes are within reach (q,) of the query."""
    inner = fans.shape[0]
    stack, box_squares = np.empty(STACK_SIZE, np.int64), np.empty(FAN)
    for i in range(start, stop):
        counts[i] = 0
        stack[0], depth = 0, 1
        while depth > 0:
            depth -= 1
            node = stack[depth]
            if node >= inner:
                counts[i] += starts[node - inner + 1] - starts[node - inner]
                continue
            fan_squares(fans[node], Q[i], box_squares)
            first = first_child(node, fans, leaves)
            for j in range(max(1 - first, 0), FAN):
                if box_squares[j] <= reach[i] * reach[i]:
                    stack[depth] = first + j
                    depth += 1
