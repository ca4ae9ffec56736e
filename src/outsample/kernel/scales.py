"""Scales of a set of points: typical distances, the diameter, where a kernel sees most."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from outsample._kernels import affinity as kernels
from outsample._parallel import over_rows
from outsample.kernel.affinity import distances
from outsample.points import Points, kernel_rows

# Typical distances and the slope rule look at no more rows, and no more pairs, than this.
SAMPLE_ROWS = 512
SAMPLE_PAIRS = 2**22


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


def squared_distance_sample(X: Points, n_jobs: int | None = None) -> np.ndarray:
    """Squared distances (s, n) of some rows to all, those to themselves included."""
    n = X.shape[0]
    rows = even_rows(n, max(16, min(SAMPLE_ROWS, SAMPLE_PAIRS // n)))
    return distances(X, X[rows], n_jobs) ** 2


def slope_bandwidth(squared_distances: np.ndarray) -> float:
    """Bandwidth at which the sum of the kernel grows fastest; 1 if all distances are 0.

    With ``S(eps) = sum_ij exp(-d_ij^2 / eps)``, the epsilon on a logarithmic grid (quarter
    octaves) at which the slope ``d log S / d log eps = sum_ij (d_ij^2 / eps) g_ij / S`` is
    largest. The slope is 0 where the kernel sees only single points and where it sees all of them
    alike; in between it is half the dimension of the data. R. R. Coifman, Y. Shkolnisky,
    F. J. Sigworth, A. Singer, "Graph Laplacian tomography from unknown random projections", IEEE
    Trans. Image Processing 17 (2008) 1891-1899.
    """
    squares = np.asarray(squared_distances, dtype=np.float64).ravel()
    positive = squares[squares > 0]
    if not positive.size:
        return 1.0
    octaves = np.log2([positive.min(), positive.max()])
    coarse = np.arange(max(np.floor(octaves[0]), octaves[1] - 60), np.ceil(octaves[1]) + 2)
    best = coarse[np.argmax([_slope(squares, 2.0**octave) for octave in coarse])]
    fine = best + np.arange(-3, 4) / 4
    return float(2.0 ** fine[np.argmax([_slope(squares, 2.0**octave) for octave in fine])])


def _slope(squares: np.ndarray, epsilon: float) -> float:
    exponents = np.minimum(squares / epsilon, kernels.BEYOND**2)
    kernel = np.exp(-exponents)
    total = kernel.sum()
    return float((exponents * kernel).sum() / total) if total > 0 else 0.0
