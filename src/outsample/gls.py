"""Generalized least squares over the neighbours' images (Section 2.1)."""

from __future__ import annotations

import numpy as np

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
