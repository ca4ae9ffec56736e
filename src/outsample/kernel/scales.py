"""Scales of a set of points: typical distances and the diameter."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from outsample._kernels import affinity as kernels
from outsample._parallel import over_rows
from outsample.kernel.affinity import distances
from outsample.points import Points, kernel_rows

# Typical distances look at no more rows than this.
SAMPLE_ROWS = 512


def even_rows(n: int, most: int) -> np.ndarray:
    """At most so many of n rows, evenly spread.

    >>> even_rows(10, 3)
    array([0, 4, 9])
    """
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64))


def median_nearest(X: Points, k: int, n_jobs: int | None = None) -> float:
    """Median distance, over at most 512 rows, to the k-th nearest *other* row or the last one.

    Never 0: where more than half of the rows have so many duplicates it is the median over the
    others, and 1 if all rows are equal.

    >>> median_nearest(np.arange(9.0)[:, None], 2)
    1.0
    """
    n = X.shape[0]
    rows = even_rows(n, SAMPLE_ROWS)
    arrays = kernel_rows(X[rows]), kernel_rows(X)
    for nth in (min(k, n - 1), n - 1):
        apart = np.empty(len(rows))
        over_rows(kernels.kth_distances, len(rows), n_jobs, *arrays, n, nth, apart)
        typical = float(np.median(apart))
        if typical > 0:
            return typical
        if (apart > 0).any():
            return float(np.median(apart[apart > 0]))
    return 1.0


def squared_diameter(X: Points) -> float:
    """Squared distance from the row farthest from the mean to the row farthest from that one.

    1 if all rows are equal.

    >>> squared_diameter(np.array([[0.0], [1.0], [4.0]]))
    16.0
    """
    mean = np.asarray(X.mean(axis=0)).reshape(1, -1)
    center = sparse.csr_matrix(mean) if sparse.issparse(X) else mean
    far = int(distances(X, center).argmax())
    squared = float(distances(X, X[far : far + 1]).max()) ** 2
    return squared if squared > 1e-290 else 1.0
