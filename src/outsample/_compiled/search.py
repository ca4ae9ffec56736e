"""Exact distances, and the exact nearest of candidates from any search library."""

from __future__ import annotations

import numpy as np
from numba import errors, types
from numba.extending import overload

from outsample._compiled.compiling import njit
from outsample._compiled.heap import is_after, rise, sink, sort_heap

# Outside this range the square of a distance loses digits, and a scaled sum is used.
SMALLEST_SQUARE = 1e-250
LARGEST_SQUARE = 1e250


@njit
def distance(a, b):
    """Return the Euclidean distance without over- or underflow, always summed in the same order."""
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
    """Return the `distance` of two sparse rows, given by entries and sorted columns."""
    size = a.size + b.size
    left = np.zeros(size)
    right = np.zeros(size)
    i = j = n_columns = 0
    while i < a.size or j < b.size:
        take_a = j == b.size or (i < a.size and a_columns[i] <= b_columns[j])
        take_b = i == a.size or (j < b.size and b_columns[j] <= a_columns[i])
        if take_a:
            left[n_columns] = a[i]
            i += 1
        if take_b:
            right[n_columns] = b[j]
            j += 1
        n_columns += 1
    return distance(left[:n_columns], right[:n_columns])


def row_distance(A, i, B, j):
    """Return the distance of row i of A and row j of B: both dense, or (data, columns, starts)."""
    if isinstance(A, tuple):
        a_slice, b_slice = slice(A[2][i], A[2][i + 1]), slice(B[2][j], B[2][j + 1])
        return sparse_distance(A[0][a_slice], A[1][a_slice], B[0][b_slice], B[1][b_slice])
    return distance(A[i], B[j])


@overload(row_distance)
def compile_row_distance(A, i, B, j):
    """Return the dense or the sparse form when a kernel is compiled; both sides must agree."""
    if isinstance(A, types.BaseTuple) != isinstance(B, types.BaseTuple):
        raise errors.TypingError("rows must be dense on both sides, or sparse on both sides")
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
def nearest_candidates(start, stop, X, Q, candidates, indices, distances):
    """Write the k nearest of candidates (q, c), by exact distances; ties by index."""
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
    """Write the k nearest rows by comparing each query with every training row; ties by index."""
    k = indices.shape[1]
    for i in range(start, stop):
        n_found = 0
        for j in range(n):
            r = row_distance(Q, i, X, j)
            if n_found == k and not r < distances[i, k - 1]:
                continue
            # Rows come in index order, so a tie is inserted behind the rows it is tied with.
            position = n_found if n_found < k else k - 1
            while position > 0 and distances[i, position - 1] > r:
                distances[i, position] = distances[i, position - 1]
                indices[i, position] = indices[i, position - 1]
                position -= 1
            distances[i, position] = r
            indices[i, position] = j
            n_found = min(n_found + 1, k)


@njit
def scan_ball_counts(start, stop, X, n, Q, radius, counts):
    """Write the number of training rows within the radius of each query, comparing with all."""
    for i in range(start, stop):
        inside = 0
        for j in range(n):
            if row_distance(Q, i, X, j) <= radius:
                inside += 1
        counts[i] = inside
