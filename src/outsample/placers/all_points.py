"""Placers over all training points at once: what they share, and their Cholesky factors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.linalg import cho_factor, lapack, solve_triangular

from outsample.kernel import affinity
from outsample.neighbors.neighborhoods import Neighborhoods
from outsample.placers.growth import OriginalMapMixin
from outsample.placers.protocol import ModelFamily
from outsample.placers.weighting import power_weights
from outsample.points import Points, largest_entry
from outsample.records import Weights

if TYPE_CHECKING:
    from outsample.placers.problem import Part, Problem

# Training sets up to this size are factored as a whole: the memory is its square. Beyond it there
# are two levels.
MAX_FACTORED_ROWS = 8192

# Distances below this have lost digits, too many for a kernel to be positive definite; they are
# taken of points times a power of two.
COARSE = 1e-290
LIFT = 2.0**900


class AllPointsPlacer:
    """A placer that takes all training points at once: one constant, least squares."""

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
        """Covariance, length and nugget of `TwoLevels` for many points; None if there is none."""
        return None

    def cost_microseconds(self, n: int, D: int) -> float:
        """One pass over the training points."""
        return 0.0008 * n * (D + 10)

    def family(self) -> ModelFamily:
        """Return itself."""
        return ModelFamily(all_points=(self,))  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class FittedAllPoints(OriginalMapMixin):
    """What is left out comes in closed form, for the sample (s, d) that was given to ``fit``."""

    placer: Any
    X: Points
    Y: np.ndarray
    n_jobs: int | None
    left_out: np.ndarray

    def leave_out(self, rows: np.ndarray, near: Neighborhoods | None) -> np.ndarray:
        """Coordinates of the sample that was given to ``fit``."""
        return self.left_out

    def weights(self, near: Neighborhoods) -> Weights:
        """Eq. 4.3, for the scores: the placer has no weights of its own."""
        return power_weights(near.near, 2.0, self.n_jobs)


def distances_in(problem: Problem | Part, unit: float) -> np.ndarray:
    """Distances (n, n) of all training points in a unit, in an array of the caller's own."""
    if unit > COARSE or largest_entry(problem.X) > 1 / COARSE / LIFT:
        apart = problem.distances()
    else:
        apart = affinity.distances(problem.X * LIFT, n_jobs=problem.n_jobs)
        unit *= LIFT
    apart /= unit
    return apart


def regular_factor(
    matrix: Callable[[], np.ndarray], ridge: Callable[[float, float], float], steps: Iterable[float]
) -> np.ndarray | None:
    """Lower Cholesky factor (n, n) with the first ridge that suffices; None if none does.

    ``ridge(step, corner)`` is added to the diagonal. ``matrix`` makes the matrix anew for each
    attempt: a failed one leaves it overwritten.
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
    """Entries (s,) on the diagonal of the inverse of the matrix with this Cholesky factor.

    Sums of squares of columns of the factor's inverse: all of them cost a third of as many solves.
    """
    if 3 * len(rows) > len(lower):
        half = lapack.dtrtri(lower, lower=1)[0]
        np.multiply(half, half, out=half)
        return np.array([half[row:, row].sum() for row in rows])
    chosen = np.zeros((len(lower), len(rows)))
    chosen[rows, np.arange(len(rows))] = 1.0
    half = solve_triangular(lower, chosen, lower=True, check_finite=False, overwrite_b=True)
    return (half**2).sum(axis=0)
