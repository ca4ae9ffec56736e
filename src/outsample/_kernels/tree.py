"""Exact search in a k-d tree with the box of every node.

All leaves are on one level, a power of two of them. It is built in halves (`tree_building`) and
searched in fans: an inner node holds the boxes of its `FAN` children, four levels of halves below,
which are compared with a query at once, in vector registers. Nodes are numbered level by level,
leaves last, so that the children of a node are numbered on end; the root has as many as are left
over, in its last places. What is cut off lies beyond the k-th neighbour by more than rounding can
say; the distances are those of `search.distance`, so that the answer is that of a full scan.
"""

from __future__ import annotations

import numpy as np

from outsample._kernels.compiling import njit
from outsample._kernels.heap import is_after, rise, sink, sort_heap
from outsample._kernels.search import distance

# Squares of normalised distances below this have lost digits.
LOST = 1e-290
# Children of a node.
FAN = 16
# Nodes that can wait: those of a fan on every level, up to 2^60 leaves.
WAITING = 16 * FAN


@njit
def gap_square(low, high, x):
    """Square of the distance of a number from an interval; 0 inside."""
    below, above = low - x, x - high
    gap = below if below > above else above
    gap = gap if gap > 0.0 else 0.0
    return gap * gap


@njit
def box_square(box, x):
    """Square of the distance of a point from a box (2, D); 0 inside."""
    square = 0.0
    for a in range(x.size):
        square += gap_square(box[0, a], box[1, a], x[a])
    return square


@njit
def fan_squares(fan, x, squares):
    """Squares of the distances of a point from the boxes of a fan (2, D, FAN)."""
    low, high, odd = fan[0], fan[1], x.size % 2
    for j in range(FAN):
        squares[j] = gap_square(low[0, j], high[0, j], x[0]) if odd else 0.0
    for a in range(odd, x.size, 2):  # two at a time: the sums are read and written half as often
        for j in range(FAN):
            one = gap_square(low[a, j], high[a, j], x[a])
            squares[j] += one + gap_square(low[a + 1, j], high[a + 1, j], x[a + 1])


@njit
def leaf_squares(leaf, x, squares):
    """Squares of the distances of a point from those of a leaf (D, width)."""
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
            apart = leaf[a, j] - x[a]
            squares[j] += apart * apart


@njit
def first_child(node, fans, leaves):
    """Return the number of the first child of an inner node; numbers below 1 are empty places."""
    return FAN * (node - fans.shape[0]) + fans.shape[0] + leaves


@njit
def home_leaves(start, stop, fans, leaves, scale, Q, homes):
    """Find the leaf of each query, by the nearest of the boxes: who shares one is near."""
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
    """Find the k nearest rows; ties by index. Boxes and leaves hold rows times the scale.

    Boxes are looked at up to a share of the way from the square of the nearest distance to that of
    the k-th, so that being off the points' manifold does not count: all that can matter if it is 1,
    or if the query lies away from all points. Queries are taken in the order (q,) given, which
    changes the time only.
    """
    D, k, inner = X.shape[1], indices.shape[1], fans.shape[0]
    slack = 1.0 + (D + 8) * 2.0**-50
    waiting, lowest = np.empty(WAITING, np.int64), np.empty(WAITING)
    beside, squares = np.empty(FAN), np.empty(leaves.shape[2])
    x, row = np.empty(D), np.empty(D)
    for at in range(start, stop):
        i = order[at]
        for a in range(D):
            x[a] = Q[i, a] * scale
        found, closest, limit, near = 0, np.inf, np.inf, np.inf
        outside = box_square(box, x)
        waiting[0], lowest[0], top = 0, 0.0, 1
        while top > 0:
            top -= 1
            node = waiting[top]
            if not lowest[top] <= near:
                continue
            if node < inner:
                fan_squares(fans[node], x, beside)
                first = first_child(node, fans, leaves.shape[0])
                bottom = top
                for j in range(max(1 - first, 0), FAN):
                    if beside[j] <= near:  # the nearest goes on top
                        place = top
                        while place > bottom and lowest[place - 1] < beside[j]:
                            waiting[place], lowest[place] = waiting[place - 1], lowest[place - 1]
                            place -= 1
                        waiting[place], lowest[place] = first + j, beside[j]
                        top += 1
                continue
            leaf = node - inner
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
def counts_in_tree(start, stop, X, rows, starts, box, fans, leaves, scale, Q, radius, counts):
    """Count the rows within the radius of each query."""
    D, inner = X.shape[1], fans.shape[0]
    slack = 1.0 + (D + 8) * 2.0**-50
    square = (radius * scale) * (radius * scale)
    outside = square * slack + LOST
    inside = square / slack - LOST if square < np.inf else -1.0
    waiting, beside = np.empty(WAITING, np.int64), np.empty(FAN)
    squares, x = np.empty(leaves.shape[2]), np.empty(D)
    for i in range(start, stop):
        for a in range(D):
            x[a] = Q[i, a] * scale
        counts[i] = 0
        waiting[0], top = 0, 1
        if box_square(box, x) > outside:
            continue
        while top > 0:
            top -= 1
            node = waiting[top]
            if node < inner:
                fan_squares(fans[node], x, beside)
                first = first_child(node, fans, leaves.shape[0])
                for j in range(max(1 - first, 0), FAN):
                    if not beside[j] > outside:
                        waiting[top] = first + j
                        top += 1
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
    """Count the rows of leaves whose boxes are within the reach (q,) of each query (q, D)."""
    inner = fans.shape[0]
    waiting, beside = np.empty(WAITING, np.int64), np.empty(FAN)
    for i in range(start, stop):
        counts[i] = 0
        waiting[0], top = 0, 1
        while top > 0:
            top -= 1
            node = waiting[top]
            if node >= inner:
                counts[i] += starts[node - inner + 1] - starts[node - inner]
                continue
            fan_squares(fans[node], Q[i], beside)
            first = first_child(node, fans, leaves)
            for j in range(max(1 - first, 0), FAN):
                if beside[j] <= reach[i] * reach[i]:
                    waiting[top] = first + j
                    top += 1
