"""A map that has been learnt: what runs when new points are placed into it.

One search, the placer, the judge; everything else reads from their result.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from outsample.neighbors.neighborhoods import Neighborhoods, Search
from outsample.placers.candidates import Given
from outsample.placers.problem import UNIT_NEIGHBOR, WIDE, Problem
from outsample.placers.protocol import FittedPlacer
from outsample.placers.race import Chosen, choose
from outsample.points import Points
from outsample.records import Placement, Weights
from outsample.trust.judge import Judge, calibrated_judge

CHUNK_ROWS = 4096
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
    judge: Judge
    n_jobs: int | None

    def transform(self, X: Points) -> np.ndarray:
        """Coordinates (q, d), and nothing else; a placer over all points needs no search."""
        k = self.fitted.placer.n_neighbors
        parts = [
            self.fitted.place(rows, None if k is None else self.search.around(rows, k))
            for rows in chunks(X)
        ]
        return np.concatenate(parts)

    def place(self, X: Points, dtype: np.dtype) -> Placement:
        """Coordinates, in the type they are handed out in, and how far to trust them."""
        parts = [self.judged(rows, self.solve(rows), dtype) for rows in chunks(X)]
        return Placement(*(np.concatenate(field) for field in zip(*parts, strict=True)))

    def solve(self, X: Points, at_least: int = 0) -> Solved:
        """Coordinates with what they came from; ``near.wide`` has ``at_least`` neighbours.

        A placer over all points is judged by its nearest ones.
        """
        k = self.fitted.placer.n_neighbors or min(len(self.judge.Y), UNIT_NEIGHBOR)
        near = self.search.around(X, k, at_least=at_least)
        weights = self.fitted.weights(near)
        return Solved(near, weights, self.fitted.place(X, near, weights))

    def left_out(self, rows: np.ndarray) -> Neighborhoods:
        """Neighbourhoods of training rows without themselves, as `race.leave_out` had them."""
        k = self.fitted.placer.n_neighbors or min(len(self.judge.Y) - 1, UNIT_NEIGHBOR)
        return self.search.around(self.search.index.X[rows], k, rows)

    def judged(self, X: Points, solved: Solved, dtype: np.dtype) -> Placement:
        """How far to trust what `solve` found."""
        near, weights, coordinates = solved
        return self.judge.judge(X, near.near, weights, coordinates, dtype, self.n_jobs)


def learn(problem: Problem, given: Given, lipschitz: float | None) -> tuple[MapModel, Chosen]:
    """Choose a placer and calibrate its judge; a ``lipschitz`` of None is estimated."""
    chosen = choose(problem, given)
    rows, near, coordinates = chosen.left_out
    assert near is not None
    # Never of fewer rows than these, and one more for the row itself.
    k = chosen.fitted.placer.n_neighbors or WIDE
    close = problem.nearest(rows, 1 + max(min(k, WIDE), LIPSCHITZ_NEIGHBORS))
    judge = calibrated_judge(
        problem.X, problem.Y, rows, near.near, coordinates, close, lipschitz, problem.dimension,
        problem.n_jobs,
    )  # fmt: skip
    # Neighbourhoods are not kept: with a wide radius each of them holds every training point.
    chosen = chosen._replace(left_out=chosen.left_out._replace(near=None))
    return MapModel(problem.search, chosen.fitted, judge, problem.n_jobs), chosen


def chunks(X: Points) -> Iterator[Points]:
    """Rows in pieces that bound the memory of a call."""
    for at in range(0, X.shape[0], CHUNK_ROWS):
        yield X[at : at + CHUNK_ROWS]
