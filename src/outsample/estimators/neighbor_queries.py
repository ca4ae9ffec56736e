"""Training rows near new points, and their weights in the placement."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from outsample._validation import check_number, check_rows
from outsample.neighbors.duplicates import Duplicates
from outsample.neighbors.index import NeighborIndex
from outsample.neighbors.neighborhoods import Search
from outsample.neighbors.truncation import first_counts
from outsample.placers.map_model import MapModel
from outsample.points import Points
from outsample.records import KNeighbors, Neighbors, Weights


@dataclass(frozen=True, eq=False)
class TrainingState:
    """Distinct training points, and the rows of X (of ``n_rows``) that they represent.

    ``model`` is None without a map, and for extensions without neighbour weights.
    ``images`` (rows, d) is the map, None without one.
    """

    index: NeighborIndex
    duplicates: Duplicates
    metric: str
    model: MapModel | None
    rows: np.ndarray
    n_rows: int
    images: np.ndarray | None


class NeighborQueriesMixin:
    """Estimator that returns the training rows near new points."""

    @abstractmethod
    def _training_state(self) -> TrainingState:
        """Return the training points and how they are searched."""

    @property
    def recall_(self) -> float:
        """Share of true neighbours that the search returns for a sample: 1 if it is exact."""
        return self._training_state().index.recall

    def kneighbors(self, X: Any, n_neighbors: int = 15) -> KNeighbors:
        """Return the nearest training rows of new points, nearest first, as in scikit-learn.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (q, D)
            Points.
        n_neighbors : int, default=15
            Number of neighbours, at most the number of training rows.

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
        state = self._training_state()
        check_number("n_neighbors", n_neighbors, 1, len(state.rows), whole=True)
        Q = check_rows(self, X)[0]
        distances, indices = nearest_rows(state, Q, int(n_neighbors), state.metric)
        return KNeighbors(distances, state.rows[indices])

    def neighbor_weights(self, X: Any) -> sparse.csr_matrix:
        r"""Return the weight of each training row in the placement of new points.

        The shares ``v_j / sum_i v_i``, with ``v_j`` the trace of the weight ``w_j`` of neighbour
        j. Multiplied by a column of the training rows they transfer it to the new points: the mean
        of numbers, the votes for labels. Where the placement is a plain weighted mean
        (``order=0, loss="squared"``) they are the weights of Eq. 2.8. Placers without weights, such
        as kriging, use those of Eq. 4.3, ``v_j = r_j^-2``; a blend uses the mean of its parts.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (q, D)
            Points.

        Returns
        -------
        scipy.sparse.csr_matrix of shape (q, n)
            Not negative; each row sums to 1. Columns are the rows of the fitted X. Duplicate rows
            share the weight of their point equally. A point that coincides with a training point
            has all its weight there.

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
        state = self._training_state()
        model, m = state.model, state.index.X.shape[0]
        if model is None:
            raise ValueError(
                "There are no weights: pass the images to fit, and use PCAExtension to extend the "
                "map."
            )
        weight_chunks = []
        for queries in model.search.chunks(check_rows(self, X)[0], state.metric):
            chunk_weights = sparse.csr_matrix((queries.shape[0], m))
            for share, near, weights in model.fitted.weights_of_parts(model.around(queries)):
                values = share * neighbor_shares(near, weights)
                matrix = (values, near.indices, near.indptr)
                chunk_weights += sparse.csr_matrix(matrix, shape=chunk_weights.shape)
            weight_chunks.append(chunk_weights)
        row_weights = sparse.vstack(weight_chunks, format="csr") @ _rows_of_points(state)
        row_weights.sort_indices()
        return row_weights


def nearest_rows(state: TrainingState, Q: Points, k: int, metric: str = "euclidean") -> KNeighbors:
    """Return the k nearest training rows, as positions in ``state.rows``.

    ``metric`` is that of the state, or euclidean for queries that are in the metric already.
    """

    def answer(queries: Points) -> tuple[np.ndarray, np.ndarray]:
        near = state.index.nearest(queries, min(k, state.index.X.shape[0]))
        near = _expand_duplicates(near, state.duplicates)
        near = first_counts(near, np.full(queries.shape[0], k))
        return near.distances.reshape(-1, k), near.indices.reshape(-1, k)

    distances, indices = Search(state.index, None, None, 1).map_chunks(answer, Q, metric)
    if state.metric == "cosine":
        distances = distances**2 / 2  # from the length of a chord
    return KNeighbors(distances, indices)


def neighbor_shares(near: Neighbors, weights: Weights) -> np.ndarray:
    """Return the shares (m,) of the neighbours in each placement, by the traces of weights."""
    counts, starts = np.diff(near.indptr), near.indptr[:-1]
    deviations = np.where(weights.deviations > 0, weights.deviations, 0.0)
    coincides = (deviations == 0).all(axis=1)
    any_coincides = np.repeat(np.logical_or.reduceat(coincides, starts), counts)
    unit = np.minimum.reduceat(np.where(deviations > 0, deviations, np.inf).min(axis=1), starts)
    relative = np.repeat(np.where(np.isfinite(unit), unit, 1.0), counts)[:, None]
    traces = ((relative / np.where(deviations > 0, deviations, np.inf)) ** 2).sum(axis=1)
    traces = np.where(any_coincides, coincides, traces)
    # bincount adds in order, whatever the number of queries: the same bits alone and in a batch.
    rows = np.repeat(np.arange(len(counts)), counts)
    return traces / np.bincount(rows, traces, minlength=len(counts))[rows]


def _expand_duplicates(near: Neighbors, duplicates: Duplicates) -> Neighbors:
    """Return neighbourhoods of rows from those of distinct points, with all duplicates."""
    n_rows = duplicates.counts[near.indices]
    members = np.argsort(duplicates.groups, kind="stable")
    starts = np.concatenate([[0], np.cumsum(duplicates.counts)])
    ends = np.concatenate([[0], np.cumsum(n_rows)])
    at = np.arange(ends[-1]) + np.repeat(starts[near.indices] - ends[:-1], n_rows)
    indptr = ends[near.indptr]
    return Neighbors(indptr, members[at], np.repeat(near.distances, n_rows), np.diff(indptr))


def _rows_of_points(state: TrainingState) -> sparse.csr_matrix:
    """Return the matrix (m, n) from distinct points to rows of X; duplicates share equally."""
    groups, rows = state.duplicates.groups, state.rows
    if state.duplicates.is_one_point:
        groups, rows = np.repeat([0, 1], len(rows)), np.tile(rows, 2)
    shares = 1.0 / state.duplicates.n_equal[groups]
    shape = (len(state.duplicates.rows), state.n_rows)
    return sparse.csr_matrix((shares, (groups, rows)), shape=shape)
