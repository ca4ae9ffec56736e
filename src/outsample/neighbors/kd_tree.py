"""k-d tree with tight boxes, for data of low intrinsic dimension."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from outsample._compiled import tree as kernels
from outsample._compiled import tree_building as building
from outsample._parallel import over_rows, thread_count
from outsample.points import search_scale

# Rows in a leaf of a tree, at most; whole leaves are compared with a query in vector registers.
LEAF_ROWS = 64
# Widths of leaves are multiples of this number of doubles, which fill a vector register.
REGISTER_LANES = 8

# Sorting queries by leaf does not pay for a tree of up to this many bytes, which stays in the
# processor's cache, or for up to this many queries, which share few leaves.
CACHED_BYTES, MAX_UNSORTED_QUERIES = 2**20, 64


class KdTree:
    """Exact search; with a ``width`` above 0, approximate search that opens fewer boxes.

    The width is a percentage: how far the search goes from the squared distance of the nearest box
    to that of the k-th neighbour.
    """

    def __init__(self, X: np.ndarray, n_jobs: int | None = None, width: int = 0) -> None:
        n, D = X.shape
        self.X, self.n_jobs, self.width, self.scale = X, n_jobs, width, search_scale(X)
        scaled = X if self.scale == 1 else X * self.scale
        leaves = 2 ** max(0, int(np.ceil(np.log2(n / LEAF_ROWS))))
        self.rows = np.arange(n)
        self.starts = np.zeros(leaves + 1, dtype=np.int64)
        self.starts[-1] = n
        # One thread halves the first nodes; then all threads continue below them.
        parts = min(leaves, 2 ** int(np.ceil(np.log2(thread_count(n_jobs)))))
        node_arrays = scaled, self.rows, np.empty(n), self.starts
        building.halve(0, 1, *node_arrays, leaves, leaves // parts)
        over_rows(building.halve, parts, n_jobs, *node_arrays, leaves // parts, 1, each=1)
        leaf_width = REGISTER_LANES * int(np.ceil(np.diff(self.starts).max() / REGISTER_LANES))
        self.leaves, boxes = np.empty((leaves, D, leaf_width)), np.empty((leaves, 2, D))
        leaf_arrays = scaled, self.rows, self.starts, self.leaves, boxes
        over_rows(building.fill_leaves, leaves, n_jobs, *leaf_arrays)
        self.box, self.fans = _fans(boxes)

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """Return the arrays that the kernels search."""
        return self.rows, self.starts, self.box, self.fans, self.leaves

    def nearest(self, Q: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the k nearest rows of each query and their distances, both (q, k)."""
        Q = np.ascontiguousarray(Q)
        indices, distances = np.empty((len(Q), k), dtype=np.int64), np.empty((len(Q), k))
        share = self.width / 100 if self.width else 1.0
        self._search(kernels.nearest_in_tree, Q, share, self._order(Q), indices, distances)
        return indices, distances

    def ball_sizes(self, Q: np.ndarray, radius: float) -> np.ndarray:
        """Return the number of rows (q,) within the radius of each query."""
        sizes = np.empty(len(Q), dtype=np.int64)
        self._search(kernels.counts_in_tree, np.ascontiguousarray(Q), radius, sizes)
        return sizes

    def _search(self, kernel: Callable[..., None], Q: np.ndarray, *arguments: object) -> None:
        over_rows(kernel, len(Q), self.n_jobs, self.X, *self.arrays, self.scale, Q, *arguments)

    def _order(self, Q: np.ndarray) -> np.ndarray:
        """Return an order (q,) in which consecutive queries search nearby leaves.

        A tree that fits into the processor's cache needs none.
        """
        q = len(Q)
        if q <= MAX_UNSORTED_QUERIES or self.leaves.nbytes <= CACHED_BYTES:
            return np.arange(q)
        homes = np.empty(q, dtype=np.int64)
        arrays = self.fans, len(self.leaves), self.scale, Q, homes
        over_rows(kernels.home_leaves, q, self.n_jobs, *arrays)
        return np.argsort(homes, kind="stable")


def share_looked_at(X: np.ndarray, Q: np.ndarray, k: int, n_jobs: int | None) -> float:
    """Return the mean share of rows (n, D) that a tree must compare with a query for k neighbours.

    These are the rows in leaves whose box is nearer than the k-th neighbour.
    """
    tree, q = KdTree(X, n_jobs), len(Q)
    reach = tree.nearest(Q, k)[1][:, -1] * tree.scale
    counts = np.empty(q, dtype=np.int64)
    arrays = tree.starts, tree.fans, len(tree.leaves), Q * tree.scale, reach, counts
    over_rows(kernels.rows_in_reach, q, n_jobs, *arrays)
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
