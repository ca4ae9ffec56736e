"""The pyramid with the smallest leave-one-out error, over first scales and ratios."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from outsample.kernel.smoothing import Smoother
from outsample.points import root_mean_square

# A pyramid grows for so many octaves after its smallest leave-one-out error.
PATIENCE = 3
# Errors that agree to this are the same: the earlier candidate is taken.
SAME = 1e-9


class Growing:
    """A pyramid of the map f: its residual (n, d) and how its error went.

    Its scales are every ``step``-th place of a grid from ``start`` on. It grows for ``patience``
    levels after its smallest error.
    """

    def __init__(self, start: int, step: int, f: np.ndarray, patience: int) -> None:
        self.start, self.step, self.residual, self.patience = start, step, f, patience
        self.errors: list[float] = []

    @property
    def best(self) -> float:
        """Smallest error so far."""
        return min(self.errors)

    @property
    def levels(self) -> int:
        """Levels up to the smallest error; the first of equals."""
        return int(np.argmax(np.array(self.errors) <= self.best * (1 + SAME))) + 1

    def grows(self, at: int, most: int) -> bool:
        """Whether the scale is one of its own, and another level could still pay."""
        count = len(self.errors)
        if (at - self.start) % self.step or count == most:
            return False
        return not count or (count - self.levels < self.patience and self.best > 0)

    def grow(self, smooth: np.ndarray) -> None:
        """Add a level."""
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
    """Grow a pyramid of f (n, d) from each start with each step, the smallest error first.

    All live on one falling grid of scales, so that each kernel is computed once, its diagonal set
    to 0; starts, steps and an octave are counted in places on it. Of equals, the pyramid with
    larger steps comes first, then the coarser one.
    """
    found: list[Growing] = []
    for j, scale in enumerate(grid):
        if j in starts:
            found += [Growing(j, step, f, max(1, PATIENCE * octave // step)) for step in steps]
        growing = [one for one in found if one.grows(j, max_levels)]
        if growing:
            stacked = np.hstack([one.residual for one in growing])
            smooth = smoother.smooth(stacked, scale, others_only=True)
            for one, part in zip(growing, np.split(smooth, len(growing), axis=1), strict=True):
                one.grow(part)
    found.sort(key=lambda one: one.step, reverse=True)
    least = min(one.best for one in found)
    best = next(one for one in found if one.best <= least * (1 + SAME))
    return sorted(found, key=lambda one: (one is not best, one.best))
