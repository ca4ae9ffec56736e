"""Quality of placements: all fields of a `Placement` except the coordinates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from outsample._compiled import gls as kernels
from outsample._parallel import over_rows
from outsample.points import Points
from outsample.records import Neighbors, Placement, Weights
from outsample.trust.bounds import certificates
from outsample.trust.error_bars import ErrorBars
from outsample.trust.error_scale import lengths_around
from outsample.trust.planes import plane_distances


class QualityEstimator(NamedTuple):
    """Fitted data for the quality of placements.

    Points X (n, D) and images Y (n, d), calibrated error bars, the Lipschitz constant of the
    certificates, and the dimension of the planes of ``Placement.off_manifold``.
    """

    X: Points
    Y: np.ndarray
    error_bars: ErrorBars
    lipschitz: float
    manifold_dim: int

    def assess(
        self,
        Q: Points,
        neighbors: Neighbors,
        certain: Neighbors,
        closest: Neighbors,
        weights: Weights,
        coordinates: np.ndarray,
        dtype: np.dtype,
        n_jobs: int | None,
    ) -> Placement:
        """Return a placement: the coordinates (q, d) in ``dtype``, with their quality.

        ``neighbors`` are those that placed the points, ``certain`` those of the certificates,
        ``closest`` those of the error bars.
        """
        residual, dispersion = disagreement(self.Y, neighbors, weights, coordinates, n_jobs)
        # The certificate and the error bar hold for the coordinates after rounding to ``dtype``.
        coordinates = coordinates.astype(dtype, copy=False)
        rounded = coordinates.astype(np.float64, copy=False)
        bars = self.error_bars.radii(lengths_around(self.Y, closest, rounded, n_jobs))
        bound = certificates(self.Y, certain, self.lipschitz, rounded, n_jobs)
        off_manifold = plane_distances(self.X, Q, neighbors, self.manifold_dim, n_jobs)
        sums = np.add.reduceat(neighbors.distances, neighbors.indptr[:-1])
        isolation = sums / np.diff(neighbors.indptr)
        return Placement(
            coordinates, bars, residual, dispersion, off_manifold, isolation, bound,
            neighbors.inside,
        )  # fmt: skip


def disagreement(
    Y: np.ndarray,
    neighbors: Neighbors,
    weights: Weights,
    coordinates: np.ndarray,
    n_jobs: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return ``m(x)^2`` of Eq. 2.9 as ``sum e_j' w_j e_j`` (q,) and ``sum e_j' w_j^-1 e_j`` (q,).

    Finite: the largest double instead of infinity.
    """
    residual, dispersion = np.empty(len(coordinates)), np.empty(len(coordinates))
    over_rows(
        kernels.disagreement, len(coordinates), n_jobs, Y, neighbors.indptr, neighbors.indices,
        weights.deviations, weights.exponent, weights.axes, weights.per_point, coordinates,
        residual, dispersion,
    )  # fmt: skip
    return residual, dispersion
