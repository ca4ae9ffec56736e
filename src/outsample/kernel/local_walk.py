r"""A random walk between points with a bandwidth of its own at every point.

One bandwidth for all is too narrow for the points that stand alone: each of them becomes an
eigenvector. Here the length s of a point is the distance to its k-th neighbour, and

``g(x, y) = exp(-2 |x - y|^2 / max(s(x), s(y))^2)`` where ``|x - y| <= max(s(x), s(y))``, else 0,

so that the k neighbours of a point count for something however far they are. (With the product
``s(x) s(y)`` of Zelnik-Manor and Perona a point ten times as far out as its neighbours has
``g = exp(-20)`` even to the nearest: outliers are spikes again.) Where the points lie on a curve
or a surface of dimension d, the weights

``w = (q / s^d)^-alpha s^-(d/2 + 1)``, ``q(x) = sum_j g(x, x_j)``,

and the clock ``m = s^2``, by which the walk rests longer where its steps are longer, turn the
walk ``p`` proportional to ``w(y) g(x, y)`` into the diffusion of Coifman and Lafon for alpha:
``(p - 1) / m`` tends to the Laplace-Beltrami operator for alpha = 1, whatever the density of the
points. L. Zelnik-Manor, P. Perona, "Self-tuning spectral clustering", NIPS 17 (2004); T. Berry,
J. Harlim, "Variable bandwidth diffusion kernels", Appl. Comput. Harmon. Anal. 40 (2016) 68-96,
whose expansion gives both exponents.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from outsample._kernels import affinity as kernels
from outsample._parallel import over_rows
from outsample.kernel.bridges import bridges, parts_of
from outsample.kernel.eigenpairs import fixed_signs, leading_eigenpairs
from outsample.neighbors.cuts import first_counts
from outsample.neighbors.distinct import Distinct, distinct_points
from outsample.neighbors.graph import neighbor_distances
from outsample.neighbors.index import NeighborIndex
from outsample.points import Points, kernel_rows
from outsample.records import Neighbors

# Neighbours of a point: so many, or a share of few points. Of k = 10, 15, 20, 30, 40, 50, 64 and
# the kernels above, 30 had the least spikes, and the classes of digits, iris, wine and breast
# cancer nearest to their own kind.
NEIGHBORS = 30
SHARE, FEWEST = 5, 5
# Where a coordinate is a spike, twice as many neighbours are tried, so many times.
DOUBLINGS = 2
SPIKE = 0.05
# Lengths count as those of a curve or a surface up to this dimension, fading to the next one ...
SURFACE, SOLID = 2.0, 2.5
# ... and within this ratio of densities: beyond it a point is an outlier.
DENSITY_RATIO = 4.0
# What a bridge between separate parts counts for: as much as a last neighbour.
BRIDGE = float(np.exp(-kernels.STEEPNESS))
# An extension is not magnified more than so many times.
MAGNIFIED = 10.0
# Up to this many rows all are compared with a query; queries are taken so many at a time.
SCANNED_ROWS = 4096
CHUNK_ROWS = 4096


class Modes(NamedTuple):
    """Eigenvalues (m,), falling from below 1, and eigenfunctions (n, m) of a walk."""

    values: np.ndarray
    functions: np.ndarray


@dataclass(frozen=True, eq=False)
class LocalWalk:
    """A walk between distinct points, which copies make heavier.

    index holds the points; k is the number of neighbours, scales (n,) their lengths s and typical
    the median, dimension that of the points, weights (n,) the w times the number of copies, unit
    the mean of the clock m. n_parts parts of the graph of neighbours have been joined by bridges.
    """

    index: NeighborIndex
    distinct: Distinct
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
        """Typical bandwidth, a squared length."""
        return self.typical**2 / kernels.STEEPNESS

    def mean(self, Q: Points, images: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Extension (q, m) of images, eigenfunctions with these eigenvalues, to new points.

        ``f(x) = sum_j p(x, x_j) f(x_j) / (1 - m(x) (1 - lambda))``, with the new point's own
        length: the Nyström formula (Eq. 7.1) of this walk. A training point keeps its image.
        """
        f = np.ascontiguousarray(images[self.distinct.rows])
        parts = [self._mean(Q[at : at + CHUNK_ROWS], f, values)
                 for at in range(0, Q.shape[0], CHUNK_ROWS)]  # fmt: skip
        return np.concatenate(parts) if parts else np.empty((0, images.shape[1]))

    def _mean(self, Q: Points, f: np.ndarray, values: np.ndarray) -> np.ndarray:
        n, q = self.index.X.shape[0], Q.shape[0]
        near = self.index.nearest(Q, min(self.k + 2, n))
        distances = near.distances.reshape(q, -1)
        scales = distances[:, min(self.k, n - 1)].copy()
        found = np.empty((q, f.shape[1]))
        candidates = self._candidates(Q, near, distances[:, -1] <= scales)
        rows, asked = kernel_rows(self.index.X), kernel_rows(Q)
        over_rows(
            kernels.local_mean, q, self.n_jobs,
            rows, *candidates, asked, scales, self.scales, self.weights, f, found,
        )  # fmt: skip
        clock = _clock(scales / self.typical, self.dimension)[:, None] / self.unit
        least = np.maximum(values, 0) / MAGNIFIED
        slowed = np.maximum(1 - clock * (1 - values), np.where(least > 0, least, 1.0))
        is_known = near.distances[near.indptr[:-1]] == 0
        return np.where(is_known[:, None], found, found / slowed)

    def _candidates(
        self, Q: Points, near: Neighbors, is_tied: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows that may count for each query, rising: ``rows``, where they start and stop (q,).

        A row counts if it is within the length of the query or within its own. The former are the
        neighbours, or all rows where there may be ties. The latter are searched among rows of like
        lengths, in a ball as large as the longest.
        """
        n, q = self.index.X.shape[0], Q.shape[0]
        every, whole = np.arange(n), (np.zeros(q, dtype=np.int64), np.full(q, n))
        if n <= SCANNED_ROWS or self.index.kind != "kd_tree":
            return every, *whole
        queries = np.arange(q)
        pairs = [np.repeat(queries, np.diff(near.indptr)) * n + near.indices]
        for rows, index, radius in self._groups:
            ball = index.ball(Q, radius, 1)
            ball = first_counts(ball, ball.inside)
            pairs.append(np.repeat(queries, ball.inside) * n + rows[ball.indices])
        merged = np.unique(np.concatenate(pairs))
        edges = n + np.searchsorted(merged, np.arange(q + 1) * n)
        starts, stops = np.where(is_tied, whole, [edges[:-1], edges[1:]])
        return np.concatenate([every, merged % n]), starts, stops

    @cached_property
    def _groups(self) -> list[tuple[np.ndarray, NeighborIndex, float]]:
        """Rows whose lengths are alike up to a factor of two, their index, and the longest."""
        positive = np.maximum(self.scales, np.finfo(np.float64).tiny)
        levels = np.ceil(np.log2(positive))
        groups = []
        for level in np.unique(levels):
            rows = np.flatnonzero(levels == level)
            index = NeighborIndex(self.index.X[rows], "kd_tree", self.n_jobs)
            groups.append((rows, index, float(self.scales[rows].max())))
        return groups

    def __getstate__(self) -> dict[str, Any]:
        """Return all but what is made of it when first asked for."""
        return {name: part for name, part in vars(self).items() if name != "_groups"}


def local_walk(
    X: Points, k: int | None, alpha: float, count: int, n_jobs: int | None
) -> tuple[LocalWalk, Modes]:
    """Make the walk between points (n, D) and its leading modes, the constant one left out.

    Without k, there are `NEIGHBORS`, and more where one of the first five modes is a spike: where
    (sum c^2)^2 / (n sum c^4) is below `SPIKE` for its entries c, which is about the share of the
    points that it moves. If more neighbours do not help, the first answer stands.
    """
    distinct = distinct_points(X, n_jobs)
    index = NeighborIndex(X[distinct.rows], n_jobs=n_jobs)
    n = len(distinct.rows)
    first = k if k is not None else min(max(n // SHARE, FEWEST), NEIGHBORS)
    found = _walk(index, distinct, min(first, n - 1), alpha, count, n_jobs)
    if k is None and is_spiky(found[1].functions[:, :5]):
        for doubling in range(1, DOUBLINGS + 1):
            wider = first * 2**doubling
            if found[0].n_parts > 1 or wider > n // SHARE:
                break
            other = _walk(index, distinct, wider, alpha, count, n_jobs)
            if not is_spiky(other[1].functions[:, :5]):
                return other
    return found


def is_spiky(functions: np.ndarray) -> bool:
    """Tell whether one of the coordinates (n, m) moves hardly any point.

    >>> is_spiky(np.eye(100)[:, :1]), is_spiky(np.linspace(0, 1, 100)[:, None])
    (True, False)
    """
    c = functions - functions.mean(axis=0)
    largest = np.abs(c).max(axis=0, initial=0)
    c = c / np.where(largest > 0, largest, 1)
    squares = c**2
    shares = squares.sum(axis=0) ** 2 / np.maximum(len(c) * (squares**2).sum(axis=0), 1e-300)
    return bool((shares[largest > 0] < SPIKE).any())


def _walk(
    index: NeighborIndex, distinct: Distinct, k: int, alpha: float, count: int, n_jobs: int | None
) -> tuple[LocalWalk, Modes]:
    pairs, scales = neighbor_distances(index, k)
    typical = float(np.median(scales))
    typical = typical if typical > 0 else 1.0
    d = _dimension(pairs, scales, k)
    kernel, n_parts = _kernel(index, pairs, scales, n_jobs)
    lengths = scales / typical
    counts = distinct.counts
    q = kernel @ counts
    weights = q ** -float(alpha) * _tilt(lengths, d, alpha)
    kernel.data *= weights[kernel.indices] * np.repeat(weights, np.diff(kernel.indptr))
    degrees = kernel @ counts
    clock = _clock(lengths, d)
    unit = float((counts * degrees * clock).sum() / (counts * degrees).sum())
    clock /= unit
    modes = _modes(kernel, counts, degrees, clock, count)
    functions = modes.functions[distinct.groups]
    walk = LocalWalk(
        index, distinct, k, scales, typical, d, weights * counts, unit, n_parts, n_jobs
    )
    return walk, Modes(modes.values, functions)


def _dimension(pairs: Any, scales: np.ndarray, k: int) -> float:
    """Dimension of the points, from how their neighbours fill the way to the k-th.

    Maximum likelihood, E. Levina, P. Bickel (NIPS 2004), with the inverses averaged as D. MacKay
    and Z. Ghahramani have it.
    """
    rows = np.repeat(np.arange(len(scales)), np.diff(pairs.indptr))
    inside = (pairs.data > 0) & (scales[rows] > 0)
    total = float(np.log(scales[rows][inside] / pairs.data[inside]).sum())
    return len(scales) * (k - 2) / total if k > 2 and total > 0 else SOLID


def _surface(d: float) -> float:
    """1 for the dimension of a curve or a surface, 0 above, linear between."""
    return float(np.clip((SOLID - d) / (SOLID - SURFACE), 0, 1))


def _bounded(lengths: np.ndarray, d: float) -> np.ndarray:
    """Lengths over the typical one, within the ratio of densities that a surface may have."""
    most = DENSITY_RATIO ** (1 / max(d, 1.0))
    return np.clip(lengths, 1 / most, most)


def _clock(lengths: np.ndarray, d: float) -> np.ndarray:
    """Rest m (n,) of the walk, up to a factor: the square of the length on a surface, else 1."""
    return _bounded(lengths, d) ** (2 * _surface(d))


def _tilt(lengths: np.ndarray, d: float, alpha: float) -> np.ndarray:
    """Power of the length in the weights: 1 on a surface of dimension 2 with alpha = 1."""
    within = float(np.clip(d, 1, 2))
    return _bounded(lengths, d) ** (_surface(d) * (alpha * within - within / 2 - 1))


def _kernel(
    index: NeighborIndex, pairs: Any, scales: np.ndarray, n_jobs: int | None
) -> tuple[Any, int]:
    """Kernel of the walk, sparse and symmetric, in one part; and how many parts there were."""
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
        joins = sparse.csr_matrix((np.full(2 * len(i), BRIDGE), both), shape=(n, n))
        kernel = kernel.maximum(joins).tocsr()
    kernel.sort_indices()
    return kernel, int(parts.max()) + 1


def _modes(
    kernel: Any, counts: np.ndarray, degrees: np.ndarray, clock: np.ndarray, count: int
) -> Modes:
    """Leading eigenvalues ``1 - mu`` and eigenfunctions of ``(1 - p) f = mu m f``.

    By the symmetric matrix ``1 - 1/m + R^-1 sqrt(c) G sqrt(c) R^-1``, R^2 the degree times m; as
    many as there are, and then zeros.
    """
    n = len(counts)
    roots = np.sqrt(degrees * clock)
    sides = np.sqrt(counts) / roots
    kernel.data *= sides[kernel.indices] * np.repeat(sides, np.diff(kernel.indptr))
    matrix = kernel + sparse.diags(1 - 1 / clock, format="csr")
    asked = min(count, n - 1)
    first = np.sqrt(counts) * roots
    values, vectors = leading_eigenpairs(matrix, asked + 1, first)
    length = np.sqrt((counts * degrees * clock).sum())
    functions = np.zeros((n, count))
    functions[:, :asked] = fixed_signs(vectors[:, 1:] * (length / first)[:, None])
    return Modes(np.r_[values[1:], np.zeros(count - asked)], functions)
