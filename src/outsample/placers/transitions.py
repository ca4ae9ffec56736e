"""Extension by the transition probabilities of a diffusion over all training points.

The Nyström extension, made to stand beside the weightings: it interpolates, its leave-one-out
error comes in closed form, and away from the data it fades into a mean of the images.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from outsample._kernels import affinity as kernels
from outsample._parallel import over_rows
from outsample.kernel import affinity, spectral
from outsample.kernel.spectral import Markov
from outsample.placers import covariance
from outsample.points import Points, kernel_rows

# Steps by which the ridge grows until double precision can factor the kernel.
LEAST_RIDGE = 1e-13
RIDGE_STEPS = (1.0, 1e2, 1e4, 1e6)


class Diffusion(NamedTuple):
    """Weighting by the transition probabilities of a diffusion, over all training points.

    ``f(x) = sum_j p(x, x_j) c_j`` with ``p`` proportional to ``exp(-|x - x_j|^2 / l^2)`` over the
    density at ``x_j``, and ``c`` such that the training points keep their images: the expansion
    of the map in the eigenfunctions of the diffusion, as in `NystroemExtension`.

    Attributes
    ----------
    length : float
        ``l``, in units of the typical distance to the 15th neighbour.
    ridge : float
        Eigenvalues below it count for nothing.

    Examples
    --------
    >>> from outsample import PCAExtension
    >>> smooth = PCAExtension(weighting=Diffusion(2.0))
    """

    length: float = 2.0
    ridge: float = 1e-9


class DiffusionFit(NamedTuple):
    """Expansion of a map, solved once.

    Attributes
    ----------
    unit : float
        Length scale in the units of X.
    weights : ndarray of shape (n,)
        One over the density of the training points.
    lift : ndarray of shape (n, d)
        The coefficients ``c`` minus the images.
    center : ndarray of shape (d,)
        Mean of the images.
    reach : float
        Largest distance of an image from it.
    """

    unit: float
    weights: np.ndarray
    lift: np.ndarray
    center: np.ndarray
    reach: float


def fit_diffusion(
    X: Points,
    Y: np.ndarray,
    unit: float,
    settings: Diffusion,
    held_out: np.ndarray,
    n_jobs: int | None = None,
) -> tuple[DiffusionFit, np.ndarray]:
    """Expand a map in transition probabilities, with its leave-one-out residuals.

    Parameters
    ----------
    X, Y : ndarrays of shape (n, D) and (n, d)
        Training points and images.
    unit : float
        Typical distance to the 15th neighbour.
    settings : Diffusion
        Length and ridge.
    held_out : ndarray of shape (s,)
        Rows whose residuals are wanted.
    n_jobs : int or None
        Threads.

    Returns
    -------
    fit : DiffusionFit
    residuals : ndarray of shape (s, d)
        Image minus what the other rows predict, their densities left as they are.
    """
    unit = unit * settings.length
    apart = affinity.distances(X, n_jobs=n_jobs)
    apart /= unit  # before it is squared
    kernel = spectral.markov(affinity.gaussian_of(apart, 1.0, out=apart), alpha=1.0)
    center = Y.mean(axis=0)
    f, roots = Y - center, kernel.root_degrees[:, None]
    factor = _factor(kernel.conjugate, settings.ridge)
    lift = cho_solve((factor, True), roots * f, check_finite=False) / roots - f
    leverage = covariance.inverse_diagonal(factor, held_out)[:, None] - 1
    expanded = f[held_out] - lift[held_out] / np.maximum(leverage, spectral.LEAST_LEVERAGE)
    means, trust = _others(kernel, f, held_out)
    residuals = f[held_out] - means - trust * (expanded - means)
    largest = np.abs(f).max() or 1.0
    reach = largest * np.sqrt(((f / largest) ** 2).sum(axis=1).max())
    return DiffusionFit(unit, kernel.weights, lift, center, float(reach)), residuals


def _factor(S: np.ndarray, ridge: float) -> np.ndarray:
    """Lower Cholesky factor, the ridge as large as double precision needs."""
    for step in RIDGE_STEPS:
        ridged = S.copy(order="F")
        ridged[np.diag_indices_from(ridged)] += max(ridge, LEAST_RIDGE) * step
        try:
            return cho_factor(ridged, lower=True, overwrite_a=True, check_finite=False)[0]
        except np.linalg.LinAlgError:
            continue
    raise ValueError("the kernel of all training points cannot be factored; give a larger ridge.")


def _others(kernel: Markov, f: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean of the others' images under the transition probabilities of each row, and the trust."""
    roots, own = kernel.root_degrees, np.arange(len(rows))
    shares = kernel.conjugate[rows] * roots
    shares[own, rows] = 0.0
    shares *= (roots / kernel.weights)[rows, None]
    density = shares.sum(axis=1)
    means = shares @ f / np.where(density > 0, density, 1.0)[:, None]
    return means, np.array([[kernels.trust(value)] for value in density])


def place_by_diffusion(
    X: Points, Y: np.ndarray, Q: Points, fit: DiffusionFit, n_jobs: int | None = None
) -> np.ndarray:
    """Values of the expansion at the queries, kept near the images where the data end.

    ``sum_j p(x, x_j) (psi(x_j) + t(x) (c_j - psi(x_j)))``. The trust t falls from 1 to 0 as the
    kernel's sum over the training points, which is about 1 among them, falls from 0.1 to 0.01:
    coefficients of either sign no longer cancel there. Nothing is placed further from the mean
    of the images than twice the furthest of them.

    Parameters
    ----------
    X, Y : ndarrays of shape (n, D) and (n, d)
        Training points and images.
    Q : ndarray of shape (q, D)
        Queries.
    fit : DiffusionFit
        The expansion.
    n_jobs : int or None
        Threads.

    Returns
    -------
    ndarray of shape (q, d)
    """
    coordinates = np.empty((Q.shape[0], Y.shape[1]))
    over_rows(
        kernels.place_by_diffusion,
        Q.shape[0],
        n_jobs,
        kernel_rows(X),
        X.shape[0],
        kernel_rows(Q),
        Y,
        fit.unit,
        fit.weights,
        fit.lift,
        fit.center,
        fit.reach,
        coordinates,
    )
    return coordinates
