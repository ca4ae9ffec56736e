"""New points answered for piece by piece: no copy of all of them is ever made."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from outsample.points import Points, float64_rows

# Entries of new points that are float64 at once: 16 MB.
PIECE_ENTRIES = 2**21
LEAST_ROWS = 1024


def in_pieces(answer: Callable[[Points], Sequence[np.ndarray]], X: Points) -> list[np.ndarray]:
    """Arrays of q rows each, from the answers for pieces of checked points (q, D) of any real type.

    Beside the arrays themselves, memory is needed for one piece. Answers for a row must not depend
    on the others in its piece.
    """
    q, size = X.shape[0], max(LEAST_ROWS, PIECE_ENTRIES // X.shape[1])
    if q <= size:
        return list(answer(float64_rows(X)))
    whole: list[np.ndarray] = []
    for at in range(0, q, size):
        rows = slice(at, min(at + size, q))
        parts = answer(float64_rows(X[rows]))
        if not whole:
            whole = [np.empty((q, *part.shape[1:]), part.dtype) for part in parts]
        for array, part in zip(whole, parts, strict=True):
            array[rows] = part
    return whole
