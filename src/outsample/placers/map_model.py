"""A map that has been learnt: what runs when new points are placed into it.

One search, the fitted placer and its quality estimator; everything else reads their results.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from outsample.neighbors.duplicates import LeftOutDuplicates
from outsample.neighbors.neighborhoods import Neighborhoods, Search
from outsample.placers.candidates import Constraints
from outsample.placers.problem import UNIT_NEIGHBOR, WIDE, Problem
from outsample.placers.protocol import FittedPlacer
from outsample.placers.selection import Selection, select_model
from outsample.points import Points
from outsample.records import Placement, Weights
from outsample.trust.bounds import lipschitz_estimates
from outsample.trust.error_bars import calibrated_bars, lengths
from outsample.trust.error_scale import SIZES, lengths_around
from outsample.trust.quality import QualityEstimator

# The Lipschitz constant looks at no fewer neighbours than this.
LIPSCHITZ_NEIGHBORS = 10


class Solved(NamedTuple):
    """Placed queries: their neighbourhoods, the weights in these, coordinates (q, d)."""

    near: Neighborhoods
    weights: Weights
    coordinates: np.ndarray


class MapModel(NamedTuple):
    """How neighbours are found, how points are placed by them, and how that is judged."""

    search: Search
    fitted: FittedPlacer
    quality: QualityEstimator
    n_jobs: int | None

    def transform(self, X: Points) -> np.ndarray:
        """Coordinates (q, d), and nothing else; a placer over all points needs no search."""
        k = self.fitted.placer.n_neighbors
        return self.fitted.place(X, None if k is None else self.search.around(X, k))

    def place(self, X: Points, dtype: np.dtype) -> Placement:
        """Coordinates, in the type they are handed out in, and how far to trust them."""
        return self.judged(X, self.solve(X), dtype)

    def around(self, X: Points, at_least: int = 0) -> Neighborhoods:
        """Neighbourhoods that points are placed by; ``wide`` has ``at_least`` neighbours.

        A placer over all points is judged by its nearest ones. Error bars look at fifteen; one more
        tells whether the last is tied with it.
        """
        k = self.fitted.placer.n_neighbors or min(len(self.quality.Y), UNIT_NEIGHBOR)
        return self.search.around(X, k, at_least=max(at_least, SIZES[-1] + 1))

    def solve(self, X: Points, at_least: int = 0) -> Solved:
        """Coordinates with what they came from; as many neighbours as `around` finds."""
        near = self.around(X, at_least)
        weights = self.fitted.weights(near)
        return Solved(near, weights, self.fitted.place(X, near, weights))

    def left_out(self, rows: np.ndarray) -> Neighborhoods:
        """Return neighbourhoods of training rows without themselves, as in leave-one-out."""
        k = self.fitted.placer.n_neighbors or min(len(self.quality.Y) - 1, UNIT_NEIGHBOR)
        return self.search.around(self.search.index.X[rows], k, rows)

    def judged(
        self, X: Points, solved: Solved, dtype: np.dtype, given: Neighborhoods | None = None
    ) -> Placement:
        """How far to trust what `solve` found; by ``given`` neighbours, if some images are not."""
        near, weights, coordinates = solved
        given = given or near
        closest = given.closest(SIZES[-1])
        return self.quality.assess(
            X, near.near, given.near, closest, weights, coordinates, dtype, self.n_jobs
        )


def learn(
    problem: Problem, constraints: Constraints, lipschitz: float | None, level: float,
    copies: LeftOutDuplicates,
) -> tuple[MapModel, Selection]:  # fmt: skip
    """Select a model and calibrate its quality estimator; a ``lipschitz`` of None is estimated."""
    selection = select_model(problem, constraints)
    rows, _, coordinates = selection.left_out
    Y, n_jobs, most = problem.Y, problem.n_jobs, SIZES[-1]
    # Never of fewer rows than these, and one more for the row itself.
    k = 1 + max(min(selection.fitted.placer.n_neighbors or WIDE, WIDE), LIPSCHITZ_NEIGHBORS)
    slopes = lipschitz_estimates(Y, rows, problem.nearest(rows, k), n_jobs)
    errors = lengths(coordinates - Y[rows])
    closest = problem.left_out(rows, min(most, problem.n - 1)).closest(most)
    around = lengths_around(Y, closest, coordinates, n_jobs)
    if copies.share > 0:  # rows with copies see these: as many of them as there are among all
        alone = ~copies.has_duplicates[rows]
        part = copies.share / max(1 - copies.share, 1e-9) * alone.sum() if alone.any() else np.inf
        some = slice(max(int(np.ceil(min(part, len(copies.errors)))), 1))
        beside = problem.search.around(problem.X[copies.points[some]], most, at_least=most + 1)
        held = lengths_around(Y, beside.closest(most), copies.images[some], n_jobs)
        errors = np.r_[errors[alone], copies.errors[some]]
        around = np.r_[around[alone], held]
    columns = np.ascontiguousarray(Y.T)  # down the rows of Y, a range takes ten times as long
    widest = float(lengths(np.ptp(columns, axis=1)[None])[0])
    bars = calibrated_bars(errors, around, slopes, widest, level, n_jobs)
    slope = float(slopes.max()) if lipschitz is None else lipschitz
    quality = QualityEstimator(problem.X, Y, bars, slope, problem.dimension)
    return MapModel(problem.search, selection.fitted, quality, n_jobs), selection
