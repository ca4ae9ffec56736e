"""Length scales of a set of points: typical distances and the diameter."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from outsample._compiled import affinity as kernels
from outsample._parallel import over_rows
from outsample.points import Points, kernel_rows
from outsample.spectral.affinity import distances

# Rows used for typical distances, at most.
DISTANCE_SAMPLE_ROWS = 512


def even_rows(n: int, count: int) -> np.ndarray:
    """Return at most ``count`` of n rows, evenly spaced.

    >>> even_rows(10, 3)
    array([0, 4, 9])
    """
    return np.unique(np.linspace(0, n - 1, min(n, count)).astype(np.int64))


def median_nearest(X: Points, k: int, n_jobs: int | None = None) -> float:
    """Return the median distance, over at most 512 rows, to the k-th nearest *other* row.

    Never 0: if more than half of the rows have k duplicates it is the median over the others, and 1
    if all rows are equal. With fewer than k other rows, the farthest row counts.

    >>> median_nearest(np.arange(9.0)[:, None], 2)
    1.0
    """
    n = X.shape[0]
    rows = even_rows(n, DISTANCE_SAMPLE_ROWS)
    arrays = kernel_rows(X[rows]), kernel_rows(X)
    for neighbor in (min(k, n - 1), n - 1):
        distances_to_kth = np.empty(len(rows))
        over_rows(kernels.kth_distances, len(rows), n_jobs, *arrays, n, neighbor, distances_to_kth)
        typical = float(np.median(distances_to_kth))
        if typical > 0:
            return typical
        if (distances_to_kth > 0).any():
            return float(np.median(distances_to_kth[distances_to_kth > 0]))
    return 1.0


def squared_diameter(X: Points) -> float:
    """Return the squared distance of the row farthest from the mean to the row farthest from it.

    1 if all rows are equal.

    >>> squared_diameter(np.array([[0.0], [1.0], [4.0]]))
    16.0
    """
    mean = np.asarray(X.mean(axis=0)).reshape(1, -1)
    center = sparse.csr_matrix(mean) if sparse.issparse(X) else mean
    far = int(distances(X, center).argmax())
    squared = float(distances(X, X[far : far + 1]).max()) ** 2
    return squared if squared > 1e-290 else 1.0
