"""Queries in chunks, so that no float64 copy of all of them is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from outsample.points import Points, float64_rows

# Entries of a float64 chunk: 16 MB.
CHUNK_ENTRIES = 2**21
MIN_CHUNK_ROWS = 1024


def map_chunks(answer: Callable[[Points], Sequence[np.ndarray]], X: Points) -> list[np.ndarray]:
    """Return the arrays of q rows that ``answer`` gives for checked points (q, D), in chunks.

    Besides the results, one chunk is in memory. The answer for a row must not depend on the other
    rows of its chunk.
    """
    q, chunk_rows = X.shape[0], max(MIN_CHUNK_ROWS, CHUNK_ENTRIES // X.shape[1])
    if q <= chunk_rows:
        return list(answer(float64_rows(X)))
    results: list[np.ndarray] = []
    for start in range(0, q, chunk_rows):
        rows = slice(start, min(start + chunk_rows, q))
        chunk_results = answer(float64_rows(X[rows]))
        if not results:
            results = [np.empty((q, *part.shape[1:]), part.dtype) for part in chunk_results]
        for array, part in zip(results, chunk_results, strict=True):
            array[rows] = part
    return results
