"""What a detector has learnt: what runs when points are scored, placed and explained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from outsample.neighbors.index import NeighborIndex
from outsample.neighbors.neighborhoods import Search
from outsample.neighbors.ties import with_ties
from outsample.neighbors.truncation import first_columns, first_counts
from outsample.placers.map_model import MapModel, Solved
from outsample.points import Points, largest_in_rows
from outsample.records import JudgedPlacement, Neighbors
from outsample.trust import abnormality, conformal
from outsample.trust.abnormality import Distances, TrainingScores, measured, neighbors_needed
from outsample.trust.explanation import MEASURED, RELATIVE, Explanation, explanations
from outsample.trust.quality import disagreement

# Neighbours that an explanation names.
NAMED = 5
# Between unit vectors.
LONGEST_CHORD = 2.0


@dataclass(frozen=True, eq=False)
class NoveltyModel:
    """Training points and their scores; with a map, what places points into it.

    Points are in the metric already. ``index`` is the map's own where there is one, so that one
    search serves both.
    """

    index: NeighborIndex
    training: TrainingScores
    model: MapModel | None
    n_jobs: int | None
    metric: str = "euclidean"

    def abnormality(self, X: Points) -> np.ndarray:
        """How strange points are (q,)."""
        parts = [self.scored(rows, self._nearest(rows))[1] for rows in self.search.batches(X)]
        return np.concatenate(parts)

    def place(
        self, X: Points, model: MapModel, calibration: np.ndarray, dtype: np.dtype
    ) -> JudgedPlacement:
        """Place points and score them, by one search; calibration scores (m,) are ascending."""
        parts = []
        for rows in self.search.batches(X):
            solved = model.solve(rows, self.searched)
            placed = model.judged(rows, solved, dtype)
            scores = self.scored(rows, self.cut(rows, solved))[1]
            p = conformal.p_values(scores, calibration)
            parts.append(JudgedPlacement(*placed, scores, p))
        return JudgedPlacement(*(np.concatenate(field) for field in zip(*parts, strict=True)))

    def explain(self, X: Points, calibration: np.ndarray, left_out: Any) -> list[Explanation]:
        """Explain points; training rows that were left out of the map tell its usual numbers."""
        training = self.training
        known = _numbers(training.distances, training.relative_distance)
        known = {name: np.repeat(values, training.counts) for name, values in known.items()}
        if self.model is not None:
            alone = self.model.left_out(left_out.rows)
            weights = self.model.fitted.weights(alone)
            known |= self._disagreement(Solved(alone, weights, left_out.coordinates))
        known = {name: np.sort(values) for name, values in known.items()}
        found = []
        for rows in self.search.batches(X):
            if self.model is None:
                near, numbers = self._nearest(rows), {}
            else:
                solved = self.model.solve(rows, self.searched)
                near, numbers = self.cut(rows, solved), self._disagreement(solved)
            distances, scores = self.scored(rows, near)
            relative, decides = abnormality.relative_distances(training, distances, near)
            numbers = _numbers(distances, relative) | numbers
            found += explanations(
                scores,
                conformal.p_values(scores, calibration),
                {name: (numbers[name], known[name]) for name in known},
                decides,
                first_counts(near, np.full(len(scores), min(NAMED, self._needed))),
            )
        return found

    @property
    def search(self) -> Search:
        """How queries are batched: as the map's are, if there is one."""
        return Search(self.index, None, None, 1) if self.model is None else self.model.search

    @property
    def _needed(self) -> int:
        return neighbors_needed(self.index.X.shape[0])

    @property
    def searched(self) -> int:
        """One neighbour more tells whether the last one is tied with it."""
        return min(self._needed + 1, self.index.X.shape[0])

    def _nearest(self, X: Points) -> Neighbors:
        return with_ties(self.index, X, self.index.nearest(X, self.searched), self._needed)[0]

    def cut(self, X: Points, solved: Solved) -> Neighbors:
        """Return the neighbours that scores look at, from a search that found more."""
        wide = first_columns(solved.near.wide, self.searched)
        return with_ties(self.index, X, wide, self._needed)[0]

    def scored(self, X: Points, near: Neighbors) -> tuple[Distances, np.ndarray]:
        """Distances around points, and how strange they are (q,)."""
        if self.metric == "cosine":
            near = _without_direction(X, near)
        copies = self.training.counts[near.indices[near.indptr[:-1]]]
        distances = measured(self.index.X, X, near, copies, self.n_jobs)
        return distances, abnormality.abnormality(self.training, distances, near)

    def _disagreement(self, solved: Solved) -> dict[str, np.ndarray]:
        assert self.model is not None
        near, weights, coordinates = solved
        numbers = disagreement(self.model.quality.Y, near.near, weights, coordinates, self.n_jobs)
        return dict(zip(("residual", "dispersion"), numbers, strict=True))


def _without_direction(X: Points, near: Neighbors) -> Neighbors:
    """Neighbours of unit vectors; a row of zeros is farther from them than any unit vector is.

    It has no direction, and coincides with training rows of zeros only.
    """
    is_lost = (largest_in_rows(X) == 0) & (near.distances[near.indptr[:-1]] > 0)
    if not is_lost.any():
        return near
    farther = np.where(np.repeat(is_lost, np.diff(near.indptr)), 2 * LONGEST_CHORD, near.distances)
    return near._replace(distances=farther)


def _numbers(distances: Distances, relative_distance: np.ndarray) -> dict[str, np.ndarray]:
    """Numbers that the score is made of, by the names that explanations use."""
    near, off = distances.nearest_distance, distances.plane_distance
    return dict(zip((*MEASURED, RELATIVE), (near, off, relative_distance), strict=True))
