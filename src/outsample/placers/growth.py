"""Placers over points that were learned after they were fitted.

What was fitted stays: constants, units, shares. Local placers take learned points among their
neighbours. Placers over all points at once are functions of the original map, whose values learned
images are: more of these would add nothing, so they go on to place by the original map alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from outsample.neighbors.local_pca import image_frames
from outsample.neighbors.neighborhoods import Neighborhoods, Search
from outsample.placers.blend import FittedBlend
from outsample.placers.local import FittedLocal
from outsample.placers.protocol import Arrays, FittedPlacer
from outsample.placers.tangent import FittedLocalTangent
from outsample.placers.weighting import power_weights
from outsample.points import Points
from outsample.records import Frames, Weights


@dataclass(frozen=True, eq=False)
class FromOriginals:
    """A fitted placer that goes on to see the original points only, by a search of its own."""

    fitted: FittedPlacer
    search: Search
    n_jobs: int | None

    @property
    def placer(self) -> Any:
        """What was fitted."""
        return self.fitted.placer

    def place(
        self, Q: Points, near: Neighborhoods | None, weights: Weights | None = None
    ) -> np.ndarray:
        """Coordinates (q, d) of queries, by the original map."""
        k = self.placer.n_neighbors
        return self.fitted.place(Q, None if k is None else self.search.around(Q, k))

    def leave_out(self, rows: np.ndarray, near: Neighborhoods | None) -> np.ndarray:
        """Coordinates (s, d) of learned rows: the original map does not know them."""
        assert near is not None
        return self.place(near.Q, near)

    def weights(self, near: Neighborhoods) -> Weights:
        """Eq. 4.3, for the scores."""
        return power_weights(near.near, 2.0, self.n_jobs)

    def arrays(self) -> Arrays:
        """All that was learnt of the original map."""
        return self.fitted.arrays()


def grown(
    fitted: FittedPlacer,
    originals: Search,
    X: Points,
    Y: np.ndarray,
    frames: Iterator[Frames],
    n_jobs: int | None,
) -> FittedPlacer:
    """Return a fitted placer over points X and images Y, the original ones first.

    ``frames`` are those of all points, one record for each part that keeps them.
    """
    if isinstance(fitted, FittedBlend):
        parts = tuple(grown(part, originals, X, Y, frames, n_jobs) for part in fitted.parts)
        return replace(fitted, parts=parts)
    if not isinstance(fitted, FittedLocal):
        return FromOriginals(fitted, originals, n_jobs)
    weighting: Any = fitted.weighting
    changed: dict[str, Any] = {"X": X, "Y": Y}
    if isinstance(weighting, FittedLocalTangent):
        changed["frames"] = next(frames)
    return replace(fitted, X=X, weighting=replace(weighting, **changed))


def kept_frames(fitted: FittedPlacer) -> list[Frames]:
    """Frames of the points, for each part that keeps them."""
    if isinstance(fitted, FittedBlend):
        return [frames for part in fitted.parts for frames in kept_frames(part)]
    weighting = getattr(fitted, "weighting", None)
    return [weighting.frames] if isinstance(weighting, FittedLocalTangent) else []


def new_frames(fitted: FittedPlacer, near: Neighborhoods) -> list[Frames]:
    """Frames of points that are learned: those of the neighbours that placed them."""
    if isinstance(fitted, FittedBlend):
        around = fitted.around_parts(near)
        return [frames for part, own in around if own for frames in new_frames(part, own)]
    weighting = getattr(fitted, "weighting", None)
    if not isinstance(weighting, FittedLocalTangent):
        return []
    return [image_frames(weighting.Y, *near.framed, weighting.n_jobs)]
