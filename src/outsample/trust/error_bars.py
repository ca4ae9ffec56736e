"""Error bars: leave-one-out errors, scaled by the local spread, give a conformal radius."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from outsample._kernels import bounds as kernels
from outsample._parallel import over_rows
from outsample.records import Neighbors

LEVEL = 0.9
# Nearest images whose spread tells how rough the map is at a place.
SPREAD_NEIGHBORS = 5


class ErrorBars(NamedTuple):
    """A calibrated scale for the errors of placements.

    The radius is ``factor * (spread + floor) + slope * max(0, r_1 - farthest)``, with r_1 the
    distance to the nearest training point: conformal among points like the training ones, and
    growing by the map's typical slope beyond them. There the spread, which says less and less,
    gives way to the width of the whole map, ``widest``. ``factor`` is the conformal quantile of
    error over spread, ``floor`` the least spread that counts, ``farthest`` the largest distance
    of a training point from its nearest neighbour.
    """

    factor: float
    floor: float
    slope: float
    farthest: float
    widest: float

    def radii(self, spread: np.ndarray, nearest: np.ndarray) -> np.ndarray:
        """Error bars (q,), from the spread of images and the distance to the nearest point."""
        beyond = np.maximum(nearest - self.farthest, 0.0)
        with np.errstate(over="ignore"):  # the largest double stands for anything beyond it
            share = np.minimum(beyond / (self.farthest or 1.0), 1.0)
            spread = (1 - share) * spread + share * self.widest
            bar = self.factor * (spread + self.floor) + self.slope * beyond
        return np.minimum(bar, np.finfo(np.float64).max)


def calibrated_bars(
    errors: np.ndarray, spread: np.ndarray, nearest: np.ndarray, slopes: np.ndarray, widest: float
) -> ErrorBars:
    """Error bars from training rows placed by the others (each array (s,)).

    The error, the spread of the nearest images, the distance to the nearest other row, the local
    Lipschitz estimate; and the width of the map.
    """
    floor = 0.1 * float(np.median(spread))
    if floor == 0.0:
        floor = float(spread.max()) or 1.0
    with np.errstate(over="ignore"):  # the largest double stands for anything beyond it
        ratios = np.minimum(errors / (spread + floor), np.finfo(np.float64).max)
    factor = conformal_quantile(ratios, LEVEL)
    return ErrorBars(factor, floor, float(np.median(slopes)), float(nearest.max()), widest)


def conformal_quantile(scores: np.ndarray, level: float) -> float:
    """Value that a new score stays below with probability ``level``, if exchangeable.

    The ``ceil((s + 1) level)``-th smallest of s scores; the largest where s is too small.

    >>> conformal_quantile(np.arange(1.0, 10.0), 0.9)
    9.0
    """
    rank = min(int(np.ceil((len(scores) + 1) * level)), len(scores))
    return float(np.partition(scores, rank - 1)[rank - 1])


def lengths(rows: np.ndarray) -> np.ndarray:
    """Euclidean length (s,) of every row, of any size: squared in a unit of its own.

    >>> lengths(np.array([[3e200, 4e200]]))
    array([5.e+200])
    """
    largest = np.abs(rows).max(axis=1, initial=0.0)
    # A power of two, which rounds nothing; bounded, so that its inverse is a number.
    unit = np.ldexp(1.0, np.clip(np.frexp(largest)[1], -1000, 1000))
    return np.linalg.norm(rows / unit[:, None], axis=1) * unit


def image_spread(
    Y: np.ndarray, near: Neighbors, coordinates: np.ndarray, n_jobs: int | None = None
) -> np.ndarray:
    """Root mean square distance (q,) of the five nearest images from a placement."""
    spread = np.empty(len(coordinates))
    over_rows(
        kernels.image_spread, len(coordinates), n_jobs, Y, near.indptr, near.indices,
        SPREAD_NEIGHBORS, coordinates, spread,
    )  # fmt: skip
    return spread
