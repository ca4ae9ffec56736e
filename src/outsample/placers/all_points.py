"""All-points models, which use every training point: their common parts and Cholesky factors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.linalg import cho_factor, lapack, solve_triangular

from outsample.neighbors.neighborhoods import Neighborhoods
from outsample.placers.growth import OriginalMapMixin
from outsample.placers.protocol import ModelFamily
from outsample.placers.weighting import power_weights
from outsample.points import Points, largest_entry
from outsample.records import Weights
from outsample.spectral import affinity

if TYPE_CHECKING:
    from outsample.placers.problem import Part, Problem

# Training sets up to this size are factored as a whole: the memory is its square. Larger ones use
# landmarks (`two_levels`).
MAX_FACTORED_ROWS = 8192

# Distances below this have lost too many digits for a kernel to be positive definite; they are
# computed from points times a power of two.
MIN_EXACT_DISTANCE = 1e-290
LIFT = 2.0**900


class AllPointsPlacer:
    """A model of all training points: one constant, least squares."""

    n_neighbors: ClassVar[None] = None
    order: ClassVar[int] = 0
    loss: ClassVar[str] = "squared"
    tangent_dim: ClassVar[int] = 1
    uses_all_points: ClassVar[bool] = True
    prefers_wide_neighborhoods: ClassVar[bool] = False

    def __str__(self) -> str:
        return f"{self!r}, all points"

    @property
    def first_level(self) -> tuple[str, float, float] | None:
        """Covariance, length and nugget of the `TwoLevels` model for many points, if any."""
        return None

    def cost_microseconds(self, n: int, D: int) -> float:
        """Return the cost of one pass over the training points."""
        return 0.0008 * n * (D + 10)

    def family(self) -> ModelFamily:
        """Return the family of this model alone."""
        return ModelFamily(all_points=(self,))  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class FittedAllPoints(OriginalMapMixin):
    """Leave-one-out coordinates (s, d) are in closed form, for the sample given to ``fit``."""

    placer: Any
    X: Points
    Y: np.ndarray
    n_jobs: int | None
    left_out: np.ndarray

    def leave_out(self, rows: np.ndarray, near: Neighborhoods | None) -> np.ndarray:
        """Return the coordinates of the sample that was given to ``fit``."""
        return self.left_out

    def weights(self, near: Neighborhoods) -> Weights:
        """Return the weights of Eq. 4.3, for the scores: the model has no weights of its own."""
        return power_weights(near.near, 2.0, self.n_jobs)


def distances_in(problem: Problem | Part, unit: float) -> np.ndarray:
    """Return distances (n, n) of all training points in a unit, as a new array."""
    if unit > MIN_EXACT_DISTANCE or largest_entry(problem.X) > 1 / MIN_EXACT_DISTANCE / LIFT:
        distances = problem.distances()
    else:
        distances = affinity.distances(problem.X * LIFT, n_jobs=problem.n_jobs)
        unit *= LIFT
    distances /= unit
    return distances


def regular_factor(
    matrix: Callable[[], np.ndarray], ridge: Callable[[float, float], float], steps: Iterable[float]
) -> np.ndarray | None:
    """Return the lower Cholesky factor (n, n) with the first ridge that suffices, if any.

    ``ridge(step, corner)`` is added to the diagonal. ``matrix`` returns a new matrix for each
    attempt, because a failed attempt overwrites it.
    """
    for step in steps:
        ridged = matrix()
        ridged[np.diag_indices_from(ridged)] += ridge(step, float(ridged[0, 0]))
        try:
            return cho_factor(ridged, lower=True, overwrite_a=True, check_finite=False)[0]
        except np.linalg.LinAlgError:
            continue
    return None


def inverse_diagonal(lower: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return diagonal entries (s,) of the inverse of the matrix with this Cholesky factor.

    They are sums of squares of columns of the factor's inverse; inverting the whole factor costs a
    third of as many solves.
    """
    if 3 * len(rows) > len(lower):
        half = lapack.dtrtri(lower, lower=1)[0]
        np.multiply(half, half, out=half)
        return np.array([half[row:, row].sum() for row in rows])
    unit_columns = np.zeros((len(lower), len(rows)))
    unit_columns[rows, np.arange(len(rows))] = 1.0
    half = solve_triangular(lower, unit_columns, lower=True, check_finite=False, overwrite_b=True)
    return (half**2).sum(axis=0)
