"""Scores, placements and explanations of a fitted `NoveltyDetector`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from outsample.estimators.pca_extension import PCAExtension
from outsample.neighbors.index import NeighborIndex
from outsample.neighbors.neighborhoods import Search
from outsample.neighbors.ties import with_ties
from outsample.neighbors.truncation import first_columns, first_counts
from outsample.placers.map_model import MapModel, Solved
from outsample.points import Points, largest_in_rows
from outsample.records import JudgedPlacement, Neighbors, Placement
from outsample.trust import abnormality, conformal
from outsample.trust.abnormality import Distances, TrainingScores, measured, neighbors_needed
from outsample.trust.explanation import MEASURED, RELATIVE, Explanation, explanations
from outsample.trust.quality import disagreement

# Neighbours that an explanation lists.
EXPLAINED_NEIGHBORS = 5
# The largest distance between unit vectors.
LONGEST_CHORD = 2.0


@dataclass(frozen=True, eq=False)
class NoveltyModel:
    """Training points and their scores; with a map, also the model that places points.

    Points are in the metric, and calibration scores (m,) ascend. ``index`` is that of the map if
    there is one, so that scores and placements share one search.
    """

    index: NeighborIndex
    training: TrainingScores
    model: MapModel | None
    n_jobs: int | None
    metric: str = "euclidean"

    def abnormality(self, X: Points) -> np.ndarray:
        """Return the abnormality scores (q,) of points."""
        return self.scored(X, self._nearest(X))[1]

    def place(
        self, X: Points, model: MapModel, calibration: np.ndarray, dtype: np.dtype
    ) -> JudgedPlacement:
        """Return the placement of points and their scores, from one search."""
        solved = model.solve(X, self.searched)
        return self.judged(X, solved, model.judged(X, solved, dtype), calibration)[0]

    def judged(
        self, X: Points, solved: Solved, placed: Placement, calibration: np.ndarray
    ) -> tuple[JudgedPlacement, Distances]:
        """Return a placement with scores and p-values, and the distances around the points."""
        distances, scores = self.scored(X, self.cut(X, solved))
        p = conformal.p_values(scores, calibration)
        return JudgedPlacement(*placed, scores, p), distances

    def explain(self, X: Points, calibration: np.ndarray, left_out: Any) -> list[Explanation]:
        """Return explanations of points; rows that were left out give usual values of the map."""
        training = self.training
        usual = _numbers(training.distances, training.relative_distance)
        usual = {name: np.repeat(values, training.counts) for name, values in usual.items()}
        if self.model is not None:
            near = self.model.left_out(left_out.rows)
            weights = self.model.fitted.weights(near)
            usual |= self._disagreement(Solved(near, weights, left_out.coordinates))
        usual = {name: np.sort(values) for name, values in usual.items()}
        results: list[Explanation] = []
        for queries in self.search.chunks(X, self.metric):
            if self.model is None:
                neighbors, numbers = self._nearest(queries), {}
            else:
                solved = self.model.solve(queries, self.searched)
                neighbors, numbers = self.cut(queries, solved), self._disagreement(solved)
            distances, scores = self.scored(queries, neighbors)
            relative, decides = abnormality.relative_distances(training, distances, neighbors)
            numbers = _numbers(distances, relative) | numbers
            n_listed = min(EXPLAINED_NEIGHBORS, self._needed)
            results += explanations(
                scores,
                conformal.p_values(scores, calibration),
                {name: (numbers[name], usual[name]) for name in usual},
                decides,
                first_counts(neighbors, np.full(len(scores), n_listed)),
            )
        return results

    @property
    def search(self) -> Search:
        """Return the search of the map, or a plain one without a map."""
        return Search(self.index, None, None, 1) if self.model is None else self.model.search

    @property
    def _needed(self) -> int:
        return neighbors_needed(self.index.X.shape[0])

    @property
    def searched(self) -> int:
        """Return the number of neighbours to search: one more shows whether the last is tied."""
        return min(self._needed + 1, self.index.X.shape[0])

    def _nearest(self, X: Points) -> Neighbors:
        return with_ties(self.index, X, self.index.nearest(X, self.searched), self._needed)[0]

    def cut(self, X: Points, solved: Solved) -> Neighbors:
        """Return the neighbours that scores use, from a wider search."""
        wide = first_columns(solved.near.wide, self.searched)
        return with_ties(self.index, X, wide, self._needed)[0]

    def scored(self, X: Points, near: Neighbors) -> tuple[Distances, np.ndarray]:
        """Return the distances around points, and their abnormality scores (q,)."""
        if self.metric == "cosine":
            near = _without_direction(X, near)
        n_duplicates = self.training.counts[near.indices[near.indptr[:-1]]]
        distances = measured(self.index.X, X, near, n_duplicates, self.n_jobs)
        return distances, abnormality.abnormality(self.training, distances, near)

    def _disagreement(self, solved: Solved) -> dict[str, np.ndarray]:
        assert self.model is not None
        near, weights, coordinates = solved
        numbers = disagreement(self.model.quality.Y, near.near, weights, coordinates, self.n_jobs)
        return dict(zip(("residual", "dispersion"), numbers, strict=True))


def embeds_points(extension: Any) -> bool:
    """Return True if the extension embeds the points itself and needs no map."""
    return extension is not None and not get_tags(extension).target_tags.required


def fit_extension(extension: Any, X: Points, Y: np.ndarray | None, n_jobs: int | None) -> Any:
    """Return a fitted clone of an extension; None without a map."""
    if embeds_points(extension):
        return clone(extension).fit(X)
    return None if Y is None else clone(extension or PCAExtension(n_jobs=n_jobs)).fit(X, Y)


def _without_direction(X: Points, near: Neighbors) -> Neighbors:
    """Return neighbours of unit vectors, with rows of zeros farther away than any unit vector.

    A row of zeros has no direction, and coincides only with training rows of zeros.
    """
    is_zero = (largest_in_rows(X) == 0) & (near.distances[near.indptr[:-1]] > 0)
    if not is_zero.any():
        return near
    farther = np.where(np.repeat(is_zero, np.diff(near.indptr)), 2 * LONGEST_CHORD, near.distances)
    return near._replace(distances=farther)


def _numbers(distances: Distances, relative_distance: np.ndarray) -> dict[str, np.ndarray]:
    """Return the numbers that the score consists of, by the names that explanations use."""
    values = distances.nearest_distance, distances.plane_distance, relative_distance
    return dict(zip((*MEASURED, RELATIVE), values, strict=True))
