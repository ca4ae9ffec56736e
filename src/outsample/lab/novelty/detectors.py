"""Novelty detectors behind one pair of methods: ``fit(X)`` and ``score(X)``, higher = stranger.

They are what people use: those of scikit-learn and PyOD with their defaults, plain neighbour
distances, and ours. What is not installed fails with a message that says so.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["METHOD", "OURS", "PEER", "Detector", "detectors"]

Array = NDArray[np.float64]

METHOD = "NoveltyDetector()"
OURS, PEER = "ours", "peer"

NETWORKS = ("LUNAR",)
"""Detectors that need torch. PyOD's DIF is left out: it is dear, and scores depend on the batch."""
JOINT = "all defaults; ranks new rows among training and new rows, so scores depend on the batch"
NOTES = {
    "ECOD": JOINT,
    "COPOD": JOINT,
}


class Detector(NamedTuple):
    """A line of the table before it is measured."""

    name: str
    family: str
    """`OURS` or `PEER`."""
    build: Callable[[int], Any]
    """Take a seed and return a new, unfitted detector."""
    note: str = "all defaults"
    """Settings and limits."""


class Ours:
    """The detector under test, with all defaults."""

    def __init__(self, seed: int) -> None:
        from outsample import NoveltyDetector

        self.detector: Any = NoveltyDetector()

    def fit(self, X: Array) -> "Ours":
        """Learn what is normal."""
        self.detector.fit(X)
        return self

    def score(self, X: Array) -> Array:
        """Return how strange each row is."""
        return np.asarray(self.detector.abnormality(X))

    def p_values(self, X: Array) -> Array:
        """Return the share of normal rows that are at least as strange."""
        return np.asarray(self.detector.p_values(X))


class MeanDistance:
    """Mean distance to the nearest training rows: the simplest detector there is."""

    def __init__(self, n_neighbors: int = 10) -> None:
        self.n_neighbors = n_neighbors

    def fit(self, X: Array) -> "MeanDistance":
        """Store the training rows."""
        from sklearn.neighbors import NearestNeighbors

        self.search_ = NearestNeighbors(n_neighbors=min(self.n_neighbors, len(X))).fit(X)
        return self

    def score(self, X: Array) -> Array:
        """Return how strange each row is."""
        return np.asarray(self.search_.kneighbors(X)[0].mean(axis=1))


class SklearnDetector:
    """One of scikit-learn's, whose scores are high for normal rows."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Array) -> "SklearnDetector":
        """Learn what is normal."""
        self.estimator.fit(X)
        return self

    def score(self, X: Array) -> Array:
        """Return how strange each row is."""
        return -np.asarray(self.estimator.score_samples(X))


class PyODDetector:
    """One of PyOD's, by the name of its class, with its defaults."""

    def __init__(self, name: str, **parameters: Any) -> None:
        self.name, self.parameters = name, parameters

    def fit(self, X: Array) -> "PyODDetector":
        """Import the detector and learn what is normal."""
        module = import_module(f"pyod.models.{self.name.lower()}")
        self.detector_: Any = getattr(module, self.name)(**self.parameters)
        self.detector_.fit(X)
        return self

    def score(self, X: Array) -> Array:
        """Return how strange each row is."""
        return np.asarray(self.detector_.decision_function(X), dtype=np.float64)


class TorchDetector(PyODDetector):
    """One of PyOD's networks: seeded, on one thread."""

    def __init__(self, name: str, seed: int) -> None:
        super().__init__(name, random_state=seed)
        self.seed = seed

    def fit(self, X: Array) -> "TorchDetector":
        """Learn what is normal."""
        torch: Any = import_module("torch")
        torch.manual_seed(self.seed)
        torch.set_num_threads(1)
        super().fit(X)
        return self


class Missing:
    """Stands for a detector whose library is not installed."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def fit(self, X: Array) -> "Missing":
        """Say what is missing."""
        raise ImportError(self.reason)


def detectors(names: Sequence[str] = ()) -> list[Detector]:
    """Return the lines of the table with these names, ours first; all if there are none.

    >>> [detector.name for detector in detectors(["10-NN distance", "NoveltyDetector()"])]
    ['NoveltyDetector()', '10-NN distance']
    """
    found = [Detector(METHOD, OURS, Ours), *_sklearn(), *_pyod()]
    for name in names:
        if name not in (known := [detector.name for detector in found]):
            raise ValueError(f"there is no detector {name!r}; there are: {', '.join(known)}")
    return [detector for detector in found if not names or detector.name in names]


def _sklearn() -> list[Detector]:
    def factor(seed: int) -> SklearnDetector:
        from sklearn.neighbors import LocalOutlierFactor

        return SklearnDetector(LocalOutlierFactor(novelty=True))

    def forest(seed: int) -> SklearnDetector:
        from sklearn.ensemble import IsolationForest

        return SklearnDetector(IsolationForest(random_state=seed))

    def machine(seed: int) -> SklearnDetector:
        from sklearn.svm import OneClassSVM

        return SklearnDetector(OneClassSVM())

    return [
        Detector("10-NN distance", PEER, lambda seed: MeanDistance(), "mean of 10 distances"),
        Detector("LocalOutlierFactor", PEER, factor, "novelty=True"),
        Detector("IsolationForest", PEER, forest),
        Detector("OneClassSVM", PEER, machine),
    ]


def _pyod() -> list[Detector]:
    found = []
    for name in ("ECOD", "COPOD", "KNN", "HBOS", "PCA", "KDE", "LUNAR"):
        build = _bind(PyODDetector, name) if name not in NETWORKS else _seeded(name)
        if find_spec("pyod") is None:
            build = _bind(Missing, "pyod is not installed: pip install outsample[bench]")
        elif name in NETWORKS and find_spec("torch") is None:
            build = _bind(Missing, "torch is not installed: pip install torch")
        found.append(Detector(f"PyOD {name}", PEER, build, NOTES.get(name, "all defaults")))
    return found


def _bind(make: Callable[..., Any], *parameters: Any) -> Callable[[int], Any]:
    return lambda seed: make(*parameters)


def _seeded(name: str) -> Callable[[int], Any]:
    return lambda seed: TorchDetector(name, seed)
