r"""Random walk on the points with one bandwidth per point.

A single bandwidth is too narrow for isolated points: each of them becomes an eigenvector. Here the
length s of a point is the distance to its k-th neighbour, and

``g(x, y) = exp(-2 |x - y|^2 / max(s(x), s(y))^2)`` where ``|x - y| <= max(s(x), s(y))``, else 0,

so that the k neighbours of a point always have a positive kernel. (The product ``s(x) s(y)`` of
Zelnik-Manor and Perona gives isolated points ``g = exp(-20)`` even to the nearest neighbour.) On
a curve or a surface of dimension d, the weights

``w = (q / s^d)^-alpha s^-(d/2 + 1)``, ``q(x) = sum_j g(x, x_j)``,

and the holding times ``m = s^2``, which are longer where steps are longer, turn the walk ``p``
proportional to ``w(y) g(x, y)`` into the diffusion of Coifman and Lafon: for alpha = 1,
``(p - 1) / m`` tends to the Laplace-Beltrami operator for any density. The expansion of Berry and
Harlim gives both exponents. L. Zelnik-Manor, P. Perona, "Self-tuning spectral clustering", NIPS 17
(2004); T. Berry, J. Harlim, "Variable bandwidth diffusion kernels", ACHA 40 (2016) 68-96.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from outsample._compiled import affinity as kernels
from outsample._parallel import over_rows
from outsample.neighbors.duplicates import Duplicates, find_duplicates
from outsample.neighbors.graph import neighbor_distances
from outsample.neighbors.index import NeighborIndex
from outsample.neighbors.truncation import first_counts
from outsample.points import Points, kernel_rows
from outsample.records import Neighbors
from outsample.spectral.bridges import bridges, parts_of
from outsample.spectral.eigenpairs import fixed_signs, leading_eigenpairs

# Neighbours of a point, at most a fifth of the points and at least 5; of 10 to 64, 30 was best.
DEFAULT_NEIGHBORS = 30
POINTS_PER_NEIGHBOR, MIN_NEIGHBORS = 5, 5
# A coordinate that moves a smaller share of the points is a spike: k is doubled, at most twice.
SPIKE_SHARE = 0.05
MAX_DOUBLINGS = 2
# Lengths are corrected fully up to the first dimension (a surface), not at all from the second on,
SURFACE_DIM, SOLID_DIM = 2.0, 2.5
# and within this ratio of densities, beyond which a point is an outlier.
MAX_DENSITY_RATIO = 4.0
# Kernel value of an edge between components: that of a k-th neighbour.
BRIDGE_WEIGHT = float(np.exp(-kernels.STEEPNESS))
# Factor by which an extension is magnified, at most.
MAX_MAGNIFICATION = 10.0
# Up to this many rows all are compared with a query; and the queries of one chunk.
MAX_SCANNED_ROWS, WALK_CHUNK_ROWS = 4096, 4096


class Modes(NamedTuple):
    """Eigenvalues (m,) below 1, descending, and eigenfunctions (n, m) of a walk."""

    values: np.ndarray
    functions: np.ndarray


@dataclass(frozen=True, eq=False)
class LocalWalk:
    """Random walk on distinct points, weighted by their numbers of duplicates.

    ``index`` holds the points, ``k`` is the number of neighbours, ``scales`` (n,) the lengths s and
    ``typical`` their median, ``dimension`` that of the points, ``weights`` (n,) the w times the
    number of duplicates, ``unit`` the mean holding time. ``n_parts`` components of the neighbour
    graph were connected by bridges.
    """

    index: NeighborIndex
    distinct: Duplicates
    k: int
    scales: np.ndarray
    typical: float
    dimension: float
    weights: np.ndarray
    unit: float
    n_parts: int
    n_jobs: int | None

    @property
    def epsilon(self) -> float:
        """Return the typical bandwidth, a squared length."""
        return self.typical**2 / kernels.STEEPNESS

    def mean(self, Q: Points, images: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the extension (q, m) of eigenfunctions with these eigenvalues to new points.

        ``f(x) = sum_j p(x, x_j) f(x_j) / (1 - m(x) (1 - lambda))``, with the new point's own
        length: the Nyström formula (Eq. 7.1) of this walk. A training point keeps its values.
        """
        f = np.ascontiguousarray(images[self.distinct.rows])
        starts = range(0, Q.shape[0], WALK_CHUNK_ROWS)
        chunks = [self._mean(Q[at : at + WALK_CHUNK_ROWS], f, values) for at in starts]
        return np.concatenate(chunks) if chunks else np.empty((0, images.shape[1]))

    def _mean(self, Q: Points, f: np.ndarray, values: np.ndarray) -> np.ndarray:
        n, q = self.index.X.shape[0], Q.shape[0]
        neighbors = self.index.nearest(Q, min(self.k + 2, n))
        distances = neighbors.distances.reshape(q, -1)
        scales = distances[:, min(self.k, n - 1)].copy()
        means = np.empty((q, f.shape[1]))
        candidates = self._candidates(Q, neighbors, distances[:, -1] <= scales)
        rows, queries = kernel_rows(self.index.X), kernel_rows(Q)
        over_rows(
            kernels.local_mean, q, self.n_jobs,
            rows, *candidates, queries, scales, self.scales, self.weights, f, means,
        )  # fmt: skip
        clock = _holding_times(scales / self.typical, self.dimension)[:, None] / self.unit
        least = np.maximum(values, 0) / MAX_MAGNIFICATION
        factors = np.maximum(1 - clock * (1 - values), np.where(least > 0, least, 1.0))
        is_training_point = neighbors.distances[neighbors.indptr[:-1]] == 0
        return np.where(is_training_point[:, None], means, means / factors)

    def _candidates(
        self, Q: Points, neighbors: Neighbors, is_tied: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return candidate rows, and where those of each query start and stop (q,), ascending.

        A row counts if its distance is at most the length of the query or its own length. The
        first kind are the neighbours, or all rows where there may be ties. The second kind are
        searched in groups of rows of similar length, in a ball as large as the longest.
        """
        n, q = self.index.X.shape[0], Q.shape[0]
        all_rows, whole = np.arange(n), (np.zeros(q, dtype=np.int64), np.full(q, n))
        if n <= MAX_SCANNED_ROWS or self.index.kind != "kd_tree":
            return all_rows, *whole
        queries = np.arange(q)
        pairs = [np.repeat(queries, np.diff(neighbors.indptr)) * n + neighbors.indices]
        for rows, index, radius in self._groups:
            ball = index.ball(Q, radius, 1)
            ball = first_counts(ball, ball.inside)
            pairs.append(np.repeat(queries, ball.inside) * n + rows[ball.indices])
        merged = np.unique(np.concatenate(pairs))
        edges = n + np.searchsorted(merged, np.arange(q + 1) * n)
        starts, stops = np.where(is_tied, whole, [edges[:-1], edges[1:]])
        return np.concatenate([all_rows, merged % n]), starts, stops

    @cached_property
    def _groups(self) -> list[tuple[np.ndarray, NeighborIndex, float]]:
        """Groups of rows with lengths equal up to a factor of two, their index and longest."""
        levels = np.ceil(np.log2(np.maximum(self.scales, np.finfo(np.float64).tiny)))
        groups = []
        for level in np.unique(levels):
            rows = np.flatnonzero(levels == level)
            index = NeighborIndex(self.index.X[rows], "kd_tree", self.n_jobs)
            groups.append((rows, index, float(self.scales[rows].max())))
        return groups

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the cached groups."""
        return {name: part for name, part in vars(self).items() if name != "_groups"}


def local_walk(
    X: Points, k: int | None, alpha: float, count: int, n_jobs: int | None
) -> tuple[LocalWalk, Modes]:
    """Return the walk on points (n, D) and its leading modes, without the constant one.

    Without k there are `DEFAULT_NEIGHBORS`, and more if one of the first five modes is a spike: if
    (sum c^2)^2 / (n sum c^4), about the share of the points that it moves, is below `SPIKE_SHARE`
    for its entries c. If more neighbours do not help, the first walk is returned.
    """
    distinct = find_duplicates(X, n_jobs)
    index = NeighborIndex(X[distinct.rows], n_jobs=n_jobs)
    n = len(distinct.rows)
    first = k
    if first is None:
        first = min(max(n // POINTS_PER_NEIGHBOR, MIN_NEIGHBORS), DEFAULT_NEIGHBORS)
    walk, modes = _walk(index, distinct, min(first, n - 1), alpha, count, n_jobs)
    if k is None and is_spiky(modes.functions[:, :5]):
        for doubling in range(1, MAX_DOUBLINGS + 1):
            wider = first * 2**doubling
            if walk.n_parts > 1 or wider > n // POINTS_PER_NEIGHBOR:
                break
            wider_walk, wider_modes = _walk(index, distinct, wider, alpha, count, n_jobs)
            if not is_spiky(wider_modes.functions[:, :5]):
                return wider_walk, wider_modes
    return walk, modes


def is_spiky(functions: np.ndarray) -> bool:
    """Return whether one of the coordinates (n, m) moves hardly any point.

    >>> is_spiky(np.eye(100)[:, :1]), is_spiky(np.linspace(0, 1, 100)[:, None])
    (True, False)
    """
    c = functions - functions.mean(axis=0)
    largest = np.abs(c).max(axis=0, initial=0)
    c = c / np.where(largest > 0, largest, 1)
    squares = c**2
    shares = squares.sum(axis=0) ** 2 / np.maximum(len(c) * (squares**2).sum(axis=0), 1e-300)
    return bool((shares[largest > 0] < SPIKE_SHARE).any())


def _walk(
    index: NeighborIndex, distinct: Duplicates, k: int, alpha: float, count: int, n_jobs: int | None
) -> tuple[LocalWalk, Modes]:
    pairs, scales = neighbor_distances(index, k)
    typical = float(np.median(scales))
    typical = typical if typical > 0 else 1.0
    d = _dimension(pairs, scales, k)
    kernel, n_parts = _kernel(index, pairs, scales, n_jobs)
    lengths = scales / typical
    counts = distinct.counts
    q = kernel @ counts
    weights = q ** -float(alpha) * _length_weights(lengths, d, alpha)
    kernel.data *= weights[kernel.indices] * np.repeat(weights, np.diff(kernel.indptr))
    degrees = kernel @ counts
    clock = _holding_times(lengths, d)
    unit = float((counts * degrees * clock).sum() / (counts * degrees).sum())
    clock /= unit
    modes = _modes(kernel, counts, degrees, clock, count)
    functions = modes.functions[distinct.groups]
    walk = LocalWalk(
        index, distinct, k, scales, typical, d, weights * counts, unit, n_parts, n_jobs
    )
    return walk, Modes(modes.values, functions)


def _dimension(pairs: Any, scales: np.ndarray, k: int) -> float:
    """Return the intrinsic dimension of the points, from the distances to their neighbours.

    Maximum likelihood of E. Levina and P. Bickel (NIPS 2004), with inverses averaged as proposed
    by D. MacKay and Z. Ghahramani.
    """
    rows = np.repeat(np.arange(len(scales)), np.diff(pairs.indptr))
    inside = (pairs.data > 0) & (scales[rows] > 0)
    total = float(np.log(scales[rows][inside] / pairs.data[inside]).sum())
    return len(scales) * (k - 2) / total if k > 2 and total > 0 else SOLID_DIM


def _surface_share(d: float) -> float:
    """Return 1 for the dimension of a curve or a surface, 0 above, linear between."""
    return float(np.clip((SOLID_DIM - d) / (SOLID_DIM - SURFACE_DIM), 0, 1))


def _clipped_lengths(lengths: np.ndarray, d: float) -> np.ndarray:
    """Return lengths over the typical one, clipped to the density ratio of a surface."""
    largest = MAX_DENSITY_RATIO ** (1 / max(d, 1.0))
    return np.clip(lengths, 1 / largest, largest)


def _holding_times(lengths: np.ndarray, d: float) -> np.ndarray:
    """Return the holding times m (n,), up to a factor: s^2 on a surface, otherwise 1."""
    return _clipped_lengths(lengths, d) ** (2 * _surface_share(d))


def _length_weights(lengths: np.ndarray, d: float, alpha: float) -> np.ndarray:
    """Return the power of the length in the weights, which is 1 for d = 2 and alpha = 1."""
    within = float(np.clip(d, 1, 2))
    return _clipped_lengths(lengths, d) ** (_surface_share(d) * (alpha * within - within / 2 - 1))


def _kernel(
    index: NeighborIndex, pairs: Any, scales: np.ndarray, n_jobs: int | None
) -> tuple[Any, int]:
    """Return the sparse symmetric kernel, connected by bridges, and the number of components."""
    n = len(scales)
    rows = np.repeat(np.arange(n), np.diff(pairs.indptr))
    longer = np.maximum(scales[rows], scales[pairs.indices])
    reduced = pairs.data / np.where(longer > 0, longer, 1)
    pairs.data = np.exp(-kernels.STEEPNESS * reduced**2)
    kernel = pairs.maximum(pairs.T).tocsr()
    parts = parts_of(kernel)
    if parts.max() > 0:
        i, j = bridges(index.X, parts, n_jobs).T
        both = np.r_[i, j], np.r_[j, i]
        joins = sparse.csr_matrix((np.full(2 * len(i), BRIDGE_WEIGHT), both), shape=(n, n))
        kernel = kernel.maximum(joins).tocsr()
    kernel.sort_indices()
    return kernel, int(parts.max()) + 1


def _modes(
    kernel: Any, counts: np.ndarray, degrees: np.ndarray, clock: np.ndarray, count: int
) -> Modes:
    """Return the leading eigenvalues ``1 - mu`` and eigenfunctions of ``(1 - p) f = mu m f``.

    From the symmetric matrix ``1 - 1/m + R^-1 sqrt(c) G sqrt(c) R^-1``, R^2 the degree times m;
    padded with zeros if there are fewer than ``count``.
    """
    n = len(counts)
    roots = np.sqrt(degrees * clock)
    sides = np.sqrt(counts) / roots
    kernel.data *= sides[kernel.indices] * np.repeat(sides, np.diff(kernel.indptr))
    matrix = kernel + sparse.diags(1 - 1 / clock, format="csr")
    n_modes = min(count, n - 1)
    first = np.sqrt(counts) * roots
    values, vectors = leading_eigenpairs(matrix, n_modes + 1, first)
    length = np.sqrt((counts * degrees * clock).sum())
    functions = np.zeros((n, count))
    functions[:, :n_modes] = fixed_signs(vectors[:, 1:] * (length / first)[:, None])
    return Modes(np.r_[values[1:], np.zeros(count - n_modes)], functions)
