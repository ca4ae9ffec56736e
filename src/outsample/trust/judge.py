"""How far to trust placements: everything in a `Placement` beside the coordinates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from outsample.points import Points
from outsample.records import Neighbors, Placement, Weights
from outsample.trust.bounds import certificates, lipschitz_estimates
from outsample.trust.disagreement import disagreement
from outsample.trust.error_bars import ErrorBars, calibrated_bars, image_spread, lengths
from outsample.trust.planes import plane_distances


class Judge(NamedTuple):
    """What a fitted extension knows of its own errors.

    Points X (n, D) and images Y (n, d), calibrated error bars, K of the certificates, and the
    dimension of the planes of ``Placement.off_manifold``.
    """

    X: Points
    Y: np.ndarray
    error_bars: ErrorBars
    lipschitz: float
    manifold_dim: int

    def judge(
        self,
        Q: Points,
        near: Neighbors,
        weights: Weights,
        coordinates: np.ndarray,
        dtype: np.dtype,
        n_jobs: int | None,
    ) -> Placement:
        """Return coordinates (q, d), as they are handed out, with their quality."""
        residual, dispersion = disagreement(self.Y, near, weights, coordinates, n_jobs)
        # The certificate and the bar speak of the coordinates as they are handed out.
        coordinates = coordinates.astype(dtype, copy=False)
        given_out = coordinates.astype(np.float64, copy=False)
        spread = image_spread(self.Y, near, given_out, n_jobs)
        bars = self.error_bars.radii(spread, near.distances[near.indptr[:-1]])
        bound = certificates(self.Y, near, self.lipschitz, given_out, n_jobs)
        off_manifold = plane_distances(self.X, Q, near, self.manifold_dim, n_jobs)
        isolation = np.add.reduceat(near.distances, near.indptr[:-1]) / np.diff(near.indptr)
        return Placement(
            coordinates, bars, residual, dispersion, off_manifold, isolation, bound, near.inside
        )


def calibrated_judge(
    X: Points,
    Y: np.ndarray,
    rows: np.ndarray,
    near: Neighbors,
    coordinates: np.ndarray,
    close: Neighbors,
    lipschitz: float | None,
    manifold_dim: int,
    n_jobs: int | None,
) -> Judge:
    """Set K and the error bars from training rows (s,) that the others placed at coordinates.

    ``near`` are their neighbourhoods without themselves, ``close`` those with; a K of None is the
    largest slope seen there.
    """
    slopes = lipschitz_estimates(Y, rows, close, n_jobs)
    errors = lengths(coordinates - Y[rows])
    spread = image_spread(Y, near, coordinates, n_jobs)
    nearest = near.distances[near.indptr[:-1]]
    widest = float(lengths(np.ptp(Y, axis=0)[None])[0])
    bars = calibrated_bars(errors, spread, nearest, slopes, widest)
    return Judge(X, Y, bars, float(slopes.max() if lipschitz is None else lipschitz), manifold_dim)
