"""The small records that travel between the stages: plain arrays with names.

Letters used for shapes everywhere: ``q`` queries, ``n`` training points, ``k`` neighbours of one
query, ``D`` ambient and ``d`` embedding dimension, ``t`` tangent dimension, ``m`` all neighbours
of a batch laid end to end.
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
    """The neighbourhoods of a batch of queries, nearest first, ties by training index.

    Row ``i`` owns the entries ``indptr[i]:indptr[i + 1]`` of the other arrays.

    Attributes
    ----------
    indptr : ndarray of shape (q + 1,)
        Where each row starts.
    indices : ndarray of shape (m,)
        Training rows.
    distances : ndarray of shape (m,)
        Their distances from the query.
    inside : ndarray of shape (q,)
        How many of the row lie inside the ball that was asked for. All of them in a search for
        a number of neighbours; fewer than the row holds where a ball was too empty.
    """

    indptr: np.ndarray
    indices: np.ndarray
    distances: np.ndarray
    inside: np.ndarray


class KNeighbors(NamedTuple):
    """The nearest training rows of points, nearest first; unpacks as scikit-learn's pair.

    Attributes
    ----------
    distances : ndarray of shape (q, k)
        How far they are, in the metric.
    indices : ndarray of shape (q, k)
        Rows of the X that was fitted.
    """

    distances: np.ndarray
    indices: np.ndarray


class Frames(NamedTuple):
    """Principal directions of image neighbourhoods, widest first.

    Attributes
    ----------
    axes : ndarray of shape (s, d, d)
        Eigenvectors of the covariance of Eq. 4.4, as columns.
    spread : ndarray of shape (s, d)
        Square roots of its eigenvalues: image length per ambient length.
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
        Whether ``axes`` belongs to training points.
    """

    deviations: np.ndarray
    exponent: np.ndarray
    axes: np.ndarray
    per_point: bool


class Placement(NamedTuple):
    """Where new points go, and how far to trust that.

    Attributes
    ----------
    coordinates : ndarray of shape (q, d)
        The extension of the map to the points, Eq. 2.8.
    error_bar : ndarray of shape (q,)
        Radius around the coordinates that holds the true image of 90 % (``level``) of points like
        the training ones: conformal, from leave-one-out errors over the error expected at the
        point. It grows away from the data.
    residual : ndarray of shape (q,)
        ``m(x)^2`` of Eq. 2.9 as the minimised least-squares objective,
        ``sum_j e_j' w_j e_j`` with ``e_j = psi(x_j) - psi(x)``. It grows with disagreement among
        the neighbours' images, and shrinks with their distance.
    dispersion : ndarray of shape (q,)
        ``m(x)^2`` of Eq. 2.9 with Eq. 2.4 to the letter, ``sum_j e_j' w_j^-1 e_j``. It grows with
        disagreement and with distance.
    off_manifold : ndarray of shape (q,)
        Distance of the point from the local PCA plane of its neighbours in the ambient space.
    isolation : ndarray of shape (q,)
        Mean distance of its neighbours.
    bound : ndarray of shape (q,)
        Certificate: no map with the given images and Lipschitz constant ``lipschitz_`` is further
        from ``coordinates`` than this.
    n_neighbors : ndarray of shape (q,)
        Neighbours found inside the ball (``radius``), 0 for an isolated point whose place comes
        from the nearest training points instead; with ``n_neighbors``, their number.

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
        """Return a table with one row a point: the coordinates, then the numbers about them.

        Parameters
        ----------
        columns : sequence of d str, default=None
            Names of the coordinates; None is ``map_1``, ``map_2``, ...
        index : sequence of shape (q,), default=None
            Names of the points: the index of a pandas frame; polars has none, so that they become
            its first column, under the index's own name or ``index``.
        kind : {"pandas", "polars"}, default="pandas"
            What to make.

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
    """A `Placement` with what `NoveltyDetector` thinks of the points.

    Attributes
    ----------
    coordinates, error_bar, residual, dispersion, off_manifold, isolation, bound, n_neighbors
        As in `Placement`.
    abnormality : ndarray of shape (q,)
        How strange the points are; 0 is typical.
    p_value : ndarray of shape (q,)
        Conformal p-values.
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
        """Return a table with one row a point; see `Placement.to_frame`.

        Parameters
        ----------
        columns : sequence of d str, default=None
            Names of the coordinates; None is ``map_1``, ``map_2``, ...
        index : sequence of shape (q,), default=None
            Names of the points.
        kind : {"pandas", "polars"}, default="pandas"
            What to make.

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
