"""The paper's estimator: weighted least squares over the neighbours' images."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from outsample._validation import (
    check_choice,
    check_jobs,
    check_number,
    check_queries,
    check_training,
)
from outsample.estimators.map_extension import MapExtension
from outsample.neighbors.index import INDEXES, NeighborIndex
from outsample.neighbors.neighborhoods import Around, Search
from outsample.placers import gls
from outsample.placers.candidates import WIDE, Given
from outsample.placers.covariance import KINDS, UNIT_NEIGHBOR, Correlated
from outsample.placers.decision import decide
from outsample.placers.model import Map, Model, Weighting, is_whole, neighbor_weights, solve
from outsample.placers.selection import Chooser, LeftOut, Trial, mean_error
from outsample.placers.transitions import Diffusion
from outsample.placers.weights import WEIGHTINGS, GaussianDistance, InverseDistance
from outsample.points import Points, in_chords, in_metric
from outsample.records import Placement
from outsample.trust import bounds
from outsample.trust import error_bars as calibration
from outsample.trust.error_bars import ErrorBars
from outsample.trust.planes import plane_distances

CHUNK_ROWS = 4096
# The Lipschitz constant looks at no fewer neighbours than this.
LIPSCHITZ_NEIGHBORS = 10


class PCAExtension(MapExtension):
    r"""Place new points into an existing map by PCA-based out-of-sample extension.

    ``fit(X, Y)`` takes points and their images under *any* map. A new point ``x`` is put at the
    generalized least squares solution over the images of its neighbours (Eq. 2.8, 5.3),

    ``psi(x) = (sum_j w_j)^-1 sum_j w_j psi(x_j)``,

    with weights ``w_j`` that fall with the distance ``r_j`` of ``x`` and ``x_j`` and, in the
    tangent weightings, know the local directions of the map. Beyond the paper, the constant can
    be a local polynomial, the squares absolute values, the errors correlated. What is left at
    ``"auto"`` is chosen by leave-one-out over a sample of the training points, the same way every
    time; ``weighting="tangent", order=0, loss="squared"`` is the paper's method.

    Parameters
    ----------
    n_neighbors : int or "auto", default="auto"
        Number of nearest training points to use. With ``radius``: the least number, ``"auto"``
        being d as the paper asks. All of them, with correlated errors, is one Gaussian process
        over the whole training set, factored once.
    radius : float, default=None
        The paper's epsilon (Eq. 4.1): use all training points within it. A ball with too few of
        them is replaced by the nearest ones, and ``Placement.n_neighbors`` tells.
    weighting : str, InverseDistance, GaussianDistance, Correlated, Diffusion or callable
        By default ``"auto"``.

        - ``"distance"``: ``w_j = r_j^-2 I`` (Eq. 4.3); ``InverseDistance(p)``: ``r_j^-p I``;
          ``GaussianDistance(length)``: ``r_j^-2 exp(-r_j^2 / l^2) I``;
        - ``"tangent"``: ``w_j = (r_j^2 C + (r_j / c)^4 I)^-1`` (Eq. 4.5), with ``C`` the
          covariance of the neighbours' images (Eq. 4.4);
        - ``"local_tangent"``: the same with ``C_j`` of the neighbourhood of ``x_j`` (Table 7.1);
        - ``"split_tangent"``: ``r_j^-2`` along the tangent, ``(c / r_j)^4`` across it
          (Section 4.2);
        - ``"correlated"``: Eq. 2.3 with a full covariance of the neighbours' errors (kriging),
          chosen on the data; ``Correlated(covariance, length, nugget)`` gives it;
        - ``"diffusion"``: the Nyström extension by transition probabilities over all training
          points, its length chosen on the data; ``Diffusion(length, ridge)`` gives it;
        - a function of an array of distances that returns the weights.
    order : {0, 1, 2} or "auto", default="auto"
        Degree of the local polynomial, in coordinates of the local PCA plane of the points; 0 is
        the paper's. The error is O(h^(order + 1)) for a smooth map sampled at distance h.
    loss : {"squared", "absolute"} or "auto", default="auto"
        What is summed over the neighbours: the squares of Mahalanobis distances as in the paper,
        or the distances themselves, which lands on one shred of a torn map instead of between
        two. With correlated errors, ``"absolute"`` drops the neighbours that disagree with the
        geometric median of the nearest ones.
    curvature : float or "auto", default="auto"
        The paper's c. It has units; ``"auto"`` takes the value at which, in the typical
        neighbourhood of the training set, both terms of Eq. 4.5 are equal at its edge, so that
        scaling X or Y changes nothing.
    tangent_radius : float, default=None
        The paper's eps1 (Eq. 4.4): radius of the neighbourhood for ``C``. By default the
        neighbours in use.
    tangent_dim : int or "auto", default="auto"
        Dimension of the tangent coordinates of orders 1 and 2, at most D, and of the tangent of
        ``"split_tangent"``, at most d. ``"auto"`` estimates it by local PCA.
    lipschitz : float or "auto", default="auto"
        K of the certificate ``Placement.bound``. Given, the certificate is a guarantee for every
        K-Lipschitz map; ``"auto"`` takes the largest ratio seen between training neighbours,
        which can be less than the true K.
    metric : {"euclidean", "cosine"}, default="euclidean"
        Distance between points. With ``"cosine"`` the points are scaled to length 1; radii are
        cosine distances, and orders above 0 are not available.
    index : {"auto", "kd_tree", "brute"}, default="auto"
        How neighbours are searched. All are exact and give the same answer.
    n_jobs : int, default=None
        Threads, as in scikit-learn: None is 1, -1 all cores.

    Attributes
    ----------
    selection_ : list of Trial
        What was tried for the parameters left at ``"auto"``: model, leave-one-out error over the
        size of the map, seconds, rows. The chosen one comes first. Empty if nothing was open.
    loo_error_ : float
        Leave-one-out error of the model in force, over the root mean square size of the map.
    n_neighbors_, weighting_, order_, loss_, tangent_dim_, curvature_
        The settings in force.
    embedding_ : ndarray of shape (n, d)
        The images.
    index_ : NeighborIndex
        The neighbour search.
    lipschitz_ : float
        K of the certificates.
    manifold_dim_ : int
        Dimension of the planes of ``Placement.off_manifold``, by local PCA of the points.
    left_out_ : LeftOut
        A sample of training points, with their neighbours and where these place them.
    n_features_in_ : int
        D.

    See Also
    --------
    Extended : Give any embedding a ``transform``.

    References
    ----------
    Y. Aizenbud, A. Bermanis, A. Averbuch, "PCA-Based Out-of-Sample Extension for Dimensionality
    Reduction", arXiv:1511.00831.

    Examples
    --------
    >>> import numpy as np
    >>> from outsample import PCAExtension
    >>> X = np.random.default_rng(0).random((500, 2))
    >>> Y = np.column_stack([X, (X**2).sum(axis=1)])        # a paraboloid
    >>> extension = PCAExtension(radius=0.1, weighting="tangent", order=0, loss="squared")
    >>> placed = extension.fit(X, Y).place([[0.5, 0.5]])
    >>> bool(abs(placed.coordinates[0, 2] - 0.5) < 0.05)
    True
    """

    embedding_: np.ndarray
    index_: NeighborIndex
    search_: Search
    model_: Model
    map_: Map
    selection_: list[Trial]
    loo_error_: float
    error_bars_: ErrorBars
    lipschitz_: float
    manifold_dim_: int
    left_out_: LeftOut

    def __init__(
        self,
        *,
        n_neighbors: int | Literal["auto"] = "auto",
        radius: float | None = None,
        weighting: Weighting = "auto",
        order: int | Literal["auto"] = "auto",
        loss: str = "auto",
        curvature: float | Literal["auto"] = "auto",
        tangent_radius: float | None = None,
        tangent_dim: int | Literal["auto"] = "auto",
        lipschitz: float | Literal["auto"] = "auto",
        metric: str = "euclidean",
        index: str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.weighting = weighting
        self.order = order
        self.loss = loss
        self.curvature = curvature
        self.tangent_radius = tangent_radius
        self.tangent_dim = tangent_dim
        self.lipschitz = lipschitz
        self.metric = metric
        self.index = index
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any) -> PCAExtension:
        """Learn the map from points and their images.

        Parameters
        ----------
        X : array-like of shape (n, D)
            Points.
        y : array-like of shape (n, d)
            Their images under the map; any map.

        Returns
        -------
        self
        """
        X, Y = check_training(self, X, y)
        n, d = X.shape[0], Y.shape[1]
        given = self._given(n, d, sparse.issparse(X))
        self.embedding_ = Y
        self.index_ = NeighborIndex(in_metric(X, self.metric), self.index, self.n_jobs)
        self.search_ = Search(
            self.index_,
            in_chords(self.radius, self.metric),
            in_chords(self.tangent_radius, self.metric),
            least_framed=min(n, d + 1),
        )
        curvature = None if self.curvature == "auto" else float(self.curvature)
        chooser = Chooser(self.search_, Y, curvature, self.n_jobs)
        self.model_, self.map_, self.selection_, left_out = decide(chooser, given)
        self.loo_error_ = mean_error(Y, left_out)
        self.manifold_dim_ = chooser.tangent_dim()
        self.left_out_ = left_out
        self._calibrate(left_out)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Coordinates of new points, and nothing that is not needed for them.

        Parameters
        ----------
        X : array-like of shape (q, D)
            New points.

        Returns
        -------
        ndarray of shape (q, d)
            float32 for float32 points, else float64.
        """
        check_is_fitted(self)
        X, dtype = check_queries(self, X)
        X = in_metric(X, self.metric)
        parts = [self._coordinates(rows) for rows in _chunks(X)]
        return np.concatenate(parts).astype(dtype, copy=False)

    def place(self, X: Any) -> Placement:
        """Coordinates of new points with what is known about their quality.

        Parameters
        ----------
        X : array-like of shape (q, D)
            New points.

        Returns
        -------
        Placement
        """
        check_is_fitted(self)
        X, dtype = check_queries(self, X)
        X = in_metric(X, self.metric)
        parts = [self._place(rows, dtype) for rows in _chunks(X)]
        return Placement(*(np.concatenate(field) for field in zip(*parts, strict=True)))

    @property
    def n_neighbors_(self) -> int:
        """Number of neighbours in use, or the least number in a ball."""
        return self.model_.n_neighbors

    @property
    def weighting_(self) -> Weighting:
        """Weighting in use."""
        return self.model_.weighting

    @property
    def order_(self) -> int:
        """Degree of the local polynomial in use."""
        return self.model_.order

    @property
    def loss_(self) -> str:
        """Loss in use."""
        return self.model_.loss

    @property
    def tangent_dim_(self) -> int:
        """Tangent dimension in use."""
        return self.model_.tangent_dim

    @property
    def curvature_(self) -> float:
        """The paper's c in use."""
        return self.map_.curvature

    @property
    def _n_features_out(self) -> int:
        return self.embedding_.shape[1]

    def _around(self, X: Points) -> Around:
        """Neighbourhoods; a process over all points is judged by its nearest ones."""
        k = self.model_.n_neighbors
        if self.map_.process is not None:
            k = min(k, UNIT_NEIGHBOR)
        return self.search_.around(X, k)

    def _coordinates(self, X: Points) -> np.ndarray:
        around = None if self.map_.process is not None else self._around(X)
        return solve(self.model_, self.map_, X, around, self.n_jobs)

    def _place(self, X: Points, dtype: np.dtype) -> Placement:
        Y, around, n_jobs = self.embedding_, self._around(X), self.n_jobs
        near = around.near
        weights = neighbor_weights(self.model_, self.map_, around, n_jobs)
        coordinates = solve(self.model_, self.map_, X, around, n_jobs, weights)
        residual, dispersion = gls.disagreement(Y, near, weights, coordinates, n_jobs)
        # The certificate and the bar speak of the coordinates as they are handed out.
        coordinates = coordinates.astype(dtype, copy=False)
        wide = coordinates.astype(np.float64, copy=False)
        spread = calibration.image_spread(Y, near, wide, n_jobs)
        bars = calibration.radii(self.error_bars_, spread, near.distances[near.indptr[:-1]])
        bound = bounds.certificates(Y, near, self.lipschitz_, wide, n_jobs)
        off_manifold = plane_distances(self.index_.X, X, near, self.manifold_dim_, n_jobs)
        isolation = np.add.reduceat(near.distances, near.indptr[:-1]) / np.diff(near.indptr)
        return Placement(
            coordinates, bars, residual, dispersion, off_manifold, isolation, bound, near.inside
        )

    def _calibrate(self, left_out: LeftOut) -> None:
        """Set K and the error bars, from training rows placed by the others."""
        Y, rows, near = self.embedding_, left_out.rows, left_out.around.near
        n = len(Y)
        # Never of fewer rows than these, and one more for the row itself.
        k = min(n, 1 + max(min(self.n_neighbors_, WIDE), LIPSCHITZ_NEIGHBORS))
        close = self.index_.nearest(self.index_.X[rows], k)
        slopes = bounds.lipschitz_estimates(Y, rows, close, self.n_jobs)
        self.lipschitz_ = float(slopes.max() if self.lipschitz == "auto" else self.lipschitz)
        errors = np.linalg.norm(left_out.coordinates - Y[rows], axis=1)
        spread = calibration.image_spread(Y, near, left_out.coordinates, self.n_jobs)
        nearest = near.distances[near.indptr[:-1]]
        widest = float(np.linalg.norm(np.ptp(Y, axis=0)))
        self.error_bars_ = calibration.calibrate(errors, spread, nearest, slopes, widest)

    def _given(self, n: int, d: int, is_sparse: bool) -> Given:
        """Check the parameters; None where the choice is left to the data."""
        if self.n_neighbors != "auto":
            check_number("n_neighbors", self.n_neighbors, 1, n, whole=True)
        if self.radius is not None:
            check_number("radius", self.radius, 0, np.inf, open_below=True)
        if self.tangent_radius is not None:
            check_number("tangent_radius", self.tangent_radius, 0, np.inf, open_below=True)
        self._check_weighting()
        check_choice("order", self.order, ["auto", 0, 1, 2])
        check_choice("loss", self.loss, ["auto", "squared", "absolute"])
        if self.curvature != "auto":
            check_number("curvature", self.curvature, 0, np.inf, open_below=True)
        if self.tangent_dim != "auto":
            most = d if self.weighting == "split_tangent" else self.n_features_in_
            check_number("tangent_dim", self.tangent_dim, 1, most, whole=True)
        if self.lipschitz != "auto":
            check_number("lipschitz", self.lipschitz, 0, np.inf)
        check_choice("metric", self.metric, ["euclidean", "cosine"])
        check_choice("index", self.index, ["auto", "brute"] if is_sparse else ["auto", *INDEXES])
        check_jobs(self.n_jobs)
        flat = not is_sparse and self.metric == "euclidean"
        if self.order not in ("auto", 0) and not flat:
            raise ValueError(
                f"order is {self.order}, but must be 0 or 'auto' for sparse X and for metric="
                "'cosine': a local polynomial needs coordinates."
            )
        if is_whole(self.weighting):
            self._check_whole(n, is_sparse)
        return Given(
            None if self.weighting == "auto" else self.weighting,
            None if self.n_neighbors == "auto" else self.n_neighbors,
            (None if flat else 0) if self.order == "auto" else self.order,
            None if self.loss == "auto" else self.loss,
            None if self.tangent_dim == "auto" else self.tangent_dim,
        )

    def _check_whole(self, n: int, is_sparse: bool) -> None:
        """Refuse what a diffusion cannot do: it is one constant over all training points."""
        settings = (self.order, [0]), (self.loss, ["squared"]), (self.n_neighbors, [n])
        fits = all(value == "auto" or value in allowed for value, allowed in settings)
        if not fits or self.radius is not None or is_sparse:
            raise ValueError(
                "weighting='diffusion' takes all training points, dense ones: leave n_neighbors, "
                "radius, order and loss as they are by default."
            )

    def _check_weighting(self) -> None:
        weighting = self.weighting
        if isinstance(weighting, InverseDistance):
            check_number("weighting.power", weighting.power, 0, 1000, open_below=True)
        elif isinstance(weighting, Correlated):
            check_choice("weighting.covariance", weighting.covariance, KINDS)
            check_number("weighting.length", weighting.length, 0, np.inf, open_below=True)
            check_number("weighting.nugget", weighting.nugget, 0, np.inf)
        elif isinstance(weighting, GaussianDistance):
            check_number("weighting.length", weighting.length, 0, np.inf, open_below=True)
        elif isinstance(weighting, Diffusion):
            check_number("weighting.length", weighting.length, 0, np.inf, open_below=True)
            check_number("weighting.ridge", weighting.ridge, 0, 1)
        elif not callable(weighting):
            check_choice("weighting", weighting, ["auto", *WEIGHTINGS, "correlated", "diffusion"])


def _chunks(X: Points) -> Iterator[np.ndarray]:
    for at in range(0, X.shape[0], CHUNK_ROWS):
        yield X[at : at + CHUNK_ROWS]
