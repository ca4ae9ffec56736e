"""Backends of the neighbour search, built from normalised rows: a k-d tree, and matrix products.

`NeighborIndex` recomputes the distances of proposed candidates, so that a backend may round, but
it must bound its rounding errors. A new backend is a class here and a line in `index.INDEXES`.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from outsample._compiled import tree as kernels
from outsample._compiled import tree_building as building
from outsample._parallel import openmp_threads, over_rows, thread_count
from outsample.points import Points, row_norms

# Normalised training coordinates are far below this; larger queries are compared directly.
FAR_AWAY = 1e100

# Rows in a leaf of a tree, at most; whole leaves are compared with a query in vector registers.
LEAF_ROWS = 64
# Widths of leaves are multiples of this number of doubles, which fill a vector register.
REGISTER_LANES = 8

# Sorting queries by leaf does not pay for a tree of up to this many bytes, which stays in the
# processor's cache, or for up to this many queries, which share few leaves.
CACHED_BYTES, MAX_UNSORTED_QUERIES = 2**20, 64


class Tree:
    """k-d tree with tight boxes, for data of low intrinsic dimension.

    Its distances and order are those of an exact scan.
    """

    def __init__(self, X: np.ndarray, n_jobs: int | None = None) -> None:
        n, D = X.shape
        leaves = 2 ** max(0, int(np.ceil(np.log2(n / LEAF_ROWS))))
        self.rows = np.arange(n)
        self.starts = np.zeros(leaves + 1, dtype=np.int64)
        self.starts[-1] = n
        # One thread halves the first nodes; then all threads continue below them.
        parts = min(leaves, 2 ** int(np.ceil(np.log2(thread_count(n_jobs)))))
        node_arrays = X, self.rows, np.empty(n), self.starts
        building.halve(0, 1, *node_arrays, leaves, leaves // parts)
        over_rows(building.halve, parts, n_jobs, *node_arrays, leaves // parts, 1, each=1)
        width = REGISTER_LANES * int(np.ceil(np.diff(self.starts).max() / REGISTER_LANES))
        self.leaves, boxes = np.empty((leaves, D, width)), np.empty((leaves, 2, D))
        leaf_arrays = X, self.rows, self.starts, self.leaves, boxes
        over_rows(building.fill_leaves, leaves, n_jobs, *leaf_arrays)
        self.box, self.fans = _fans(boxes)

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """Return the arrays that the kernels search."""
        return self.rows, self.starts, self.box, self.fans, self.leaves

    def order(self, Q: np.ndarray, scale: float, n_jobs: int | None) -> np.ndarray:
        """Return an order (q,) in which consecutive queries search nearby leaves.

        A tree that fits into the processor's cache needs none.
        """
        q = Q.shape[0]
        if q <= MAX_UNSORTED_QUERIES or self.leaves.nbytes <= CACHED_BYTES:
            return np.arange(q)
        homes = np.empty(q, dtype=np.int64)
        parts = (self.fans, len(self.leaves), scale, Q, homes)
        over_rows(kernels.home_leaves, q, n_jobs, *parts)
        return np.argsort(homes, kind="stable")


def share_looked_at(X: np.ndarray, Q: np.ndarray, k: int, n_jobs: int | None) -> float:
    """Return the mean share of rows (n, D) that a tree must compare with a query for k neighbours.

    These are the rows in leaves whose box is nearer than the k-th neighbour.
    """
    tree, q = Tree(X, n_jobs), Q.shape[0]
    indices, distances = np.empty((q, k), dtype=np.int64), np.empty((q, k))
    search_arguments = (1.0, Q, 1.0, np.arange(q), indices, distances)
    over_rows(kernels.nearest_in_tree, q, n_jobs, X, *tree.arrays, *search_arguments)
    reach, counts = distances[:, -1].copy(), np.empty(q, dtype=np.int64)
    count_arguments = (tree.starts, tree.fans, len(tree.leaves), Q, reach, counts)
    over_rows(kernels.rows_in_reach, q, n_jobs, *count_arguments)
    return float(counts.mean() / len(X))


def _fans(boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the box (2, D) of all leaves (l, 2, D), and the fans (i, 2, D, FAN) of inner nodes."""
    D, fan = boxes.shape[2], kernels.FAN
    fans = [np.empty((0, 2, D, fan))]
    while len(boxes) > 1:  # from the leaves up; the root gets the remaining children
        children = boxes.reshape(-(-len(boxes) // fan), -1, 2, D)
        part = np.zeros((len(children), fan, 2, D))
        part[:, -children.shape[1] :] = children
        fans.insert(1, part.transpose(0, 2, 3, 1))
        boxes = np.stack([children[:, :, 0].min(axis=1), children[:, :, 1].max(axis=1)], axis=1)
    return boxes[0], np.concatenate(fans)


class Products:
    """Brute-force search by matrix products (scikit-learn), for data of high dimension."""

    def __init__(self, X: Points, n_jobs: int | None = None) -> None:
        from sklearn.neighbors import NearestNeighbors

        # |x|^2 - 2xy + |y|^2 loses fewer digits near the origin; sparse rows are not centred.
        self.center = None if sparse.issparse(X) else X.mean(axis=0)
        centered = self._centered(X)
        self.search = NearestNeighbors(algorithm="brute").fit(centered)
        self.reach = float(row_norms(centered).max())
        self.rounding = (X.shape[1] + 8) * 2.0**-50

    def query(self, Q: Points, k: int, n_jobs: int | None) -> np.ndarray:
        """Return rows (q, k) that are approximately the nearest; all cores without ``n_jobs``."""
        centered = self._centered(Q)
        if n_jobs is None:
            return self.search.kneighbors(centered, k, return_distance=False)
        with openmp_threads(thread_count(n_jobs)):
            return self.search.kneighbors(centered, k, return_distance=False)

    def square_error(self, Q: Points, distances: np.ndarray) -> np.ndarray:
        """Return a bound (q,) of the rounding error in the squares of such distances (q,)."""
        size = row_norms(self._centered(Q)) + self.reach
        return self.rounding * (size**2 + distances * (1 + size))

    def _centered(self, X: Points) -> Points:
        return X if self.center is None else X - self.center
