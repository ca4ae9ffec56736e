"""Random walk on the points with one bandwidth, over all pairs or over neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from outsample.neighbors.graph import neighbor_distances
from outsample.neighbors.index import NeighborIndex
from outsample.points import Points
from outsample.spectral import affinity, transitions
from outsample.spectral.bridges import parts_of
from outsample.spectral.eigenpairs import fixed_signs, leading_eigenpairs
from outsample.spectral.local_walk import Modes

# Up to this many points the kernel has every pair; beyond, this many neighbours of each point.
ALL_PAIRS_ROWS = 5000
SPARSE_NEIGHBORS = 64
# A second eigenvalue this close to 1 means that the kernel has several components: its entries
# between them are below this.
COMPONENT_GAP = 1e-10


@dataclass(frozen=True, eq=False)
class FixedWalk:
    """Random walk with the probabilities of Eq. 7.3, divided by the densities to the power alpha.

    ``points`` (n, D), ``epsilon`` the bandwidth, ``weights`` (n,) those of `transitions.Markov`. If
    the kernel is cut off at the k-th neighbour in the index, ``reach`` (n,) is its distance.
    """

    points: Points
    epsilon: float
    weights: np.ndarray
    index: NeighborIndex | None
    reach: np.ndarray
    k: int | None
    n_parts: int
    n_jobs: int | None

    def mean(self, Q: Points, images: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the extension (q, m) of eigenfunctions with these eigenvalues to new points.

        ``f(x) = (1 / lambda) sum_j p(x, x_j) f(x_j)`` (Eq. 7.1).
        """
        reach = None
        if self.index is not None and self.k is not None:
            neighbors = self.index.nearest(Q, self.k + 1)
            reach = neighbors.distances[neighbors.indptr[1:] - 1], self.reach
        c = images / np.where(values > 0, values, 1.0)
        return affinity.expansion(
            self.points, Q, self.epsilon, c, weights=self.weights, reach=reach, normalize=True,
            n_jobs=self.n_jobs,
        )  # fmt: skip


def fixed_walk(
    X: Points, epsilon: float, k: int | None, alpha: float, count: int, n_jobs: int | None
) -> tuple[FixedWalk, Modes]:
    """Return the walk on points (n, D) and its leading modes, without the constant one."""
    if X.shape[0] > ALL_PAIRS_ROWS and k is None:
        k = SPARSE_NEIGHBORS
    index, reach = None, np.empty(0)
    kernel: Any
    if k is None:
        kernel = affinity.gaussian(X, epsilon, n_jobs)
        n_parts = 1
    else:
        index = NeighborIndex(X, n_jobs=n_jobs)
        # Points tied with the k-th neighbour count as neighbours.
        pairs, reach = neighbor_distances(index, k)
        affinity.gaussian_of(pairs.data, epsilon, out=pairs.data)
        kernel = pairs.maximum(pairs.T).tocsr()
        n_parts = int(parts_of(kernel).max()) + 1
    walk = transitions.markov(kernel, alpha)
    roots = walk.root_degrees
    values, vectors = leading_eigenpairs(walk.conjugate, count + 1, roots)
    if k is None and values[1] > 1 - COMPONENT_GAP:
        n_parts = int(parts_of(sparse.csr_matrix(walk.conjugate > COMPONENT_GAP)).max()) + 1
    functions = fixed_signs(vectors[:, 1:] * (np.sqrt((roots**2).sum()) / roots)[:, None])
    fixed = FixedWalk(X, epsilon, walk.weights, index, reach, k, n_parts, n_jobs)
    return fixed, Modes(values[1:], functions)
