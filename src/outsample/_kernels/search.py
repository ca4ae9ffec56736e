"""Exact distances and exact order, whatever library proposed the candidates."""

from __future__ import annotations

import numpy as np
from numba import njit

# Outside this range the square of a distance loses digits, and the scaled form is used.
SMALLEST_SQUARE = 1e-250
LARGEST_SQUARE = 1e250


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def order_row(indices, distances):
    """Sort one row in place by distance, ties by index."""
    by_index = np.argsort(indices)
    by_distance = np.argsort(distances[by_index], kind="mergesort")  # stable
    order = by_index[by_distance]
    indices[:] = indices[order]
    distances[:] = distances[order]


@njit(cache=True, nogil=True)
def refine_candidates(start, stop, X, Q, candidates, distances):
    """Recompute the distances of candidates (q, c) from the coordinates and sort every row."""
    for i in range(start, stop):
        for j in range(candidates.shape[1]):
            distances[i, j] = distance(Q[i], X[candidates[i, j]])
        order_row(candidates[i], distances[i])


@njit(cache=True, nogil=True)
def scan_nearest(start, stop, X, Q, indices, distances):
    """Find the k nearest rows by comparing with every training row; ties by index."""
    k = indices.shape[1]
    for i in range(start, stop):
        found = 0
        for j in range(X.shape[0]):
            r = distance(Q[i], X[j])
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


@njit(cache=True, nogil=True)
def scan_ball_counts(start, stop, X, Q, radius, counts):
    """Count the training rows within the radius of each query, by comparing with all."""
    for i in range(start, stop):
        inside = 0
        for j in range(X.shape[0]):
            if distance(Q[i], X[j]) <= radius:
                inside += 1
        counts[i] = inside
