"""What a detector has learnt: what runs when points are scored, placed and explained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from outsample.neighbors.index import NeighborIndex
from outsample.neighbors.neighborhoods import first_columns
from outsample.placers.map_model import MapModel, Solved, chunks
from outsample.points import Points
from outsample.records import JudgedPlacement, Neighbors
from outsample.trust import abnormality, conformal
from outsample.trust.abnormality import Distances, TrainingScores, measured, neighbors_needed
from outsample.trust.disagreement import disagreement
from outsample.trust.explanation import Explanation, explanations

# Neighbours that an explanation names.
NAMED = 5


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

    def abnormality(self, X: Points) -> np.ndarray:
        """How strange points are (q,)."""
        parts = [self._scored(rows, self._nearest(rows))[1] for rows in chunks(X)]
        return np.concatenate(parts)

    def place(
        self, X: Points, model: MapModel, calibration: np.ndarray, dtype: np.dtype
    ) -> JudgedPlacement:
        """Place points and score them, by one search; calibration scores (m,) are ascending."""
        parts = []
        for rows in chunks(X):
            solved = model.solve(rows, self._needed)
            placed = model.judged(rows, solved, dtype)
            scores = self._scored(rows, self._cut(solved))[1]
            p = conformal.p_values(scores, calibration)
            parts.append(JudgedPlacement(*placed, scores, p))
        return JudgedPlacement(*(np.concatenate(field) for field in zip(*parts, strict=True)))

    def explain(self, X: Points, calibration: np.ndarray, left_out: Any) -> list[Explanation]:
        """Explain points; training rows that were left out of the map tell its usual numbers."""
        known = self.training.distances._asdict()
        if self.model is not None:
            alone = self.model.left_out(left_out.rows)
            weights = self.model.fitted.weights(alone)
            known |= self._disagreement(Solved(alone, weights, left_out.coordinates))
        known = {name: np.sort(values) for name, values in known.items()}
        found = []
        for rows in chunks(X):
            if self.model is None:
                near, numbers = self._nearest(rows), {}
            else:
                solved = self.model.solve(rows, self._needed)
                near, numbers = self._cut(solved), self._disagreement(solved)
            distances, scores = self._scored(rows, near)
            numbers = distances._asdict() | numbers
            found += explanations(
                scores,
                conformal.p_values(scores, calibration),
                {name: (numbers[name], known[name]) for name in known},
                first_columns(near, min(NAMED, self._needed)),
            )
        return found

    @property
    def _needed(self) -> int:
        return neighbors_needed(self.index.X.shape[0])

    def _nearest(self, X: Points) -> Neighbors:
        return self.index.nearest(X, self._needed)

    def _cut(self, solved: Solved) -> Neighbors:
        """Return the neighbours that scores look at, from a search that found more."""
        return first_columns(solved.near.wide, self._needed)

    def _scored(self, X: Points, near: Neighbors) -> tuple[Distances, np.ndarray]:
        distances = measured(self.index.X, X, near, self.n_jobs)
        return distances, abnormality.abnormality(self.training, distances, near)

    def _disagreement(self, solved: Solved) -> dict[str, np.ndarray]:
        assert self.model is not None
        near, weights, coordinates = solved
        numbers = disagreement(self.model.judge.Y, near.near, weights, coordinates, self.n_jobs)
        return dict(zip(("residual", "dispersion"), numbers, strict=True))
