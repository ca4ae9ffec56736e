"""Search for the Laplacian pyramid with the smallest leave-one-out error."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from outsample.points import root_mean_square
from outsample.spectral.smoothing import Smoother

# A pyramid grows for this many octaves after its smallest leave-one-out error.
PATIENCE_OCTAVES = 3
# Errors with a smaller relative difference are ties: the earlier candidate is taken.
ERROR_TIE_TOLERANCE = 1e-9


class Growing:
    """Pyramid of the map f under construction: its residual (n, d) and the errors of its levels.

    Its scales are every ``step``-th entry of a grid from ``start`` on. It grows for ``patience``
    levels after its smallest error.
    """

    def __init__(self, start: int, step: int, f: np.ndarray, patience: int) -> None:
        self.start, self.step, self.residual, self.patience = start, step, f, patience
        self.errors: list[float] = []

    @property
    def best(self) -> float:
        """Return the smallest error so far."""
        return min(self.errors)

    @property
    def levels(self) -> int:
        """Return the number of levels up to the smallest error; the first of ties."""
        return int(np.argmax(np.array(self.errors) <= self.best * (1 + ERROR_TIE_TOLERANCE))) + 1

    def grows(self, position: int, max_levels: int) -> bool:
        """Return whether grid entry ``position`` is its next scale and it is still growing."""
        count = len(self.errors)
        if (position - self.start) % self.step or count == max_levels:
            return False
        return not count or (count - self.levels < self.patience and self.best > 0)

    def grow(self, smooth: np.ndarray) -> None:
        """Add a level, given the smoothed residual."""
        self.residual = self.residual - smooth
        self.errors.append(root_mean_square(self.residual))


def search(
    smoother: Smoother,
    f: np.ndarray,
    grid: np.ndarray,
    starts: Collection[int],
    steps: Collection[int],
    octave: int,
    max_levels: int,
) -> list[Growing]:
    """Return pyramids of f (n, d) for each start and step, the smallest error first.

    All share one descending grid of scales, so that each kernel is computed once, with diagonal 0;
    starts, steps and the octave are counted in grid entries. Of ties, the pyramid with larger steps
    comes first, then the coarser one.
    """
    pyramids: list[Growing] = []
    for j, scale in enumerate(grid):
        if j in starts:
            pyramids += [
                Growing(j, step, f, max(1, PATIENCE_OCTAVES * octave // step)) for step in steps
            ]
        growing = [pyramid for pyramid in pyramids if pyramid.grows(j, max_levels)]
        if growing:
            stacked = np.hstack([pyramid.residual for pyramid in growing])
            smooth = smoother.smooth(stacked, scale, others_only=True)
            columns = np.split(smooth, len(growing), axis=1)
            for pyramid, own_columns in zip(growing, columns, strict=True):
                pyramid.grow(own_columns)
    pyramids.sort(key=lambda pyramid: pyramid.step, reverse=True)
    smallest = min(pyramid.best for pyramid in pyramids)
    best = next(p for p in pyramids if p.best <= smallest * (1 + ERROR_TIE_TOLERANCE))
    return sorted(pyramids, key=lambda pyramid: (pyramid is not best, pyramid.best))
