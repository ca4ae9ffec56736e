"""A new map of the points of a stream, aligned with the old map."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from outsample.points import Points


def new_map(embedding: Any, X: Points, old: np.ndarray) -> np.ndarray:
    """Return images (n + l, d) by an embedding, aligned with ``old`` (n, d) on the first n rows."""
    if not hasattr(embedding, "fit_transform"):
        raise TypeError(
            f"embedding is {embedding!r}, but must have fit_transform, as in scikit-learn."
        )
    fresh = clone(embedding) if hasattr(embedding, "get_params") else embedding
    Y = np.asarray(fresh.fit_transform(X), dtype=np.float64)
    if Y.shape != (X.shape[0], old.shape[1]):
        raise ValueError(
            f"embedding returned shape {Y.shape} for {X.shape[0]} points, but must return "
            f"({X.shape[0]}, {old.shape[1]}), as many columns as the map has."
        )
    if not np.isfinite(Y).all():
        raise ValueError("embedding returned NaN or infinity.")
    return aligned(Y, old)


def aligned(Y: np.ndarray, old: np.ndarray) -> np.ndarray:
    """Return images Y (n + l, d) rotated, reflected, scaled and shifted to fit ``old`` (n, d) best.

    Orthogonal Procrustes on the n common rows: with ``U S V'`` the singular value decomposition of
    ``Z'Z_old``, both centred, ``Z U V' tr(S) / |Z|^2``.

    References
    ----------
    P. H. Schonemann, R. M. Carroll, "Fitting one matrix to another under choice of a central
    dilation and a rigid motion", Psychometrika 35 (1970).

    Examples
    --------
    >>> old = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    >>> aligned(5 - 3 * np.vstack([old, [[1.0, 1.0]]])[:, ::-1], old).round(6)[-1]
    array([1., 1.])
    """
    center, target = Y[: len(old)].mean(axis=0), old.mean(axis=0)
    shared = Y[: len(old)] - center
    size, old_size = np.abs(shared).max() or 1.0, np.abs(old - target).max() or 1.0
    U, singular, V = np.linalg.svd((shared / size).T @ ((old - target) / old_size))
    scale = singular.sum() / (((shared / size) ** 2).sum() or 1.0) * (old_size / size)
    return (Y - center) @ (U @ V) * scale + target
