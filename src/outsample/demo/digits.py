"""Handwritten digits, a t-SNE map of them, and images that are not digits."""

from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Images that are not digits, made from real ones: a constant grey value, ten times the brightness,
# uniform noise, and shuffled pixels.
ANOMALY_KINDS: dict[str, Callable[[Array, np.random.Generator], Array]] = {
    "constant": lambda images, rng: np.repeat(
        rng.random((len(images), 1)), images.shape[1], axis=1
    ),
    "times-10": lambda images, rng: 10 * images,
    "noise": lambda images, rng: rng.random(images.shape),
    "permuted": lambda images, rng: rng.permuted(images, axis=1),
}


class Digits(NamedTuple):
    """Images of digits, one row of 64 pixels each, and the digit that each shows."""

    X: Array  # Grey values from 0 to 16, shape (n, 64)
    labels: NDArray[np.int64]  # shape (n,)


class DigitsMap(NamedTuple):
    """Digits and their t-SNE coordinates."""

    X: Array  # shape (n, 64)
    labels: NDArray[np.int64]  # shape (n,)
    Y: Array  # shape (n, 2)
    seconds: float  # Time that t-SNE took on one thread


def load_digits() -> Digits:
    """Return the 1797 handwritten digits that come with scikit-learn.

    >>> X, labels = load_digits()
    >>> X.shape, labels[:5].tolist()
    ((1797, 64), [0, 1, 2, 3, 4])
    """
    from sklearn import datasets

    X, labels = datasets.load_digits(return_X_y=True)
    return Digits(np.asarray(X, dtype=np.float64), np.asarray(labels, dtype=np.int64))


def tsne(X: Array) -> Array:
    """Return the t-SNE map of X, shape (n, 2)."""
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    # One thread: the map is the same on any number of cores.
    with threadpool_limits(1):
        return np.asarray(TSNE(random_state=0).fit_transform(X), dtype=np.float64)


def map_digits(n_points: int | None = None) -> DigitsMap:
    """Return the t-SNE map of the first `n_points` digits, by default of all."""
    X, labels = load_digits()
    X, labels = X[:n_points], labels[:n_points]
    start = perf_counter()
    Y = tsne(X)
    return DigitsMap(X, labels, Y, perf_counter() - start)


def hide_fifth(n: int, seed: int) -> NDArray[np.bool_]:
    """Return a mask that hides a random fifth of n points."""
    hidden = np.zeros(n, dtype=bool)
    hidden[np.random.default_rng(seed).permutation(n)[: n // 5]] = True
    return hidden
