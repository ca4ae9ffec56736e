"""The one loop over rows in chunks: memory is bounded by a chunk, not by the number of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from outsample.points import Points, float64_rows

MAX_CHUNK_ROWS = 4096
# Entries of a float64 chunk, 16 MB; a chunk of many columns has fewer rows, but not fewer than
# MIN_CHUNK_ROWS.
CHUNK_ENTRIES = 2**21
MIN_CHUNK_ROWS = 1024


def chunks(X: Points, max_rows: int | None = None) -> Iterator[Points]:
    """Yield points (q, D) in float64 chunks of at most ``max_rows`` rows; at least one chunk."""
    max_rows = MAX_CHUNK_ROWS if max_rows is None else max_rows
    size = min(max_rows, max(MIN_CHUNK_ROWS, CHUNK_ENTRIES // X.shape[1]))
    if X.shape[0] <= size:
        yield float64_rows(X)
        return
    for start in range(0, X.shape[0], size):
        yield float64_rows(X[start : start + size])


def map_chunks(
    answer: Callable[[Points], Sequence[np.ndarray]], X: Points, max_rows: int | None = None
) -> list[np.ndarray]:
    """Return the arrays of q rows that ``answer`` computes for points (q, D), chunk by chunk.

    Besides the results, one chunk is in memory. The result of a row must not depend on the other
    rows of its chunk.
    """
    q, start = X.shape[0], 0
    results: list[np.ndarray] = []
    for chunk in chunks(X, max_rows):
        parts = answer(chunk)
        stop = start + chunk.shape[0]
        if stop == q and not results:
            return list(parts)
        if not results:
            results = [np.empty((q, *part.shape[1:]), part.dtype) for part in parts]
        for array, part in zip(results, parts, strict=True):
            array[start:stop] = part
        start = stop
    return results
