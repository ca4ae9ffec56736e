"""Gaussian kernels of points (Eq. 7.3): dense matrices, sums over them, and their bandwidth.

The letter epsilon is the paper's: ``g(x, y) = exp(-|x - y|^2 / epsilon)``, a squared length.
"""

from __future__ import annotations

import os

import numpy as np

from outsample._kernels import affinity as kernels
from outsample._parallel import over_rows
from outsample.points import Points, kernel_rows, largest_entry

# Typical distances and the slope rule look at no more rows, and no more pairs, than this.
SAMPLE_ROWS = 512
SAMPLE_PAIRS = 2**22
# Scaled coordinates stay within this, far from overflow.
FAR_AWAY = 1e150


def unit_scale(X: Points) -> float:
    """Power of two that brings the largest entry to 1/2 ... 1, so that epsilon cannot overflow.

    Parameters
    ----------
    X : ndarray or CSR matrix
        Points.

    Returns
    -------
    float

    Examples
    --------
    >>> unit_scale(np.array([[3.0], [-5.0]]))
    0.125
    """
    largest = largest_entry(X)
    return float(2.0 ** -np.clip(np.frexp(largest)[1], -1000, 1000)) if largest > 0 else 1.0


def scaled(X: Points, scale: float) -> Points:
    """Points times a scale, kept within range.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, D)
        Points.
    scale : float
        From `unit_scale`.

    Returns
    -------
    ndarray or CSR matrix of shape (n, D)
    """
    limit = FAR_AWAY / scale
    if not largest_entry(X) > limit:
        return X * scale
    X = X.copy()
    values = X if isinstance(X, np.ndarray) else X.data
    np.clip(values, -limit, limit, out=values)
    return X * scale


def distances(X: Points, Q: Points | None = None, n_jobs: int | None = None) -> np.ndarray:
    """Distances between all pairs, from the coordinates themselves.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, D)
        Points.
    Q : ndarray or CSR matrix of shape (q, D), optional
        Other points; by default X itself.
    n_jobs : int or None
        Threads.

    Returns
    -------
    ndarray of shape (q, n), or (n, n)
    """
    n = X.shape[0]
    rows = kernel_rows(X)
    if Q is None:
        apart = np.empty((n, n))
        over_rows(kernels.own_distances, n, n_jobs, rows, apart)
        return apart
    apart = np.empty((Q.shape[0], n))
    over_rows(kernels.all_distances, Q.shape[0], n_jobs, kernel_rows(Q), rows, n, apart)
    return apart


def gaussian_of(apart: np.ndarray, epsilon: float, out: np.ndarray | None = None) -> np.ndarray:
    """Gaussian kernel (Eq. 7.3) of given distances.

    Parameters
    ----------
    apart : ndarray
        Distances.
    epsilon : float
        Bandwidth, a squared length.
    out : ndarray, optional
        Where to write, ``apart`` itself if it is no longer needed.

    Returns
    -------
    ndarray, of the shape of ``apart``
    """
    out = np.divide(apart, np.sqrt(epsilon), out=out)
    np.minimum(out, kernels.BEYOND, out=out)
    np.multiply(out, out, out=out)
    np.negative(out, out=out)
    return np.exp(out, out=out)


def gaussian(X: Points, epsilon: float, n_jobs: int | None = None) -> np.ndarray:
    """Gaussian kernel matrix ``G_ij = exp(-|x_i - x_j|^2 / epsilon)`` (Eq. 7.2, 7.3).

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, D)
        Points.
    epsilon : float
        Bandwidth, a squared length.
    n_jobs : int or None
        Threads.

    Returns
    -------
    ndarray of shape (n, n)
        Symmetric to the last bit, 1 on the diagonal; the only array of that size.

    Examples
    --------
    >>> gaussian(np.array([[0.0], [1.0]]), 1.0).round(3)
    array([[1.   , 0.368],
           [0.368, 1.   ]])
    """
    apart = distances(X, n_jobs=n_jobs)
    return gaussian_of(apart, epsilon, out=apart)


def cross_gaussian(Q: Points, X: Points, epsilon: float, n_jobs: int | None = None) -> np.ndarray:
    """Gaussian kernel (Eq. 7.3) between two sets of points.

    Parameters
    ----------
    Q, X : ndarrays or CSR matrices of shape (q, D) and (n, D)
        Points.
    epsilon : float
        Bandwidth, a squared length.
    n_jobs : int or None
        Threads.

    Returns
    -------
    ndarray of shape (q, n)

    Examples
    --------
    >>> cross_gaussian(np.array([[0.0]]), np.array([[0.0], [2.0]]), 4.0).round(3)
    array([[1.   , 0.368]])
    """
    apart = distances(X, Q, n_jobs)
    return gaussian_of(apart, epsilon, out=apart)


