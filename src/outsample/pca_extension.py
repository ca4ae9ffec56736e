"""The paper's estimator: weighted least squares over the neighbours' images."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from outsample import bounds, geometry, gls
from outsample._validation import (
    check_choice,
    check_jobs,
    check_number,
    check_queries,
    check_training,
)
from outsample.neighbors import INDEXES, NeighborIndex
from outsample.records import Frames, Neighbors, Placement, Weights
from outsample.weights import WEIGHTINGS, Settings, function_weights

# Constants of the map (curvature, dimension, Lipschitz) are estimated on so many training rows.
SAMPLE_ROWS = 2000
CHUNK_ROWS = 4096
DEFAULT_NEIGHBORS = 10
WITH_FRAMES = {"tangent", "split_tangent"}


class PCAExtension(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Place new points into an existing map by PCA-based out-of-sample extension.

    ``fit(X, Y)`` takes points and their images under *any* map. A new point ``x`` is put at the
    generalized least squares solution over the images of its neighbours (Eq. 2.8, 5.3),

    ``psi(x) = (sum_j w_j)^-1 sum_j w_j psi(x_j)``,

    with weights ``w_j`` that fall with the distance ``r_j`` of ``x`` and ``x_j`` and, in the
    tangent weightings, know the local directions of the map.

    Parameters
    ----------
    n_neighbors : int or "auto", default="auto"
        Number of nearest training points to use. ``"auto"`` is 10. With ``radius``: the least
        number, ``"auto"`` being d as the paper asks.
    radius : float, default=None
        The paper's epsilon (Eq. 4.1): use all training points within it. A ball with too few of
        them is replaced by the nearest ones, and ``Placement.n_neighbors`` tells.
    weighting : str or callable, default="auto"
        - ``"distance"``: ``w_j = r_j^-2 I`` (Eq. 4.3);
        - ``"tangent"``: ``w_j = (r_j^2 C + (r_j / c)^4 I)^-1`` (Eq. 4.5), with ``C`` the
          covariance of the neighbours' images (Eq. 4.4);
        - ``"local_tangent"``: the same with ``C_j`` of the neighbourhood of ``x_j`` (Table 7.1);
        - ``"split_tangent"``: ``r_j^-2`` along the tangent, ``(c / r_j)^4`` across it
          (Section 4.2);
        - a function of an array of distances that returns the weights;
        - ``"auto"``: ``"tangent"``.
    order : {0, "auto"}, default="auto"
        Degree of the local model: 0 is the paper's.
    loss : {"squared", "auto"}, default="auto"
        What is summed over the neighbours: ``"squared"`` is the paper's.
    curvature : float or "auto", default="auto"
        The paper's c. It has units; ``"auto"`` takes the value at which, in the typical
        neighbourhood of the training set, both terms of Eq. 4.5 are equal at its edge, so that
        scaling X or Y changes nothing.
    tangent_radius : float, default=None
        The paper's eps1 (Eq. 4.4): radius of the neighbourhood for ``C``. By default the
        neighbours in use.
    tangent_dim : int or "auto", default="auto"
        Dimension of the tangent for ``"split_tangent"``; ``"auto"`` estimates it by local PCA.
    lipschitz : float or "auto", default="auto"
        K of the certificate ``Placement.bound``. Given, the certificate is a guarantee for every
        K-Lipschitz map; ``"auto"`` takes the largest ratio seen between training neighbours,
        which can be less than the true K.
    metric : {"euclidean"}, default="euclidean"
        Distance between points.
    index : {"auto", "kd_tree", "brute"}, default="auto"
        How neighbours are searched. All are exact and give the same answer.
    n_jobs : int, default=None
        Threads, as in scikit-learn: None is 1, -1 all cores.

    Attributes
    ----------
    embedding_ : ndarray of shape (n, d)
        The images.
    index_ : NeighborIndex
        The neighbour search.
    n_neighbors_, weighting_, order_, loss_ : int, str or callable, int, str
        The settings in force.
    curvature_, tangent_dim_ : float, int
        c and the tangent dimension, where the weighting uses them.
    lipschitz_ : float
        K of the certificates.
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
    n_neighbors_: int
    weighting_: str | Callable[[np.ndarray], np.ndarray]
    curvature_: float
    tangent_dim_: int
    lipschitz_: float
    frames_: Frames

    def __init__(
        self,
        *,
        n_neighbors: int | Literal["auto"] = "auto",
        radius: float | None = None,
        weighting: str | Callable[[np.ndarray], np.ndarray] = "auto",
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

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that the images are required and may have many columns."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

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
        self._check_parameters(len(X), Y.shape[1])
        self.embedding_ = Y
        self.index_ = NeighborIndex(X, self.index, self.n_jobs)
        self.weighting_ = "tangent" if self.weighting == "auto" else self.weighting
        self.order_, self.loss_ = 0, "squared"
        self.n_neighbors_ = self._least_neighbors()
        self._estimate_constants()
        rows = self.index_.X if self.weighting_ == "local_tangent" else self.index_.X[:0]
        self.frames_ = self._frames(rows, self._neighborhoods(rows))
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
        return np.concatenate([self._solve(rows)[2] for rows in _chunks(X)]).astype(
            dtype, copy=False
        )

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
        parts = [self._place(rows, dtype) for rows in _chunks(X)]
        return Placement(*(np.concatenate(field) for field in zip(*parts, strict=True)))

    @property
    def _n_features_out(self) -> int:
        return self.embedding_.shape[1]

    def _solve(self, X: np.ndarray) -> tuple[Neighbors, Weights, np.ndarray]:
        near = self._neighborhoods(X)
        if callable(self.weighting_):
            weights = function_weights(self.weighting_, near, self.n_jobs)
        else:
            frames = self._frames(X, near) if self.weighting_ in WITH_FRAMES else self.frames_
            settings = Settings(self.curvature_, self.tangent_dim_)
            weights = WEIGHTINGS[self.weighting_](near, frames, settings, self.n_jobs)
        return near, weights, gls.solve(self.embedding_, near, weights, self.n_jobs)

    def _place(self, X: np.ndarray, dtype: np.dtype) -> Placement:
        near, weights, coordinates = self._solve(X)
        residual, dispersion = gls.disagreement(
            self.embedding_, near, weights, coordinates, self.n_jobs
        )
        # The certificate speaks of the coordinates as they are handed out.
        coordinates = coordinates.astype(dtype, copy=False)
        bound = bounds.certificates(
            self.embedding_, near, self.lipschitz_, coordinates.astype(np.float64), self.n_jobs
        )
        return Placement(coordinates, residual, dispersion, bound, near.inside)

    def _neighborhoods(self, X: np.ndarray) -> Neighbors:
        if self.radius is None:
            return self.index_.nearest(X, self.n_neighbors_)
        return self.index_.ball(X, self.radius, self.n_neighbors_)

    def _frames(self, X: np.ndarray, near: Neighbors) -> Frames:
        """Local PCA of the images around X: within ``tangent_radius``, or of the neighbours."""
        radius = self.radius
        if self.tangent_radius is not None:
            radius = self.tangent_radius
            n, d = self.embedding_.shape
            near = self.index_.ball(X, radius, min(n, d + 1))
        lengths = geometry.neighborhood_lengths(near, radius)
        return geometry.image_frames(self.embedding_, near, lengths, self.n_jobs)

    def _least_neighbors(self) -> int:
        n, d = self.embedding_.shape
        if self.n_neighbors != "auto":
            return int(self.n_neighbors)
        return min(n, DEFAULT_NEIGHBORS if self.radius is None else d)

    def _estimate_constants(self) -> None:
        """Set c, the tangent dimension and K, from a bounded sample of training rows."""
        n = len(self.embedding_)
        rows = np.arange(n)
        if n > SAMPLE_ROWS:
            rows = np.sort(np.random.default_rng(0).choice(n, SAMPLE_ROWS, replace=False))
        X = self.index_.X[rows]
        near = self._neighborhoods(X)
        frames = self._frames(X, near)
        lengths = geometry.neighborhood_lengths(near, self.radius)
        if self.tangent_dim == "auto":
            self.tangent_dim_ = geometry.tangent_dimension(frames.spread)
        else:
            self.tangent_dim_ = self.tangent_dim
        if self.curvature == "auto":
            # Across the tangent, "split_tangent" compares with r^2 instead of r^2 C.
            spread = None if self.weighting_ == "split_tangent" else frames.spread
            self.curvature_ = geometry.typical_curvature(lengths, spread)
        else:
            self.curvature_ = float(self.curvature)
        if self.lipschitz != "auto":
            self.lipschitz_ = float(self.lipschitz)
        else:
            # Never of fewer rows than the default, and one more for the row itself.
            near = self.index_.nearest(X, min(n, 1 + max(self.n_neighbors_, DEFAULT_NEIGHBORS)))
            estimates = bounds.lipschitz_estimates(self.embedding_, rows, near, self.n_jobs)
            self.lipschitz_ = float(estimates.max())

    def _check_parameters(self, n: int, d: int) -> None:
        if self.n_neighbors != "auto":
            check_number("n_neighbors", self.n_neighbors, 1, n, whole=True)
        if self.radius is not None:
            check_number("radius", self.radius, 0, np.inf, open_below=True)
        if self.tangent_radius is not None:
            check_number("tangent_radius", self.tangent_radius, 0, np.inf, open_below=True)
        if not callable(self.weighting):
            check_choice("weighting", self.weighting, ["auto", *WEIGHTINGS])
        check_choice("order", self.order, ["auto", 0])
        check_choice("loss", self.loss, ["auto", "squared"])
        if self.curvature != "auto":
            check_number("curvature", self.curvature, 0, np.inf, open_below=True)
        if self.tangent_dim != "auto":
            check_number("tangent_dim", self.tangent_dim, 1, d, whole=True)
        if self.lipschitz != "auto":
            check_number("lipschitz", self.lipschitz, 0, np.inf)
        check_choice("metric", self.metric, ["euclidean"])
        check_choice("index", self.index, ["auto", *INDEXES])
        check_jobs(self.n_jobs)


def _chunks(X: np.ndarray) -> Iterator[np.ndarray]:
    for at in range(0, len(X), CHUNK_ROWS):
        yield X[at : at + CHUNK_ROWS]
