"""One way of placing points: a model, the map it knows, and the solve that both define."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from outsample.neighbors import local_pca as geometry
from outsample.neighbors.neighborhoods import Around
from outsample.placers import covariance, gls, transitions
from outsample.placers.covariance import Correlated, GlobalFit
from outsample.placers.transitions import Diffusion, DiffusionFit
from outsample.placers.weights import (
    WEIGHTINGS,
    GaussianDistance,
    InverseDistance,
    Settings,
    distance_weights,
    function_weights,
    gaussian_weights,
    power_weights,
)
from outsample.points import Points
from outsample.records import Frames, Neighbors, Weights

Weighting = (
    str
    | InverseDistance
    | GaussianDistance
    | Correlated
    | Diffusion
    | Callable[[np.ndarray], np.ndarray]
)
# What a model over all training points has learnt.
Whole = GlobalFit | DiffusionFit
# Steepness and size of the vote that finds the consensus of a torn neighbourhood.
CONSENSUS_POWER = InverseDistance(16.0)


class Model(NamedTuple):
    """What `PCAExtension` chooses.

    Attributes
    ----------
    weighting : str, InverseDistance, GaussianDistance, Correlated, Diffusion or callable
        Weights of the neighbours.
    n_neighbors : int
        How many; all training points with `Correlated` make a global Gaussian process, and
        `Diffusion` always takes all.
    order : int
        Degree of the local polynomial.
    loss : {"squared", "absolute"}
        What is summed.
    tangent_dim : int
        Dimension of the tangent coordinates and of ``"split_tangent"``.
    """

    weighting: Weighting
    n_neighbors: int
    order: int
    loss: str
    tangent_dim: int


class Map(NamedTuple):
    """The map that is extended, and constants of it.

    Attributes
    ----------
    X, Y : ndarrays of shape (n, D) and (n, d)
        Training points and images.
    curvature : float
        The paper's c.
    frames : Frames
        Local PCA at each training point, for ``"local_tangent"``; else empty.
    unit : float
        Typical distance to the 15th neighbour, for `GaussianDistance`; else 1.
    process : GlobalFit, DiffusionFit or None
        For a model over all training points.
    """

    X: Points
    Y: np.ndarray
    curvature: float
    frames: Frames
    unit: float = 1.0
    process: Whole | None = None


def is_whole(weighting: Weighting | None) -> bool:
    """Tell a weighting that takes all training points whatever the number of neighbours.

    Parameters
    ----------
    weighting : Weighting or None
        None is open.

    Returns
    -------
    bool
    """
    return weighting == "diffusion" or isinstance(weighting, Diffusion)


def solve(
    model: Model,
    the_map: Map,
    Q: Points,
    around: Around | None,
    n_jobs: int | None = None,
    weights: Weights | None = None,
) -> np.ndarray:
    """Place queries.

    Parameters
    ----------
    model : Model
        How.
    the_map : Map
        Into what.
    Q : ndarray of shape (q, D)
        Queries.
    around : Around or None
        Their neighbourhoods; not needed by a process over all training points.
    n_jobs : int or None
        Threads.
    weights : Weights, optional
        `neighbor_weights` of the neighbourhoods, if they are known.

    Returns
    -------
    ndarray of shape (q, d)
    """
    X, Y = the_map.X, the_map.Y
    if isinstance(the_map.process, DiffusionFit):
        return transitions.place_by_diffusion(X, Y, Q, the_map.process, n_jobs)
    if the_map.process is not None:
        return covariance.predict_global(X, Y, Q, the_map.process, n_jobs)
    assert around is not None
    near = around.near
    if weights is None:
        weights = neighbor_weights(model, the_map, around, n_jobs)
    if isinstance(model.weighting, Correlated):
        consensus = None
        if model.loss == "absolute":
            consensus = _consensus(Y, near, n_jobs)
        return covariance.solve_correlated(
            X, Y, Q, near, weights, model.weighting, model.order, model.tangent_dim, consensus,
            n_jobs,
        )  # fmt: skip
    if model.order > 0:
        return gls.solve_polynomial(
            X, Y, Q, near, weights, around.reach, model.order, model.tangent_dim, model.loss,
            n_jobs,
        )  # fmt: skip
    if model.loss == "absolute":
        return gls.solve_absolute(Y, near, weights, n_jobs)
    return gls.solve(Y, near, weights, n_jobs)


def neighbor_weights(
    model: Model, the_map: Map, around: Around, n_jobs: int | None = None
) -> Weights:
    """Weights of the neighbours, by the model's weighting.

    Parameters
    ----------
    model : Model
        The weighting.
    the_map : Map
        The map.
    around : Around
        Neighbourhoods.
    n_jobs : int or None
        Threads.

    Returns
    -------
    Weights
        With correlated errors or a diffusion those of Eq. 4.3, which the scores use.
    """
    weighting, near = model.weighting, around.near
    settings = Settings(the_map.curvature, model.tangent_dim)
    if isinstance(weighting, Correlated | Diffusion):
        return distance_weights(near, the_map.frames, settings, n_jobs)
    if isinstance(weighting, GaussianDistance):
        return gaussian_weights(weighting, the_map.unit, near, n_jobs)
    if isinstance(weighting, InverseDistance):
        return power_weights(weighting, near, n_jobs)
    if not isinstance(weighting, str):
        return function_weights(weighting, near, n_jobs)
    frames = the_map.frames
    if weighting in ("tangent", "split_tangent"):
        frames = geometry.image_frames(the_map.Y, around.framed, around.lengths, n_jobs)
    return WEIGHTINGS[weighting](near, frames, settings, n_jobs)


def _consensus(Y: np.ndarray, near: Neighbors, n_jobs: int | None) -> np.ndarray:
    """Geometric median of the nearest images: on one shred of a torn map, not between two."""
    counts = np.minimum(np.diff(near.indptr), covariance.CONSENSUS_NEIGHBORS)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    taken = np.arange(indptr[-1]) + np.repeat(near.indptr[:-1] - indptr[:-1], counts)
    closest = Neighbors(indptr, near.indices[taken], near.distances[taken], counts)
    return gls.solve_absolute(Y, closest, power_weights(CONSENSUS_POWER, closest, n_jobs), n_jobs)
