"""Placement by a training set that is too large for one worker: neighbour search in shards on Dask.

Each shard indexes a part of the training rows and returns those that could be neighbours of the
queries. A small model of the returned rows, whose neighbours are those of the whole model, then
places the queries. The result is bit-identical to that of the whole model.
"""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from outsample._validation import check_number, check_rows
from outsample.chunks import map_chunks
from outsample.engines.batch_placer import cached_model
from outsample.estimators.pca_extension import PCAExtension
from outsample.neighbors.index import NeighborIndex
from outsample.neighbors.ties import MAX_EXTRA_TIES, MAX_TIE_FACTOR
from outsample.placers.map_model import MapModel
from outsample.points import Points, in_metric
from outsample.records import Frames, Placement, Reals
from outsample.trust.error_scale import SIZES

QUERIES_PER_TASK = 4096


class Shard(NamedTuple):
    """An index of consecutive training rows, the first of which is row ``first``."""

    first: int
    neighbor_index: NeighborIndex


class ShardedPlacer:
    """Place points with a saved `PCAExtension` whose training rows are spread over Dask workers.

    Every worker memory-maps the file, but reads and indexes only the rows of its shards. The
    shards return the rows that could be neighbours, and one task per chunk of queries places the
    queries with them. Results are bit-identical to those of the model. With a `distributed`
    client, the shards stay on their workers as long as the placer exists; if a worker is lost,
    its shards are computed again.

    Parameters
    ----------
    path : path-like
        Model file of a `PCAExtension`, or of an `Extended` with one, that every worker can read.
    n_shards : int
        Number of shards, at least one per worker.

    Raises
    ------
    ModelFileError
        If the file is missing, not a model file, or was replaced by another model.
    TypeError
        If the model is not a `PCAExtension`, or is an all-points model.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import outsample
    >>> from outsample.engines.sharded import ShardedPlacer
    >>> X = np.random.default_rng(0).random((300, 2))
    >>> model = outsample.PCAExtension(n_neighbors=5, order=0, loss="squared").fit(X, X**2)
    >>> path = os.path.join(tempfile.mkdtemp(), "squares.outsample")
    >>> outsample.save(model, path)
    >>> sharded = ShardedPlacer(path, 3)
    >>> bool((sharded.transform(X + 0.01) == model.transform(X + 0.01)).all())
    True
    """

    def __init__(self, path: str | os.PathLike[str], n_shards: int) -> None:
        try:
            from dask.delayed import delayed
        except ImportError:
            raise ImportError('ShardedPlacer needs Dask: pip install "outsample[dask]"') from None
        self.path = os.path.abspath(os.fspath(path))
        self.checksum = cached_model(self.path).checksum
        extension = _extension(self.path, self.checksum)
        n = extension.model_.search.index.X.shape[0]
        check_number("n_shards", n_shards, 1, n, whole=True)
        edges = np.linspace(0, n, n_shards + 1).astype(int).tolist()
        self._shards = [
            delayed(_shard, pure=True)(self.path, self.checksum, start, stop)
            for start, stop in pairwise(edges)
        ]
        self._persisted: Any = None

    def transform(self, X: Any) -> Reals:
        """Return the coordinates (q, d) of new points (q, D), as ``transform`` of the model."""
        return self._answer(X, "transform")[0]

    def place(self, X: Any) -> Placement:
        """Return the `Placement` of new points (q, D), as ``place`` of the model."""
        return Placement(*self._answer(X, "place"))

    def _answer(self, X: Any, name: str) -> list[np.ndarray]:
        from dask import compute, persist  # type: ignore[attr-defined]
        from dask.delayed import delayed

        extension = _extension(self.path, self.checksum)
        checked, dtype = check_rows(extension, X)
        if self._persisted is None:
            self._persisted = persist(*self._shards)
        result_dtype = extension.training_.answer_type(dtype)

        def answer(rows: Points) -> list[np.ndarray]:
            rows, tasks = in_metric(rows, extension.training_.metric), []
            for start in range(0, rows.shape[0], QUERIES_PER_TASK):
                queries = delayed(rows[start : start + QUERIES_PER_TASK])
                candidates = [
                    delayed(_candidates)(self.path, self.checksum, shard, queries)
                    for shard in self._persisted
                ]
                task = delayed(_solved)(
                    self.path, self.checksum, name, result_dtype, queries, candidates
                )
                tasks.append(task)
            chunks = compute(*tasks)
            return [np.concatenate(field) for field in zip(*chunks, strict=True)]

        return map_chunks(answer, checked)


def _extension(path: str, checksum: str) -> PCAExtension:
    """Return the extension of a model file; raise TypeError if it cannot be sharded."""
    model = cached_model(path, checksum).opened.array_model
    core = getattr(model, "extension_", model) if hasattr(model, "embedding") else model
    if not isinstance(core, PCAExtension):
        raise TypeError(
            f"{path}: contains a {type(model).__name__}, but ShardedPlacer needs a PCAExtension."
        )
    placer = core.model_.fitted.placer
    if placer.uses_all_points:
        raise TypeError(
            f"{path}: the model uses all training points for each query ({placer}), which cannot "
            "be sharded; fit a local model with weighting= and n_neighbors=."
        )
    return core


def _shard(path: str, checksum: str, start: int, stop: int) -> Shard:
    index = _extension(path, checksum).model_.search.index
    return Shard(start, NeighborIndex(index.X[start:stop], index.kind, index.n_jobs))


def _candidates(path: str, checksum: str, shard: Shard, Q: Points) -> np.ndarray:
    """Return the training rows of a shard that could be neighbours of a query."""
    model = _extension(path, checksum).model_
    search, k = model.search, model.fitted.placer.n_neighbors
    n_neighbors = max(k or 0, SIZES[-1]) + 2
    n_with_ties = MAX_TIE_FACTOR * n_neighbors + MAX_EXTRA_TIES + 2  # the widest search for ties
    n_candidates = min(max(n_with_ties, search.least_framed), shard.neighbor_index.X.shape[0])
    radius = max(search.radius or 0.0, search.tangent_radius or 0.0)
    if radius:
        neighbors = shard.neighbor_index.ball(Q, radius, n_candidates)
    else:
        neighbors = shard.neighbor_index.nearest(Q, n_candidates)
    return shard.first + np.unique(neighbors.indices)


def _solved(
    path: str, checksum: str, name: str, dtype: np.dtype, Q: Points, candidates: list[np.ndarray]
) -> list[np.ndarray]:
    """Place queries with a model of the candidate rows of all shards."""
    model = narrowed(_extension(path, checksum).model_, np.concatenate(candidates))
    if name == "transform":
        return model.search.map_chunks(
            lambda rows: [model.transform(rows).astype(dtype, copy=False)], Q
        )
    return model.search.map_chunks(lambda rows: model.place(rows, dtype), Q)


def narrowed(model: MapModel, rows: np.ndarray) -> MapModel:
    """Return a model of a subset of the training rows, ascending, with the fitted parameters."""
    index = model.search.index
    X, Y = index.X[rows], model.quality.Y[rows]
    search = replace(model.search, index=NeighborIndex(X, index.kind, index.n_jobs))
    quality = model.quality._replace(X=X, Y=Y)
    frames = (Frames(kept.axes[rows], kept.spread[rows]) for kept in model.fitted.kept_frames())
    fitted = model.fitted.regrow(search, X, Y, frames)
    return MapModel(search, fitted, quality, model.n_jobs)
