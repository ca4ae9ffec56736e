"""What answers while a map learns: the original model, and points learned since beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from outsample.estimators.novelty_model import NoveltyModel
from outsample.neighbors.growing_index import LearnedIndex, learned_index
from outsample.neighbors.index import NeighborIndex
from outsample.placers.map_model import MapModel, Solved
from outsample.points import Points
from outsample.records import Frames, JudgedPlacement, Placement
from outsample.trust import abnormality, conformal


class Arrivals(NamedTuple):
    """Points placed, and what is kept of those that are learned.

    ``known`` (q,) are copies of a point of the model, ``nearest`` (q,) which one that is. ``gaps``
    (q,) are distances from the original map, ``original_scores`` (q,) abnormalities by the
    original points alone, ``widths`` (q,) those of the points' own neighbourhoods, as the
    original ones have them; both are empty without a detector.
    """

    placed: Any
    known: np.ndarray
    nearest: np.ndarray
    gaps: np.ndarray
    original_scores: np.ndarray
    widths: np.ndarray
    frames: list[Frames]


@dataclass(frozen=True, eq=False)
class StreamModel:
    """A map and its scores over the original points and those learned; never changed.

    ``novelty`` and ``original_novelty`` are None without a detector. Error bars and certificates
    are those of the original points alone: a learned image is a placement, no evidence of the map.
    """

    original: MapModel
    original_novelty: NoveltyModel | None
    model: MapModel
    novelty: NoveltyModel | None

    @property
    def n_originals(self) -> int:
        """Original points."""
        return len(self.original.quality.Y)

    def columns(self) -> list[Points]:
        """Return what is known of every original point, in the order of `with_columns`."""
        found: list[Points] = [self.original.search.index.X, self.original.quality.Y]
        for frames in self.original.fitted.kept_frames():
            found += frames
        if self.original_novelty is not None:
            training = self.original_novelty.training
            found += [training.widths, training.counts]
        return found

    def with_columns(self, columns: list[Points], adds: bool) -> StreamModel:
        """Model over the columns of all points, the original ones first.

        ``adds`` tells that they are those of this model with others behind them.
        """
        if columns[0].shape[0] == self.n_originals:
            return replace(self, model=self.original, novelty=self.original_novelty)
        X, Y, *others = columns
        base, before = self.original.search.index, self.model.search.index
        tree = before.tree if adds and isinstance(before, LearnedIndex) else None
        index = learned_index(base, X, tree)
        n_frames = 2 * len(self.original.fitted.kept_frames())
        pairs = zip(others[0:n_frames:2], others[1:n_frames:2], strict=True)
        n_jobs = self.original.n_jobs
        search, quality = replace(self.original.search, index=index), self.original.quality
        frames = (Frames(*pair) for pair in pairs)
        fitted = self.original.fitted.regrow(self.original.search, X, Y, frames)
        model = MapModel(search, fitted, quality._replace(X=X, Y=Y), n_jobs)
        novelty = self.original_novelty
        if novelty is not None:
            widths, counts = others[n_frames:]
            training = novelty.training._replace(widths=widths, counts=counts)
            novelty = replace(novelty, index=index, training=training, model=model)
        return replace(self, model=model, novelty=novelty)

    def place(self, X: Points, dtype: np.dtype, calibration: np.ndarray | None) -> Any:
        """Place points; with a detector and its ascending scores (m,), judge them too."""
        parts = []
        for rows in self.model.search.batches(X):
            solved = self.model.solve(rows, self._searched(self.novelty))
            around = None if self.model is self.original else self.original.around(rows)
            placed = self.model.judged(rows, solved, dtype, around)
            parts.append(self._scored(rows, solved, placed, calibration)[0])
        return joined(parts)

    def arrive(self, X: Points, dtype: np.dtype, calibration: np.ndarray | None) -> Arrivals:
        """Place points as `place` does, and find what learning them needs."""
        parts = []
        for rows in self.model.search.batches(X):
            solved = self.model.solve(rows, self._searched(self.novelty))
            around, scores, novelty = solved.near, np.empty(0), self.original_novelty
            if self.model is not self.original:
                around = self.original.around(rows, self._searched(novelty))
            placed = self.model.judged(rows, solved, dtype, around)
            judged, widths = self._scored(rows, solved, placed, calibration)
            if novelty is not None and self.model is self.original:
                scores = judged.abnormality
            elif novelty is not None:
                found = novelty.cut(rows, solved._replace(near=around))
                scores = novelty.scored(rows, found)[1]
            first, starts = solved.near.wide, solved.near.wide.indptr[:-1]
            gaps = around.wide.distances[around.wide.indptr[:-1]]
            frames = self.model.fitted.new_frames(solved.near)
            known, nearest = first.distances[starts] == 0, first.indices[starts]
            parts.append(Arrivals(judged, known, nearest, gaps, scores, widths, frames))
        fields: list[Any] = list(zip(*parts, strict=True))
        arrays = [np.concatenate(field) for field in fields[1:-1]]
        all_frames = [joined(list(each)) for each in zip(*fields[-1], strict=True)]
        return Arrivals._make([joined(fields[0]), *arrays, all_frames])

    def left_out_errors(self, rows: np.ndarray) -> np.ndarray:
        """Distances (s,) of the images of rows from where the others place them."""
        near = self.model.left_out(rows)
        return np.hypot.reduce(
            self.model.fitted.leave_out(rows, near) - self.model.quality.Y[rows], axis=1
        )

    def _scored(
        self, rows: Points, solved: Solved, placed: Placement, calibration: np.ndarray | None
    ) -> tuple[Any, np.ndarray]:
        """Judge placements, if there is a detector; and logarithms of widths (q,)."""
        if self.novelty is None or calibration is None:
            return placed, np.empty(0)
        distances, scores = self.novelty.scored(rows, self.novelty.cut(rows, solved))
        p = conformal.p_values(scores, calibration)
        widths = abnormality.log_widths(self.novelty.training, distances)
        return JudgedPlacement(*placed, scores, p), widths

    @staticmethod
    def _searched(novelty: NoveltyModel | None) -> int:
        return 0 if novelty is None else novelty.searched


def joined(records: Sequence[Any]) -> Any:
    """One record of the rows of several."""
    return type(records[0])(*(np.concatenate(field) for field in zip(*records, strict=True)))


def starting_model(model: MapModel, novelty: NoveltyModel | None) -> StreamModel:
    """Model that has learned nothing yet, its search ready to be asked."""
    index: NeighborIndex = model.search.index
    index.build()
    return StreamModel(model, novelty, model, novelty)