def expansion(
    X: Points,
    Q: Points,
    epsilon: float,
    coefficients: np.ndarray,
    *,
    normalize: bool = False,
    n_jobs: int | None = None,
) -> np.ndarray:
    """Sum of Gaussians around the training points, summed in the same order for any batch.

    ``f(x) = sum_j g(x, x_j) c_j``, or with ``normalize`` ``sum_j g(x, x_j) c_j / sum_j g(x, x_j)``.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, D)
        Training points.
    Q : ndarray or CSR matrix of shape (q, D)
        Queries.
    epsilon : float
        Bandwidth, a squared length.
    coefficients : ndarray of shape (n, d)
        The ``c_j``.
    normalize : bool, default=False
        Whether to divide by the sum of the kernel. Far from the data the quotient tends to the
        coefficient of the nearest training point; without, the sum tends to 0.
    n_jobs : int or None, default=None
        Threads.

    Returns
    -------
    ndarray of shape (q, d)

    Examples
    --------
    >>> X, far = np.array([[0.0], [1.0]]), np.array([[1e6]])
    >>> expansion(X, far, 1.0, np.array([[3.0], [5.0]]), normalize=True)
    array([[5.]])
    """
    values = np.empty((Q.shape[0], coefficients.shape[1]))
    over_rows(
        kernels.expansion,
        Q.shape[0],
        n_jobs,
        kernel_rows(X),
        X.shape[0],
        kernel_rows(Q),
        float(np.sqrt(epsilon)),
        np.ascontiguousarray(coefficients, dtype=np.float64),
        normalize,
        values,
    )
    return values


def sample_rows(n: int, most: int) -> np.ndarray:
    """Pick at most so many rows, evenly spread.

    Examples
    --------
    >>> sample_rows(10, 3)
    array([0, 4, 9])
    """
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64))


def median_nearest(X: Points, k: int, n_jobs: int | None = None) -> float:
    """Typical distance of a training point to the k-th nearest *other* one.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, D)
        Points.
    k : int
        Which neighbour; the last one if there are fewer.
    n_jobs : int or None, default=None
        Threads.

    Returns
    -------
    float
        The median over at most 512 rows. Never 0: where more than half of the rows have so many
        duplicates it is the median over the others, and 1 if all rows are equal.

    Examples
    --------
    >>> median_nearest(np.arange(9.0)[:, None], 2)
    1.0
    """
    n = X.shape[0]
    rows = sample_rows(n, SAMPLE_ROWS)
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


def squared_distance_sample(X: Points, n_jobs: int | None = None) -> np.ndarray:
    """Squared distances of some rows to all, those to themselves included.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, D)
        Points, scaled by `unit_scale`.
    n_jobs : int or None, default=None
        Threads.

    Returns
    -------
    ndarray of shape (s, n)
    """
    n = X.shape[0]
    rows = sample_rows(n, max(16, min(SAMPLE_ROWS, SAMPLE_PAIRS // n)))
    return distances(X, X[rows], n_jobs) ** 2


def slope_bandwidth(squared_distances: np.ndarray) -> float:
    """Bandwidth at which the sum of the kernel grows fastest.

    With ``S(eps) = sum_ij exp(-d_ij^2 / eps)``, the epsilon on a logarithmic grid (quarter
    octaves) at which the slope ``d log S / d log eps = sum_ij (d_ij^2 / eps) g_ij / S`` is
    largest. The slope is 0 where the kernel sees only single points and where it sees all of them
    alike; in between it is half the dimension of the data.

    Parameters
    ----------
    squared_distances : ndarray
        Squared distances between pairs of points, such as `squared_distance_sample`.

    Returns
    -------
    float
        1 if all distances are 0.

    References
    ----------
    R. R. Coifman, Y. Shkolnisky, F. J. Sigworth, A. Singer, "Graph Laplacian tomography from
    unknown random projections", IEEE Trans. Image Processing 17 (2008) 1891-1899.

    Examples
    --------
    >>> x = np.random.default_rng(0).random(500)
    >>> 1e-4 < slope_bandwidth((x[:, None] - x) ** 2) < 1
    True
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


def require_memory(n: int, what: str, advice: str, arrays: int = 1) -> None:
    """Refuse a dense (n, n) matrix before it would not fit into memory.

    Parameters
    ----------
    n : int
        Rows and columns.
    what : str
        What the matrix is for; opens the message.
    advice : str
        What to do instead; closes it.
    arrays : int, default=1
        How many matrices of that size are held at once.

    Examples
    --------
    >>> require_memory(10**9, "The kernel matrix", "use fewer points.")
    Traceback (most recent call last):
    ...
    MemoryError: The kernel matrix of n = 1,000,000,000 points needs 8,000,000,000 GB, but...
    """
    needed = 8.0 * n * n * arrays
    available = available_memory()
    if available is not None and needed > available:
        raise MemoryError(
            f"{what} of n = {n:,} points needs {needed / 1e9:,.0f} GB, but "
            f"{available / 1e9:,.0f} GB of memory are available; {advice}"
        )


def available_memory() -> float | None:
    """Bytes of memory that can still be had; None where the system does not tell.

    Returns
    -------
    float or None
    """
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return 1024.0 * int(line.split()[1])
    except (OSError, ValueError):
        pass
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
