"""Extension of a map by its expansion in a Gaussian kernel: what is common to such methods."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from outsample._validation import check_jobs, check_number, check_queries, check_training
from outsample.estimators.map_extension import MapExtension
from outsample.kernel.bandwidth import Choice, check_bandwidth, choices
from outsample.kernel.memory import require_memory
from outsample.kernel.units import MapUnit, PointUnit

# The largest condition number that double precision can resolve.
LARGEST_CONDITION = 1e14


class KernelExpansion(MapExtension):
    """Finds the bandwidth and the units; how to expand is left to the methods."""

    bandwidth: float | Literal["auto"]
    condition: float
    n_jobs: int | None
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
        require_memory(
            X.shape[0], "The kernel matrix", "fit a sample of them, or use PCAExtension.", arrays=3
        )
        # The plain mean, which meets a constant map to rounding only; `exact_mean` would change
        # the last bits of every answer.
        self.unit_, self.map_unit_ = PointUnit.of(X), MapUnit.of(Y, Y.mean(axis=0))
        self.points_ = self.unit_.points(X)
        self.selection_ = []
        if self.bandwidth == "auto":
            found = choices(self.points_, Y, self._left_out, self.n_jobs)
            self.selection_ = [Choice(self.unit_.given(e), error) for e, error in found]
            self.epsilon_, self.bandwidth_ = found[0].bandwidth, self.selection_[0].bandwidth
        else:
            self.bandwidth_ = float(self.bandwidth)
            self.epsilon_ = max(self.unit_.square(self.bandwidth_), np.finfo(float).tiny)
        self.eigenvalues_, self.coefficients_ = self._expand(self.map_unit_.images(Y))
        self.n_components_ = len(self.eigenvalues_)
        self.condition_ = float(self.eigenvalues_[0] / self.eigenvalues_[-1])
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
        values = self._values(self.unit_.points(X))
        return self.map_unit_.back(values).astype(dtype, copy=False)

    @property
    def _n_features_out(self) -> int:
        return self.coefficients_.shape[1]

    def _check_parameters(self) -> None:
        check_bandwidth(self.bandwidth)
        check_number("condition", self.condition, 1, LARGEST_CONDITION)
        check_jobs(self.n_jobs)

    @abstractmethod
    def _left_out(self, G: np.ndarray, f: np.ndarray) -> np.ndarray | None:
        """Leave-one-out residuals (n, d) of f by the Gaussian matrix G; None if there are none."""

    @abstractmethod
    def _expand(self, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues in use, falling, and the coefficients (n, d) of f in their components."""

    @abstractmethod
    def _values(self, Q: Any) -> np.ndarray:
        """Values (q, d) of the expansion at queries in the unit of the points."""
