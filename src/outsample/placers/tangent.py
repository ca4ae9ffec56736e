"""Weightings that know the directions of the map around a point: Eq. 4.5 and its relatives."""

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
from outsample.placers.protocol import Arrays
from outsample.placers.weighting import IndependentErrors, empty_weights
from outsample.points import Points
from outsample.records import Frames, Weights

if TYPE_CHECKING:
    from outsample.placers.problem import Problem


@dataclass(frozen=True)
class Tangent(IndependentErrors):
    """``w_j = (r_j^2 C + (r_j / c)^4 I)^-1`` with one C a query (Eq. 4.5)."""

    def fit(self, problem: Problem, sample: np.ndarray, placer: Any) -> FittedTangent:
        """Learn c."""
        curvature = _curvature(problem, sample, placer.n_neighbors)
        return FittedTangent(problem.X, problem.Y, problem.n_jobs, curvature)


@dataclass(frozen=True)
class LocalTangent(IndependentErrors):
    """``w_j = (r_j^2 C_j + (r_j / c)^4 I)^-1``, C_j of the training point itself (Table 7.1)."""

    def fit(self, problem: Problem, sample: np.ndarray, placer: Any) -> FittedLocalTangent:
        """Learn c, and the frame of every training point."""
        curvature = _curvature(problem, sample, placer.n_neighbors)
        frames = problem.frames(placer.n_neighbors)
        return FittedLocalTangent(problem.X, problem.Y, problem.n_jobs, curvature, frames)


@dataclass(frozen=True)
class SplitTangent(IndependentErrors):
    """``r_j^-2`` along the tangent, ``(c / r_j)^4`` across it (Section 4.2, unnumbered)."""

    def fit(self, problem: Problem, sample: np.ndarray, placer: Any) -> FittedSplitTangent:
        """Learn c; the tangent has the dimension of the placer's."""
        curvature = problem.curvature
        if curvature is None:
            lengths = problem.left_out(sample, placer.n_neighbors).framed[1]
            curvature = typical_curvature(lengths, None)
        return FittedSplitTangent(
            problem.X, problem.Y, problem.n_jobs, curvature, placer.tangent_dim
        )


def _curvature(problem: Problem, sample: np.ndarray, k: int) -> float:
    """Return the paper's c: given, or typical of the neighbourhoods of some rows."""
    if problem.curvature is not None:
        return problem.curvature
    framed, lengths = problem.left_out(sample, k).framed
    spread = image_frames(problem.Y, framed, lengths, problem.n_jobs).spread
    return typical_curvature(lengths, spread)


def typical_curvature(lengths: np.ndarray, spread: np.ndarray | None) -> float:
    """Find the c at which the terms of Eq. 4.5 are equal at a typical neighbourhood's edge.

    ``(R / c)^4 = R^2 s^2``, R (q,) the length of a neighbourhood and s its mean square spread
    (q, d), None for 1; the median. 1 where the map has no spread: any c gives the same weights.

    >>> typical_curvature(np.array([4.0]), np.array([[1.0, 1.0]]))
    2.0
    """
    scale = np.ones_like(lengths)
    if spread is not None:
        largest = spread.max(axis=1)
        safe = np.where(largest > 0, largest, 1.0)
        scale = largest * np.sqrt(((spread / safe[:, None]) ** 2).mean(axis=1))
    useful = (scale > 0) & (lengths > 0)
    if not useful.any():
        return 1.0
    return float(np.median(np.sqrt(lengths[useful]) / np.sqrt(scale[useful])))


@dataclass(frozen=True, eq=False)
class FittedTangent(LeastSquares):
    """Eq. 4.5 with the frame of each query."""

    curvature: float

    def weights(self, near: Neighborhoods) -> Weights:
        """Weights of the neighbours."""
        frames = image_frames(self.Y, *near.framed, self.n_jobs)
        return _tangent_weights(near, frames, False, self.curvature, self.n_jobs)

    def arrays(self) -> Arrays:
        """Return the paper's c."""
        return {"curvature": np.array(self.curvature)}


@dataclass(frozen=True, eq=False)
class FittedLocalTangent(LeastSquares):
    """Eq. 4.5 with the frames of the training points."""

    curvature: float
    frames: Frames

    def weights(self, near: Neighborhoods) -> Weights:
        """Weights of the neighbours."""
        return _tangent_weights(near, self.frames, True, self.curvature, self.n_jobs)

    def regrow(self, X: Points, Y: np.ndarray, frames: Iterator[Frames]) -> Self:
        """Return the weighting over other points, with the next of the frames."""
        return replace(self, X=X, Y=Y, frames=next(frames))

    def kept_frames(self) -> list[Frames]:
        """Return the frames of the points."""
        return [self.frames]

    def new_frames(self, near: Neighborhoods) -> list[Frames]:
        """Return frames of points to learn: those of their neighbours."""
        return [image_frames(self.Y, *near.framed, self.n_jobs)]

    def arrays(self) -> Arrays:
        """Return the paper's c and the frames."""
        return {"curvature": np.array(self.curvature), **self.frames._asdict()}


@dataclass(frozen=True, eq=False)
class FittedSplitTangent(LeastSquares):
    """Section 4.2: the first ``tangent_dim`` axes of a query's frame span the tangent."""

    curvature: float
    tangent_dim: int

    def weights(self, near: Neighborhoods) -> Weights:
        """Weights of the neighbours."""
        found, frames = near.near, image_frames(self.Y, *near.framed, self.n_jobs)
        deviations, exponent = empty_weights(found, frames.spread.shape[1])
        over_rows(
            kernels.split_deviations, len(exponent), self.n_jobs, found.indptr, found.distances,
            self.tangent_dim, self.curvature, deviations, exponent,
        )  # fmt: skip
        return Weights(deviations, exponent, frames.axes, False)

    def arrays(self) -> Arrays:
        """Return the paper's c."""
        return {"curvature": np.array(self.curvature)}


def _tangent_weights(
    near: Neighborhoods, frames: Frames, per_point: bool, curvature: float, n_jobs: int | None
) -> Weights:
    found = near.near
    deviations, exponent = empty_weights(found, frames.spread.shape[1])
    over_rows(
        kernels.tangent_deviations, len(exponent), n_jobs, found.indptr, found.indices,
        found.distances, frames.spread, per_point, curvature, deviations, exponent,
    )  # fmt: skip
    return Weights(deviations, exponent, frames.axes, per_point)
