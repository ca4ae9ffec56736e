"""Least squares with correlated errors: Gaussian-process extension, local and global.

The paper's W is block diagonal, so that two neighbours side by side are counted twice. Here the
errors of neighbours i and j, the changes of the map from them to the query, have the covariance
``g(r_i) + g(r_j) - g(r_ij)``, with g the variogram; Eq. 2.3 then is kriging.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from outsample._kernels import correlated as kernels
from outsample._parallel import over_rows
from outsample.points import Points, kernel_rows
from outsample.records import Neighbors, Weights

KINDS = {"linear": kernels.LINEAR, "matern52": kernels.MATERN52, "gaussian": kernels.GAUSSIAN}
# The length scale is in units of the distance to this neighbour.
UNIT_NEIGHBOR = 15
# The consensus of a torn map is asked of so many nearest neighbours, and kept within so many
# times their median distance from it.
CONSENSUS_NEIGHBORS = 8
CONSENSUS_TOLERANCE = 1.5
# Steps by which a singular covariance is made regular.
LEAST_NUGGETS = (0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4)


class Correlated(NamedTuple):
    """Weighting with correlated errors, given in full.

    Attributes
    ----------
    covariance : {"linear", "matern52", "gaussian"}
        Smoothness of the map: rough, twice differentiable, analytic.
    length : float
        Length scale, in units of the distance to the 15th neighbour. Without effect for
        ``"linear"`` but for its relation to the nugget.
    nugget : float
        Variance of independent noise in the images, relative to the covariance.

    Examples
    --------
    >>> from outsample import PCAExtension
    >>> smooth = PCAExtension(weighting=Correlated("gaussian", 4.0, 1e-10), n_neighbors=60)
    """

    covariance: str = "matern52"
    length: float = 4.0
    nugget: float = 1e-6


class GlobalFit(NamedTuple):
    """Gaussian process over all training points, factored once.

    Attributes
    ----------
    covariance : str
        Its kind.
    unit : float
        Length scale in the units of X.
    mean : ndarray of shape (d,)
        The constant drift.
    coefficients : ndarray of shape (n, d)
        They sum to 0 along each column.
    """

    covariance: str
    unit: float
    mean: np.ndarray
    coefficients: np.ndarray


def local_units(near: Neighbors) -> np.ndarray:
    """Distance of each query to its 15th neighbour, or the last if there are fewer.

    Parameters
    ----------
    near : Neighbors
        Neighbourhoods.

    Returns
    -------
    ndarray of shape (q,)
        Never 0 unless all neighbours coincide with the query.
    """
    at = np.minimum(near.indptr[:-1] + UNIT_NEIGHBOR, near.indptr[1:]) - 1
    units = near.distances[at]
    return np.where(units > 0, units, near.distances[near.indptr[1:] - 1])


def solve_correlated(
    X: Points,
    Y: np.ndarray,
    Q: Points,
    near: Neighbors,
    distance_weights: Weights,
    settings: Correlated,
    order: int,
    tangent_dim: int,
    consensus: np.ndarray | None = None,
    n_jobs: int | None = None,
) -> np.ndarray:
    """Generalized least squares over each neighbourhood with correlated errors (Eq. 2.3).

    Parameters
    ----------
    X, Y : ndarrays of shape (n, D) and (n, d)
        Training points and images.
    Q : ndarray of shape (q, D)
        Queries.
    near : Neighbors
        Their neighbourhoods.
    distance_weights : Weights
        Tell which neighbours coincide with the query.
    settings : Correlated
        Covariance.
    order : int
        Degree of the polynomial drift in tangent coordinates.
    tangent_dim : int
        Dimension of these.
    consensus : ndarray of shape (q, d), optional
        Drop the neighbours whose images disagree with it.
    n_jobs : int or None
        Threads.

    Returns
    -------
    ndarray of shape (q, d)
    """
    kept = np.ones(len(near.indices), dtype=bool)
    if consensus is not None:
        over_rows(
            kernels.agree_with_consensus,
            Q.shape[0],
            n_jobs,
            Y,
            near.indptr,
            near.indices,
            consensus,
            CONSENSUS_NEIGHBORS,
            CONSENSUS_TOLERANCE,
            kept,
        )
    coordinates = np.empty((Q.shape[0], Y.shape[1]))
    over_rows(
        kernels.solve_correlated,
        Q.shape[0],
        n_jobs,
        kernel_rows(X),
        kernel_rows(Q),
        Y,
        near.indptr,
        near.indices,
        near.distances,
        local_units(near),
        distance_weights.sigma,
        kept,
        KINDS[settings.covariance],
        float(settings.length),
        float(settings.nugget),
        order,
        min(tangent_dim, X.shape[1]),
        coordinates,
    )
    return coordinates


def fit_global(
    X: np.ndarray, Y: np.ndarray, unit: float, settings: Correlated, held_out: np.ndarray
) -> tuple[GlobalFit, np.ndarray]:
    """Factor the covariance of all training points once (Barkan, Weill, Averbuch 2016).

    Parameters
    ----------
    X, Y : ndarrays of shape (n, D) and (n, d)
        Training points and images.
    unit : float
        Typical distance to the 15th neighbour.
    settings : Correlated
        Covariance.
    held_out : ndarray of shape (s,)
        Rows whose leave-one-out residuals are wanted; they come in closed form.

    Returns
    -------
    fit : GlobalFit
    residuals : ndarray of shape (s, d)
        Image minus what the other rows predict.
    """
    unit = unit * settings.length
    factor = _factor(X / unit, settings)
    center = Y.mean(axis=0)
    sides = np.column_stack([np.ones(X.shape[0]), Y - center])
    solved = cho_solve(factor, sides, check_finite=False)
    ones = solved[:, 0]
    drift = sides[:, 0] @ solved[:, 1:] / ones.sum()
    coefficients = solved[:, 1:] - ones[:, None] * drift
    coefficients -= coefficients.mean(axis=0)  # they sum to 0 but for rounding
    # The row and column of the inverse that belong to a row give its leave-one-out residual.
    diagonal = inverse_diagonal(factor[0], held_out) - ones[held_out] ** 2 / ones.sum()
    residuals = coefficients[held_out] / diagonal[:, None]
    return GlobalFit(settings.covariance, unit, center + drift, coefficients), residuals


def inverse_diagonal(lower: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Entries on the diagonal of the inverse of a matrix.

    Parameters
    ----------
    lower : ndarray of shape (n, n)
        Its Cholesky factor, in the lower triangle.
    rows : ndarray of shape (s,)
        Which entries.

    Returns
    -------
    ndarray of shape (s,)
    """
    chosen = np.zeros((len(lower), len(rows)))
    chosen[rows, np.arange(len(rows))] = 1.0
    half = solve_triangular(lower, chosen, lower=True, check_finite=False, overwrite_b=True)
    return (half**2).sum(axis=0)


