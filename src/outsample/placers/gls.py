"""Generalized least squares over the neighbours' images (Section 2.1)."""

from __future__ import annotations

import numpy as np

from outsample._kernels import absolute, polynomial
from outsample._kernels import gls as kernels
from outsample._parallel import over_rows
from outsample.records import Neighbors, Weights


def solve(
    Y: np.ndarray, near: Neighbors, weights: Weights, n_jobs: int | None = None
) -> np.ndarray:
    """``psi(x) = (sum_j w_j)^-1 sum_j w_j psi(x_j)`` (Eq. 2.8 in the form of Eq. 5.3).

    Parameters
    ----------
    Y : ndarray of shape (n, d)
        Images of the training points.
    near : Neighbors
        Neighbourhoods of the queries.
    weights : Weights
        The blocks ``w_j``.
    n_jobs : int or None
        Threads.

    Returns
    -------
    ndarray of shape (q, d)
    """
    coordinates = np.empty((len(near.inside), Y.shape[1]))
    kernel = kernels.solve_per_point if weights.per_point else kernels.solve_shared
    over_rows(
        kernel,
        len(coordinates),
        n_jobs,
        Y,
        near.indptr,
        near.indices,
        weights.sigma,
        weights.axes,
        coordinates,
    )
    return coordinates


def solve_absolute(
    Y: np.ndarray, near: Neighbors, weights: Weights, n_jobs: int | None = None
) -> np.ndarray:
    """Weighted geometric median: minimise ``sum_j sqrt(e_j' w_j e_j)`` instead of its squares.

    Parameters
    ----------
    Y : ndarray of shape (n, d)
        Images of the training points.
    near : Neighbors
        Neighbourhoods of the queries.
    weights : Weights
        The blocks ``w_j``.
    n_jobs : int or None
        Threads.

    Returns
    -------
    ndarray of shape (q, d)
    """
    coordinates = solve(Y, near, weights, n_jobs)
    over_rows(
        absolute.solve_absolute,
        len(coordinates),
        n_jobs,
        Y,
        near.indptr,
        near.indices,
        weights.sigma,
        weights.axes,
        weights.per_point,
        coordinates,
    )
    return coordinates


def solve_polynomial(
    X: np.ndarray,
    Y: np.ndarray,
    Q: np.ndarray,
    near: Neighbors,
    weights: Weights,
    reach: np.ndarray,
    order: int,
    tangent_dim: int,
    loss: str,
    n_jobs: int | None = None,
) -> np.ndarray:
    """Value at each query of a weighted polynomial fit in tangent coordinates.

    Moving least squares: Eq. 2.5 with the polynomial ``p(V'(x_j - x))`` of degree ``order`` in
    place of the constant, V the local PCA frame of the neighbours in the ambient space.

    Parameters
    ----------
    X, Y : ndarrays of shape (n, D) and (n, d)
        Training points and images.
    Q : ndarray of shape (q, D)
        Queries.
    near : Neighbors
        Their neighbourhoods.
    weights : Weights
        The blocks ``w_j``.
    reach : ndarray of shape (q,)
        Distance at which a neighbour's weight has fallen to 0.
    order : {1, 2}
        Degree.
    tangent_dim : int
        Dimension of the frame.
    loss : {"squared", "absolute"}
        What is summed over the neighbours.
    n_jobs : int or None
        Threads.

    Returns
    -------
    ndarray of shape (q, d)
    """
    coordinates = np.empty((Q.shape[0], Y.shape[1]))
    over_rows(
        polynomial.solve_polynomial,
        Q.shape[0],
        n_jobs,
        X,
        Q,
        Y,
        near.indptr,
        near.indices,
        near.distances,
        weights.sigma,
        weights.axes,
        weights.per_point,
        reach,
        order,
        min(tangent_dim, X.shape[1]),
        loss == "absolute",
        coordinates,
    )
    return coordinates


def disagreement(
    Y: np.ndarray,
    near: Neighbors,
    weights: Weights,
    coordinates: np.ndarray,
    n_jobs: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """``m(x)^2`` of Eq. 2.9, as ``sum e_j' w_j e_j`` and as ``sum e_j' w_j^-1 e_j``.

    Parameters
    ----------
    Y : ndarray of shape (n, d)
        Images of the training points.
    near : Neighbors
        Neighbourhoods of the queries.
    weights : Weights
        The blocks ``w_j``.
    coordinates : ndarray of shape (q, d)
        The solution.
    n_jobs : int or None
        Threads.

    Returns
    -------
    residual, dispersion : ndarrays of shape (q,)
        Finite; the largest double stands for anything beyond it.
    """
    residual, dispersion = np.empty(len(coordinates)), np.empty(len(coordinates))
    over_rows(
        kernels.disagreement,
        len(coordinates),
        n_jobs,
        Y,
        near.indptr,
        near.indices,
        weights.sigma,
        weights.exponent,
        weights.axes,
        weights.per_point,
        coordinates,
        residual,
        dispersion,
    )
    return residual, dispersion
