"""The paper's estimator: weighted least squares over the images of the neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from scipy import sparse

from outsample._dask import lazy_on_dask
from outsample._validation import check_fitted, check_rows
from outsample.estimators.map_extension import MapExtension
from outsample.estimators.neighbor_queries import NeighborQueriesMixin, TrainingState
from outsample.estimators.pca_parameters import check_parameters, constraints_for
from outsample.neighbors.duplicates import Duplicates, find_duplicates, leave_out_duplicates
from outsample.neighbors.index import NeighborIndex
from outsample.neighbors.neighborhoods import Search
from outsample.placers.candidates import NAMED
from outsample.placers.leave_one_out import LeftOut, Trial, mean_error
from outsample.placers.map_model import MapModel, learn
from outsample.placers.problem import Problem
from outsample.points import Points, in_chords, in_metric, some_rows
from outsample.records import Placement


class PCAExtension(NeighborQueriesMixin, MapExtension):
    r"""Place new points into an existing map by PCA-based out-of-sample extension.

    ``fit(X, Y)`` takes points and their images under *any* map. A new point ``x`` is placed at the
    generalized least squares solution over the images of its neighbours (Eq. 2.8, 5.3),

    ``psi(x) = (sum_j w_j)^-1 sum_j w_j psi(x_j)``,

    with weights ``w_j`` that decrease with the distance ``r_j`` of ``x`` and ``x_j`` and, in the
    tangent weightings, depend on the local directions of the map. Beyond the paper, the constant
    can be a local polynomial, the squares absolute values, and the errors correlated. Parameters
    that are ``"auto"`` are selected by leave-one-out error on a sample of the training points;
    several models are blended if that lowers the error. The selection is deterministic. The paper's
    method is ``weighting="tangent", order=0, loss="squared"``.

    Parameters
    ----------
    n_neighbors : int or "auto", default="auto"
        Number of nearest training points to use. With ``radius``: the minimum number, where
        ``"auto"`` is d as in the paper. With correlated errors, all training points make one
        Gaussian process, which is factored once.
    radius : float, default=None
        The paper's epsilon (Eq. 4.1): use all training points within it. A ball with too few
        points is replaced by the nearest points; ``Placement.n_neighbors`` counts those inside.
    weighting : str, InverseDistance, GaussianDistance, Correlated, Diffusion, Blend or callable
        By default ``"auto"``.

        - ``"distance"``: ``w_j = r_j^-2 I`` (Eq. 4.3); ``InverseDistance(p)``: ``r_j^-p I``;
          ``GaussianDistance(length)``: ``r_j^-2 exp(-r_j^2 / l^2) I``;
        - ``"tangent"``: ``w_j = (r_j^2 C + (r_j / c)^4 I)^-1`` (Eq. 4.5), with ``C`` the
          covariance of the neighbours' images (Eq. 4.4);
        - ``"local_tangent"``: the same with ``C_j`` of the neighbourhood of ``x_j`` (Table 7.1);
        - ``"split_tangent"``: ``r_j^-2`` along the tangent, ``(c / r_j)^4`` across it
          (Section 4.2);
        - ``"correlated"``: Eq. 2.3 with a full covariance of the neighbours' errors (kriging),
          selected on the data; ``Correlated(covariance, length, nugget)`` fixes it;
        - ``"diffusion"``: the Nyström extension by transition probabilities over all training
          points, with its length selected on the data; ``Diffusion(length, ridge)`` fixes it;
        - a function of an array of distances that returns the weights;
        - ``NeighborLoss(perplexity, length)``: the position where the loss of t-SNE increases
          least;
        - a ``Blend``, such as the ``weighting_`` of another extension: a mean of several models.
    order : {0, 1, 2} or "auto", default="auto"
        Degree of the local polynomial, in coordinates of the local PCA plane of the points; 0 is
        the paper's. The error is O(h^(order + 1)) for a smooth map sampled at distance h.
    loss : {"squared", "absolute"} or "auto", default="auto"
        What is summed over the neighbours: the squares of Mahalanobis distances as in the paper,
        or the distances themselves, which places a point on one fragment of a torn map instead of
        between two. With correlated errors, ``"absolute"`` drops the neighbours that disagree with
        the geometric median of the nearest ones.
    curvature : float or "auto", default="auto"
        The paper's c, which has units. ``"auto"`` is the value at which both terms of Eq. 4.5 are
        equal at the edge of a typical neighbourhood, so that scaling X or Y does not matter.
    tangent_radius : float, default=None
        The paper's eps1 (Eq. 4.4): radius of the neighbourhood for ``C``. The default is the
        neighbours that place the point.
    tangent_dim : int or "auto", default="auto"
        Dimension of the tangent coordinates of orders 1 and 2, at most D, and of the tangent of
        ``"split_tangent"``, at most d. ``"auto"`` estimates it by local PCA.
    lipschitz : float or "auto", default="auto"
        K of the certificate ``Placement.bound``, which holds for every K-Lipschitz map. ``"auto"``
        is the largest ratio between training neighbours, which can be less than the true K.
    level : float, default=0.9
        Share of true images, of points from the training distribution, that
        ``Placement.error_bar`` contains; from 0.5 to 0.99. It needs ``level / (1 - level)``
        training points, 99 for 0.99.
    metric : {"euclidean", "cosine"}, default="euclidean"
        Distance between points. With ``"cosine"`` the points are scaled to length 1; radii are
        cosine distances, and orders above 0 are not available.
    index : {"auto", "kd_tree", "brute", "approximate"}, default="auto"
        Neighbour search. The first three are exact and return the same result. ``"approximate"``
        misses a few neighbours, and is much faster with many points or dimensions; for many
        dimensions it needs ``outsample[ann]``. It does not allow radii or sparse points. Fewer
        than 5000 points are searched exactly.
    n_jobs : int, default=None
        Threads, as in scikit-learn: None is 1, -1 all cores.

    Attributes
    ----------
    selection_ : list of Trial
        Candidate models for the parameters that were ``"auto"``: model, leave-one-out error divided
        by the size of the map, seconds, rows. The selected model is first. Empty if no parameter
        was ``"auto"``.
    loo_error_ : float
        Leave-one-out error of the fitted model, divided by the root mean square size of the map,
        as in ``score``.
    n_neighbors_, weighting_, order_, loss_, tangent_dim_, curvature_
        The fitted settings; of a blend, the largest number of neighbours of its parts, and order,
        loss and tangent dimension of the part with the largest weight.
    embedding_ : ndarray of shape (n, d)
        The images.
    distinct_ : Duplicates
        Duplicate rows: they count as one point with their mean image.
    index_ : NeighborIndex
        The neighbour search.
    recall_ : float
        Share of true neighbours that the search returns for a sample: 1 if it is exact.
    lipschitz_ : float
        K of the certificates.
    manifold_dim_ : int
        Dimension of the planes of ``Placement.off_manifold``, by local PCA of the points.
    left_out_ : LeftOut
        A sample of ``rows`` of X, and the ``coordinates`` at which the other rows place them.
        Duplicate rows are left out together and represented by the first.
    n_features_in_ : int
        D.

    See Also
    --------
    Extended : Add a ``transform`` to any embedding.

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
    distinct_: Duplicates
    model_: MapModel
    selection_: list[Trial]
    loo_error_: float
    left_out_: LeftOut

    def __init__(
        self,
        *,
        n_neighbors: int | Literal["auto"] = "auto",
        radius: float | None = None,
        weighting: Any = "auto",
        order: int | Literal["auto"] = "auto",
        loss: str = "auto",
        curvature: float | Literal["auto"] = "auto",
        tangent_radius: float | None = None,
        tangent_dim: int | Literal["auto"] = "auto",
        lipschitz: float | Literal["auto"] = "auto",
        level: float = 0.9,
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
        self.level = level
        self.metric = metric
        self.index = index
        self.n_jobs = n_jobs

    def _check_parameters(self) -> None:
        """Raise ValueError for parameters that no data allow; `constraints_for` uses the data."""
        check_parameters(self)

    def _learn(self, X: Points, Y: np.ndarray) -> None:
        points = in_metric(X, self.metric)
        self.distinct_ = find_duplicates(points, self.n_jobs)
        images, d = self.distinct_.means(Y), Y.shape[1]
        constraints = constraints_for(self, len(Y), len(images), d, sparse.issparse(X))
        self.embedding_ = Y
        search = Search(
            NeighborIndex(some_rows(points, self.distinct_.rows), self.index, self.n_jobs),
            in_chords(self.radius, self.metric),
            in_chords(self.tangent_radius, self.metric),
            least_framed=min(len(images), d + 1),
        )
        curvature = None if self.curvature == "auto" else float(self.curvature)
        lipschitz = None if self.lipschitz == "auto" else float(self.lipschitz)
        size = self.training_.map_size
        problem = Problem(search, images, curvature, self.n_jobs, size)
        duplicates = leave_out_duplicates(self.distinct_, Y)
        self.model_, (_, self.selection_, left_out) = learn(
            problem, constraints, lipschitz, float(self.level), duplicates
        )
        self.loo_error_ = mean_error(images, left_out, size)
        self.left_out_ = left_out._replace(rows=self.distinct_.rows[left_out.rows])

    def _map_chunks(
        self, answer: Callable[[Points], Sequence[np.ndarray]], X: Points
    ) -> list[np.ndarray]:
        return self.model_.search.map_chunks(answer, X, self.training_.metric)

    def _extend(self, X: Points) -> np.ndarray:
        return self.model_.transform(X)

    @lazy_on_dask
    def place(self, X: Any) -> Placement:
        """Return the coordinates of new points on the map, and how far to trust them.

        Parameters
        ----------
        X : array-like of shape (q, D)
            New points.

        Returns
        -------
        Placement
        """
        check_fitted(self)
        X, dtype = check_rows(self, X)
        kind = self.training_.answer_type(dtype)
        return Placement(*self._map_chunks(lambda rows: self.model_.place(rows, kind), X))

    def _training_state(self) -> TrainingState:
        n = self.training_.n_rows
        return TrainingState(
            index=self.index_, duplicates=self.distinct_, metric=self.training_.metric,
            model=self.model_, rows=np.arange(n), n_rows=n, images=self.embedding_,
        )  # fmt: skip

    @property
    def index_(self) -> NeighborIndex:
        """The neighbour search."""
        return self.model_.search.index

    @property
    def n_neighbors_(self) -> int:
        """Number of neighbours, or the minimum number in a ball."""
        return self.model_.fitted.placer.n_neighbors or len(self.distinct_.rows)

    @property
    def weighting_(self) -> Any:
        """Fitted weighting: its name if it has one, otherwise the object."""
        weighting = self.model_.fitted.placer.weighting
        names = {named: name for name, named in NAMED.items()}
        return names.get(weighting, getattr(weighting, "function", weighting))

    @property
    def order_(self) -> int:
        """Degree of the local polynomial."""
        return self.model_.fitted.placer.order

    @property
    def loss_(self) -> str:
        """Loss that is summed over the neighbours."""
        return self.model_.fitted.placer.loss

    @property
    def tangent_dim_(self) -> int:
        """Dimension of the tangent coordinates."""
        return self.model_.fitted.placer.tangent_dim

    @property
    def curvature_(self) -> float:
        """The paper's c in use; 1 where nothing uses it."""
        curvature = self.model_.fitted.curvature
        return 1.0 if curvature is None else float(curvature)

    @property
    def lipschitz_(self) -> float:
        """K of the certificates."""
        return self.model_.quality.lipschitz

    @property
    def manifold_dim_(self) -> int:
        """Dimension of the planes of ``Placement.off_manifold``."""
        return self.model_.quality.manifold_dim
