"""Error bounds of Section 5, in the form in which they hold.

Let the map be K-Lipschitz and every neighbour of x be within ``eps``. Then every neighbour's image
is within ``K eps`` of the true one, and

* distance weights give a convex combination of them: error at most ``K eps``;
* weights that are diagonal in one basis give a weighted mean along each of d axes: each
  coordinate is off by at most ``K eps``, the point by ``sqrt(d) K eps``;
* tangents that differ from neighbour to neighbour are not covered by either argument.

Whatever the method, ``|psi_hat - psi(x)| <= |psi_hat - psi_j| + K r_j`` for every neighbour j by
the triangle inequality: the least of these is the certificate of one placement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from outsample._kernels import bounds as kernels
from outsample._parallel import over_rows
from outsample.records import Neighbors

if TYPE_CHECKING:
    from outsample.neighbors.index import NeighborIndex


def fill_distance(index: NeighborIndex, reference: np.ndarray | None = None) -> float:
    """Estimate delta, the least radius for which the training set is a delta-net.

    The largest distance of a reference point (s, D) of the manifold from the training set, a lower
    bound of delta. Without them every training row is held out in turn, which is delta of the set
    less one row, so rather too large.

    Examples
    --------
    >>> from outsample.neighbors.index import NeighborIndex
    >>> index = NeighborIndex(np.array([[0.0], [1.0], [2.0]]))
    >>> fill_distance(index), fill_distance(index, np.array([[0.4], [1.5]]))
    (1.0, 0.5)
    """
    if reference is not None:
        reference = np.ascontiguousarray(reference, dtype=np.float64)
        return float(index.nearest(reference, 1).distances.max())
    # The row itself is at distance 0, so the second distance is that to the nearest other row.
    return float(index.nearest(index.X, 2).distances[1::2].max())


def lipschitz_estimates(
    Y: np.ndarray, rows: np.ndarray, near: Neighbors, n_jobs: int | None = None
) -> np.ndarray:
    """Local Lipschitz constants (s,): the largest ``|psi_i - psi_j| / |x_i - x_j|`` around row i.

    A lower bound of the true constant, since only the samples are seen; their maximum estimates
    the global one. Coinciding rows are passed over.
    """
    around = near.indptr, near.indices, near.distances
    ratios = np.empty(len(rows))
    over_rows(kernels.lipschitz_ratios, len(rows), n_jobs, Y, rows, *around, ratios)
    return ratios


def a_priori_bound(weighting: str, lipschitz: float, radius: float, d: int) -> float:
    """Bound the error of every placement before it is made (Theorems 5.1 and 5.3, corrected).

    With order 0, squared loss and no neighbour farther than ``radius`` (the paper takes delta):
    ``K eps`` for distance weights, ``sqrt(d) K eps`` for weights that share a basis, and infinity
    for those that the theorem does not cover.

    Examples
    --------
    >>> a_priori_bound("distance", 2.0, 0.5, d=4), a_priori_bound("tangent", 2.0, 0.5, d=4)
    (1.0, 2.0)
    """
    factor = {"distance": 1.0, "tangent": d**0.5, "split_tangent": d**0.5}
    return factor.get(weighting, float("inf")) * lipschitz * radius


def certificates(
    Y: np.ndarray,
    near: Neighbors,
    lipschitz: float,
    coordinates: np.ndarray,
    n_jobs: int | None = None,
) -> np.ndarray:
    """``min_j (|psi_hat - psi_j| + K r_j)`` (q,): holds for any placement of a K-Lipschitz map."""
    around = near.indptr, near.indices, near.distances
    q, bound = len(coordinates), np.empty(len(coordinates))
    over_rows(kernels.certificates, q, n_jobs, Y, *around, lipschitz, coordinates, bound)
    return bound
