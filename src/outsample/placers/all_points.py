"""Parts common to all-points models, which use every training point, and Cholesky factors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.linalg import cho_factor, lapack, solve_triangular

from outsample.neighbors.neighborhoods import Neighborhoods, Search
from outsample.placers.protocol import ModelFamily
from outsample.placers.weighting import power_weights
from outsample.points import Points, largest_entry
from outsample.records import Frames, Neighbors, Weights
from outsample.spectral import affinity

if TYPE_CHECKING:
    from outsample.placers.problem import Part, Problem
    from outsample.placers.protocol import FittedPlacer

# Training sets up to this size are factored as a whole: the memory is its square. Larger ones use
# landmarks (`two_levels`).
MAX_FACTORED_ROWS = 8192

# Distances below this have lost too many digits for a kernel to be positive definite; they are
# computed from points times a power of two.
MIN_EXACT_DISTANCE = 1e-290
LIFT = 2.0**900


class AllPointsPlacer:
    """A model of all training points: one constant, least squares."""

    order: ClassVar[int] = 0
    loss: ClassVar[str] = "squared"
    tangent_dim: ClassVar[int] = 1
    uses_all_points: ClassVar[bool] = True
    prefers_wide_neighborhoods: ClassVar[bool] = False

    def family(self) -> ModelFamily:
        """Return the family of this model alone."""
        return ModelFamily(fixed=self)  # type: ignore[arg-type]


class FactoredPlacer(AllPointsPlacer):
    """An all-points model that factors one matrix of all training points."""

    n_neighbors: ClassVar[None] = None

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
        """Return the family of this model, or of its landmark model if there are many points."""
        return ModelFamily(all_points=(self,))  # type: ignore[arg-type]


class OriginalMapMixin:
    """A fitted model that learned points do not change.

    It is a function of the original map, and the coordinates of learned points are its values,
    which would add nothing.
    """

    n_jobs: int | None
    curvature: ClassVar[None] = None

    def weights(self, neighborhoods: Neighborhoods) -> Weights:
        """Return the weights of Eq. 4.3, for the scores: the model has no weights of its own."""
        return power_weights(neighborhoods.near, 2.0, self.n_jobs)

    def weights_of_parts(
        self, neighborhoods: Neighborhoods
    ) -> Iterator[tuple[float, Neighbors, Weights]]:
        """Yield the model as the only part: weight 1, neighbours, and their weights."""
        yield 1.0, neighborhoods.near, self.weights(neighborhoods)

    def regrow(
        self: Any, originals: Search, X: Points, Y: np.ndarray, frames: Iterator[Frames]
    ) -> FittedPlacer:
        """Return a placer that continues with the original points."""
        return FromOriginals(self, originals, self.n_jobs)

    def kept_frames(self) -> list[Frames]:
        """Return no frames."""
        return []

    def new_frames(self, neighborhoods: Neighborhoods) -> list[Frames]:
        """Return no frames."""
        return []


@dataclass(frozen=True, eq=False)
class FromOriginals(OriginalMapMixin):
    """A fitted model that uses the original points only, by a search of its own."""

    fitted: FittedPlacer
    search: Search
    n_jobs: int | None

    @property
    def placer(self) -> Any:
        """The placer that was fitted."""
        return self.fitted.placer

    def place(
        self, Q: Points, neighborhoods: Neighborhoods | None, weights: Weights | None = None
    ) -> np.ndarray:
        """Return coordinates (q, d) of queries, by the original map."""
        k = self.placer.n_neighbors
        return self.fitted.place(Q, None if k is None else self.search.around(Q, k))

    def leave_out(self, rows: np.ndarray, neighborhoods: Neighborhoods | None) -> np.ndarray:
        """Return coordinates (s, d) of learned rows, which the original map does not contain."""
        assert neighborhoods is not None
        return self.place(neighborhoods.Q, neighborhoods)


@dataclass(frozen=True, eq=False)
class FittedAllPoints(OriginalMapMixin):
    """Leave-one-out coordinates (s, d) are in closed form, for the sample passed to ``fit``."""

    placer: Any
    X: Points
    Y: np.ndarray
    n_jobs: int | None
    left_out: np.ndarray

    def leave_out(self, rows: np.ndarray, neighborhoods: Neighborhoods | None) -> np.ndarray:
        """Return the coordinates of the sample that was passed to ``fit``."""
        return self.left_out


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
    matrix: Callable[[], np.ndarray],
    ridge: Callable[[float, float], float],
    steps: Iterable[float],
    failure: str,
) -> np.ndarray:
    """Return the lower Cholesky factor (n, n) with the first ridge that suffices.

    ``ridge(step, corner)`` is added to the diagonal. ``matrix`` returns a new matrix for each
    attempt, because a failed attempt overwrites it. ``failure`` is the text of the ValueError if
    all attempts fail.
    """
    for step in steps:
        ridged = matrix()
        ridged[np.diag_indices_from(ridged)] += ridge(step, float(ridged[0, 0]))
        try:
            return cho_factor(ridged, lower=True, overwrite_a=True, check_finite=False)[0]
        except np.linalg.LinAlgError:
            continue
    raise ValueError(failure)


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
