"""Extension of a map by its expansion in a Gaussian kernel: what is common to such methods."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from outsample._validation import check_jobs, check_number, check_queries, check_training
from outsample.estimators.map_extension import MapExtension
from outsample.kernel import affinity
from outsample.kernel.bandwidth import Choice, check_bandwidth, choices

# The largest condition number that double precision can resolve.
LARGEST_CONDITION = 1e14


class KernelExpansion(MapExtension):
    """Finds the bandwidth and the units; how to expand is left to the methods.

    Points and images are scaled by powers of two to entries of the size of 1, and the mean of the
    images is taken off.
    """

    bandwidth: float | Literal["auto"]
    condition: float
    n_jobs: int | None
    bandwidth_: float
    selection_: list[Choice]
    coefficients_: np.ndarray

    def fit(self, X: Any, y: Any) -> Self:
        """Expand the map.

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
        values = self._values(affinity.scaled(X, self.scale_))
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

    @abstractmethod
    def _left_out(self, G: np.ndarray, f: np.ndarray) -> np.ndarray | None:
        """Leave-one-out residuals of f by the Gaussian matrix G."""

    @abstractmethod
    def _expand(self, f: np.ndarray) -> None:
        """Set the coefficients, and what is known of the spectrum."""

    @abstractmethod
    def _values(self, Q: Any) -> np.ndarray:
        """Values of the expansion at scaled queries."""
