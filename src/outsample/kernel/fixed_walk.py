"""A random walk between points with one bandwidth, between all pairs or between neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from outsample.kernel import affinity, spectral
from outsample.kernel.bridges import parts_of
from outsample.kernel.eigenpairs import fixed_signs, leading_eigenpairs
from outsample.kernel.local_walk import Modes
from outsample.neighbors.graph import neighbor_distances
from outsample.neighbors.index import NeighborIndex
from outsample.points import Points

# Up to this many points every pair is in the kernel; beyond, so many neighbours of each.
DENSE_ROWS = 5000
SPARSE_NEIGHBORS = 64
# A second eigenvalue this near to 1 belongs to a kernel in separate parts, between which it is
# below what rounding leaves.
SEPARATE = 1e-10


@dataclass(frozen=True, eq=False)
class FixedWalk:
    """Transition probabilities of Eq. 7.3, divided by the densities to the power alpha.

    points (n, D); epsilon is the bandwidth, weights (n,) those of `spectral.Markov`; reach (n,) is
    the distance to the k-th neighbour, in the index, if the kernel is cut off there.
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
        """Extension (q, m) of images, eigenfunctions with these eigenvalues, to new points.

        ``f(x) = (1 / lambda) sum_j p(x, x_j) f(x_j)`` (Eq. 7.1).
        """
        reach = None
        if self.index is not None and self.k is not None:
            near = self.index.nearest(Q, self.k + 1)
            reach = near.distances[near.indptr[1:] - 1], self.reach
        c = images / np.where(values > 0, values, 1.0)
        return spectral.markov_mean(
            self.points, Q, self.epsilon, self.weights, c, reach, self.n_jobs
        )


def fixed_walk(
    X: Points, epsilon: float, k: int | None, alpha: float, count: int, n_jobs: int | None
) -> tuple[FixedWalk, Modes]:
    """Make the walk between points (n, D) and its leading modes, the constant one left out."""
    if X.shape[0] > DENSE_ROWS and k is None:
        k = SPARSE_NEIGHBORS
    index, reach = None, np.empty(0)
    kernel: Any
    if k is None:
        kernel = affinity.gaussian(X, epsilon, n_jobs)
        n_parts = 1
    else:
        index = NeighborIndex(X, n_jobs=n_jobs)
        # Whatever is as near as the k-th neighbour counts too.
        pairs, reach = neighbor_distances(index, k)
        affinity.gaussian_of(pairs.data, epsilon, out=pairs.data)
        kernel = pairs.maximum(pairs.T).tocsr()
        n_parts = int(parts_of(kernel).max()) + 1
    walk = spectral.markov(kernel, alpha)
    roots = walk.root_degrees
    values, vectors = leading_eigenpairs(walk.conjugate, count + 1, roots)
    if k is None and values[1] > 1 - SEPARATE:
        n_parts = int(parts_of(sparse.csr_matrix(walk.conjugate > SEPARATE)).max()) + 1
    functions = fixed_signs(vectors[:, 1:] * (np.sqrt((roots**2).sum()) / roots)[:, None])
    found = FixedWalk(X, epsilon, walk.weights, index, reach, k, n_parts, n_jobs)
    return found, Modes(values[1:], functions)
