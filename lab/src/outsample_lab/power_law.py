"""Exponents of power laws, from measurements."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike


def slope(steps: ArrayLike, values: ArrayLike) -> float:
    """Return the exponent p of the power law ``values ~ steps^p``, by least squares on logarithms.

    >>> round(slope(np.array([1.0, 2.0, 4.0]), np.array([3.0, 12.0, 48.0])), 6)
    2.0
    """
    return float(np.polyfit(np.log(steps), np.log(values), 1)[0])


def late_slope(sizes: Sequence[float], values: ArrayLike) -> float:
    """Return the exponent over the upper half of the sizes, where fixed costs count least.

    >>> round(late_slope([1, 2, 4, 8], [9.0, 9.0, 16.0, 32.0]), 6)
    1.0
    """
    upper = min(len(sizes) // 2, len(sizes) - 2)  # a slope needs two
    return slope(np.array(sizes[upper:], dtype=np.float64), np.asarray(values)[upper:])
