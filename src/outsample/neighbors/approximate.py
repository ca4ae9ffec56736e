"""Approximate search of many rows: its width, and product quantisation codes by faiss.

A k-d tree opens fewer boxes; its width is a percentage (`kd_tree.KdTree`). Codes, for many
dimensions, propose candidates from points that are centred, scaled and rounded to float32; their
width is the number of candidates. In both, distances are computed from the coordinates, so that
distances and order are exact, and only neighbours that were not compared are missed. Trees and
codes depend on the points alone, not on threads, and a row gets the same result alone and in a
batch.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from outsample._parallel import ROWS_PER_THREAD, thread_count
from outsample.neighbors.brute_force import RowScan
from outsample.points import Points, largest_in_rows, search_scale

# Fewer rows are searched exactly: there is little to gain.
MIN_APPROXIMATE_ROWS = 5000
# At more than this many times the largest entry, float32 does not resolve the training points.
MAX_FLOAT32_DISTANCE = 64.0
# The width is increased until the recall, the share of true neighbours found for a sample of
# queries, reaches the target; there is a warning if it stays below the second share.
RECALL_QUERIES, RECALL_NEIGHBORS = 256, 16
TARGET_RECALL, POOR_RECALL = 0.995, 0.95
WIDTHS: dict[str, tuple[int, ...]] = {
    "kd_tree": (10, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90),
    "codes": (32, 40, 48, 56, 64, 80, 96, 128, 192, 256, 384, 512, 768, 1024),
}
# The approximate index for each exact one.
APPROXIMATE_KINDS = {"kd_tree": "kd_tree", "brute": "codes"}
# A code has 16 values for a group of columns: one column each up to the first number of columns,
# two up to the second, beyond it CODE_GROUPS groups. Groups of 16 columns and more would use BLAS,
# which rounds differently for different batch sizes.
SINGLE_COLUMNS, PAIRED_COLUMNS, CODE_GROUPS, MAX_GROUP_COLUMNS = 24, 128, 64, 15
# Up to this many rows all codes are read; beyond, those in the lists nearest to the query.
MAX_SINGLE_LIST_ROWS, ROWS_PER_LIST, MIN_TRAINING_ROWS = 200_000, 256, 50_000
LIST_GRAPH_LINKS = 16
CODES_SEED = 1234


class Codes:
    """Approximate search by product quantisation, for points of many dimensions.

    Codes are read 32 rows at a time; with many rows, only those of the nearest lists (an inverted
    file). Queries far from the training points are compared with every row.
    """

    def __init__(self, X: Points, n_jobs: int | None, width: int = 0) -> None:
        self.scan, self.n_jobs, self.width = RowScan(X, n_jobs), n_jobs, width
        self.scale = search_scale(X)
        X = X * self.scale
        self.center = X.mean(axis=0)
        centered = X - self.center
        self.unit = 1.0 / (float(np.abs(centered).max()) or 1.0)
        self.columns = _group_columns((centered * self.unit).var(axis=0))
        with _faiss_threads(thread_count(n_jobs)):
            self.index = self._build(load_faiss(), self._rounded(X))

    def nearest(self, Q: Points, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return about the k nearest rows of each query and their distances, both (q, k)."""
        indices, distances = np.empty((len(Q), k), dtype=np.int64), np.empty((len(Q), k))
        width = min(max(self.width, 2 * k), len(self.scan.X))
        with np.errstate(over="ignore"):  # such a row is scanned
            scaled = Q * self.scale
            is_near = largest_in_rows((scaled - self.center) * self.unit) < MAX_FLOAT32_DISTANCE
        candidates = self._query(scaled[is_near], width)
        is_complete = (candidates >= 0).all(axis=1)
        is_near[is_near] = is_complete
        candidates = np.ascontiguousarray(candidates[is_complete])
        nearest = self.scan.nearest_candidates(candidates, Q[is_near], k)
        indices[is_near], distances[is_near] = nearest
        if not is_near.all():
            indices[~is_near], distances[~is_near] = self.scan.nearest(Q[~is_near], k)
        return indices, distances

    def ball_sizes(self, Q: Points, radius: float) -> np.ndarray:
        """Return the number of rows (q,) within the radius of each query."""
        return self.scan.ball_sizes(Q, radius)

    def _query(self, Q: Points, width: int) -> np.ndarray:
        """Return candidates (q, width); -1 where fewer were found."""
        threads = max(1, min(thread_count(self.n_jobs), Q.shape[0] // ROWS_PER_THREAD))
        parameters = None
        if self.n_lists > 1:
            parameters = load_faiss().SearchParametersIVF(nprobe=min(self.n_lists, width))
        with _faiss_threads(threads):
            return self.index.search(self._rounded(Q), width, params=parameters)[1]

    def _rounded(self, X: Points) -> np.ndarray:
        """Return the points as float32, by groups of columns that zeros fill to equal size."""
        rounded = np.zeros((X.shape[0], self.columns.size), dtype=np.float32)
        is_column = self.columns < X.shape[1]
        columns = self.columns[is_column]
        rounded[:, is_column] = (X[:, columns] - self.center[columns]) * self.unit
        return rounded

    def _build(self, faiss: Any, X: np.ndarray) -> Any:
        n, columns = X.shape
        groups = columns // _columns_per_group(self.center.size)
        self.n_lists = 1 if n <= MAX_SINGLE_LIST_ROWS else n // ROWS_PER_LIST
        if self.n_lists == 1:
            index = faiss.IndexPQFastScan(columns, groups, 4)
        else:
            # A graph chooses the lists; matrix products could choose others alone than in a batch.
            lists = f"IVF{self.n_lists}_HNSW{LIST_GRAPH_LINKS}"
            index = faiss.index_factory(columns, f"{lists},PQ{groups}x4fs")
            index.by_residual = False
            index.cp.seed = CODES_SEED
        n_training = min(n, max(MIN_TRAINING_ROWS, 40 * self.n_lists))
        with threadpool_limits(1, user_api="blas"):  # two threads would round differently
            index.train(X[np.linspace(0, n - 1, n_training).astype(int)])
        index.add(X)
        return index


def adjust_width(backend: Any, kind: str, exact: Any) -> tuple[int, float]:
    """Increase the width of a backend until it reaches the target recall; return both.

    If no width of a tree is enough, it stays exact.
    """
    X = exact.X
    rows = X[np.linspace(0, len(X) - 1, RECALL_QUERIES).astype(int)]
    true = exact.nearest(rows, RECALL_NEIGHBORS)[0]
    recall = 0.0
    for width in WIDTHS[kind]:
        backend.width = width
        neighbors = backend.nearest(rows, RECALL_NEIGHBORS)[0]
        # The first true neighbour is the row itself.
        recall = float((neighbors[:, :, None] == true[:, None, 1:]).any(axis=1).mean())
        if recall >= TARGET_RECALL:
            return width, recall
    if kind == "kd_tree":
        backend.width, recall = 0, 1.0
    if recall < POOR_RECALL:
        warnings.warn(
            f"The approximate index finds {recall:.0%} of the neighbours of a sample, which makes "
            "placements less accurate. index='auto' finds all of them.",
            stacklevel=2,
        )
    return backend.width, recall


def _group_columns(variances: np.ndarray) -> np.ndarray:
    """Return the columns of each group, group after group; numbers beyond the last are zeros.

    Columns are dealt back and forth from the largest variance to the smallest, so that groups have
    similar variances: 16 values are few for two wide columns, and many for two narrow ones.
    """
    size = _columns_per_group(len(variances))
    groups = -(-len(variances) // size)
    descending = np.argsort(-variances, kind="stable")
    rounds = np.r_[descending, len(variances) : groups * size].reshape(size, groups)
    rounds[1::2] = rounds[1::2, ::-1]
    return rounds.T.ravel()


def _columns_per_group(columns: int) -> int:
    if columns <= PAIRED_COLUMNS:
        return 1 if columns <= SINGLE_COLUMNS else 2
    return min(MAX_GROUP_COLUMNS, -(-columns // CODE_GROUPS))


def load_faiss() -> Any:
    """Return faiss, or raise an ImportError that names the extra to install."""
    if "faiss" not in sys.modules:
        _search_with_scikit_learn()
    try:
        import faiss
    except ImportError:
        raise ImportError(
            "An approximate index of so many dimensions needs faiss: pip install 'outsample[ann]', "
            "or use index='auto'."
        ) from None
    return faiss


def _search_with_scikit_learn() -> None:
    """Start scikit-learn's OpenMP: if faiss is loaded first, it stays on one thread."""
    from sklearn.neighbors import NearestNeighbors

    X = np.eye(64)
    NearestNeighbors(n_neighbors=1, algorithm="brute").fit(X).kneighbors(X)


@contextmanager
def _faiss_threads(count: int) -> Iterator[None]:
    """Limit the threads of faiss when called from this thread, for which OpenMP keeps a number."""
    faiss = load_faiss()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(count)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
