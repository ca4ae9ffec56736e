"""A training set too large for one worker: searched in shards on Dask, solved once.

Every shard holds some of the training rows and their search. It returns the rows that could be
neighbours of the queries; a small model of all rows returned, which has the same neighbours as the
whole, then places the queries. So the answer is that of the whole model, bit for bit.
"""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from outsample._pieces import in_pieces
from outsample._validation import check_number, check_rows
from outsample.engines.batch_placer import opened_model
from outsample.estimators.pca_extension import PCAExtension
from outsample.neighbors.index import NeighborIndex
from outsample.neighbors.ties import MOST_MORE, MOST_TIMES
from outsample.placers.map_model import MapModel
from outsample.points import Points, in_metric
from outsample.records import Frames, Placement, Reals
from outsample.trust.error_scale import SIZES

# Queries that are searched and solved in one task.
BLOCK_ROWS = 4096


class Shard(NamedTuple):
    """Training rows from ``first`` on, as their search holds them."""

    first: int
    search: NeighborIndex


class ShardedPlacer:
    """Place points by a saved `PCAExtension` whose training rows are spread over Dask workers.

    Every worker maps the file, but reads and indexes only the rows of its shards. They answer with
    the rows that could be neighbours, and one task per block of points places these by them: the
    same as the model itself, bit for bit. The shards stay where they are while the placer is there
    and a `distributed` client runs; a worker that is lost is replaced.

    Parameters
    ----------
    path : path-like
        The file of a `PCAExtension`, or of an `Extended` with one, found by every worker.
    n_shards : int
        Number of shards; one or more for every worker.

    Raises
    ------
    ModelFileError
        If the file is missing, no model, or was replaced meanwhile.
    TypeError
        For a model that is no `PCAExtension`, or places by all training points at once.

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
        self.checksum = opened_model(self.path).checksum
        extension = _extension(self.path, self.checksum)
        n = extension.model_.search.index.X.shape[0]
        check_number("n_shards", n_shards, 1, n, whole=True)
        edges = np.linspace(0, n, n_shards + 1).astype(int).tolist()
        told = self.path, self.checksum
        self._shards = [
            delayed(_shard, pure=True)(*told, start, stop)
            for start, stop in pairwise(edges)
        ]
        self._held: Any = None

    def transform(self, X: Any) -> Reals:
        """Coordinates (q, d) of new points (q, D), as ``transform`` of the model."""
        return self._answer(X, "transform")[0]

    def place(self, X: Any) -> Placement:
        """Coordinates of new points (q, D) and how far to trust them, as ``place`` of the model."""
        return Placement(*self._answer(X, "place"))

    def _answer(self, X: Any, name: str) -> list[np.ndarray]:
        from dask import compute, persist  # type: ignore[attr-defined]
        from dask.delayed import delayed

        extension = _extension(self.path, self.checksum)
        checked, dtype = check_rows(extension, X)
        if self._held is None:
            self._held = persist(*self._shards)
        told = self.path, self.checksum, name, extension._answer_type(dtype)

        def answer(rows: Points) -> list[np.ndarray]:
            rows, tasks = in_metric(rows, extension.metric), []
            for at in range(0, rows.shape[0], BLOCK_ROWS):
                block = delayed(rows[at : at + BLOCK_ROWS])
                found = [
                    delayed(_candidates)(*told[:2], shard, block) for shard in self._held
                ]
                tasks.append(delayed(_solved)(*told, block, found))
            parts = compute(*tasks)
            return [np.concatenate(field) for field in zip(*parts, strict=True)]

        return in_pieces(answer, checked)


def _extension(path: str, checksum: str) -> PCAExtension:
    """Return the extension of a file that this process has open, if it can be sharded."""
    model = opened_model(path, checksum).answers.model
    core = getattr(model, "extension_", model) if hasattr(model, "embedding") else model
    if not isinstance(core, PCAExtension):
        raise TypeError(f"{path}: holds a {type(model).__name__}; shards need a PCAExtension.")
    placer = core.model_.fitted.placer
    if placer.uses_all_points:
        raise TypeError(
            f"{path}: places by all training points at once ({placer}), which no shard "
            "has; fit with weighting= and n_neighbors= of a local model."
        )
    return core


def _shard(path: str, checksum: str, start: int, stop: int) -> Shard:
    index = _extension(path, checksum).model_.search.index
    return Shard(start, NeighborIndex(index.X[start:stop], index.kind, index.n_jobs))


def _candidates(path: str, checksum: str, shard: Shard, Q: Points) -> np.ndarray:
    """Rows of the whole that are in a shard and could be neighbours of a query."""
    model = _extension(path, checksum).model_
    search, k = model.search, model.fitted.placer.n_neighbors
    wide = max(k or 0, SIZES[-1]) + 2
    most = MOST_TIMES * wide + MOST_MORE + 2  # no search for ties asks for more
    index = shard.search
    least = min(max(most, search.least_framed), index.X.shape[0])
    radius = max(search.radius or 0.0, search.tangent_radius or 0.0)
    found = index.ball(Q, radius, least) if radius else index.nearest(Q, least)
    return shard.first + np.unique(found.indices)


def _solved(
    path: str, checksum: str, name: str, dtype: np.dtype, Q: Points, found: list[np.ndarray]
) -> list[np.ndarray]:
    """Answer for queries by a model of the candidates of all shards."""
    model = narrowed(_extension(path, checksum).model_, np.concatenate(found))
    if name == "transform":
        return [model.transform(Q).astype(dtype, copy=False)]
    return list(model.place(Q, dtype))


def narrowed(model: MapModel, rows: np.ndarray) -> MapModel:
    """Return a model of some training rows, ascending, that has learnt what the whole has."""
    index = model.search.index
    X, Y = index.X[rows], model.judge.Y[rows]
    search = replace(model.search, index=NeighborIndex(X, index.kind, index.n_jobs))
    judge = model.judge._replace(X=X, Y=Y)
    frames = (Frames(kept.axes[rows], kept.spread[rows]) for kept in model.fitted.kept_frames())
    fitted = model.fitted.regrow(search, X, Y, frames)
    return MapModel(search, fitted, judge, model.n_jobs)
