"""A fitted map: the search, the placer and the quality estimator that new points pass through."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from outsample.neighbors.duplicates import LeftOutDuplicates
from outsample.neighbors.neighborhoods import Neighborhoods, Search
from outsample.placers.candidates import Constraints
from outsample.placers.problem import UNIT_NEIGHBOR, WIDE_NEIGHBORS, Problem
from outsample.placers.protocol import FittedPlacer
from outsample.placers.selection import Selection, select_model
from outsample.points import Points
from outsample.records import Placement, Weights
from outsample.trust.bounds import lipschitz_estimates
from outsample.trust.error_bars import calibrated_bars, lengths
from outsample.trust.error_scale import SIZES, lengths_around
from outsample.trust.quality import QualityEstimator

# The Lipschitz constant is estimated from at least this many neighbours.
MIN_LIPSCHITZ_NEIGHBORS = 10


class Solved(NamedTuple):
    """Placed queries: their neighbourhoods, weights of the neighbours, coordinates (q, d)."""

    near: Neighborhoods
    weights: Weights
    coordinates: np.ndarray


class MapModel(NamedTuple):
    """A search for neighbours, a fitted placer, and the quality estimator of its placements."""

    search: Search
    fitted: FittedPlacer
    quality: QualityEstimator
    n_jobs: int | None

    def transform(self, X: Points) -> np.ndarray:
        """Return coordinates (q, d) only; an all-points model needs no search."""
        k = self.fitted.placer.n_neighbors
        return self.fitted.place(X, None if k is None else self.search.around(X, k))

    def place(self, X: Points, dtype: np.dtype) -> Placement:
        """Return coordinates in ``dtype``, with their quality."""
        return self.judged(X, self.solve(X), dtype)

    def around(self, X: Points, at_least: int = 0) -> Neighborhoods:
        """Return the neighbourhoods of points; ``wide`` has ``at_least`` neighbours.

        The scores of an all-points model use the nearest points. Error bars use fifteen
        neighbours, and the next one, which may be tied with the last.
        """
        k = self.fitted.placer.n_neighbors or min(len(self.quality.Y), UNIT_NEIGHBOR)
        return self.search.around(X, k, at_least=max(at_least, SIZES[-1] + 1))

    def solve(self, X: Points, at_least: int = 0) -> Solved:
        """Return coordinates, with the neighbourhoods of `around` and the weights in them."""
        neighborhoods = self.around(X, at_least)
        weights = self.fitted.weights(neighborhoods)
        return Solved(neighborhoods, weights, self.fitted.place(X, neighborhoods, weights))

    def left_out(self, rows: np.ndarray) -> Neighborhoods:
        """Return neighbourhoods of training rows without themselves, as in leave-one-out."""
        k = self.fitted.placer.n_neighbors or min(len(self.quality.Y) - 1, UNIT_NEIGHBOR)
        return self.search.around(self.search.index.X[rows], k, rows)

    def judged(
        self, X: Points, solved: Solved, dtype: np.dtype, originals: Neighborhoods | None = None
    ) -> Placement:
        """Return the placement of solved queries.

        Certificates and error bars use the ``originals``, neighbourhoods among the original
        points, if learned points are among the neighbours.
        """
        neighborhoods, weights, coordinates = solved
        originals = originals or neighborhoods
        closest = originals.closest(SIZES[-1])
        return self.quality.assess(
            X, neighborhoods.near, originals.near, closest, weights, coordinates, dtype,
            self.n_jobs,
        )  # fmt: skip


def learn(
    problem: Problem, constraints: Constraints, lipschitz: float | None, level: float,
    copies: LeftOutDuplicates,
) -> tuple[MapModel, Selection]:  # fmt: skip
    """Select a model and calibrate its quality estimator; a ``lipschitz`` of None is estimated."""
    selection = select_model(problem, constraints)
    rows, _, coordinates = selection.left_out
    Y, n_jobs, n_closest = problem.Y, problem.n_jobs, SIZES[-1]
    widest = min(selection.fitted.placer.n_neighbors or WIDE_NEIGHBORS, WIDE_NEIGHBORS)
    k = 1 + max(widest, MIN_LIPSCHITZ_NEIGHBORS)  # including the row itself
    slopes = lipschitz_estimates(Y, rows, problem.nearest(rows, k), n_jobs)
    errors = lengths(coordinates - Y[rows])
    closest = problem.left_out(rows, min(n_closest, problem.n - 1)).closest(n_closest)
    around = lengths_around(Y, closest, coordinates, n_jobs)
    if copies.share > 0:
        # A row with duplicates is placed by them. Their share among the calibration rows is made
        # equal to their share among all rows.
        is_single = ~copies.has_duplicates[rows]
        n_duplicates = np.inf
        if is_single.any():
            n_duplicates = copies.share / max(1 - copies.share, 1e-9) * is_single.sum()
        used = slice(max(int(np.ceil(min(n_duplicates, len(copies.errors)))), 1))
        neighborhoods = problem.search.around(
            problem.X[copies.points[used]], n_closest, at_least=n_closest + 1
        )
        closest = neighborhoods.closest(n_closest)
        around_duplicates = lengths_around(Y, closest, copies.images[used], n_jobs)
        errors = np.r_[errors[is_single], copies.errors[used]]
        around = np.r_[around[is_single], around_duplicates]
    columns = np.ascontiguousarray(Y.T)  # ptp along axis 0 of Y takes ten times as long
    diagonal = float(lengths(np.ptp(columns, axis=1)[None])[0])
    bars = calibrated_bars(errors, around, slopes, diagonal, level, n_jobs)
    slope = float(slopes.max()) if lipschitz is None else lipschitz
    quality = QualityEstimator(problem.X, Y, bars, slope, problem.dimension)
    return MapModel(problem.search, selection.fitted, quality, n_jobs), selection
