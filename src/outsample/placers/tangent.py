"""Weightings by the directions in which the map varies around a point: Eq. 4.5 and variants."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from outsample._compiled import weights as kernels
from outsample._parallel import over_rows
from outsample.neighbors.local_pca import image_frames
from outsample.neighbors.neighborhoods import Neighborhoods
from outsample.placers.least_squares import LeastSquares
from outsample.placers.weighting import IndependentErrors, empty_weights
from outsample.points import Points
from outsample.records import Frames, Neighbors, Weights

if TYPE_CHECKING:
    from outsample.placers.problem import Problem


@dataclass(frozen=True)
class Tangent(IndependentErrors):
    """``w_j = (r_j^2 C + (r_j / c)^4 I)^-1`` with one C per query (Eq. 4.5)."""

    def fit(self, problem: Problem, sample: np.ndarray, placer: Any) -> FittedTangent:
        """Return the weighting with its c."""
        curvature = _curvature(problem, sample, placer.n_neighbors)
        return FittedTangent(problem.X, problem.Y, problem.n_jobs, curvature)


@dataclass(frozen=True)
class LocalTangent(IndependentErrors):
    """``w_j = (r_j^2 C_j + (r_j / c)^4 I)^-1``, C_j of the training point itself (Table 7.1)."""

    def fit(self, problem: Problem, sample: np.ndarray, placer: Any) -> FittedLocalTangent:
        """Return the weighting with its c and the frame of every training point."""
        curvature = _curvature(problem, sample, placer.n_neighbors)
        frames = problem.frames(placer.n_neighbors)
        return FittedLocalTangent(problem.X, problem.Y, problem.n_jobs, curvature, frames)


@dataclass(frozen=True)
class SplitTangent(IndependentErrors):
    """``r_j^-2`` along the tangent, ``(c / r_j)^4`` across it (Section 4.2, unnumbered)."""

    def fit(self, problem: Problem, sample: np.ndarray, placer: Any) -> FittedSplitTangent:
        """Return the weighting with its c and the tangent dimension of the placer."""
        curvature = problem.curvature
        if curvature is None:
            lengths = problem.left_out(sample, placer.n_neighbors).framed[1]
            curvature = typical_curvature(lengths, None)
        return FittedSplitTangent(
            problem.X, problem.Y, problem.n_jobs, curvature, placer.tangent_dim
        )


def _curvature(problem: Problem, sample: np.ndarray, k: int) -> float:
    """Return the paper's c: the user's, or the one typical of the sampled neighbourhoods."""
    if problem.curvature is not None:
        return problem.curvature
    neighbors, lengths = problem.left_out(sample, k).framed
    spread = image_frames(problem.Y, neighbors, lengths, problem.n_jobs).spread
    return typical_curvature(lengths, spread)


def typical_curvature(lengths: np.ndarray, spread: np.ndarray | None) -> float:
    """Return the c for which the terms of Eq. 4.5 are equal at a typical neighbourhood's edge.

    ``(R / c)^4 = R^2 s^2``, R (q,) the length of a neighbourhood and s its mean square spread
    (q, d), None for 1; the median over neighbourhoods. 1 if the map has no spread: any c gives the
    same weights.

    >>> typical_curvature(np.array([4.0]), np.array([[1.0, 1.0]]))
    2.0
    """
    scale = np.ones_like(lengths)
    if spread is not None:
        largest = spread.max(axis=1)
        safe = np.where(largest > 0, largest, 1.0)
        scale = largest * np.sqrt(((spread / safe[:, None]) ** 2).mean(axis=1))
    has_spread = (scale > 0) & (lengths > 0)
    if not has_spread.any():
        return 1.0
    return float(np.median(np.sqrt(lengths[has_spread]) / np.sqrt(scale[has_spread])))


@dataclass(frozen=True, eq=False)
class FittedTangent(LeastSquares):
    """Eq. 4.5 with the frame of each query."""

    curvature: float

    def weights(self, neighborhoods: Neighborhoods) -> Weights:
        """Return the weights of the neighbours."""
        frames = image_frames(self.Y, *neighborhoods.framed, self.n_jobs)
        return _tangent_weights(neighborhoods.near, frames, False, self.curvature, self.n_jobs)


@dataclass(frozen=True, eq=False)
class FittedLocalTangent(LeastSquares):
    """Eq. 4.5 with the frames of the training points."""

    curvature: float
    frames: Frames

    def weights(self, neighborhoods: Neighborhoods) -> Weights:
        """Return the weights of the neighbours."""
        return _tangent_weights(neighborhoods.near, self.frames, True, self.curvature, self.n_jobs)

    def regrow(self, X: Points, Y: np.ndarray, frames: Iterator[Frames]) -> Self:
        """Return the weighting over other points, with the next of the frames."""
        return replace(self, X=X, Y=Y, frames=next(frames))

    def kept_frames(self) -> list[Frames]:
        """Return the frames of the points."""
        return [self.frames]

    def new_frames(self, neighborhoods: Neighborhoods) -> list[Frames]:
        """Return frames of points to learn, from the images of their neighbours."""
        return [image_frames(self.Y, *neighborhoods.framed, self.n_jobs)]


@dataclass(frozen=True, eq=False)
class FittedSplitTangent(LeastSquares):
    """Section 4.2: the first ``tangent_dim`` axes of a query's frame span the tangent."""

    curvature: float
    tangent_dim: int

    def weights(self, neighborhoods: Neighborhoods) -> Weights:
        """Return the weights of the neighbours."""
        neighbors = neighborhoods.near
        frames = image_frames(self.Y, *neighborhoods.framed, self.n_jobs)
        deviations, exponent = empty_weights(neighbors, frames.spread.shape[1])
        over_rows(
            kernels.split_deviations, len(exponent), self.n_jobs, neighbors.indptr,
            neighbors.distances, self.tangent_dim, self.curvature, deviations, exponent,
        )  # fmt: skip
        return Weights(deviations, exponent, frames.axes, False)


def _tangent_weights(
    neighbors: Neighbors, frames: Frames, per_point: bool, curvature: float, n_jobs: int | None
) -> Weights:
    deviations, exponent = empty_weights(neighbors, frames.spread.shape[1])
    over_rows(
        kernels.tangent_deviations, len(exponent), n_jobs, neighbors.indptr, neighbors.indices,
        neighbors.distances, frames.spread, per_point, curvature, deviations, exponent,
    )  # fmt: skip
    return Weights(deviations, exponent, frames.axes, per_point)
