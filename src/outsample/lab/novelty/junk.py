"""Images that nobody wrote, made of real ones: what any detector should find strange."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def _constant(images: Array, rng: np.random.Generator) -> Array:
    return np.repeat(rng.random((len(images), 1)), images.shape[1], axis=1)


def _times_ten(images: Array, rng: np.random.Generator) -> Array:
    return 10 * images


def _noise(images: Array, rng: np.random.Generator) -> Array:
    return rng.random(images.shape)


def _permuted(images: Array, rng: np.random.Generator) -> Array:
    return rng.permuted(images, axis=1)


JUNK_KINDS: dict[str, Callable[[Array, np.random.Generator], Array]] = {
    "constant": _constant,
    "times-10": _times_ten,
    "noise": _noise,
    "permuted": _permuted,
}
"""One grey value, a real image ten times too bright, noise, an image's pixels shuffled."""
