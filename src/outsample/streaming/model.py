"""The current model of a stream: the original model, extended by the learned points."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from outsample.estimators.novelty_model import NoveltyModel
from outsample.neighbors.growing_index import growing_index
from outsample.placers.map_model import MapModel
from outsample.points import Points
from outsample.streaming.stream_columns import StreamColumns
from outsample.trust import abnormality


class Arrivals(NamedTuple):
    """Placed arrivals, and what is kept of those that are learned.

    ``coincides`` (q,) is True for arrivals that coincide with a point of the model, ``nearest``
    (q,) is the nearest point. ``gaps`` (q,) are distances from the original map,
    ``original_scores`` (q,) abnormality scores by the original points alone, empty without a
    detector. ``columns`` are those of `StreamColumns`.
    """

    placed: Any
    coincides: np.ndarray
    nearest: np.ndarray
    gaps: np.ndarray
    original_scores: np.ndarray
    columns: StreamColumns


@dataclass(frozen=True, eq=False)
class StreamModel:
    """A map and its scores by the original and the learned points; immutable.

    ``novelty`` and ``original_novelty`` are None without a detector. Error bars and certificates
    use the original points only: the image of a learned point is a placement, not evidence.
    """

    original: MapModel
    original_novelty: NoveltyModel | None
    model: MapModel
    novelty: NoveltyModel | None

    @property
    def n_originals(self) -> int:
        """Return the number of original points."""
        return len(self.original.quality.Y)

    def original_columns(self) -> StreamColumns:
        """Return the columns of the original points."""
        frames = tuple(self.original.fitted.kept_frames())
        columns = StreamColumns(self.original.search.index.X, self.original.quality.Y, frames)
        if self.original_novelty is None:
            return columns
        training = self.original_novelty.training
        return columns._replace(widths=training.widths, counts=training.counts)

    def with_columns(self, columns: StreamColumns, appends: bool) -> StreamModel:
        """Return a model of all points, the original ones first.

        ``appends`` is True if the columns start with those of this model.
        """
        if columns.n_rows == self.n_originals:
            return replace(self, model=self.original, novelty=self.original_novelty)
        original, X, Y = self.original, columns.points, columns.images
        previous = self.model.search.index if appends else None
        index = growing_index(original.search.index, X, previous)
        model = MapModel(
            replace(original.search, index=index),
            original.fitted.regrow(original.search, X, Y, iter(columns.frames)),
            original.quality._replace(X=X, Y=Y),
            original.n_jobs,
        )
        novelty = self.original_novelty
        if novelty is not None:
            assert columns.widths is not None and columns.counts is not None
            training = novelty.training._replace(widths=columns.widths, counts=columns.counts)
            novelty = replace(novelty, index=index, training=training, model=model)
        return replace(self, model=model, novelty=novelty)

    def place(self, X: Points, dtype: np.dtype, calibration: np.ndarray | None) -> Any:
        """Return the placement of points; with a detector, by its ascending calibration scores."""
        solved = self.model.solve(X, _searched(self.novelty))
        around = None if self.model is self.original else self.original.around(X)
        placed = self.model.judged(X, solved, dtype, around)
        if self.novelty is None or calibration is None:
            return placed
        return self.novelty.judged(X, solved, placed, calibration)[0]

    def arrive(self, X: Points, dtype: np.dtype, calibration: np.ndarray | None) -> Arrivals:
        """Return what `place` returns, and what learning the points needs."""
        solved = self.model.solve(X, _searched(self.novelty))
        around, original_scores = solved.near, np.empty(0)
        if self.model is not self.original:
            around = self.original.around(X, _searched(self.original_novelty))
        placed: Any = self.model.judged(X, solved, dtype, around)
        images = placed.coordinates.astype(np.float64)
        frames = tuple(self.model.fitted.new_frames(solved.near))
        columns = StreamColumns(X, images, frames)
        if self.novelty is not None and self.original_novelty is not None:
            assert calibration is not None
            placed, distances = self.novelty.judged(X, solved, placed, calibration)
            widths = abnormality.log_widths(self.novelty.training, distances)
            ones = np.ones(len(widths), dtype=np.int64)
            columns = columns._replace(widths=widths, counts=ones)
            original_scores = placed.abnormality
            if self.model is not self.original:
                neighbors = self.original_novelty.cut(X, solved._replace(near=around))
                original_scores = self.original_novelty.scored(X, neighbors)[1]
        wide, starts = solved.near.wide, solved.near.wide.indptr[:-1]
        return Arrivals(
            placed=placed, coincides=wide.distances[starts] == 0, nearest=wide.indices[starts],
            gaps=around.wide.distances[around.wide.indptr[:-1]], original_scores=original_scores,
            columns=columns,
        )  # fmt: skip

    def left_out_errors(self, rows: np.ndarray) -> np.ndarray:
        """Return the distances (s,) of the images of rows from their leave-one-out placements."""
        near = self.model.left_out(rows)
        placed = self.model.fitted.leave_out(rows, near)
        return np.hypot.reduce(placed - self.model.quality.Y[rows], axis=1)


def _searched(novelty: NoveltyModel | None) -> int:
    return 0 if novelty is None else novelty.searched


def starting_model(model: MapModel, novelty: NoveltyModel | None) -> StreamModel:
    """Return a model without learned points, with its search index built."""
    model.search.index.build()
    return StreamModel(model, novelty, model, novelty)
