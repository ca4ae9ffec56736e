"""Diffusion maps, dense or sparse, with the Nyström extension to new points."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from outsample._dask import lazy_on_dask
from outsample._parallel import one_blas_thread
from outsample._validation import (
    TrainingRecord,
    check_jobs,
    check_number,
    check_points,
    check_rows,
    plain,
)
from outsample.chunks import map_chunks
from outsample.estimators.map_extension import MapTransformer, fit_in_one_step
from outsample.points import Points
from outsample.records import Reals
from outsample.spectral.bandwidth import check_bandwidth
from outsample.spectral.fixed_walk import FixedWalk, fixed_walk
from outsample.spectral.local_walk import LocalWalk, Modes, local_walk
from outsample.spectral.units import PointUnit

# Smaller eigenvalues are set to 0: their eigenvectors have no extension.
MIN_EIGENVALUE = 1e-12
# Largest number of coordinates that "auto" selects.
MAX_AUTO_COMPONENTS = 10


class DiffusionMaps(MapTransformer):
    r"""Embed points by the eigenfunctions of a diffusion between them.

    With transition probabilities ``p`` between the points, eigenvalues
    ``1 = lambda_0 > lambda_1 >= ...`` and right eigenvectors ``psi_i``, the coordinates of x are

    ``(lambda_1^t psi_1(x), ..., lambda_m^t psi_m(x))``.

    For new points ``psi_i(x) = (1 / lambda_i) sum_j p(x, x_j) psi_i(x_j)`` (Nyström, Eq. 7.1).
    ``p(x, y)`` is proportional to ``w(y) g(x, y)``: a kernel, and weights that correct for the
    density of the points.

    By default every point has its own bandwidth, the distance s to its k-th neighbour:
    ``g(x, y) = exp(-2 |x - y|^2 / max(s(x), s(y))^2)`` up to the larger of both lengths, 0 beyond.
    So isolated points have neighbours, and dense groups show their shape. If ``bandwidth`` is a
    number, ``g(x, y) = exp(-|x - y|^2 / epsilon)`` (Eq. 7.3) for all points.

    Parameters
    ----------
    n_components : int or "auto", default=2
        Number m of coordinates; the constant ``psi_0`` is not counted. ``"auto"`` is the m, at
        most 10, with the largest ratio ``(1 - lambda_{m+1}) / (1 - lambda_m)``: 2 for a circle, one
        less than the number of groups for separate groups.
    bandwidth : float or "auto", default="auto"
        Epsilon, a squared length; ``"auto"`` is one bandwidth per point.
    alpha : float, default=1.0
        0: the map depends on the density of the points; 1: only on their shape (Laplace-Beltrami).
    t : float, default=1
        Diffusion time, 0 or more. 0 leaves the eigenvectors unscaled.
    n_neighbors : int, default=None
        k; if the bandwidth is a number, the kernel is restricted to pairs of which one point is
        among the k nearest of the other. None: 30 (a fifth of fewer than 150 points), twice or four
        times as many if one of the first five coordinates would move less than a twentieth of the
        points. If the bandwidth is a number, None is every pair up to 5000 points, and 64
        neighbours beyond.
    n_jobs : int, default=None
        Threads, as in scikit-learn.

    Attributes
    ----------
    embedding_ : ndarray of shape (n, m)
        Coordinates of the training points.
    eigenvalues_ : ndarray of shape (m,)
        ``lambda_1, ..., lambda_m``.
    spectrum_ : ndarray of shape (at least m + 1,)
        All computed eigenvalues, which show the gap after the last coordinate; fewer if there are
        fewer points.
    n_components_ : int
        m.
    bandwidth_ : float
        Fitted epsilon; the typical one, ``s^2 / 2``, if every point has its own.
    n_neighbors_ : int or None
        Neighbours in the kernel; None if it contains every pair.
    n_parts_ : int
        Number of connected components of the neighbour graph; there is a warning if it is above 1.
        Each component is connected to the nearest other one, so that the map shows them side by
        side. If the bandwidth is a number they are not connected, and the leading coordinates only
        separate them.
    n_features_in_ : int
        D.

    See Also
    --------
    NystroemExtension : The same extension for any map.

    Notes
    -----
    The eigenvectors have ``sum_j pi_j psi(x_j)^2 = 1`` under the stationary distribution pi, and
    their entry of largest size is positive. The map is deterministic; points in another order or
    unit give the same map up to rounding.

    References
    ----------
    R. R. Coifman, S. Lafon, "Diffusion maps", Appl. Comput. Harmon. Anal. 21 (2006) 5-30.
    L. Zelnik-Manor, P. Perona, "Self-tuning spectral clustering", NIPS 17 (2004) 1601-1608.
    T. Berry, J. Harlim, "Variable bandwidth diffusion kernels", Appl. Comput. Harmon. Anal. 40
    (2016) 68-96.

    Examples
    --------
    >>> import numpy as np
    >>> from outsample import DiffusionMaps
    >>> angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 300)
    >>> circle = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> maps = DiffusionMaps(n_components="auto").fit(circle)
    >>> maps.n_components_
    2
    >>> bool(np.allclose(maps.transform(circle), maps.embedding_))
    True
    """

    walk_: LocalWalk | FixedWalk

    def __init__(
        self,
        *,
        n_components: int | Literal["auto"] = 2,
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

    def fit(self, X: Any, y: Any = None) -> DiffusionMaps:
        """Compute the map of the training points.

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
        fit_in_one_step(self, X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Reals:
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
            float32 for float32 points, otherwise float64.
        """
        dtype = fit_in_one_step(self, X)
        return self.embedding_.astype(dtype, copy=True)

    @lazy_on_dask
    def transform(self, X: Any) -> Reals:
        """Return the coordinates of new points, by the Nyström formula.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (q, D)
            New points.

        Returns
        -------
        ndarray of shape (q, m)
            float32 for float32 points, otherwise float64.
        """
        check_is_fitted(self)
        X, dtype = check_rows(self, X)

        def answer(rows: Points) -> list[np.ndarray]:
            points = self.unit_.points(rows)
            values = self.walk_.mean(points, self.embedding_, self.eigenvalues_)
            return [values.astype(dtype, copy=False)]

        return map_chunks(answer, X)[0]

    @property
    def _n_features_out(self) -> int:
        return self.embedding_.shape[1]

    def _fit(self, X: Any) -> np.dtype:
        self._check_parameters()
        X, dtype = check_points(self, X)
        n = X.shape[0]
        self.training_ = TrainingRecord(n, sparse.issparse(X), n_jobs=self.n_jobs)
        if self.n_components == "auto":
            count = min(MAX_AUTO_COMPONENTS, n - 1)
        else:
            count = int(self.n_components)
            if count > n - 1:
                raise ValueError(f"n_components is {count}, but {n} points have at most {n - 1}.")
        if self.n_neighbors is not None:
            check_number("n_neighbors", self.n_neighbors, 1, n - 1, whole=True)
        self.unit_ = PointUnit.of(X)
        points, k = self.unit_.points(X), plain(self.n_neighbors)
        settings = k, float(self.alpha), min(count + 1, n - 1), self.n_jobs
        with one_blas_thread:
            if self.bandwidth == "auto":
                self.walk_, modes = local_walk(points, *settings)
                self.bandwidth_ = self.unit_.given(self.walk_.epsilon)
            else:
                self.bandwidth_ = float(self.bandwidth)
                epsilon = max(self.unit_.square(self.bandwidth_), np.finfo(float).tiny)
                self.walk_, modes = fixed_walk(points, epsilon, *settings)
        self.n_neighbors_, self.n_parts_ = self.walk_.k, self.walk_.n_parts
        if self.n_parts_ > 1:
            self._warn_of_components()
        self._embed(modes, count)
        return dtype

    def _check_parameters(self) -> None:
        m: Any = self.n_components
        if isinstance(m, str) and m != "auto":
            raise ValueError(f"n_components is {m!r}, but must be 'auto' or a number above 0.")
        if m != "auto":
            check_number("n_components", m, 1, np.inf, whole=True)
        check_bandwidth(self.bandwidth)
        check_number("alpha", self.alpha, 0, 1)
        check_number("t", self.t, 0, np.inf)
        check_jobs(self.n_jobs)

    def _embed(self, modes: Modes, count: int) -> None:
        """Set the coordinates of the training points and their number."""
        values = np.where(modes.values > MIN_EIGENVALUE, modes.values, 0.0)
        self.spectrum_ = values
        self.n_components_ = components_before_gap(values) if self.n_components == "auto" else count
        values = values[: self.n_components_]
        powers = np.where(values > 0, values, 1.0) ** self.t * (values > 0)
        self.eigenvalues_ = values
        self.embedding_ = modes.functions[:, : self.n_components_] * powers

    def _warn_of_components(self) -> None:
        advice = (
            "connected by bridges, so that the map shows them side by side. If they belong "
            "together, increase n_neighbors"
            if self.bandwidth == "auto"
            else "and the leading coordinates only separate them. To connect them, increase "
            "bandwidth or n_neighbors"
        )
        warnings.warn(
            f"The points fall into {self.n_parts_} separate parts, {advice}.",
            UserWarning,
            stacklevel=5,
        )


def components_before_gap(values: np.ndarray) -> int:
    """Return the number of coordinates before the largest ratio of successive ``1 - lambda``.

    >>> components_before_gap(np.array([0.99, 0.99, 0.96, 0.96]))
    2
    """
    rates = np.maximum(1 - values, 1e-12)
    return int(np.argmax(rates[1:] / rates[:-1])) + 1 if len(rates) > 1 else len(rates)
