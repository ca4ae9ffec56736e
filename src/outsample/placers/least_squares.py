"""Generalized least squares over the neighbours' images (Section 2.1), independent errors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from outsample._compiled import absolute, polynomial
from outsample._compiled import gls as kernels
from outsample._parallel import over_rows
from outsample.neighbors.neighborhoods import Neighborhoods
from outsample.points import Points
from outsample.records import Frames, Neighbors, Weights


@dataclass(frozen=True, eq=False)
class FittedWeighting(ABC):
    """A weighting of training points X with images Y; subclasses add their constants."""

    X: Points
    Y: np.ndarray
    n_jobs: int | None

    @abstractmethod
    def weights(self, neighborhoods: Neighborhoods) -> Weights:
        """Return the weights of the neighbours."""

    @abstractmethod
    def solve(
        self, placer: Any, Q: Points, neighborhoods: Neighborhoods, weights: Weights
    ) -> np.ndarray:
        """Return coordinates (q, d) by the order and loss of the placer."""

    def regrow(self, X: Points, Y: np.ndarray, frames: Iterator[Frames]) -> Self:
        """Return the weighting over other points, with the same constants."""
        return replace(self, X=X, Y=Y)

    def kept_frames(self) -> list[Frames]:
        """Return the frames of the points if it keeps them, as a list of one."""
        return []

    def new_frames(self, neighborhoods: Neighborhoods) -> list[Frames]:
        """Return frames of points to learn, if it keeps frames."""
        return []


@dataclass(frozen=True, eq=False)
class LeastSquares(FittedWeighting):
    """Fitted weightings with one block ``w_j`` per neighbour."""

    def solve(
        self, placer: Any, Q: Points, neighborhoods: Neighborhoods, weights: Weights
    ) -> np.ndarray:
        """Return coordinates (q, d) by the order and loss of the placer."""
        if placer.order > 0:
            return self._polynomial(placer, Q, neighborhoods, weights)
        solver = median if placer.loss == "absolute" else mean
        return solver(self.Y, neighborhoods.near, weights, self.n_jobs)

    def _polynomial(
        self, placer: Any, Q: np.ndarray, neighborhoods: Neighborhoods, weights: Weights
    ) -> np.ndarray:
        """Return the value at each query of a weighted polynomial fit in tangent coordinates.

        Moving least squares: Eq. 2.5 with the polynomial ``p(V'(x_j - x))`` in place of the
        constant, V the local PCA frame of the neighbours in the ambient space.
        """
        neighbors = neighborhoods.near
        coordinates = np.empty((Q.shape[0], self.Y.shape[1]))
        over_rows(
            polynomial.solve_polynomial, Q.shape[0], self.n_jobs, self.X, Q, self.Y,
            neighbors.indptr, neighbors.indices, neighbors.distances, *_blocks(weights),
            neighborhoods.reach, placer.order, min(placer.tangent_dim, self.X.shape[1]),
            placer.loss == "absolute", coordinates,
        )  # fmt: skip
        return coordinates


def mean(
    Y: np.ndarray, neighbors: Neighbors, weights: Weights, n_jobs: int | None = None
) -> np.ndarray:
    """Return ``(sum_j w_j)^-1 sum_j w_j psi(x_j)`` (q, d) (Eq. 2.8 in the form of Eq. 5.3)."""
    coordinates = np.empty((len(neighbors.inside), Y.shape[1]))
    kernel = kernels.solve_per_point if weights.per_point else kernels.solve_shared
    over_rows(
        kernel, len(coordinates), n_jobs, Y, neighbors.indptr, neighbors.indices,
        weights.deviations, weights.axes, coordinates,
    )  # fmt: skip
    return coordinates


def median(
    Y: np.ndarray, neighbors: Neighbors, weights: Weights, n_jobs: int | None = None
) -> np.ndarray:
    """Return weighted geometric medians (q, d), which minimise ``sum_j sqrt(e_j' w_j e_j)``."""
    coordinates = mean(Y, neighbors, weights, n_jobs)
    over_rows(
        absolute.solve_absolute, len(coordinates), n_jobs, Y, neighbors.indptr, neighbors.indices,
        *_blocks(weights), coordinates,
    )  # fmt: skip
    return coordinates


def _blocks(weights: Weights) -> tuple[np.ndarray, np.ndarray, bool]:
    return weights.deviations, weights.axes, weights.per_point
