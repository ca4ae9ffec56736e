"""The sphere of the paper's Section 7.1."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


class Sphere(NamedTuple):
    """A grid of angles, its images on the sphere, and the grid's step."""

    X: Array  # Angles (phi, theta), shape (n, 2)
    Y: Array  # Images on the unit sphere, shape (n, 3)
    step: float  # Distance of two neighbouring grid points, the paper's natural unit of radius


def sphere_map(angles: ArrayLike) -> Array:
    r"""Map angles (phi, theta), shape (q, 2), onto the unit sphere, shape (q, 3); Section 7.1.

    .. math:: \psi(\phi, \theta) = (\sin\phi \cos\theta, \sin\phi \sin\theta, \cos\phi)

    >>> sphere_map([[0.0, 0.0], [np.pi / 2, np.pi / 2]]).round(6)
    array([[0., 0., 1.],
           [0., 1., 0.]])
    """
    points = np.asarray(angles, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(f"angles must have shape (q, 2), got {points.shape}")
    phi, theta = points.T
    return np.column_stack([np.sin(phi) * np.cos(theta), np.sin(phi) * np.sin(theta), np.cos(phi)])


def sphere(n_per_axis: int = 30) -> Sphere:
    """Return the training set of the paper's sphere: a grid on [0, pi] x [0, pi] and its images.

    The paper has 30 and 50 points on an axis, that is 900 and 2500.

    >>> data = sphere(30)
    >>> data.X.shape, data.Y.shape, round(data.step, 4)
    ((900, 2), (900, 3), 0.1083)
    """
    if n_per_axis < 2:
        raise ValueError(f"n_per_axis must be at least 2, got {n_per_axis}")
    axis = np.linspace(0.0, np.pi, n_per_axis)
    X = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    return Sphere(X, sphere_map(X), np.pi / (n_per_axis - 1))


def random_angles(n: int = 100, seed: int = 0) -> Array:
    """Draw n new points for the sphere, uniform on the square of angles, shape (n, 2).

    >>> random_angles(2, seed=1).round(3)
    array([[1.608, 2.986],
           [0.453, 2.98 ]])
    """
    return np.random.default_rng(seed).uniform(0.0, np.pi, size=(n, 2))
