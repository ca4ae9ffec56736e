"""Local PCA: directions and dimension of the map around a point."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from outsample._compiled import frames as kernels
from outsample._parallel import over_rows
from outsample.points import Points
from outsample.records import Frames, Neighbors

# Share of the local variance that the tangent directions explain.
EXPLAINED_VARIANCE = 0.95


def image_frames(
    Y: np.ndarray, near: Neighbors, lengths: np.ndarray, n_jobs: int | None = None
) -> Frames:
    """Return the principal directions of the images of q neighbourhoods (Eq. 4.4, centred).

    With ``Z`` the images minus their mean and eps1 the neighbourhood's length, the eigenvectors
    and root eigenvalues of ``(1 / eps1^2) (1 / k) Z'Z``.

    >>> near = Neighbors(np.array([0, 2]), np.array([0, 1]), np.array([0.5, 1.0]), np.array([2]))
    >>> image_frames(np.array([[0.0, 0.0], [0.0, 2.0]]), near, np.array([1.0])).spread
    array([[1., 0.]])
    """
    q, d = len(lengths), Y.shape[1]
    frames = Frames(np.empty((q, d, d)), np.empty((q, d)))
    arrays = Y, near.indptr, near.indices, lengths
    over_rows(kernels.image_frames, q, n_jobs, *arrays, *frames)
    return frames


def tangent_dimension(spread: np.ndarray) -> int:
    """Return the dimension of the image manifold, from root eigenvalues (q, d), largest first.

    It is the median over the neighbourhoods of the smallest number of directions that explain 95 %
    of the variance.

    >>> tangent_dimension(np.array([[1.0, 0.9, 0.01], [0.8, 0.7, 0.02], [1.0, 0.0, 0.0]]))
    2
    """
    largest = spread[:, :1]
    informative = largest[:, 0] > 0
    if not informative.any():
        return 1
    variance = (spread[informative] / largest[informative]) ** 2
    explained = np.cumsum(variance, axis=1) / variance.sum(axis=1, keepdims=True)
    needed = 1 + (explained < EXPLAINED_VARIANCE).sum(axis=1)
    return int(np.median(needed))


def ambient_dimension(X: Points, near: Neighbors) -> int:
    """Return the `tangent_dimension` of neighbourhoods of equal size in X."""
    q = len(near.inside)
    if sparse.issparse(X):
        spread = [_spread(X[rows]) for rows in near.indices.reshape(q, -1)]
        return tangent_dimension(np.array(spread))
    clouds = X[near.indices].reshape(q, -1, X.shape[1])
    clouds = clouds - clouds.mean(axis=1, keepdims=True)
    sizes = np.abs(clouds).max(axis=(1, 2), keepdims=True)
    clouds = clouds / np.where(sizes > 0, sizes, 1.0)
    return tangent_dimension(np.linalg.svd(clouds, compute_uv=False))


def _spread(rows: Points) -> np.ndarray:
    """Return the root eigenvalues of a sparse neighbourhood, from its inner products."""
    rows.data /= abs(rows).max() or 1.0  # the inverse may overflow
    products = (rows @ rows.T).toarray()
    products -= products.mean(axis=0)
    products -= products.mean(axis=1, keepdims=True)
    return np.sqrt(np.maximum(np.linalg.eigvalsh(products)[::-1], 0.0))
