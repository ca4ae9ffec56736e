"""Synthetic points and maps of a known dimension, with any number of rows."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
NOISE = 0.01  # Standard deviation of the noise of each column


class Shape(NamedTuple):
    """Columns of the points and of the map, and the intrinsic dimension of the points."""

    D: int
    d: int
    latent: int


TRAFFIC, IMAGES = Shape(14, 5, 5), Shape(50, 2, 12)
WORDS = (
    "The points are synthetic: a uniform cube of dimension {latent}, mapped to {D} columns by sines"
    " of random linear functions, with noise of 0.01; the map has {d} cosines of random linear"
    " functions of the same cube."
)


class Cloud(NamedTuple):
    """Training points and their map, new points and their true positions."""

    X: Array
    Y: Array
    Q: Array
    truth: Array

    @property
    def size(self) -> float:
        """Root mean square distance of the map from its mean."""
        return float(np.sqrt(((self.Y - self.Y.mean(axis=0)) ** 2).sum(axis=1).mean()))

    def error(self, placed: NDArray[Any]) -> float:
        """Return the mean distance from the true positions, relative to the size of the map."""
        return float(np.linalg.norm(placed - self.truth, axis=1).mean() / self.size)


def words(shape: Shape) -> str:
    """Return a description of the points of this shape."""
    return WORDS.format(**shape._asdict())


def cloud(shape: Shape, n: int, n_new: int, seed: int = 0) -> Cloud:
    """Return n training points and ``n_new`` new points.

    >>> cloud(TRAFFIC, 30, 4).X.shape, cloud(TRAFFIC, 30, 4).truth.shape
    ((30, 14), (4, 5))
    """
    rng = np.random.default_rng(seed)
    into = rng.standard_normal((shape.latent, shape.D))
    onto = rng.standard_normal((shape.latent, shape.d))
    inner = rng.uniform(-1.0, 1.0, (n + n_new, shape.latent))
    X = np.sin(inner @ into) + NOISE * rng.standard_normal((n + n_new, shape.D))
    Y = np.cos(inner @ onto)
    return Cloud(X[:n], Y[:n], X[n:], Y[n:])


def torn_map(X: Array, n_cells: int = 12) -> Array:
    """Return a map with discontinuities: the principal plane, cut into cells that are moved."""
    # Stands for a map by UMAP or t-SNE: smooth within a cell, with neighbouring cells far away.
    centred = X - X.mean(axis=0)
    plane = centred @ np.linalg.svd(centred[:2000], full_matrices=False)[2][:3].T
    seeds = plane[np.random.default_rng(0).permutation(len(plane))[:n_cells]]
    cell = ((plane[:, None] - seeds) ** 2).sum(axis=2).argmin(axis=1)
    angle = 2 * np.pi * np.arange(n_cells) / n_cells
    offsets = 5 * plane.std() * np.column_stack([np.cos(angle), np.sin(angle)])
    return np.asarray(plane[:, :2] + offsets[cell])
