"""Diffusion maps, dense or sparse, with the Nyström extension to new points."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
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
from outsample.estimators.fitting import fit_in_one_step
from outsample.points import Points
from outsample.records import Reals
from outsample.spectral.bandwidth import check_bandwidth
from outsample.spectral.fixed_walk import FixedWalk, fixed_walk
from outsample.spectral.local_walk import LocalWalk, Modes, local_walk
from outsample.spectral.units import PointUnit

# Eigenvalues below this are 0: their eigenvectors have no extension.
LEAST_EIGENVALUE = 1e-12
# "auto" looks for the gap behind at most so many coordinates.
MOST_AUTO = 10


class DiffusionMaps(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Embed points by the eigenfunctions of a diffusion between them.

    Of transition probabilities ``p`` between the points, with eigenvalues
    ``1 = lambda_0 > lambda_1 >= ...`` and right eigenvectors ``psi_i``, a point goes to

    ``(lambda_1^t psi_1(x), ..., lambda_m^t psi_m(x))``,

    and a new one by the Nyström formula ``psi_i(x) = (1 / lambda_i) sum_j p(x, x_j) psi_i(x_j)``
    (Eq. 7.1). ``p(x, y)`` is proportional to ``w(y) g(x, y)``: a kernel, and weights by which the
    density of the points is divided out.

    By default every point has a bandwidth of its own, its distance s to the k-th neighbour:
    ``g(x, y) = exp(-2 |x - y|^2 / max(s(x), s(y))^2)`` up to the larger of both lengths, 0 beyond.
    No point is then too far out to have neighbours, no group too dense to show its shape. With
    ``bandwidth=`` a number, ``g(x, y) = exp(-|x - y|^2 / epsilon)`` (Eq. 7.3) for all.

    Parameters
    ----------
    n_components : int or "auto", default=2
        Number m of coordinates; the constant ``psi_0`` is not counted. ``"auto"`` stops, at 10 or
        before, at the largest ratio ``(1 - lambda_{m+1}) / (1 - lambda_m)``: 2 for a circle, one
        less than their number for groups.
    bandwidth : float or "auto", default="auto"
        Epsilon, a squared length, or a length for every point.
    alpha : float, default=1.0
        0: the map follows the density of the points; 1: only their shape (Laplace-Beltrami).
    t : float, default=1
        Diffusion time, 0 or more. 0 leaves the eigenvectors unscaled.
    n_neighbors : int, default=None
        k; with a number as bandwidth, the kernel is kept between a point and so many nearest
        others only, or where the point is among theirs. None: 30 (a fifth of fewer than 150
        points), twice or four times as many if one of the first five coordinates would move less
        than a twentieth of the points; with a number as bandwidth every pair up to 5000 points,
        64 neighbours beyond.
    n_jobs : int, default=None
        Threads, as in scikit-learn.

    Attributes
    ----------
    embedding_ : ndarray of shape (n, m)
        Coordinates of the training points.
    eigenvalues_ : ndarray of shape (m,)
        ``lambda_1, ..., lambda_m``.
    spectrum_ : ndarray of shape (at least m + 1,)
        All eigenvalues that were computed, for a look at the gap behind the last coordinate; as
        many as there are if the points are fewer.
    n_components_ : int
        m.
    bandwidth_ : float
        Epsilon in use; the typical one, ``s^2 / 2``, where every point has its own.
    n_neighbors_ : int or None
        Neighbours in the kernel; None if it holds every pair.
    n_parts_ : int
        Separate parts of the graph of neighbours: 1 if it is connected. There is a warning if it
        is not. Parts are joined, each to the nearest other one, so that the map shows them side
        by side; with a number as bandwidth they are not, and the leading coordinates only tell
        them apart.
    n_features_in_ : int
        D.

    See Also
    --------
    NystroemExtension : The same extension for a map of any origin.

    Notes
    -----
    The eigenvectors have ``sum_j pi_j psi(x_j)^2 = 1`` under the stationary distribution pi, and
    their entry of largest size is positive. The same points give the same map every time; points
    in another order or unit give the same map but for rounding.

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

    training_: TrainingRecord
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
            float32 for float32 points, else float64.
        """
        dtype = fit_in_one_step(self, X)
        return self.embedding_.astype(dtype, copy=True)

    @lazy_on_dask
    def transform(self, X: Any) -> Reals:
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
        X, dtype = check_rows(self, X)
        known = self.embedding_, self.eigenvalues_

        def values(rows: Points) -> list[np.ndarray]:
            found = self.walk_.mean(self.unit_.points(rows), *known)
            return [found.astype(dtype, copy=False)]

        return map_chunks(values, X)[0]

    @property
    def _n_features_out(self) -> int:
        return self.embedding_.shape[1]

    def _fit(self, X: Any) -> np.dtype:
        self._check_parameters()
        X, dtype = check_points(self, X)
        n = X.shape[0]
        self.training_ = TrainingRecord(n, sparse.issparse(X), n_jobs=self.n_jobs)
        if self.n_components == "auto":
            count = min(MOST_AUTO, n - 1)
        else:
            count = int(self.n_components)
            if count > n - 1:
                raise ValueError(f"n_components is {count}, but {n} points have at most {n - 1}.")
        if self.n_neighbors is not None:
            check_number("n_neighbors", self.n_neighbors, 1, n - 1, whole=True)
        self.unit_ = PointUnit.of(X)
        points, k = self.unit_.points(X), plain(self.n_neighbors)
        asked = k, float(self.alpha), min(count + 1, n - 1), self.n_jobs
        with one_blas_thread:
            if self.bandwidth == "auto":
                self.walk_, modes = local_walk(points, *asked)
                self.bandwidth_ = self.unit_.given(self.walk_.epsilon)
            else:
                self.bandwidth_ = float(self.bandwidth)
                epsilon = max(self.unit_.square(self.bandwidth_), np.finfo(float).tiny)
                self.walk_, modes = fixed_walk(points, epsilon, *asked)
        self.n_neighbors_, self.n_parts_ = self.walk_.k, self.walk_.n_parts
        if self.n_parts_ > 1:
            self._warn_of_parts()
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
        """Coordinates of the training points, and how many."""
        values = np.where(modes.values > LEAST_EIGENVALUE, modes.values, 0.0)
        self.spectrum_ = values
        self.n_components_ = behind_the_gap(values) if self.n_components == "auto" else count
        values = values[: self.n_components_]
        powers = np.where(values > 0, values, 1.0) ** self.t * (values > 0)
        self.eigenvalues_ = values
        self.embedding_ = modes.functions[:, : self.n_components_] * powers

    def _warn_of_parts(self) -> None:
        shown = (
            "joined by bridges, so that the map shows them side by side. More n_neighbors connects "
            "them, if they are one thing"
            if self.bandwidth == "auto"
            else "and the leading coordinates only tell them from one another. A larger bandwidth "
            "or more n_neighbors connects them"
        )
        warnings.warn(
            f"The points fall into {self.n_parts_} separate parts, {shown}.",
            UserWarning,
            stacklevel=5,
        )


def behind_the_gap(values: np.ndarray) -> int:
    """Coordinates before the largest ratio of two following ``1 - lambda``.

    >>> behind_the_gap(np.array([0.99, 0.99, 0.96, 0.96]))
    2
    """
    rates = np.maximum(1 - values, 1e-12)
    return int(np.argmax(rates[1:] / rates[:-1])) + 1 if len(rates) > 1 else len(rates)
