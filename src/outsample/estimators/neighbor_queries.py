"""Who is around new points: the nearest training rows, and how much each counts."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from outsample._validation import check_number, check_queries
from outsample.neighbors.duplicates import Distinct
from outsample.neighbors.index import NeighborIndex
from outsample.neighbors.neighborhoods import Search
from outsample.neighbors.truncation import first_counts
from outsample.placers.map_model import MapModel
from outsample.points import Points, in_metric
from outsample.records import KNeighbors, Neighbors, Weights


@dataclass(frozen=True, eq=False)
class TrainingState:
    """What was fitted: distinct points, and the rows of X (of ``n_rows``) that they come from.

    ``model`` is None where there are no weights: without a map, or where the map is extended by
    something that has none; ``images`` (rows, d) is the map, if it is known.
    """

    index: NeighborIndex
    distinct: Distinct
    metric: str
    model: MapModel | None
    rows: np.ndarray
    n_rows: int
    images: np.ndarray | None


class NeighborQueriesMixin:
    """Estimator that can tell which training rows are near new points."""

    @abstractmethod
    def _training_state(self) -> TrainingState:
        """Return what was fitted."""

    @property
    def recall_(self) -> float:
        """Share of the neighbours that the search finds, on a sample: 1 if it is exact."""
        return self._training_state().index.recall

    def kneighbors(self, X: Any, n_neighbors: int = 15) -> KNeighbors:
        """Nearest training rows of new points, nearest first, as in scikit-learn.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (q, D)
            Points.
        n_neighbors : int, default=15
            How many; at most as many as there are training rows.

        Returns
        -------
        KNeighbors
            ``distances`` and ``indices``, both (q, n_neighbors).

        Examples
        --------
        >>> from outsample import PCAExtension
        >>> X = [[0.0], [1.0], [3.0], [3.0]]
        >>> extension = PCAExtension(n_neighbors=2, order=0).fit(X, X)
        >>> distances, rows = extension.kneighbors([[2.5]], n_neighbors=3)
        >>> rows.tolist(), distances.tolist()
        ([[2, 3, 1]], [[0.5, 0.5, 1.5]])
        """
        check_is_fitted(self)
        known = self._training_state()
        check_number("n_neighbors", n_neighbors, 1, len(known.rows), whole=True)
        Q = in_metric(check_queries(self, X)[0], known.metric)
        distances, indices = nearest_rows(known, Q, int(n_neighbors))
        return KNeighbors(distances, known.rows[indices])

    def neighbor_weights(self, X: Any) -> sparse.csr_matrix:
        r"""How much each training row counts in the places of new points.

        The shares ``v_j / sum_i v_i``, with ``v_j`` the trace of the weight ``w_j`` of neighbour
        j. Times a column about the training rows they say what it is at the new points: the
        mean of numbers, the votes for labels. Where the place itself is a plain weighted mean
        (``order=0, loss="squared"``) they are the very weights of Eq. 2.8. Placers that have no
        weights of their own, such as kriging, have those of Eq. 4.3, ``v_j = r_j^-2``; a blend has
        the mean of its parts', by their shares.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (q, D)
            Points.

        Returns
        -------
        scipy.sparse.csr_matrix of shape (q, n)
            0 or more, rows of sum one; columns are the rows of X that was fitted. Rows that
            are copies of one another share alike. A point that coincides with a training point
            has its weight there.

        Examples
        --------
        >>> import numpy as np
        >>> from outsample import PCAExtension
        >>> X = np.array([[0.0], [1.0], [3.0]])
        >>> extension = PCAExtension(n_neighbors=2, weighting="distance", order=0, loss="squared")
        >>> weights = extension.fit(X, X).neighbor_weights([[0.5], [2.5], [3.0]])
        >>> weights.toarray().round(2)
        array([[0.5, 0.5, 0. ],
               [0. , 0.1, 0.9],
               [0. , 0. , 1. ]])
        """
        check_is_fitted(self)
        known = self._training_state()
        if known.model is None:
            raise ValueError(
                "There are no weights: fit needs the images as well, and PCAExtension to extend "
                "the map."
            )
        Q = in_metric(check_queries(self, X)[0], known.metric)
        parts = []
        for rows in known.model.search.batches(Q):
            near, shape = known.model.around(rows), (rows.shape[0], known.index.X.shape[0])
            weights = sparse.csr_matrix(shape)
            for share, found, each in known.model.fitted.weights_of_parts(near):
                values = share * neighbor_shares(found, each)
                weights += sparse.csr_matrix((values, found.indices, found.indptr), shape=shape)
            parts.append(weights)
        found = sparse.vstack(parts, format="csr") @ _rows_of_points(known)
        found.sort_indices()
        return found


def nearest_rows(known: TrainingState, Q: Points, k: int) -> KNeighbors:
    """Nearest of ``known.rows`` by position, of queries that are in the metric already."""
    parts = []
    for some in Search(known.index, None, None, 1).batches(Q):
        near = known.index.nearest(some, min(k, known.index.X.shape[0]))
        near = first_counts(_with_copies(near, known.distinct), np.full(some.shape[0], k))
        parts.append((near.distances.reshape(-1, k), near.indices.reshape(-1, k)))
    distances, indices = (np.concatenate(part) for part in zip(*parts, strict=True))
    if known.metric == "cosine":
        distances = distances**2 / 2  # of chords
    return KNeighbors(distances, indices)


def neighbor_shares(near: Neighbors, weights: Weights) -> np.ndarray:
    """Shares (m,) of the neighbours in each place, of sum one a query, by traces of weights."""
    counts, starts = np.diff(near.indptr), near.indptr[:-1]
    deviations = np.where(weights.deviations > 0, weights.deviations, 0.0)
    on_it = (deviations == 0).all(axis=1)
    some_on_it = np.repeat(np.logical_or.reduceat(on_it, starts), counts)
    unit = np.minimum.reduceat(np.where(deviations > 0, deviations, np.inf).min(axis=1), starts)
    relative = np.repeat(np.where(np.isfinite(unit), unit, 1.0), counts)[:, None]
    traces = ((relative / np.where(deviations > 0, deviations, np.inf)) ** 2).sum(axis=1)
    traces = np.where(some_on_it, on_it, traces)
    # Summed in order, however many queries there are: the same bits alone and in a batch.
    rows = np.repeat(np.arange(len(counts)), counts)
    return traces / np.bincount(rows, traces, minlength=len(counts))[rows]


def _with_copies(near: Neighbors, distinct: Distinct) -> Neighbors:
    """Neighbourhoods of distinct points as those of rows: every copy is a neighbour."""
    copies = distinct.counts[near.indices]
    members = np.argsort(distinct.groups, kind="stable")
    starts = np.concatenate([[0], np.cumsum(distinct.counts)])
    ends = np.concatenate([[0], np.cumsum(copies)])
    at = np.arange(ends[-1]) + np.repeat(starts[near.indices] - ends[:-1], copies)
    indptr = ends[near.indptr]
    return Neighbors(indptr, members[at], np.repeat(near.distances, copies), np.diff(indptr))


def _rows_of_points(known: TrainingState) -> sparse.csr_matrix:
    """Matrix (m, n) from distinct points to rows of X; copies share alike."""
    groups, rows = known.distinct.groups, known.rows
    if known.distinct.is_one_point:
        groups, rows = np.repeat([0, 1], len(rows)), np.tile(rows, 2)
    shares = 1.0 / known.distinct.n_equal[groups]
    shape = (len(known.distinct.rows), known.n_rows)
    return sparse.csr_matrix((shares, (groups, rows)), shape=shape)