def _factor(X: np.ndarray, settings: Correlated) -> tuple[np.ndarray, bool]:
    """Cholesky factor, with as much added to the nugget as double precision needs."""
    for least in LEAST_NUGGETS:
        covariance = _covariance_matrix(X, settings.covariance)
        least *= covariance[0, 0]
        covariance[np.diag_indices_from(covariance)] += max(settings.nugget, least)
        try:
            return cho_factor(covariance, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            continue
    raise ValueError(
        "the covariance of all training points cannot be factored; use fewer n_neighbors."
    )


def _covariance_matrix(X: np.ndarray, kind: str) -> np.ndarray:
    """Covariance (n, n) of scaled points, in one array of that size."""
    from scipy.spatial.distance import cdist

    H = cdist(X, X)
    if kind == "linear":  # any constant above the largest distance makes it positive definite
        np.minimum(H, 1e150, out=H)
        np.subtract(2 * (H.max() or 1.0), H, out=H)
        return H
    np.minimum(H, 1e3, out=H)  # nothing is left beyond, and squares may overflow
    if kind == "gaussian":
        np.multiply(H, -H, out=H)
        np.exp(H, out=H)
    else:
        H *= 5**0.5
        decay = np.exp(-H)
        H += H * H / 3
        H += 1
        H *= decay
    return H


def predict_global(
    X: Points,
    Y: np.ndarray,
    Q: Points,
    fit: GlobalFit,
    n_jobs: int | None = None,
) -> np.ndarray:
    """Values of the global Gaussian process at the queries.

    Parameters
    ----------
    X, Y : ndarrays of shape (n, D) and (n, d)
        Training points and images.
    Q : ndarray of shape (q, D)
        Queries.
    fit : GlobalFit
        The factored process.
    n_jobs : int or None
        Threads.

    Returns
    -------
    ndarray of shape (q, d)
    """
    coordinates = np.empty((Q.shape[0], Y.shape[1]))
    over_rows(
        kernels.predict_global,
        Q.shape[0],
        n_jobs,
        kernel_rows(X),
        X.shape[0],
        kernel_rows(Q),
        Y,
        fit.unit,
        KINDS[fit.covariance],
        fit.mean,
        fit.coefficients,
        coordinates,
    )
    return coordinates
