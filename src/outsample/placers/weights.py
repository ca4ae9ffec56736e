"""Weightings: from distances and frames to the error deviations of Eq. 2.1.

Each function has the signature ``(near, frames, settings, n_jobs) -> Weights``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from outsample._kernels import weights as kernels
from outsample._parallel import over_rows
from outsample.records import Frames, Neighbors, Weights

NO_AXES = np.empty((0, 0, 0))


class InverseDistance(NamedTuple):
    """Weighting ``w_j = r_j^-power I``: ``"distance"`` is power 2, the paper's normal one is 4.

    Attributes
    ----------
    power : float
        How steeply the weight falls; above 0.

    Examples
    --------
    >>> from outsample import PCAExtension
    >>> steep = PCAExtension(weighting=InverseDistance(6), order=0, loss="squared")
    """

    power: float = 2.0


class GaussianDistance(NamedTuple):
    """Weighting ``w_j = r_j^-2 exp(-(r_j^2 - r_1^2) / l^2) I``, r_1 that of the nearest neighbour.

    Steep where the neighbours are far away, gentle where they are near: for torn maps. The nearest
    neighbour has the weight of Eq. 4.3.

    Attributes
    ----------
    length : float
        ``l``, in units of the typical distance to the 15th neighbour; above 0.

    Examples
    --------
    >>> from outsample import PCAExtension
    >>> torn = PCAExtension(weighting=GaussianDistance(0.35), order=0, loss="absolute")
    """

    length: float = 0.35


class Settings(NamedTuple):
    """What a fitted extension knows beyond the neighbourhood.

    Attributes
    ----------
    curvature : float
        The paper's c.
    tangent_dim : int
        Dimension of the image manifold.
    """

    curvature: float
    tangent_dim: int


def distance_weights(
    near: Neighbors, frames: Frames, settings: Settings, n_jobs: int | None = None
) -> Weights:
    """``w_j = r_j^-2 I`` (Eq. 4.2, 4.3).

    Parameters
    ----------
    near : Neighbors
        Neighbourhoods.
    frames : Frames
        Not used.
    settings : Settings
        Not used.
    n_jobs : int or None
        Threads.

    Returns
    -------
    Weights
    """
    return power_weights(InverseDistance(2.0), near, n_jobs)


def power_weights(
    weighting: InverseDistance, near: Neighbors, n_jobs: int | None = None
) -> Weights:
    """``w_j = r_j^-p I``.

    Parameters
    ----------
    weighting : InverseDistance
        The power p.
    near : Neighbors
        Neighbourhoods.
    n_jobs : int or None
        Threads.

    Returns
    -------
    Weights
    """
    return _isotropic(near, near.distances, weighting.power / 2, n_jobs)


def gaussian_weights(
    weighting: GaussianDistance, unit: float, near: Neighbors, n_jobs: int | None = None
) -> Weights:
    """``w_j = r_j^-2 exp(-(r_j^2 - r_1^2) / l^2) I``.

    Parameters
    ----------
    weighting : GaussianDistance
        The length.
    unit : float
        Its unit.
    near : Neighbors
        Neighbourhoods.
    n_jobs : int or None
        Threads.

    Returns
    -------
    Weights
    """
    sigma, exponent = _empty(near, 1)
    over_rows(
        kernels.gaussian_sigma, len(exponent), n_jobs, near.indptr, near.distances,
        weighting.length * unit, sigma, exponent,
    )  # fmt: skip
    return Weights(sigma, exponent, NO_AXES, False)


def function_weights(function: Callable, near: Neighbors, n_jobs: int | None = None) -> Weights:
    """``w_j = f(r_j) I`` for a decreasing function of the distance (remark below Eq. 4.2).

    An infinite weight means that the neighbour decides alone; where every weight of a
    neighbourhood is 0, the nearest neighbour decides.

    Parameters
    ----------
    function : callable
        Takes an array of distances, returns weights of the same shape, none negative.
    near : Neighbors
        Neighbourhoods.
    n_jobs : int or None
        Threads.

    Returns
    -------
    Weights
    """
    with np.errstate(divide="ignore", over="ignore"):
        values = np.asarray(function(near.distances.copy()), dtype=np.float64)
        if values.shape != near.distances.shape:
            raise ValueError(
                f"weighting returned shape {values.shape} for distances of shape "
                f"{near.distances.shape}; it must return one weight a distance."
            )
        wrong = ~(values >= 0)
        if wrong.any():
            at = int(np.argmax(wrong))
            raise ValueError(
                f"weighting returned {values[at]} at distance {near.distances[at]}; "
                "weights must be 0 or more."
            )
        deviations = 1.0 / np.sqrt(values)
    return _isotropic(near, deviations, 1.0, n_jobs)


def tangent_weights(
    near: Neighbors, frames: Frames, settings: Settings, n_jobs: int | None = None
) -> Weights:
    """``w_j = (r_j^2 C + (r_j / c)^4 I)^-1`` with one C a query (Eq. 4.5).

    Parameters
    ----------
    near : Neighbors
        Neighbourhoods.
    frames : Frames
        One a query.
    settings : Settings
        The curvature.
    n_jobs : int or None
        Threads.

    Returns
    -------
    Weights
    """
    return _tangent(near, frames, settings, False, n_jobs)


def local_tangent_weights(
    near: Neighbors, frames: Frames, settings: Settings, n_jobs: int | None = None
) -> Weights:
    """``w_j = (r_j^2 C_j + (r_j / c)^4 I)^-1``, C_j of the training point itself (Table 7.1).

    Parameters
    ----------
    near : Neighbors
        Neighbourhoods.
    frames : Frames
        One a training point.
    settings : Settings
        The curvature.
    n_jobs : int or None
        Threads.

    Returns
    -------
    Weights
    """
    return _tangent(near, frames, settings, True, n_jobs)


def split_tangent_weights(
    near: Neighbors, frames: Frames, settings: Settings, n_jobs: int | None = None
) -> Weights:
    """``r_j^-2`` along the tangent, ``(c / r_j)^4`` across it (Section 4.2, unnumbered).

    Parameters
    ----------
    near : Neighbors
        Neighbourhoods.
    frames : Frames
        One a query; the first ``tangent_dim`` axes span the tangent.
    settings : Settings
        Curvature and tangent dimension.
    n_jobs : int or None
        Threads.

    Returns
    -------
    Weights
    """
    sigma, exponent = _empty(near, frames.spread.shape[1])
    over_rows(
        kernels.split_sigma,
        len(exponent),
        n_jobs,
        near.indptr,
        near.distances,
        settings.tangent_dim,
        settings.curvature,
        sigma,
        exponent,
    )
    return Weights(sigma, exponent, frames.axes, False)


def _tangent(
    near: Neighbors, frames: Frames, settings: Settings, per_point: bool, n_jobs: int | None
) -> Weights:
    sigma, exponent = _empty(near, frames.spread.shape[1])
    over_rows(
        kernels.tangent_sigma,
        len(exponent),
        n_jobs,
        near.indptr,
        near.indices,
        near.distances,
        frames.spread,
        per_point,
        settings.curvature,
        sigma,
        exponent,
    )
    return Weights(sigma, exponent, frames.axes, per_point)


def _isotropic(
    near: Neighbors, deviations: np.ndarray, power: float, n_jobs: int | None
) -> Weights:
    sigma, exponent = _empty(near, 1)
    over_rows(
        kernels.isotropic_sigma, len(exponent), n_jobs, near.indptr, deviations, power, sigma,
        exponent,
    )  # fmt: skip
    return Weights(sigma, exponent, NO_AXES, False)


def _empty(near: Neighbors, width: int) -> tuple[np.ndarray, np.ndarray]:
    return np.empty((len(near.indices), width)), np.zeros(len(near.inside), dtype=np.int64)


WEIGHTINGS = {
    "distance": distance_weights,
    "tangent": tangent_weights,
    "local_tangent": local_tangent_weights,
    "split_tangent": split_tangent_weights,
}
