"""Choice of the bandwidth of a kernel extension by closed-form leave-one-out error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from outsample._validation import check_number
from outsample.points import Points, root_mean_square
from outsample.spectral import affinity
from outsample.spectral.scales import even_rows, median_nearest

# Training points used for the choice, at most.
CHOICE_ROWS = 2000
# Bandwidths are these powers of two times the squared typical distance to this neighbour.
UNIT_NEIGHBOR = 15
MIN_OCTAVE, MAX_OCTAVE = -4, 7
# Leave-one-out errors with a smaller relative difference count as equal.
ERROR_TOLERANCE = 1e-6

# Leave-one-out residuals (n, d) from the kernel matrix (overwritten) and the images.
LeftOut = Callable[[np.ndarray, np.ndarray], "np.ndarray | None"]


class Choice(NamedTuple):
    """Result of one bandwidth.

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
    """Raise an error unless the bandwidth is "auto" or a positive number."""
    if not (isinstance(value, str) and value == "auto"):
        if isinstance(value, str):
            raise ValueError(f"bandwidth is {value!r}, but must be 'auto' or a number above 0.")
        check_number("bandwidth", value, 0, np.inf, open_below=True)


def choices(X: Points, Y: np.ndarray, left_out: LeftOut, n_jobs: int | None) -> list[Choice]:
    """Return the results of bandwidths from 1/16 to 128 times the squared neighbour distance.

    Bandwidths double, and half octaves around the best are added. The best result comes first, the
    others in the order of computation. ``left_out(G, f)`` returns the leave-one-out residuals of
    centred images f under the kernel matrix G.
    """
    rows = even_rows(X.shape[0], CHOICE_ROWS)
    X, Y = X[rows], Y[rows]
    f = Y - Y.mean(axis=0)
    largest = np.abs(f).max()
    if largest > 0:  # squares of the images must not overflow
        f = f / largest
    size = root_mean_square(f)
    distances = affinity.distances(X, n_jobs=n_jobs)
    unit = median_nearest(X, UNIT_NEIGHBOR, n_jobs) ** 2
    results: list[Choice] = []

    def evaluate(octave: float) -> None:
        epsilon = float(unit * 2.0**octave)
        residuals = left_out(affinity.gaussian_of(distances, epsilon), f)
        error = np.inf
        if residuals is not None and size > 0:
            error = float(np.sqrt((residuals**2).sum(axis=1)).mean() / size)
        results.append(Choice(epsilon, error if np.isfinite(error) else np.inf))

    for octave in range(MIN_OCTAVE, MAX_OCTAVE + 1):
        evaluate(octave)
    middle = float(np.log2(_best(results).bandwidth / unit))
    evaluate(middle - 0.5)
    evaluate(middle + 0.5)
    best = _best(results)
    return [best, *(choice for choice in results if choice is not best)]


def _best(results: list[Choice]) -> Choice:
    """Return the result with the smallest error; octave 0 if no error is finite."""
    smallest = min(choice.error for choice in results)
    if np.isinf(smallest):
        return results[-MIN_OCTAVE]
    return next(choice for choice in results if choice.error <= smallest * (1 + ERROR_TOLERANCE))
