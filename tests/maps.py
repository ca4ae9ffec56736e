"""Maps that several test files use."""

from __future__ import annotations

import numpy as np


def random_map(seed, n, D, d):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    Y = np.tanh(X @ rng.normal(size=(D, d))) + 0.1 * rng.normal(size=(n, d))
    queries = rng.normal(size=(9, D))
    # Closer to a training point the literal inverse loses digits; the limit has its own test.
    nearest_distances = np.linalg.norm(queries[:, None] - X, axis=2).min(axis=1)
    return X, Y, queries[nearest_distances > 0.01]


def torn(seed, n=600):
    """Return a square and a map of it whose right half is shifted by 10."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    return X, X + np.where(X[:, :1] > 0.5, [10.0, 0.0], [0.0, 0.0])


def between(coordinates):
    """Return whether positions are on neither half of the torn map."""
    return (coordinates[:, 0] > 0.55) & (coordinates[:, 0] < 10.45)
