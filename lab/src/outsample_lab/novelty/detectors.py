"""Novelty detectors with ``fit(X)`` and ``score(X)``; a higher score is more unusual.

Detectors of scikit-learn and PyOD with their defaults, neighbour distances, and ours. A detector
that is not installed fails with a message.
"""

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors
from sklearn.svm import OneClassSVM

from outsample_lab.bench_files import UnknownNameError

Array = NDArray[np.float64]
Score = Callable[[Array], Array]

METHOD = "NoveltyDetector()"
OURS, PEER = "ours", "peer"

# Detectors that need torch. PyOD's DIF is expensive and its scores depend on the batch: omitted.
NETWORKS = ("LUNAR",)
JOINT = "all defaults; ranks new rows among training and new rows, so scores depend on the batch"


class Detector(NamedTuple):
    """A method to measure: its name, family and constructor."""

    name: str
    family: str  # `OURS` or `PEER`
    build: Callable[[int], Any]  # Take a seed and return a new, unfitted detector
    note: str = "all defaults"  # Settings and limits


class Ours:
    """Our detector with all defaults: scores and p-values."""

    def __init__(self, seed: int) -> None:
        from outsample import NoveltyDetector

        self.detector: Any = NoveltyDetector()
        self.score, self.p_values = self.detector.abnormality, self.detector.p_values

    def fit(self, X: Array) -> "Ours":
        """Fit to normal rows."""
        self.detector.fit(X)
        return self


class Peer:
    """A detector defined by a function that takes normal rows and returns a scoring function."""

    score: Score

    def __init__(self, learn: Callable[[Array], Score]) -> None:
        self.learn = learn

    def fit(self, X: Array) -> "Peer":
        """Fit to normal rows."""
        self.score = self.learn(X)
        return self


def mean_distance(X: Array, n_neighbors: int = 10) -> Score:
    """Score by the mean distance to the nearest training rows."""
    search = NearestNeighbors(n_neighbors=min(n_neighbors, len(X))).fit(X)
    return lambda new: np.asarray(search.kneighbors(new)[0].mean(axis=1))


def by_sklearn(X: Array, estimator: Any) -> Score:
    """Score by a detector of scikit-learn, whose scores are high for normal rows."""
    estimator.fit(X)
    return lambda new: -np.asarray(estimator.score_samples(new))


def by_pyod(X: Array, name: str, **parameters: Any) -> Score:
    """Score by a detector of PyOD, by the name of its class, with its defaults."""
    module = import_module(f"pyod.models.{name.lower()}")
    detector: Any = getattr(module, name)(**parameters)
    detector.fit(X)
    return lambda new: np.asarray(detector.decision_function(new), dtype=np.float64)


def by_network(X: Array, name: str, seed: int) -> Score:
    """Score by a neural network of PyOD, seeded, on one thread."""
    torch: Any = import_module("torch")
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    return by_pyod(X, name, random_state=seed)


def missing(X: Array, reason: str) -> Score:
    """Raise an error for a detector whose library is not installed."""
    raise ImportError(reason)


def detectors(names: Sequence[str] = ()) -> list[Detector]:
    """Return the detectors with these names, ours first; all without a list.

    >>> [detector.name for detector in detectors(["10-NN distance", "NoveltyDetector()"])]
    ['NoveltyDetector()', '10-NN distance']
    """
    notes = {"ECOD": JOINT, "COPOD": JOINT}
    available = [Detector(METHOD, OURS, Ours), *_sklearn()]
    for name in ("ECOD", "COPOD", "KNN", "HBOS", "PCA", "KDE", "LUNAR"):
        note = notes.get(name, "all defaults")
        available.append(Detector(f"PyOD {name}", PEER, partial(_pyod_peer, name), note))
    for name in names:
        if name not in (valid := [detector.name for detector in available]):
            raise UnknownNameError(f"there is no detector {name!r}; choose from {', '.join(valid)}")
    return [detector for detector in available if not names or detector.name in names]


def _sklearn() -> list[Detector]:
    def forest(seed: int) -> Peer:
        return _peer(by_sklearn, estimator=IsolationForest(random_state=seed))

    def factor(seed: int) -> Peer:
        return _peer(by_sklearn, estimator=LocalOutlierFactor(novelty=True))

    def machine(seed: int) -> Peer:
        return _peer(by_sklearn, estimator=OneClassSVM())

    return [
        Detector("10-NN distance", PEER, lambda seed: Peer(mean_distance), "mean of 10 distances"),
        Detector("LocalOutlierFactor", PEER, factor, "novelty=True"),
        Detector("IsolationForest", PEER, forest),
        Detector("OneClassSVM", PEER, machine),
    ]


def _pyod_peer(name: str, seed: int) -> Peer:
    if find_spec("pyod") is None:
        return _peer(missing, reason="pyod is not installed: pip install outsample-lab[bench]")
    if name not in NETWORKS:
        return _peer(by_pyod, name=name)
    if find_spec("torch") is None:
        return _peer(missing, reason="torch is not installed: pip install torch")
    return _peer(by_network, name=name, seed=seed)


def _peer(learn: Callable[..., Score], **parameters: Any) -> Peer:
    return Peer(partial(learn, **parameters))
