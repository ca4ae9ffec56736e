"""Error bounds of Section 5, corrected.

Let the map be K-Lipschitz and every neighbour of x be within ``eps``. Then every neighbour's image
is within ``K eps`` of the true one, and

* distance weights give a convex combination of the images: the error is at most ``K eps``;
* weights that are diagonal in one basis give a weighted mean along each of d axes: the error of
  each coordinate is at most ``K eps``, that of the point ``sqrt(d) K eps``;
* weights with one tangent frame per neighbour are not covered by either argument.

For every method, ``|psi_hat - psi(x)| <= |psi_hat - psi_j| + K r_j`` for each neighbour j by the
triangle inequality: the minimum over j is the certificate of a placement.
"""

from __future__ import annotations

import numpy as np

from outsample._compiled import bounds as kernels
from outsample._parallel import over_rows
from outsample.records import Neighbors


def lipschitz_estimates(
    Y: np.ndarray, rows: np.ndarray, neighbors: Neighbors, n_jobs: int | None = None
) -> np.ndarray:
    """Return local Lipschitz constants (s,): ``max_j |psi_i - psi_j| / |x_i - x_j|`` around row i.

    They are lower bounds of the true constant, since only samples are compared; their maximum
    estimates the global constant. Coincident rows are ignored.
    """
    arrays = neighbors.indptr, neighbors.indices, neighbors.distances
    ratios = np.empty(len(rows))
    over_rows(kernels.lipschitz_ratios, len(rows), n_jobs, Y, rows, *arrays, ratios)
    return ratios


def a_priori_bound(weighting: str, lipschitz: float, radius: float, d: int) -> float:
    """Return an a-priori bound of the error of every placement (Theorems 5.1 and 5.3, corrected).

    With order 0, squared loss and no neighbour farther than ``radius`` (delta in the paper):
    ``K eps`` for distance weights, ``sqrt(d) K eps`` for weights that share a basis, infinity for
    weights that the theorem does not cover.

    Examples
    --------
    >>> a_priori_bound("distance", 2.0, 0.5, d=4), a_priori_bound("tangent", 2.0, 0.5, d=4)
    (1.0, 2.0)
    """
    factor = {"distance": 1.0, "tangent": d**0.5, "split_tangent": d**0.5}
    return factor.get(weighting, float("inf")) * lipschitz * radius


def certificates(
    Y: np.ndarray,
    neighbors: Neighbors,
    lipschitz: float,
    coordinates: np.ndarray,
    n_jobs: int | None = None,
) -> np.ndarray:
    """Return ``min_j (|psi_hat - psi_j| + K r_j)`` (q,), valid for any K-Lipschitz map."""
    arrays = neighbors.indptr, neighbors.indices, neighbors.distances
    q, bound = len(coordinates), np.empty(len(coordinates))
    over_rows(kernels.certificates, q, n_jobs, Y, *arrays, lipschitz, coordinates, bound)
    return bound
