"""What finds neighbours, built from normalised rows: our own tree, and search libraries.

What a library proposes is refined in `neighbors.index`, so that it may round as it likes but has to
say by how much. A new one is a class here and a line in `index.INDEXES`.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy import sparse

from outsample._kernels import tree as kernels
from outsample._kernels import tree_building as building
from outsample._parallel import openmp_threads, over_rows, thread_count
from outsample.points import Points, row_norms

# Normalised training coordinates are far below this; a query beyond it is only compared directly.
FAR_AWAY = 1e100

# Rows in a leaf of a tree, at most: whole leaves are compared with a query in vector registers.
LEAF_ROWS = 64
# Widths of leaves are multiples of what fills a register.
LANES = 8

# So many bytes stay in a processor's cache from query to query; of few queries none shares a leaf.
CACHED, FEW_QUERIES = 2**20, 64


class Backend(Protocol):
    """Proposes the nearest rows of normalised queries."""

    def query(self, Q: Points, k: int, n_jobs: int | None) -> np.ndarray:
        """Rows (q, k) that are about the nearest."""

    def square_error(self, Q: Points, distances: np.ndarray) -> np.ndarray:
        """Bound (q,) of the rounding in the squares of such distances (q,)."""


class Tree:
    """A k-d tree with tight boxes: best while the data's own dimension is low.

    It answers by itself, with the distances and the order of the exact scan.
    """

    def __init__(self, X: np.ndarray, n_jobs: int | None = None) -> None:
        n, D = X.shape
        leaves = 2 ** max(0, int(np.ceil(np.log2(n / LEAF_ROWS))))
        self.rows = np.arange(n)
        self.starts = np.zeros(leaves + 1, dtype=np.int64)
        self.starts[-1] = n
        # The first nodes by one thread, what is below them by as many as there are.
        parts = min(leaves, 2 ** int(np.ceil(np.log2(thread_count(n_jobs)))))
        halved = X, self.rows, np.empty(n), self.starts
        building.halve(0, 1, *halved, leaves, leaves // parts)
        over_rows(building.halve, parts, n_jobs, *halved, leaves // parts, 1, each=1)
        width = LANES * int(np.ceil(np.diff(self.starts).max() / LANES))
        self.leaves, boxes = np.empty((leaves, D, width)), np.empty((leaves, 2, D))
        filled = X, self.rows, self.starts, self.leaves, boxes
        over_rows(building.fill_leaves, leaves, n_jobs, *filled)
        self.box, self.fans = _fans(boxes)

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """What the kernels walk through."""
        return self.rows, self.starts, self.box, self.fans, self.leaves

    def order(self, Q: np.ndarray, scale: float, n_jobs: int | None) -> np.ndarray:
        """Order (q,) in which queries look at much the same leaves as those before them.

        A tree that the processor's cache holds needs none.
        """
        q = Q.shape[0]
        if q <= FEW_QUERIES or self.leaves.nbytes <= CACHED:
            return np.arange(q)
        homes = np.empty(q, dtype=np.int64)
        parts = (self.fans, len(self.leaves), scale, Q, homes)
        over_rows(kernels.home_leaves, q, n_jobs, *parts)
        return np.argsort(homes, kind="stable")


def share_looked_at(X: np.ndarray, Q: np.ndarray, k: int, n_jobs: int | None) -> float:
    """Share of rows (n, D) that a tree of them looks at to find the k nearest, a mean over queries.

    Those of leaves that begin nearer than the k-th neighbour: no search can do with fewer.
    """
    tree, q = Tree(X, n_jobs), Q.shape[0]
    indices, distances = np.empty((q, k), dtype=np.int64), np.empty((q, k))
    found = (1.0, Q, 1.0, np.arange(q), indices, distances)
    over_rows(kernels.nearest_in_tree, q, n_jobs, X, *tree.arrays, *found)
    reach, counts = distances[:, -1].copy(), np.empty(q, dtype=np.int64)
    walked = (tree.starts, tree.fans, len(tree.leaves), Q, reach, counts)
    over_rows(kernels.rows_in_reach, q, n_jobs, *walked)
    return float(counts.mean() / len(X))


def _fans(boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Box (2, D) of all leaves (l, 2, D), and those of children of inner nodes (i, 2, D, FAN)."""
    D, fan = boxes.shape[2], kernels.FAN
    fans = [np.empty((0, 2, D, fan))]
    while len(boxes) > 1:  # from the leaves up: what is left over is the root's
        children = boxes.reshape(-(-len(boxes) // fan), -1, 2, D)
        part = np.zeros((len(children), fan, 2, D))
        part[:, -children.shape[1] :] = children
        fans.insert(1, part.transpose(0, 2, 3, 1))
        boxes = np.stack([children[:, :, 0].min(axis=1), children[:, :, 1].max(axis=1)], axis=1)
    return boxes[0], np.concatenate(fans)


class Products:
    """Distances by matrix products, through scikit-learn: best for images and the like."""

    def __init__(self, X: Points, n_jobs: int | None = None) -> None:
        from sklearn.neighbors import NearestNeighbors

        # |x|^2 - 2xy + |y|^2 cancels less near the origin; sparse rows stay where they are.
        self.center = None if sparse.issparse(X) else X.mean(axis=0)
        centered = self._centered(X)
        self.search = NearestNeighbors(algorithm="brute").fit(centered)
        self.reach = float(row_norms(centered).max())
        self.rounding = (X.shape[1] + 8) * 2.0**-50

    def query(self, Q: Points, k: int, n_jobs: int | None) -> np.ndarray:
        """Rows (q, k). Without ``n_jobs`` all cores are used, as scikit-learn does."""
        centered = self._centered(Q)
        if n_jobs is None:
            return self.search.kneighbors(centered, k, return_distance=False)
        with openmp_threads(thread_count(n_jobs)):
            return self.search.kneighbors(centered, k, return_distance=False)

    def square_error(self, Q: Points, distances: np.ndarray) -> np.ndarray:
        """Bound (q,), relative to the squares of the coordinates, which cancel."""
        size = row_norms(self._centered(Q)) + self.reach
        return self.rounding * (size**2 + distances * (1 + size))

    def _centered(self, X: Points) -> Points:
        return X if self.center is None else X - self.center
