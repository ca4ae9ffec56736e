"""Choice of the bandwidth of a kernel extension by leave-one-out errors in closed form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack

from outsample._validation import check_number
from outsample.points import Points, root_mean_square
from outsample.spectral import affinity
from outsample.spectral.scales import even_rows, median_nearest
from outsample.spectral.transitions import MIN_LEVERAGE, Markov

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


def inverse(S: np.ndarray, ridge: float) -> np.ndarray | None:
    """Return the inverse (n, n) of ``S + ridge I``, or None if it is numerically singular."""
    S = S.copy(order="F")
    S[np.diag_indices_from(S)] += ridge
    factor, failed = lapack.dpotrf(S, lower=1, overwrite_a=1)
    if failed:
        return None
    inverted, failed = lapack.dpotri(factor, lower=1, overwrite_c=1)
    if failed:
        return None
    lower = np.tril(inverted)
    return lower + np.tril(lower, -1).T


def left_out_of_kernel(G: np.ndarray, f: np.ndarray, ridge: float) -> np.ndarray | None:
    """Return leave-one-out residuals (n, d): ``c_i / (G^-1)_ii`` with ``c = G^-1 f``.

    The ridge suppresses eigenvalues below it. None if `inverse` fails.
    """
    inverted = inverse(G, ridge)
    if inverted is None:
        return None
    return (inverted @ f) / np.diag(inverted)[:, None]


def left_out_of_markov(kernel: Markov, f: np.ndarray, ridge: float) -> np.ndarray | None:
    """Return leave-one-out residuals (n, d) of an expansion in transition probabilities.

    ``(c_i - f_i) / ((S^-1)_ii - 1)`` with ``c = R^-1 S^-1 R f``: the quotient of the extensions
    of ``f`` and of 1 without row i, with unchanged densities and degrees of the other rows. The
    mean of f should be close to 0. None if `inverse` fails.
    """
    inverted = inverse(kernel.conjugate, ridge)
    if inverted is None:
        return None
    roots = kernel.root_degrees[:, None]
    coefficients = inverted @ (roots * f) / roots
    leverage = np.diag(inverted)[:, None] - 1
    is_isolated = leverage < MIN_LEVERAGE  # the kernel is 0 at all other rows
    return np.where(is_isolated, f, (coefficients - f) / np.where(is_isolated, 1.0, leverage))
