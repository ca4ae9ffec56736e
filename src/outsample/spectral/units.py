"""Units in which squares and kernels cannot overflow: powers of two, which do not round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from outsample.points import Points, largest_entry, unit_scale

# Scaled coordinates are clipped to this; their squares do not overflow.
MAX_COORDINATE = 1e150

Square = TypeVar("Square", float, np.ndarray)


def scaled(X: Points, scale: float) -> Points:
    """Return points times a scale, clipped to the allowed range."""
    limit = MAX_COORDINATE / scale
    if not largest_entry(X) > limit:
        return X * scale
    X = X.copy()
    values = X if isinstance(X, np.ndarray) else X.data
    np.clip(values, -limit, limit, out=values)
    return X * scale


def exact_mean(Y: np.ndarray) -> np.ndarray:
    """Return the mean (d,) of the images, exact for a constant map."""
    return Y[0] + (Y - Y[0]).mean(axis=0)


@dataclass(frozen=True)
class PointUnit:
    """Conversion of points and bandwidths (squared lengths) to a common unit and back."""

    scale: float

    @classmethod
    def of(cls, X: Points) -> PointUnit:
        """Return the unit in which the entries of X are at most 1."""
        return cls(unit_scale(X))

    def points(self, X: Points) -> Points:
        """Return points (n, D) in the unit."""
        return scaled(X, self.scale)

    def square(self, bandwidth: float) -> float:
        """Return a bandwidth in the unit, from the user's squared length."""
        return bandwidth * self.scale * self.scale

    def given(self, square: Square) -> Square:
        """Return bandwidths in the user's squared lengths, from those in the unit."""
        return square / self.scale / self.scale


@dataclass(frozen=True, eq=False)
class MapUnit:
    """Conversion of images to coordinates relative to a centre, in a common unit, and back."""

    center: np.ndarray
    scale: float

    @classmethod
    def of(cls, Y: np.ndarray, center: np.ndarray) -> MapUnit:
        """Return the unit in which the entries of ``Y - center`` are at most 1."""
        return cls(center, unit_scale(Y - center))

    def images(self, Y: np.ndarray) -> np.ndarray:
        """Return images (n, d) minus the centre, in the unit."""
        return (Y - self.center) * self.scale

    def back(self, values: np.ndarray) -> np.ndarray:
        """Return coordinates (q, d) from values in the unit."""
        return self.center + values / self.scale
