"""Methods of several experiments: names, the paper's weightings, the reference, errors."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import KNeighborsRegressor

from outsample import PCAExtension

REFERENCE = "inverse-distance 15-NN"
DEFAULTS = "PCAExtension(), all defaults"
WEIGHTINGS = ("distance", "tangent", "local_tangent")

# Names of the methods for people; the experiments use those of the parameters.
TITLES = {
    REFERENCE: "Inverse-distance 15-NN",
    "distance": "Distance weights, Eq. 4.3",
    "tangent": "Tangent weights, Eq. 4.5",
    "local_tangent": "Tangent weights, per point",
    DEFAULTS: "All defaults",
}


def paper_weights(weighting: str, **settings: Any) -> PCAExtension:
    """Return the paper's unfitted extension, a local mean, with one of its weightings."""
    return PCAExtension(weighting=weighting, order=0, loss="squared", **settings)


def paper_weightings(**settings: Any) -> dict[str, PCAExtension]:
    """Return the paper's three weightings by name."""
    return {name: paper_weights(name, **settings) for name in WEIGHTINGS}


def reference() -> KNeighborsRegressor:
    """Return the reference method of every experiment, nearest neighbours of scikit-learn."""
    return KNeighborsRegressor(n_neighbors=15, weights="distance")


def errors(placed: NDArray[np.float64], truth: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the Euclidean distance of each placed point from its true position."""
    return np.linalg.norm(placed - truth, axis=1)
