"""Maps that several test files use."""

from __future__ import annotations

import numpy as np


def random_map(seed, n, D, d):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    Y = np.tanh(X @ rng.normal(size=(D, d))) + 0.1 * rng.normal(size=(n, d))
    queries = rng.normal(size=(9, D))
    # Nearer than this to a training point the literal inverse itself has lost digits; the limit
    # is tested on its own.
    apart = np.linalg.norm(queries[:, None] - X, axis=2).min(axis=1)
    return X, Y, queries[apart > 0.01]


def torn(seed, n=600):
    """A square torn along its middle: the right half of the map lies 10 away."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    return X, X + np.where(X[:, :1] > 0.5, [10.0, 0.0], [0.0, 0.0])


def between(coordinates):
    """Whether a place is on neither half."""
    return (coordinates[:, 0] > 0.55) & (coordinates[:, 0] < 10.45)
