"""Geometric harmonics: extension of a map by eigenfunctions of a Gaussian kernel."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from outsample import affinity, spectral
from outsample._validation import check_jobs, check_number, check_queries, check_training
from outsample.bandwidth import Choice, check_bandwidth, choices
from outsample.extension import MapExtension

# The largest condition number that double precision can resolve.
LARGEST_CONDITION = 1e14


class GeometricHarmonics(MapExtension):
    r"""Extend a map by geometric harmonics: eigenfunctions of a Gaussian kernel.

    The eigenvectors of the kernel matrix ``G_ij = exp(-|x_i - x_j|^2 / epsilon)`` (Eq. 7.2, 7.3)
    are extended to a new point by the Nyström formula (Eq. 7.1),

    ``phi_i(x) = (1 / lambda_i) sum_j g(x, x_j) phi_i(x_j)``,

    and the map f, less its mean, by its projection on those that extend stably,
    ``f(x) = sum_i <f, phi_i> phi_i(x)`` over ``lambda_i > lambda_max / condition``.

    Parameters
    ----------
    bandwidth : float or "auto", default="auto"
        Epsilon, a squared length. ``"auto"`` is a multiscale choice: doublings of the squared
        typical distance to the 15th neighbour, from 1/16 to 128, and the one with the least
        leave-one-out error of the map, in closed form on at most 2000 training points. A smooth
        map asks for a wide kernel, a map with detail for a narrow one.
    condition : float, default=1e8
        Largest ratio of eigenvalues: an error in the images is multiplied by no more.
    n_jobs : int, default=None
        Threads, as in scikit-learn.

    Attributes
    ----------
    bandwidth_ : float
        Epsilon in use.
    selection_ : list of Choice
        Bandwidths that were tried, with their leave-one-out errors over the size of the map; the
        chosen one first. Empty if the bandwidth was given.
    eigenvalues_ : ndarray of shape (n_components_,)
        Of the harmonics in use.
    n_components_ : int
        Their number.
    condition_ : float
        Ratio of the largest and the smallest of the eigenvalues in use.
    n_features_in_ : int
        D.

    See Also
    --------
    NystroemExtension : The same with the kernel normalised to transition probabilities.

    Notes
    -----
    Time grows as n^3, memory as three matrices of n x n numbers; a query costs O(n D). Far from
    the data every harmonic tends to 0, and the answer to the mean of the images.

    Mean hold-out error over the size of the map, digits, 80/20, 3 splits, defaults: 0.015 on a
    diffusion map to 5 dimensions. On torn maps the method is far behind local ones: 0.116 on
    t-SNE, where inverse-distance weights of 15 neighbours have 0.060.

    References
    ----------
    R. R. Coifman, S. Lafon, "Geometric harmonics: a novel tool for multiscale out-of-sample
    extension of empirical functions", Appl. Comput. Harmon. Anal. 21 (2006) 31-52.

    Examples
    --------
    >>> import numpy as np
    >>> from outsample import GeometricHarmonics
    >>> angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 200)
    >>> circle = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> extension = GeometricHarmonics().fit(circle, np.cos(3 * angle))
    >>> extension.transform([[np.cos(1.0), np.sin(1.0)]]).round(3)    # cos 3 = -0.990
    array([[-0.99]])
    """

    bandwidth_: float
    selection_: list[Choice]
    eigenvalues_: np.ndarray
    n_components_: int
    condition_: float

    def __init__(
        self,
        *,
        bandwidth: float | Literal["auto"] = "auto",
        condition: float = 1e8,
        n_jobs: int | None = None,
    ) -> None:
        self.bandwidth = bandwidth
        self.condition = condition
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any) -> GeometricHarmonics:
        """Project the map on the harmonics that extend stably.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)
            Points.
        y : array-like of shape (n, d) or (n,)
            Their images under any map.

        Returns
        -------
        self
        """
        self._check_parameters()
        X, Y = check_training(self, X, y)
        affinity.require_memory(
            X.shape[0], "The kernel matrix", "fit a sample of them, or use PCAExtension.", arrays=3
        )
        self.scale_, self.image_scale_ = affinity.unit_scale(X), affinity.unit_scale(Y)
        self.points_, Y = affinity.scaled(X, self.scale_), Y * self.image_scale_
        self.mean_ = Y.mean(axis=0)
        self.selection_ = []
        if self.bandwidth == "auto":
            found = choices(self.points_, Y, self._left_out, self.n_jobs)
            self.epsilon_ = found[0].bandwidth
            self.selection_ = [Choice(self._in_units(e), error) for e, error in found]
            self.bandwidth_ = self._in_units(self.epsilon_)
        else:
            self.bandwidth_ = float(self.bandwidth)
            epsilon = self.bandwidth_ * self.scale_ * self.scale_
            self.epsilon_ = max(epsilon, np.finfo(float).tiny)
        self._expand(Y - self.mean_)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Extend the map to new points.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (q, D)
            New points.

        Returns
        -------
        ndarray of shape (q, d)
            float32 for float32 points, else float64.
        """
        check_is_fitted(self)
        X, dtype = check_queries(self, X)
        values = affinity.expansion(
            self.points_,
            affinity.scaled(X, self.scale_),
            self.epsilon_,
            self.coefficients_,
            n_jobs=self.n_jobs,
        )
        return ((values + self.mean_) / self.image_scale_).astype(dtype, copy=False)

    @property
    def _n_features_out(self) -> int:
        return self.coefficients_.shape[1]

    def _check_parameters(self) -> None:
        check_bandwidth(self.bandwidth)
        check_number("condition", self.condition, 1, LARGEST_CONDITION)
        check_jobs(self.n_jobs)

    def _in_units(self, epsilon: float) -> float:
        """Bandwidth in the units of the points as they were given."""
        return epsilon / self.scale_ / self.scale_

    def _left_out(self, G: np.ndarray, f: np.ndarray) -> np.ndarray | None:
        """Leave-one-out residuals; the largest row sum stands for the largest eigenvalue."""
        return spectral.left_out_of_kernel(G, f, G.sum(axis=1).max() / self.condition)

    def _expand(self, f: np.ndarray) -> None:
        G = affinity.gaussian(self.points_, self.epsilon_, self.n_jobs)
        values, vectors = spectral.eigenpairs_above(G, self.condition)
        self.coefficients_ = spectral.solve_in(values, vectors, f)
        self.eigenvalues_ = values
        self.n_components_ = len(values)
        self.condition_ = float(values[0] / values[-1])
