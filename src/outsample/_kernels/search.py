"""Exact distances and exact order, whatever library proposed the candidates."""

from __future__ import annotations

import numpy as np
from numba import errors, types
from numba.extending import overload

from outsample._kernels.compiling import njit
from outsample._kernels.heap import is_after, rise, sink, sort_heap

# Outside this range the square of a distance loses digits, and the scaled form is used.
SMALLEST_SQUARE = 1e-250
LARGEST_SQUARE = 1e250


@njit
def distance(a, b):
    """Euclidean distance, free of overflow and underflow; always summed in the same order."""
    s0 = s1 = s2 = s3 = 0.0
    last = a.size - a.size % 4
    for i in range(0, last, 4):
        d0 = a[i] - b[i]
        d1 = a[i + 1] - b[i + 1]
        d2 = a[i + 2] - b[i + 2]
        d3 = a[i + 3] - b[i + 3]
        s0 += d0 * d0
        s1 += d1 * d1
        s2 += d2 * d2
        s3 += d3 * d3
    for i in range(last, a.size):
        d0 = a[i] - b[i]
        s0 += d0 * d0
    square = (s0 + s1) + (s2 + s3)
    if SMALLEST_SQUARE < square < LARGEST_SQUARE:
        return np.sqrt(square)
    largest = 0.0
    for i in range(a.size):
        largest = max(largest, abs(a[i] - b[i]))
    if largest == 0.0:
        return 0.0
    square = 0.0
    for i in range(a.size):
        part = (a[i] - b[i]) / largest
        square += part * part
    return largest * np.sqrt(square)


@njit
def sparse_distance(a, a_columns, b, b_columns):
    """`distance` of two sparse rows: the entries and their columns, in order."""
    size = a.size + b.size
    left = np.zeros(size)
    right = np.zeros(size)
    i = j = at = 0
    while i < a.size or j < b.size:
        take_a = j == b.size or (i < a.size and a_columns[i] <= b_columns[j])
        take_b = i == a.size or (j < b.size and b_columns[j] <= a_columns[i])
        if take_a:
            left[at] = a[i]
            i += 1
        if take_b:
            right[at] = b[j]
            j += 1
        at += 1
    return distance(left[:at], right[:at])


def row_distance(A, i, B, j):
    """Distance of row i of A and row j of B: both dense, or both (data, columns, starts)."""
    if isinstance(A, tuple):
        own, other = slice(A[2][i], A[2][i + 1]), slice(B[2][j], B[2][j + 1])
        return sparse_distance(A[0][own], A[1][own], B[0][other], B[1][other])
    return distance(A[i], B[j])


@overload(row_distance)
def compile_row_distance(A, i, B, j):
    """Pick the dense or the sparse form when a kernel is compiled; there is none for a mix."""
    if isinstance(A, types.BaseTuple) != isinstance(B, types.BaseTuple):
        raise errors.TypingError("rows must be dense on both sides, or sparse on both")
    if isinstance(A, types.BaseTuple):

        def sparse(A, i, B, j):
            return sparse_distance(
                A[0][A[2][i] : A[2][i + 1]],
                A[1][A[2][i] : A[2][i + 1]],
                B[0][B[2][j] : B[2][j + 1]],
                B[1][B[2][j] : B[2][j + 1]],
            )

        return sparse
    return lambda A, i, B, j: distance(A[i], B[j])


@njit
def order_row(indices, distances):
    """Sort one row in place by distance, ties by index, by merging runs of doubled length.

    Written out: numba takes five seconds to compile an argsort.
    """
    k = indices.size
    rows = np.empty(k, dtype=np.int64)
    apart = np.empty(k)
    width = 1
    while width < k:
        for start in range(0, k, 2 * width):
            left, middle = start, min(start + width, k)
            right, end = middle, min(start + 2 * width, k)
            for at in range(start, end):
                take = right == end
                if left < middle and not take:
                    take = distances[left] < distances[right] or (
                        distances[left] == distances[right] and indices[left] < indices[right]
                    )
                source = left if take else right
                left += take
                right += not take
                rows[at] = indices[source]
                apart[at] = distances[source]
        for at in range(k):
            indices[at] = rows[at]
            distances[at] = apart[at]
        width *= 2


@njit
def refine_candidates(start, stop, X, Q, candidates, distances):
    """Recompute the distances of candidates (q, c) from the coordinates and sort every row."""
    for i in range(start, stop):
        for j in range(candidates.shape[1]):
            distances[i, j] = row_distance(Q, i, X, candidates[i, j])
        order_row(candidates[i], distances[i])


@njit
def nearest_candidates(start, stop, X, Q, candidates, indices, distances):
    """Find the k nearest of candidates (q, c) by their coordinates; ties by index."""
    k = indices.shape[1]
    for i in range(start, stop):
        for j in range(candidates.shape[1]):
            row = candidates[i, j]
            r = row_distance(Q, i, X, row)
            if j < k:
                rise(indices[i], distances[i], j, r, row)
            elif is_after(distances[i, 0], indices[i, 0], r, row):
                sink(indices[i], distances[i], k, r, row)
        sort_heap(indices[i], distances[i])


@njit
def scan_nearest(start, stop, X, n, Q, indices, distances):
    """Find the k nearest rows by comparing with every training row; ties by index."""
    k = indices.shape[1]
    for i in range(start, stop):
        found = 0
        for j in range(n):
            r = row_distance(Q, i, X, j)
            if found == k and not r < distances[i, k - 1]:
                continue
            # Rows come in index order, so an equal distance stays behind its equals.
            at = found if found < k else k - 1
            while at > 0 and distances[i, at - 1] > r:
                distances[i, at] = distances[i, at - 1]
                indices[i, at] = indices[i, at - 1]
                at -= 1
            distances[i, at] = r
            indices[i, at] = j
            found = min(found + 1, k)


@njit
def scan_ball_counts(start, stop, X, n, Q, radius, counts):
    """Count the training rows within the radius of each query, by comparing with all."""
    for i in range(start, stop):
        inside = 0
        for j in range(n):
            if row_distance(Q, i, X, j) <= radius:
                inside += 1
        counts[i] = inside
