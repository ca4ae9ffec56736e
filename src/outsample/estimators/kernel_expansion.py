"""What extensions by expansion in a Gaussian kernel share: bandwidth, units, eigenvalues."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal

import numpy as np

from outsample._validation import check_jobs, check_number
from outsample.estimators.map_extension import MapExtension
from outsample.points import Points
from outsample.spectral.bandwidth import Choice, check_bandwidth, choices
from outsample.spectral.memory_check import require_memory
from outsample.spectral.units import MapUnit, PointUnit

# The largest condition number that double precision can resolve.
LARGEST_CONDITION = 1e14


class KernelExpansion(MapExtension):
    """Extension that selects the bandwidth and the units; subclasses expand the map."""

    bandwidth: float | Literal["auto"]
    condition: float
    selection_: list[Choice]
    coefficients_: np.ndarray

    def _learn(self, X: Points, Y: np.ndarray) -> None:
        require_memory(
            X.shape[0], "The kernel matrix", "fit a sample of them, or use PCAExtension.", arrays=3
        )
        # The plain mean, which reproduces a constant map up to rounding; `exact_mean` would change
        # the last bits of every result.
        self.unit_, self.map_unit_ = PointUnit.of(X), MapUnit.of(Y, Y.mean(axis=0))
        self.points_ = self.unit_.points(X)
        self.selection_ = []
        if self.bandwidth == "auto":
            candidates = choices(self.points_, Y, self._left_out, self.n_jobs)
            self.selection_ = [Choice(self.unit_.given(e), error) for e, error in candidates]
            self.epsilon_, self.bandwidth_ = candidates[0].bandwidth, self.selection_[0].bandwidth
        else:
            self.bandwidth_ = float(self.bandwidth)
            self.epsilon_ = max(self.unit_.square(self.bandwidth_), np.finfo(float).tiny)
        self.eigenvalues_, self.coefficients_ = self._expand(self.map_unit_.images(Y))
        self.n_components_ = len(self.eigenvalues_)
        self.condition_ = float(self.eigenvalues_[0] / self.eigenvalues_[-1])

    def _extend(self, X: Points) -> np.ndarray:
        return self.map_unit_.back(self._values(self.unit_.points(X)))

    def _check_parameters(self) -> None:
        check_bandwidth(self.bandwidth)
        check_number("condition", self.condition, 1, LARGEST_CONDITION)
        check_jobs(self.n_jobs)

    @abstractmethod
    def _left_out(self, G: np.ndarray, f: np.ndarray) -> np.ndarray | None:
        """Return the leave-one-out residuals (n, d) of f for the Gaussian matrix G, or None."""

    @abstractmethod
    def _expand(self, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the eigenvalues used, descending, and the coefficients (n, d) of f."""

    @abstractmethod
    def _values(self, Q: Any) -> np.ndarray:
        """Return the values (q, d) of the expansion at queries in the unit of the points."""
