"""Placing a point where it adds least to the loss of a neighbour embedding, all others fixed.

The leave-one-out map of t-SNE (Liu, Ma and Zhong 2025): one more point hardly moves the others, so
it goes where its own terms of the loss are least, drawn to the images of its neighbours and driven
away from all images. Written down from the loss of t-SNE (van der Maaten and Hinton 2008).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from outsample._compiled import neighbor_loss as kernels
from outsample._parallel import over_rows
from outsample._validation import check_number
from outsample.neighbors.neighborhoods import Neighborhoods
from outsample.placers.all_points import MAX_FACTORED_ROWS
from outsample.placers.growth import OriginalMapMixin
from outsample.placers.protocol import Arrays, ModelFamily
from outsample.placers.repulsion_field import NO_FIELD, RepulsionField, repulsion_field
from outsample.placers.weighting import power_weights
from outsample.points import Points
from outsample.records import Weights

if TYPE_CHECKING:
    from outsample.placers.problem import Problem

# Rows whose 15th nearest image tells the unit of the map.
UNIT_ROWS = 200
UNIT_IMAGE = 15


@dataclass(frozen=True)
class NeighborLoss:
    """Places a point at the least ``sum_j p_j log(1 + |y - y_j|^2 / c^2) + (n / Z) sum_j w_j``.

    p are Gaussian shares of its neighbours with a perplexity, ``w_j = 1 / (1 + |y - y_j|^2 / c^2)``
    over all images, Z the sum of w over all pairs of these. A training point keeps its image.
    The sum over more than 8192 images of a plane map is read from a grid that is filled in `fit`
    (`repulsion_field`); up to there, and in other dimensions, it is exact.

    Attributes
    ----------
    perplexity : float
        How many neighbours count; three times as many are asked for.
    length : float
        ``c``, in units of the typical distance of an image to the 15th nearest: 1 / c is about 3 to
        4 of them in a map by t-SNE, of any size.

    Examples
    --------
    >>> from outsample import NeighborLoss, PCAExtension
    >>> tsne = PCAExtension(weighting=NeighborLoss())
    """

    perplexity: float = 20.0
    length: float = 0.3

    order: ClassVar[int] = 0
    loss: ClassVar[str] = "logarithmic"
    tangent_dim: ClassVar[int] = 1
    uses_all_points: ClassVar[bool] = True
    prefers_wide_neighborhoods: ClassVar[bool] = False

    def __str__(self) -> str:
        return f"{self!r}, {self.n_neighbors} neighbours"

    @property
    def n_neighbors(self) -> int:
        """Three times the perplexity."""
        return max(1, round(3 * self.perplexity))

    @property
    def weighting(self) -> NeighborLoss:
        """What `PCAExtension` takes as ``weighting`` to get this placer."""
        return self

    def check(self) -> None:
        """Refuse parameters outside their range."""
        check_number("weighting.perplexity", self.perplexity, 0, np.inf, open_below=True)
        check_number("weighting.length", self.length, 0, np.inf, open_below=True)

    def family(self) -> ModelFamily:
        """Return itself."""
        return ModelFamily(fixed=self)

    def cost_microseconds(self, n: int, D: int) -> float:
        """Pass over the training points some times, or read the field of many."""
        return 50 + (0.04 * n if n <= MAX_FACTORED_ROWS else 0)

    def fit(self, problem: Problem, sample: np.ndarray) -> FittedNeighborLoss:
        """Learn the unit of the map, and how close all images are to each."""
        Y = problem.Y
        center = Y.mean(axis=0)
        unit = self.length * _image_unit(Y, problem.sample(UNIT_ROWS))
        Z = np.ascontiguousarray((Y - center) / unit)
        field = repulsion_field(Z) if len(Y) > MAX_FACTORED_ROWS and Y.shape[1] == 2 else None
        crowd = np.empty(len(Y))
        over_rows(kernels.closenesses, len(Y), problem.n_jobs, Z, *_grid(field), crowd)
        return FittedNeighborLoss(self, problem.X, Y, problem.n_jobs, Z, unit, crowd, field)


def _grid(field: RepulsionField | None) -> tuple[np.ndarray, float, np.ndarray]:
    """Return what kernels take of the field."""
    field = field or NO_FIELD
    return field.corner, field.step, field.coefficients


def _image_unit(Y: np.ndarray, rows: np.ndarray) -> float:
    """Median distance of images of some rows to the 15th nearest of all; never 0."""
    largest = np.abs(Y - Y.mean(axis=0)).max() or 1.0
    Z = Y / largest
    at = min(UNIT_IMAGE, len(Y) - 1)
    found = [np.partition(((Z - Z[row]) ** 2).sum(axis=1), at)[at] for row in rows]
    units = np.sqrt(found)
    return float(np.median(units[units > 0]) * largest) if (units > 0).any() else float(largest)


@dataclass(frozen=True, eq=False)
class FittedNeighborLoss(OriginalMapMixin):
    """Images Z (n, d) in units of c around their mean, and their closeness to all others (n,).

    The field is that of the closeness to all images, where these are many.
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
        self, Q: Points, near: Neighborhoods | None, weights: Weights | None = None
    ) -> np.ndarray:
        """Coordinates (q, d) of queries."""
        assert near is not None
        if weights is None:
            weights = self.weights(near)
        found, q = near.near, Q.shape[0]
        own = np.full(q, -1) if near.held_out is None else near.held_out
        push = len(self.Y) / (self.crowd.sum() or 1.0)
        coordinates = np.empty((q, self.Y.shape[1]))
        over_rows(
            kernels.solve_neighbor_loss, q, self.n_jobs, self.Z, self.Y, found.indptr,
            found.indices, found.distances, weights.deviations, own, self.crowd,
            float(self.placer.perplexity), push, self.unit, *_grid(self.field), coordinates,
        )  # fmt: skip
        return coordinates

    def leave_out(self, rows: np.ndarray, near: Neighborhoods | None) -> np.ndarray:
        """Coordinates (s, d) of training rows, which the neighbourhoods know to be held out."""
        return self.place(self.X[rows], near)

    def weights(self, near: Neighborhoods) -> Weights:
        """Eq. 4.3, for the scores; it also tells which neighbours coincide with a query."""
        return power_weights(near.near, 2.0, self.n_jobs)

    def arrays(self) -> Arrays:
        """Length scale of the map, and how close the images are to one another."""
        learnt = {"unit": np.array(self.unit), "crowd": self.crowd}
        return learnt if self.field is None else learnt | {"field": self.field.coefficients}
