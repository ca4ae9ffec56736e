"""Choice of the model on the user's own data, by leave-one-out over training points.

A local method is left-one-out exactly by asking for one neighbour more and dropping the point
itself. All candidates share one neighbour search. They are tried on a few rows first; the better
ones go on to more rows, so that the cost is bounded whatever the size of the training set.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from outsample.neighbors import local_pca as geometry
from outsample.neighbors.neighborhoods import Around, Search
from outsample.placers import covariance
from outsample.placers.candidates import PLAIN_SIZES, WIDE, Given, Shape, candidates
from outsample.placers.covariance import UNIT_NEIGHBOR, Correlated
from outsample.placers.model import Map, Model, solve
from outsample.placers.weights import GaussianDistance
from outsample.records import Frames, Neighbors

# Rows of each round, and how many candidates stay for the next one.
ROUNDS = ((150, 14), (500, 5), (2000, 1))
# A candidate worse than the best by more than this factor does not go on.
WORSE = 1.4
# Candidates within this share of the best, or with errors below rounding, are tied.
TIE = 1e-3
ROUNDING = 1e-13
# Neighbourhoods tried beyond the largest candidates, for the best model only.
WIDER = (120,)
# Largest training set that is factored as a whole (the memory is its square).
GLOBAL_ROWS = 8192


class Trial(NamedTuple):
    """One row of `PCAExtension.selection_`.

    Attributes
    ----------
    model : Model
        The candidate.
    error : float
        Mean leave-one-out error over the root mean square size of the map.
    seconds : float
        Time it took.
    n_rows : int
        Training rows it was tried on; only trials on equally many rows compare.
    """

    model: Model
    error: float
    seconds: float
    n_rows: int


class Wide(NamedTuple):
    """The search that candidates share: rows, their neighbours, and how many each has."""

    rows: np.ndarray
    near: Neighbors
    width: int


class LeftOut(NamedTuple):
    """Training rows placed without themselves.

    Attributes
    ----------
    rows : ndarray of shape (s,)
        The rows.
    around : Around
        Their neighbourhoods.
    coordinates : ndarray of shape (s, d)
        Where the others place them.
    """

    rows: np.ndarray
    around: Around
    coordinates: np.ndarray


def map_size(Y: np.ndarray) -> float:
    """Root mean square distance of the images from their mean; 1 for a constant map.

    Parameters
    ----------
    Y : ndarray of shape (n, d)
        Images.

    Returns
    -------
    float
    """
    centered = Y - Y.mean(axis=0)
    largest = np.abs(centered).max()
    if largest == 0:
        return 1.0
    return float(largest * np.sqrt(((centered / largest) ** 2).sum(axis=1).mean()))


def mean_error(Y: np.ndarray, left_out: LeftOut) -> float:
    """Mean leave-one-out error over the size of the map.

    Parameters
    ----------
    Y : ndarray of shape (n, d)
        Images.
    left_out : LeftOut
        Rows placed without themselves.

    Returns
    -------
    float
    """
    size = map_size(Y)
    errors = (left_out.coordinates - Y[left_out.rows]) / size
    return float(np.sqrt((errors**2).sum(axis=1)).mean())


def is_wide(model: Model) -> bool:
    """Tell a model of a smooth map, for which more neighbours are better.

    Parameters
    ----------
    model : Model
        A candidate.

    Returns
    -------
    bool
    """
    correlated = isinstance(model.weighting, Correlated) and model.loss == "squared"
    return correlated and model.order == 0 and model.n_neighbors >= WIDE


def sample_rows(n: int, count: int) -> np.ndarray:
    """Pick training rows, the same ones every time, fewer being a part of more.

    Parameters
    ----------
    n, count : int
        Size of the training set and of the sample.

    Returns
    -------
    ndarray of shape (min(n, count),)
    """
    return np.random.default_rng(0).permutation(n)[:count]


class Chooser:
    """Tries models on a map.

    Parameters
    ----------
    search : Search
        Finds neighbourhoods.
    Y : ndarray of shape (n, d)
        Images.
    curvature : float or None
        The paper's c; None estimates it.
    n_jobs : int or None
        Threads.
    """

    def __init__(
        self, search: Search, Y: np.ndarray, curvature: float | None, n_jobs: int | None
    ) -> None:
        self.search, self.Y, self.curvature, self.n_jobs = search, Y, curvature, n_jobs
        self.X = search.index.X
        self._wide: Wide | None = None
        self._unit: float | None = None

    def choose(self, given: Given) -> list[Trial]:
        """Try the candidates that agree with what is given; the chosen one comes first.

        Parameters
        ----------
        given : Given
            What the user fixed.

        Returns
        -------
        list of Trial
            The chosen one, then the others by rows tried and error.
        """
        models = self._candidates(given)
        trials: dict[Model, Trial] = {}
        for n_rows, stay in ROUNDS:
            rows = sample_rows(self.X.shape[0], n_rows)
            tried = [self.try_model(model, rows) for model in models]
            trials.update((trial.model, trial) for trial in tried)
            tried.sort(key=lambda trial: trial.error)
            limit = WORSE * tried[0].error + ROUNDING
            good = {trial.model for trial in tried[:stay] if trial.error <= limit}
            models = [model for model in models if model in good]
            if len(models) == 1 or len(rows) < n_rows:
                break
            if stay < ROUNDS[0][1] and is_wide(tried[0].model):
                break  # smooth maps have errors alike everywhere, and models that cost
        if given.n_neighbors is None and is_wide(tried[0].model):
            for model in self._wider(tried[0].model):
                trials[model] = self.try_model(model, rows)
        table = sorted(trials.values(), key=lambda trial: (-trial.n_rows, trial.error))
        last = [trial for trial in trials.values() if trial.n_rows == table[0].n_rows]
        limit = table[0].error * (1 + TIE) + ROUNDING
        chosen = next(trial for trial in last if trial.error <= limit)  # simplest first
        return [chosen, *(trial for trial in table if trial is not chosen)]

    def try_model(self, model: Model, rows: np.ndarray) -> Trial:
        """Leave-one-out error of one model.

        Parameters
        ----------
        model : Model
            The candidate.
        rows : ndarray of shape (s,)
            Training rows to leave out, one at a time.

        Returns
        -------
        Trial
        """
        begin = time.perf_counter()
        left_out = self.leave_out(model, rows)
        seconds = time.perf_counter() - begin
        return Trial(model, mean_error(self.Y, left_out), seconds, len(rows))

    def leave_out(self, model: Model, rows: np.ndarray) -> LeftOut:
        """Place training rows by all others.

        Parameters
        ----------
        model : Model
            How.
        rows : ndarray of shape (s,)
            Which.

        Returns
        -------
        LeftOut
        """
        Q = self.X[rows]
        around = self.around(rows, model.n_neighbors)
        the_map = self.prepare(model, around)
        return LeftOut(rows, around, solve(model, the_map, Q, around, self.n_jobs))

    def prepare(self, model: Model, around: Around) -> Map:
        """Constants that a model needs, from neighbourhoods of a sample of rows.

        Parameters
        ----------
        model : Model
            The model.
        around : Around
            The neighbourhoods.

        Returns
        -------
        Map
        """
        d = self.Y.shape[1]
        empty = Frames(np.empty((0, d, d)), np.empty((0, d)))
        curvature = 1.0 if self.curvature is None else self.curvature
        if not isinstance(model.weighting, str) or model.weighting == "distance":
            has_unit = isinstance(model.weighting, GaussianDistance)
            unit = self.typical_unit() if has_unit else 1.0
            return Map(self.X, self.Y, curvature, empty, unit)
        if self.curvature is None:
            spread = None
            if model.weighting != "split_tangent":
                spread = self._frames(around).spread
            curvature = geometry.typical_curvature(around.lengths, spread)
        frames = empty
        if model.weighting == "local_tangent":
            frames = self._frames(self.search.around(self.X, model.n_neighbors))
        return Map(self.X, self.Y, curvature, frames)

    def _frames(self, around: Around) -> Frames:
        return geometry.image_frames(self.Y, around.framed, around.lengths, self.n_jobs)

    def around(self, rows: np.ndarray, k: int) -> Around:
        """Neighbourhoods of training rows without themselves, from a search that all share.

        Parameters
        ----------
        rows : ndarray of shape (s,)
            Training rows.
        k : int
            Neighbours.

        Returns
        -------
        Around
        """
        Q = self.X[rows]
        if self.search.radius is not None:
            return self.search.around(Q, k, rows)
        wide = self._wide
        if wide is None or not np.array_equal(wide.rows[: len(rows)], rows) or wide.width <= k:
            width = max(WIDE, k, wide.width if wide is not None else 0)
            found = self.search.widest(Q, width + 1, rows)
            wide = self._wide = Wide(rows, found, len(found.indices) // len(rows))
        found, width = wide.near, wide.width
        part = Neighbors(
            found.indptr[: len(rows) + 1],
            found.indices[: len(rows) * width],
            found.distances[: len(rows) * width],
            found.inside[: len(rows)],
        )
        return self.search.narrowed(Q, part, k, rows)

    def _candidates(self, given: Given) -> list[Model]:
        """Models that agree with what is given, from the simplest to the most elaborate."""
        n, D = self.X.shape
        t = given.tangent_dim or (1 if given.order == 0 else self.tangent_dim())
        if given.weighting == "split_tangent" and given.tangent_dim is None:
            t = self._image_dim(min(n - 1, given.n_neighbors or PLAIN_SIZES[1]))
        in_ball = self.search.radius is not None
        return candidates(given, Shape(n, D, self.Y.shape[1]), t, in_ball)

    def tangent_dim(self) -> int:
        """Dimension of the manifold of the points, by local PCA on a few rows.

        Returns
        -------
        int
        """
        rows = sample_rows(self.X.shape[0], ROUNDS[0][0])
        near = self.search.index.nearest(self.X[rows], min(self.X.shape[0], 16))
        return geometry.ambient_dimension(self.X, near)

    def _image_dim(self, k: int) -> int:
        rows = sample_rows(self.X.shape[0], ROUNDS[0][0])
        return geometry.tangent_dimension(self._frames(self.around(rows, k)).spread)

    def _wider(self, model: Model) -> list[Model]:
        """Larger neighbourhoods, unless all points can be taken at once."""
        n = self.X.shape[0]
        return [model._replace(n_neighbors=k) for k in WIDER if GLOBAL_ROWS < n and k < n]

    def typical_unit(self) -> float:
        """Median distance of training rows to their 15th neighbour.

        Returns
        -------
        float
        """
        if self._unit is None:
            n = self.X.shape[0]
            rows = sample_rows(n, ROUNDS[-1][0])
            units = covariance.local_units(self.around(rows, min(n - 1, UNIT_NEIGHBOR)).near)
            self._unit = float(np.median(units[units > 0])) if (units > 0).any() else 1.0
        return self._unit
