"""The bandwidth of a kernel extension, chosen by closed-form leave-one-out error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from outsample._validation import check_number
from outsample.kernel import affinity
from outsample.kernel.scales import even_rows, median_nearest
from outsample.points import Points, root_mean_square

# The choice looks at this many training points at most.
CHOICE_ROWS = 2000
# Octaves around the squared typical distance to the 15th neighbour.
NEIGHBOR = 15
OCTAVES = (-4, 7)
# Leave-one-out errors that differ by less than this count as equal.
TIE = 1e-6

# Residuals (n, d) of leaving rows out, from the kernel matrix (overwritten) and the images.
LeftOut = Callable[[np.ndarray, np.ndarray], "np.ndarray | None"]


class Choice(NamedTuple):
    """A bandwidth that was tried.

    Attributes
    ----------
    bandwidth : float
        Epsilon of Eq. 7.3.
    error : float
        Mean leave-one-out error over the root mean square size of the map; inf where it could
        not be computed.
    """

    bandwidth: float
    error: float


def check_bandwidth(value: Any) -> None:
    """Refuse a bandwidth that is neither "auto" nor a positive number."""
    if not (isinstance(value, str) and value == "auto"):
        if isinstance(value, str):
            raise ValueError(f"bandwidth is {value!r}, but must be 'auto' or a number above 0.")
        check_number("bandwidth", value, 0, np.inf, open_below=True)


def choices(X: Points, Y: np.ndarray, left_out: LeftOut, n_jobs: int | None) -> list[Choice]:
    """Try bandwidths that double from 1/16 to 128 times the squared neighbour distance.

    The best first; the others follow as they were tried, half octaves beside the best among them.
    ``left_out(G, f)`` gives the residuals of centred images f under the kernel matrix G.
    """
    rows = even_rows(X.shape[0], CHOICE_ROWS)
    X, Y = X[rows], Y[rows]
    f = Y - Y.mean(axis=0)
    largest = np.abs(f).max()
    if largest > 0:  # squares of the images must not overflow
        f = f / largest
    size = root_mean_square(f)
    apart = affinity.distances(X, n_jobs=n_jobs)
    unit = median_nearest(X, NEIGHBOR, n_jobs) ** 2
    tried: list[Choice] = []

    def attempt(octave: float) -> None:
        epsilon = float(unit * 2.0**octave)
        residuals = left_out(affinity.gaussian_of(apart, epsilon), f)
        error = np.inf
        if residuals is not None and size > 0:
            error = float(np.sqrt((residuals**2).sum(axis=1)).mean() / size)
        tried.append(Choice(epsilon, error if np.isfinite(error) else np.inf))

    for octave in range(OCTAVES[0], OCTAVES[1] + 1):
        attempt(octave)
    middle = float(np.log2(_best(tried).bandwidth / unit))
    attempt(middle - 0.5)
    attempt(middle + 0.5)
    best = _best(tried)
    return [best, *(choice for choice in tried if choice is not best)]


def _best(tried: list[Choice]) -> Choice:
    """Least error, the first among equals; the neighbour distance itself if nothing counts."""
    least = min(choice.error for choice in tried)
    if np.isinf(least):
        return tried[-OCTAVES[0]]
    return next(choice for choice in tried if choice.error <= least * (1 + TIE))
