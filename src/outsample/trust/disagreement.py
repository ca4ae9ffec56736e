"""The paper's m(x): disagreement of the neighbours' images with a placement (Eq. 2.9)."""

from __future__ import annotations

import numpy as np

from outsample._compiled import gls as kernels
from outsample._parallel import over_rows
from outsample.records import Neighbors, Weights


def disagreement(
    Y: np.ndarray,
    near: Neighbors,
    weights: Weights,
    coordinates: np.ndarray,
    n_jobs: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return ``m(x)^2`` of Eq. 2.9 as ``sum e_j' w_j e_j`` (q,) and ``sum e_j' w_j^-1 e_j`` (q,).

    Finite: the largest double instead of infinity.
    """
    residual, dispersion = np.empty(len(coordinates)), np.empty(len(coordinates))
    over_rows(
        kernels.disagreement, len(coordinates), n_jobs, Y, near.indptr, near.indices,
        weights.deviations, weights.exponent, weights.axes, weights.per_point, coordinates,
        residual, dispersion,
    )  # fmt: skip
    return residual, dispersion
