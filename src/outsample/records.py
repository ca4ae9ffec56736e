"""Records of arrays that several packages share.

Letters for shapes: ``q`` queries, ``n`` training points, ``k`` neighbours of a query, ``D`` ambient
and ``d`` embedding dimension, ``t`` tangent dimension, ``m`` neighbours of all queries together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outsample.placed_frame import frame

Reals = NDArray[np.floating[Any]]  # float32 or float64, as the points are
Counts = NDArray[np.integer[Any]]


class Neighbors(NamedTuple):
    """Neighbours of queries, nearest first, ties by training index, in compressed rows.

    The neighbours of query ``i`` are the entries ``indptr[i]:indptr[i + 1]``.

    Attributes
    ----------
    indptr : ndarray of shape (q + 1,)
        Start of each query's entries.
    indices : ndarray of shape (m,)
        Training rows.
    distances : ndarray of shape (m,)
        Their distances from the query.
    inside : ndarray of shape (q,)
        Number of neighbours inside the search radius. In a search for k neighbours, all of them;
        in a search by radius, fewer than the row has if the ball contains too few points.
    """

    indptr: np.ndarray
    indices: np.ndarray
    distances: np.ndarray
    inside: np.ndarray


class KNeighbors(NamedTuple):
    """The k nearest training rows of each query, nearest first; unpacks like scikit-learn's pair.

    Attributes
    ----------
    distances : ndarray of shape (q, k)
        Distances in the metric.
    indices : ndarray of shape (q, k)
        Rows of the X passed to ``fit``.
    """

    distances: np.ndarray
    indices: np.ndarray


class Frames(NamedTuple):
    """Principal directions of neighbourhoods on the map, widest first.

    Attributes
    ----------
    axes : ndarray of shape (s, d, d)
        Eigenvectors of the covariance of Eq. 4.4, as columns.
    spread : ndarray of shape (s, d)
        Square roots of its eigenvalues: length on the map per ambient length.
    """

    axes: np.ndarray
    spread: np.ndarray


class Weights(NamedTuple):
    """Standard deviations s of the errors of Eq. 2.1; a weight is ``1 / s^2``.

    The block of neighbour ``j`` is ``w_j = B diag(s_j)^-2 B'``. Deviations are stored relative to
    one another, with one power of two per query, so that no distance over- or underflows.

    Attributes
    ----------
    deviations : ndarray of shape (m, 1) or (m, d)
        Relative deviations along the axes; 0 marks a neighbour that coincides with the query.
    exponent : ndarray of shape (q,)
        The deviations of query ``i`` are ``deviations * 2 ** exponent[i]``.
    axes : ndarray of shape (q, d, d), (n, d, d) or (0, 0, 0)
        The bases ``B`` as columns: one per query, one per training point, or none (identity).
    per_point : bool
        True if there is one basis per training point.
    """

    deviations: np.ndarray
    exponent: np.ndarray
    axes: np.ndarray
    per_point: bool


class Placement(NamedTuple):
    """Positions of new points on the map, and how far to trust them.

    Attributes
    ----------
    coordinates : ndarray of shape (q, d)
        The extension of the map to the points, Eq. 2.8.
    error_bar : ndarray of shape (q,)
        Radius around the coordinates that contains the true position for 90 % (``level``) of points
        from the training distribution. It is a conformal quantile of leave-one-out errors relative
        to the error expected at the point, and grows away from the data.
    residual : ndarray of shape (q,)
        ``m(x)^2`` of Eq. 2.9 as the minimised least-squares objective,
        ``sum_j e_j' w_j e_j`` with ``e_j = psi(x_j) - psi(x)``. It grows with disagreement among
        the neighbours' positions, and shrinks with their distance.
    dispersion : ndarray of shape (q,)
        ``m(x)^2`` of Eq. 2.9 with ``W`` of Eq. 2.4 read literally, ``sum_j e_j' w_j^-1 e_j``. It
        grows with disagreement and with distance.
    off_manifold : ndarray of shape (q,)
        Distance of the point from the local PCA plane of its neighbours in the ambient space.
    isolation : ndarray of shape (q,)
        Mean distance to the neighbours.
    bound : ndarray of shape (q,)
        Certificate: if the map has the Lipschitz constant ``lipschitz_``, the true position is at
        most ``bound`` away from ``coordinates``.
    n_neighbors : ndarray of shape (q,)
        With ``radius``, the number of neighbours in the ball; 0 for an isolated point, which is
        placed by its nearest training points instead. With ``n_neighbors``, their number.

    Examples
    --------
    >>> import numpy as np
    >>> from outsample import PCAExtension
    >>> X = np.linspace(0, 1, 11)[:, None]
    >>> placed = PCAExtension(radius=0.15, order=0, loss="squared").fit(X, X**2).place([[0.42]])
    >>> placed.n_neighbors
    array([3])
    """

    coordinates: Reals
    error_bar: Reals
    residual: Reals
    dispersion: Reals
    off_manifold: Reals
    isolation: Reals
    bound: Reals
    n_neighbors: Counts

    def to_frame(
        self, columns: Sequence[str] | None = None, index: Any = None, kind: str = "pandas"
    ) -> Any:
        """Return a data frame with one row per point: coordinates, then the other fields.

        Parameters
        ----------
        columns : sequence of d str, default=None
            Names of the coordinates; the default is ``map_1``, ``map_2``, ...
        index : sequence of shape (q,), default=None
            Index of a pandas frame. In a polars frame it becomes the first column, under the name
            of the index or ``index``.
        kind : {"pandas", "polars"}, default="pandas"
            Library of the data frame.

        Returns
        -------
        pandas.DataFrame or polars.DataFrame

        Examples
        --------
        >>> import numpy as np
        >>> from outsample import PCAExtension
        >>> X = np.linspace(0, 1, 11)[:, None]
        >>> placed = PCAExtension(radius=0.15, order=0, loss="squared").fit(X, X).place([[0.42]])
        >>> placed.to_frame(["x"], index=["new"]).loc["new", ["x", "n_neighbors"]].round(2)
        x              0.4
        n_neighbors    3.0
        Name: new, dtype: float64
        """
        return frame(self, columns, index, kind)


class JudgedPlacement(NamedTuple):
    """A `Placement` with the scores of `NoveltyDetector`.

    Attributes
    ----------
    coordinates, error_bar, residual, dispersion, off_manifold, isolation, bound, n_neighbors
        As in `Placement`.
    abnormality : ndarray of shape (q,)
        Abnormality score; 0 is typical.
    p_value : ndarray of shape (q,)
        Conformal p-value: the share of points from the training distribution that are at least as
        unusual.
    """

    coordinates: Reals
    error_bar: Reals
    residual: Reals
    dispersion: Reals
    off_manifold: Reals
    isolation: Reals
    bound: Reals
    n_neighbors: Counts
    abnormality: Reals
    p_value: Reals

    def to_frame(
        self, columns: Sequence[str] | None = None, index: Any = None, kind: str = "pandas"
    ) -> Any:
        """Return a data frame with one row per point; see `Placement.to_frame`.

        Parameters
        ----------
        columns : sequence of d str, default=None
            Names of the coordinates; the default is ``map_1``, ``map_2``, ...
        index : sequence of shape (q,), default=None
            Index of a pandas frame, or first column of a polars frame.
        kind : {"pandas", "polars"}, default="pandas"
            Library of the data frame.

        Returns
        -------
        pandas.DataFrame or polars.DataFrame

        Examples
        --------
        >>> import numpy as np
        >>> from outsample import NoveltyDetector
        >>> X = np.random.default_rng(0).random((100, 2))
        >>> placed = NoveltyDetector().fit(X, X).place([[0.5, 0.5], [2.0, 2.0]])
        >>> list(placed.to_frame().columns)[:5]
        ['map_1', 'map_2', 'error_bar', 'abnormality', 'p_value']
        """
        return frame(self, columns, index, kind)
