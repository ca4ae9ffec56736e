"""Approximate search of many rows: how wide it has to be, and codes by faiss.

A k-d tree looks at the nearer boxes only: its width is how far, in per cent of the way from the
square of the nearest distance to that of the k-th. Codes, for many dimensions, propose more rows
than are asked for, which is their width, of points centred, scaled and rounded to float32. Either
way `neighbors.index` measures rows by their own coordinates, so that distances and their order are
exact, and only a neighbour that was not looked at is missed. Trees and codes depend on the points
alone, not on threads, and a row gets the same answer alone and in a batch.
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
from outsample.points import Points, largest_in_rows

# Fewer rows are searched exactly: there is little to gain.
LEAST_ROWS = 5000
# Beyond so many sizes of the training set float32 no longer tells its points apart.
FAR_OFF = 64.0
# Queries, and neighbours of each, by which the width is chosen; what share of them has to be found,
# and below which the user is told.
SAMPLE, COUNTED = 256, 16
TARGET, POOR = 0.995, 0.95
WIDTHS: dict[str, tuple[int, ...]] = {
    "kd_tree": (10, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90),
    "codes": (32, 40, 48, 56, 64, 80, 96, 128, 192, 256, 384, 512, 768, 1024),
}
# Codes have 16 values for each group of columns: one column, up to so many; then two; then so many
# groups. Groups of 16 columns and more would go through BLAS, which rounds by the size of a batch.
SINGLE_COLUMNS, PAIRED_COLUMNS, GROUPS, WIDEST_GROUP = 24, 128, 64, 15
# Up to so many rows all codes are read; beyond, those of the lists nearest to the query.
ONE_LIST, ROWS_IN_LIST, TRAINED_ROWS = 200_000, 256, 50_000
LINKS = 16  # of a list in the graph of lists
SEED = 1234


class Codes:
    """Products of small code books, read 32 rows at a time: for points of many dimensions.

    Of many rows only those of the nearest lists (an inverted file) are read.
    """

    def __init__(self, X: Points, n_jobs: int | None) -> None:
        self.center = X.mean(axis=0)
        centered = X - self.center
        self.unit = 1.0 / (float(np.abs(centered).max()) or 1.0)
        self.columns = _dealt((centered * self.unit).var(axis=0))
        with _threads(thread_count(n_jobs)):
            self.index = self._build(load_faiss(), self._rounded(X))

    def query(self, Q: Points, width: int, n_jobs: int | None) -> np.ndarray:
        """Rows (q, width) that are about the nearest; -1 where fewer are found."""
        threads = max(1, min(thread_count(n_jobs), Q.shape[0] // ROWS_PER_THREAD))
        effort = None
        if self.lists > 1:
            effort = load_faiss().SearchParametersIVF(nprobe=min(self.lists, width))
        with _threads(threads):
            return self.index.search(self._rounded(Q), width, params=effort)[1]

    def is_near(self, Q: Points) -> np.ndarray:
        """Whether queries (q,) are near enough for float32."""
        return largest_in_rows((Q - self.center) * self.unit) < FAR_OFF

    def _rounded(self, X: Points) -> np.ndarray:
        """Points by groups of columns; some are columns of zeros, so that groups are alike."""
        rounded = np.zeros((X.shape[0], self.columns.size), dtype=np.float32)
        real = self.columns < X.shape[1]
        columns = self.columns[real]
        rounded[:, real] = (X[:, columns] - self.center[columns]) * self.unit
        return rounded

    def _build(self, faiss: Any, X: np.ndarray) -> Any:
        n, columns = X.shape
        groups = columns // _group(self.center.size)
        self.lists = 1 if n <= ONE_LIST else n // ROWS_IN_LIST
        if self.lists == 1:
            index = faiss.IndexPQFastScan(X.shape[1], groups, 4)
        else:
            # Lists are chosen by a graph: by products a row could get others alone than in a batch.
            index = faiss.index_factory(columns, f"IVF{self.lists}_HNSW{LINKS},PQ{groups}x4fs")
            index.by_residual = False
            index.cp.seed = SEED
        some = np.linspace(0, n - 1, min(n, max(TRAINED_ROWS, 40 * self.lists))).astype(int)
        with threadpool_limits(1, user_api="blas"):  # two threads would round otherwise
            index.train(X[some])
        index.add(X)
        return index


def sample_rows(n: int) -> np.ndarray:
    """Rows whose neighbours tell how wide the search has to be."""
    return np.linspace(0, n - 1, SAMPLE).astype(int)


def share_found(found: np.ndarray, true: np.ndarray) -> float:
    """Share of the true neighbours of the sample that are found, of each but the first: itself."""
    found, true = found.reshape(-1, COUNTED), true.reshape(-1, COUNTED)
    return float((found[:, :, None] == true[:, None, 1:]).any(axis=1).mean())


def warn_if_poor(recall: float) -> None:
    """Tell the user of an index that misses much."""
    if recall < POOR:
        warnings.warn(
            f"The approximate index finds {recall:.0%} of the neighbours of a sample; places are "
            "worse for it. index='auto' finds all of them.",
            stacklevel=2,
        )


def _dealt(variances: np.ndarray) -> np.ndarray:
    """Columns of the groups, one group after the other; numbers beyond the last are of zeros.

    They are dealt to and fro from the widest to the narrowest, so that groups are equally wide:
    sixteen values are few for the two widest columns, and many for the two narrowest.
    """
    size = _group(len(variances))
    groups = -(-len(variances) // size)
    falling = np.argsort(-variances, kind="stable")
    rounds = np.r_[falling, len(variances) : groups * size].reshape(size, groups)
    rounds[1::2] = rounds[1::2, ::-1]
    return rounds.T.ravel()


def _group(columns: int) -> int:
    """Columns that share a code."""
    if columns <= PAIRED_COLUMNS:
        return 1 if columns <= SINGLE_COLUMNS else 2
    return min(WIDEST_GROUP, -(-columns // GROUPS))


def load_faiss() -> Any:
    """Return faiss; whoever lacks it is told what to install."""
    if "faiss" not in sys.modules:
        _begin_scikit_learn()
    try:
        import faiss
    except ImportError:
        raise ImportError(
            "An approximate index of so many dimensions needs faiss: pip install 'outsample[ann]', "
            "or use index='auto'."
        ) from None
    return faiss


def _begin_scikit_learn() -> None:
    """Let scikit-learn search once: if faiss is loaded before, it stays on one thread for ever."""
    from sklearn.neighbors import NearestNeighbors

    few = np.eye(64)
    NearestNeighbors(n_neighbors=1, algorithm="brute").fit(few).kneighbors(few)


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Let faiss use so many threads when called from this one; OpenMP keeps a number for each."""
    faiss = load_faiss()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(count)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
