"""Placing a point where it adds least to the loss of a neighbour embedding with all others fixed.

The leave-one-out map of t-SNE (Liu, Ma and Zhong 2025): an additional point hardly moves the
others, so its position minimises its own terms of the loss, attracted by the images of its
neighbours and repelled by all images. Derived from the loss of t-SNE (van der Maaten and Hinton
2008).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from outsample._compiled import neighbor_loss as kernels
from outsample._parallel import over_rows
from outsample._validation import check_number
from outsample.neighbors.neighborhoods import Neighborhoods
from outsample.placers.all_points import MAX_FACTORED_ROWS, AllPointsPlacer, OriginalMapMixin
from outsample.placers.repulsion_field import NO_FIELD, RepulsionField, repulsion_field
from outsample.points import Points
from outsample.records import Weights

if TYPE_CHECKING:
    from outsample.placers.problem import Problem

# The unit of the map is the median distance of this many images to this nearest image.
SAMPLED_IMAGES = 200
UNIT_IMAGE = 15


@dataclass(frozen=True)
class NeighborLoss(AllPointsPlacer):
    """Minimises ``sum_j p_j log(1 + |y - y_j|^2 / c^2) + (n / Z) sum_j w_j`` over y.

    p are Gaussian probabilities of the neighbours with a perplexity, and ``w_j = 1 / (1 + |y -
    y_j|^2 / c^2)`` for all images, Z the sum of w over all pairs of images. A training point keeps
    its image. The sum over more than 8192 images of a 2-D map is interpolated from a grid that
    `fit` fills (`repulsion_field`); for fewer images, and in other dimensions, it is exact.

    Attributes
    ----------
    perplexity : float
        Effective number of neighbours; three times as many are searched.
    length : float
        ``c``, in units of the typical distance of an image to the 15th nearest. In maps by t-SNE of
        any size, this distance is 3 to 4 times c.

    Examples
    --------
    >>> from outsample import NeighborLoss, PCAExtension
    >>> tsne = PCAExtension(weighting=NeighborLoss())
    """

    perplexity: float = 20.0
    length: float = 0.3

    loss: ClassVar[str] = "logarithmic"

    def __str__(self) -> str:
        return f"{self!r}, {self.n_neighbors} neighbours"

    @property
    def n_neighbors(self) -> int:
        """Three times the perplexity."""
        return max(1, round(3 * self.perplexity))

    @property
    def weighting(self) -> NeighborLoss:
        """Value of the parameter ``weighting`` of `PCAExtension` that gives this placer."""
        return self

    def check(self) -> None:
        """Raise ValueError for a parameter outside its range."""
        check_number("weighting.perplexity", self.perplexity, 0, np.inf, open_below=True)
        check_number("weighting.length", self.length, 0, np.inf, open_below=True)

    def cost_microseconds(self, n: int, D: int) -> float:
        """Return the cost of several passes over the images, or of the field of many images."""
        return 50 + (0.04 * n if n <= MAX_FACTORED_ROWS else 0)

    def fit(self, problem: Problem, sample: np.ndarray) -> FittedNeighborLoss:
        """Return the model with the unit of the map, and the closeness of each image to all."""
        Y = problem.Y
        center = Y.mean(axis=0)
        unit = self.length * _image_unit(Y, problem.sample(SAMPLED_IMAGES))
        Z = np.ascontiguousarray((Y - center) / unit)
        field = repulsion_field(Z) if len(Y) > MAX_FACTORED_ROWS and Y.shape[1] == 2 else None
        crowd = np.empty(len(Y))
        over_rows(kernels.closenesses, len(Y), problem.n_jobs, Z, *_grid(field), crowd)
        return FittedNeighborLoss(self, problem.X, Y, problem.n_jobs, Z, unit, crowd, field)


def _grid(field: RepulsionField | None) -> tuple[np.ndarray, float, np.ndarray]:
    """Return the arguments of kernels for a field, or for none."""
    field = field or NO_FIELD
    return field.corner, field.step, field.coefficients


def _image_unit(Y: np.ndarray, rows: np.ndarray) -> float:
    """Return the median distance of the images of rows to the 15th nearest image; never 0."""
    largest = np.abs(Y - Y.mean(axis=0)).max() or 1.0
    Z = Y / largest
    at = min(UNIT_IMAGE, len(Y) - 1)
    squares = [np.partition(((Z - Z[row]) ** 2).sum(axis=1), at)[at] for row in rows]
    units = np.sqrt(squares)
    return float(np.median(units[units > 0]) * largest) if (units > 0).any() else float(largest)


@dataclass(frozen=True, eq=False)
class FittedNeighborLoss(OriginalMapMixin):
    """Images Z (n, d) around their mean in units of c, and ``crowd``, their closeness to all (n,).

    With many images, ``field`` interpolates the closeness to all images.
    """

    placer: NeighborLoss
    X: Points
    Y: np.ndarray
    n_jobs: int | None
    Z: np.ndarray
    unit: float
    crowd: np.ndarray
    field: RepulsionField | None = None

    def place(
        self, Q: Points, neighborhoods: Neighborhoods | None, weights: Weights | None = None
    ) -> np.ndarray:
        """Return coordinates (q, d) of queries."""
        assert neighborhoods is not None
        if weights is None:
            weights = self.weights(neighborhoods)
        neighbors, q = neighborhoods.near, Q.shape[0]
        own = np.full(q, -1) if neighborhoods.held_out is None else neighborhoods.held_out
        push = len(self.Y) / (self.crowd.sum() or 1.0)
        coordinates = np.empty((q, self.Y.shape[1]))
        over_rows(
            kernels.solve_neighbor_loss, q, self.n_jobs, self.Z, self.Y, neighbors.indptr,
            neighbors.indices, neighbors.distances, weights.deviations, own, self.crowd,
            float(self.placer.perplexity), push, self.unit, *_grid(self.field), coordinates,
        )  # fmt: skip
        return coordinates

    def leave_out(self, rows: np.ndarray, neighborhoods: Neighborhoods | None) -> np.ndarray:
        """Return coordinates (s, d) of training rows, which the neighbourhoods hold out."""
        return self.place(self.X[rows], neighborhoods)
