"""Diffusion maps, dense or sparse, with the Nyström extension to new points."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
from scipy.sparse.csgraph import connected_components
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from outsample._parallel import one_blas_thread
from outsample._validation import check_jobs, check_number, check_points, check_queries, plain
from outsample.kernel import affinity, spectral
from outsample.kernel.bandwidth import check_bandwidth
from outsample.kernel.scales import slope_bandwidth, squared_distance_sample
from outsample.kernel.units import PointUnit
from outsample.neighbors.graph import neighbor_distances
from outsample.neighbors.index import NeighborIndex

# Up to this many points every pair is in the kernel; beyond, so many neighbours of each.
DENSE_ROWS = 5000
SPARSE_NEIGHBORS = 64
# Eigenvalues below this are 0: their eigenvectors have no extension.
LEAST_EIGENVALUE = 1e-12
# A second eigenvalue this near to 1 belongs to a kernel in separate parts.
SEPARATE = 1e-10


class DiffusionMaps(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Embed points by the eigenfunctions of a diffusion between them.

    The Gaussian ``g(x, y) = exp(-|x - y|^2 / epsilon)`` (Eq. 7.3) is divided by the densities
    ``q(x) = sum_j g(x, x_j)`` to the power alpha at both points, and by its row sums to give
    transition probabilities ``p``. With its eigenvalues ``1 = lambda_0 > lambda_1 >= ...`` and
    right eigenvectors ``psi_i``, a point goes to

    ``(lambda_1^t psi_1(x), ..., lambda_m^t psi_m(x))``,

    and a new one by the Nyström formula ``psi_i(x) = (1 / lambda_i) sum_j p(x, x_j) psi_i(x_j)``
    (Eq. 7.1).

    Parameters
    ----------
    n_components : int, default=2
        Number m of coordinates; the constant ``psi_0`` is not counted.
    bandwidth : float or "auto", default="auto"
        Epsilon, a squared length. ``"auto"`` takes the value at which the sum of the kernel over
        pairs of points grows fastest with epsilon, on a logarithmic scale
        (`scales.slope_bandwidth`); with a sparse kernel at most the squared typical distance
        to the last neighbour.
    alpha : float, default=1.0
        0: the map follows the density of the points; 1: only their shape (Laplace-Beltrami).
    t : float, default=1
        Diffusion time, 0 or more. 0 leaves the eigenvectors unscaled.
    n_neighbors : int, default=None
        Keep the kernel only between a point and so many nearest others, or where the point is
        among theirs. None: every pair up to 5000 points, 64 neighbours beyond.
    n_jobs : int, default=None
        Threads, as in scikit-learn.

    Attributes
    ----------
    embedding_ : ndarray of shape (n, m)
        Coordinates of the training points.
    eigenvalues_ : ndarray of shape (m,)
        ``lambda_1, ..., lambda_m``.
    bandwidth_ : float
        Epsilon in use.
    n_neighbors_ : int or None
        Neighbours in the kernel; None if it holds every pair.
    n_features_in_ : int
        D.

    See Also
    --------
    NystroemExtension : The same extension for a map of any origin.

    Notes
    -----
    The eigenvectors have ``sum_j pi_j psi(x_j)^2 = 1`` under the stationary distribution pi, and
    their entry of largest size is positive. The same points give the same map every time; points
    in another order give the same map but for rounding.

    References
    ----------
    R. R. Coifman, S. Lafon, "Diffusion maps", Appl. Comput. Harmon. Anal. 21 (2006) 5-30.

    Examples
    --------
    >>> import numpy as np
    >>> from outsample import DiffusionMaps
    >>> angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 300)
    >>> circle = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> maps = DiffusionMaps().fit(circle)
    >>> bool(np.allclose(maps.transform(circle), maps.embedding_))
    True
    """

    n_neighbors_: int | None
    index_: NeighborIndex | None
    reach_: np.ndarray

    def __init__(
        self,
        *,
        n_components: int = 2,
        bandwidth: float | Literal["auto"] = "auto",
        alpha: float = 1.0,
        t: float = 1,
        n_neighbors: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.bandwidth = bandwidth
        self.alpha = alpha
        self.t = t
        self.n_neighbors = n_neighbors
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that the type of the points is kept."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: Any, y: Any = None) -> DiffusionMaps:
        """Compute the map.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)
            Points.
        y : object, default=None
            Not used.

        Returns
        -------
        self
        """
        self._fit(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Compute the map and return the coordinates of the training points.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)
            Points.
        y : object, default=None
            Not used.

        Returns
        -------
        ndarray of shape (n, m)
            float32 for float32 points, else float64.
        """
        dtype = self._fit(X)
        return self.embedding_.astype(dtype, copy=True)

    def transform(self, X: Any) -> np.ndarray:
        """Coordinates of new points, by the Nyström formula.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (q, D)
            New points.

        Returns
        -------
        ndarray of shape (q, m)
            float32 for float32 points, else float64.
        """
        check_is_fitted(self)
        X, dtype = check_queries(self, X)
        X = self.unit_.points(X)
        reach = None
        if self.index_ is not None and self.n_neighbors_ is not None:
            near = self.index_.nearest(X, self.n_neighbors_ + 1)
            reach = near.distances[near.indptr[1:] - 1], self.reach_
        kernel = self.epsilon_, self.weights_, self.coefficients_
        values = spectral.markov_mean(self.points_, X, *kernel, reach, self.n_jobs)
        return values.astype(dtype, copy=False)

    @property
    def _n_features_out(self) -> int:
        return self.embedding_.shape[1]

    def _fit(self, X: Any) -> np.dtype:
        self._check_parameters()
        X, dtype = check_points(self, X)
        n = X.shape[0]
        if self.n_components > n - 1:
            raise ValueError(
                f"n_components is {self.n_components}, but {n} points have at most {n - 1}."
            )
        if self.n_neighbors is not None:
            check_number("n_neighbors", self.n_neighbors, 1, n - 1, whole=True)
        self.unit_ = PointUnit.of(X)
        self.points_ = self.unit_.points(X)
        self.n_neighbors_ = plain(self.n_neighbors)
        if n > DENSE_ROWS and self.n_neighbors is None:
            self.n_neighbors_ = SPARSE_NEIGHBORS
        kernel = self._dense() if self.n_neighbors_ is None else self._sparse(self.n_neighbors_)
        with one_blas_thread:
            self._diffuse(spectral.markov(kernel, self.alpha))
        return dtype

    def _check_parameters(self) -> None:
        check_number("n_components", self.n_components, 1, np.inf, whole=True)
        check_bandwidth(self.bandwidth)
        check_number("alpha", self.alpha, 0, 1)
        check_number("t", self.t, 0, np.inf)
        check_jobs(self.n_jobs)

    def _choose_epsilon(self, most: float) -> None:
        """Set the bandwidth, in the unit of the points and as it is given."""
        if self.bandwidth == "auto":
            squares = squared_distance_sample(self.points_, self.n_jobs)
            self.epsilon_ = min(slope_bandwidth(squares), most)
            self.bandwidth_ = self.unit_.given(self.epsilon_)
        else:
            self.bandwidth_ = float(self.bandwidth)
            self.epsilon_ = max(self.unit_.square(self.bandwidth_), np.finfo(float).tiny)

    def _dense(self) -> np.ndarray:
        self.index_, self.reach_ = None, np.empty(0)
        self._choose_epsilon(most=np.inf)
        return affinity.gaussian(self.points_, self.epsilon_, self.n_jobs)

    def _sparse(self, k: int) -> Any:
        """Kernel between neighbours; whatever is as near as the k-th one counts too."""
        self.index_ = NeighborIndex(self.points_, n_jobs=self.n_jobs)
        pairs, self.reach_ = neighbor_distances(self.index_, k)
        typical = float(np.median(self.reach_))
        self._choose_epsilon(most=typical**2 if typical > 0 else np.inf)
        affinity.gaussian_of(pairs.data, self.epsilon_, out=pairs.data)
        kernel = pairs.maximum(pairs.T).tocsr()
        parts = connected_components(kernel, directed=False, return_labels=False)
        if parts > 1:
            self._warn_of_parts(f"{parts} separate parts")
        return kernel

    def _diffuse(self, kernel: spectral.Markov) -> None:
        """Eigenpairs, coordinates, and the coefficients of their extension."""
        values, vectors = spectral.leading_eigenpairs(kernel.conjugate, self.n_components + 1)
        if self.n_neighbors_ is None and values[1] > 1 - SEPARATE:
            self._warn_of_parts("separate parts")
        roots = kernel.root_degrees
        vectors = vectors[:, 1:] * (np.sqrt((roots**2).sum()) / roots)[:, None]
        vectors = spectral.fixed_signs(vectors)
        values = np.where(values[1:] > LEAST_EIGENVALUE, values[1:], 0.0)
        powers = np.where(values > 0, values, 1.0) ** self.t * (values > 0)
        self.eigenvalues_ = values
        self.embedding_ = vectors * powers
        self.coefficients_ = vectors * (powers / np.where(values > 0, values, 1.0))
        self.weights_ = kernel.weights

    def _warn_of_parts(self, parts: str) -> None:
        warnings.warn(
            f"The kernel falls into {parts}: the leading coordinates only tell the parts from one "
            "another. A larger bandwidth or more n_neighbors connects them.",
            UserWarning,
            stacklevel=5,
        )
