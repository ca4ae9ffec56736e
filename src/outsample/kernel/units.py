"""Units in which squares and kernels cannot overflow: powers of two, which round nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from outsample.points import Points, largest_entry

# Scaled coordinates stay within this, far from overflow.
FAR_AWAY = 1e150

Square = TypeVar("Square", float, np.ndarray)


def unit_scale(X: Points) -> float:
    """Power of two that brings the largest entry to 1/2 ... 1; 1 if all are 0.

    >>> unit_scale(np.array([[3.0], [-5.0]]))
    0.125
    """
    largest = largest_entry(X)
    return float(2.0 ** -np.clip(np.frexp(largest)[1], -1000, 1000)) if largest > 0 else 1.0


def scaled(X: Points, scale: float) -> Points:
    """Points times a scale, kept within range."""
    limit = FAR_AWAY / scale
    if not largest_entry(X) > limit:
        return X * scale
    X = X.copy()
    values = X if isinstance(X, np.ndarray) else X.data
    np.clip(values, -limit, limit, out=values)
    return X * scale


def exact_mean(Y: np.ndarray) -> np.ndarray:
    """Mean (d,) of the images, exact for a constant map."""
    return Y[0] + (Y - Y[0]).mean(axis=0)


@dataclass(frozen=True)
class PointUnit:
    """Points and bandwidths, which are squared lengths, into a unit of their own and back."""

    scale: float

    @classmethod
    def of(cls, X: Points) -> PointUnit:
        """Make the unit in which the entries of X are at most of the size of 1."""
        return cls(unit_scale(X))

    def points(self, X: Points) -> Points:
        """Points (n, D) in the unit."""
        return scaled(X, self.scale)

    def square(self, given: float) -> float:
        """Bandwidth in the unit, from one in squared lengths as they were given."""
        return given * self.scale * self.scale

    def given(self, square: Square) -> Square:
        """Bandwidths in squared lengths as they were given, from those in the unit."""
        return square / self.scale / self.scale


@dataclass(frozen=True, eq=False)
class MapUnit:
    """Images relative to a centre, in a unit of their own, and back."""

    center: np.ndarray
    scale: float

    @classmethod
    def of(cls, Y: np.ndarray, center: np.ndarray) -> MapUnit:
        """Make the unit in which the entries of ``Y - center`` are at most of the size of 1."""
        return cls(center, unit_scale(Y - center))

    def images(self, Y: np.ndarray) -> np.ndarray:
        """Images (n, d) less the centre, in the unit."""
        return (Y - self.center) * self.scale

    def back(self, values: np.ndarray) -> np.ndarray:
        """Coordinates (q, d) of values in the unit."""
        return self.center + values / self.scale
