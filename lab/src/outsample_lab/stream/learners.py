"""Learners: each scores a batch, then may learn from it.

A learner has ``start(X)`` for the first day, ``arrive(X)`` for a batch of later rows, which returns
p-values and scores computed before the batch is learned, and ``night()`` between days.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
OURS, PEER = "ours", "peer"
METHOD = "StreamingExtension"
# Rows in the memory of a learner: about five days.
WINDOW = 5000


class Judged(NamedTuple):
    """P-values and scores (q,) of a batch; a higher score is more unusual."""

    p_values: Array
    scores: Array


class Learner(Protocol):
    """Interface of a learner."""

    def start(self, X: Array) -> None:
        """Fit to the first day."""

    def arrive(self, X: Array) -> Judged:
        """Score a batch, then learn from it if the learner does."""

    def night(self) -> bool:
        """Finish a day; return True if drift was reported on that day."""


class Entry(NamedTuple):
    """A method to measure: its name, family and constructor."""

    name: str
    family: str  # `OURS` or `PEER`
    build: Callable[[], Learner]
    note: str


def conformal(scores: Array, calibration: Array) -> Array:
    """Return ``(1 + #{c >= s}) / (m + 1)``, for calibration scores in any order.

    >>> conformal(np.array([5.0, 2.0]), np.array([3.0, 1.0, 2.0])).tolist()
    [0.25, 0.75]
    """
    sorted_scores = np.sort(calibration)
    above = len(sorted_scores) - np.searchsorted(sorted_scores, scores, side="left")
    return np.asarray((1 + above) / (1 + len(sorted_scores)))


class Streaming:
    """Our stream: place, then learn, batch by batch."""

    def start(self, X: Array) -> None:
        """Map the first day by principal components, and wrap detector and map."""
        from outsample import StreamingExtension

        self.stream: Any = StreamingExtension(fitted_detector(X), window=WINDOW)
        self.alarms = self._alarms()

    def arrive(self, X: Array) -> Judged:
        """Score a batch, then learn from it."""
        placed = self.stream.learn(X).placement
        return Judged(placed.p_value, placed.abnormality)

    def night(self) -> bool:
        """Return True if drift was reported since last night."""
        before, self.alarms = self.alarms, self._alarms()
        return self.alarms != before

    def _alarms(self) -> tuple[int, ...]:
        drift = self.stream.drift_
        return drift.alarm_at, drift.n_changes


class Fixed:
    """Our detector of the first day, without learning."""

    def start(self, X: Array) -> None:
        """Fit to the first day."""
        self.detector: Any = fitted_detector(X)

    def arrive(self, X: Array) -> Judged:
        """Score a batch."""
        scores = self.detector.abnormality(X)
        return Judged(conformal(scores, self.detector.scores_), scores)

    def night(self) -> bool:
        """Return False: nothing happens at night."""
        return False


class Nightly:
    """A detector that is refitted each night to the rows of the last five days.

    ``learn`` takes rows and returns a scoring function and the scores of these rows.
    """

    def __init__(self, learn: Callable[[Array], tuple[Callable[[Array], Array], Array]]) -> None:
        self.learn = learn

    def start(self, X: Array) -> None:
        """Fit to the first day."""
        self.seen = X
        self.night()

    def arrive(self, X: Array) -> Judged:
        """Score a batch by the last fit."""
        self.seen = np.vstack([self.seen, X])[-WINDOW:]
        scores = self.score(X)
        return Judged(conformal(scores, self.calibration), scores)

    def night(self) -> bool:
        """Refit."""
        self.score, self.calibration = self.learn(self.seen)
        return False


class HalfSpaceTrees:
    """River's half-space trees, which learn every row; calibrated by recent scores."""

    def start(self, X: Array) -> None:
        """Fit to the first day; columns are scaled to [0, 1] by its range."""
        from river.anomaly import HalfSpaceTrees as Trees

        self.low, self.high = X.min(axis=0), X.max(axis=0)
        self.trees: Any = Trees(seed=0)
        self.calibration = self._learned(X)

    def arrive(self, X: Array) -> Judged:
        """Score each row before it is learned."""
        scores = self._learned(X)
        p_values = conformal(scores, self.calibration)
        self.calibration = np.append(self.calibration, scores)[-WINDOW:]
        return Judged(p_values, scores)

    def night(self) -> bool:
        """Return False: nothing happens at night."""
        return False

    def _learned(self, X: Array) -> Array:
        width = np.where(self.high > self.low, self.high - self.low, 1.0)
        scores = []
        for row in np.clip((X - self.low) / width, 0.0, 1.0):
            named = {str(at): float(value) for at, value in enumerate(row)}
            scores.append(self.trees.score_one(named))
            self.trees.learn_one(named)
        return np.array(scores)


def fitted_detector(X: Array) -> Any:
    """Return a detector with a map of two principal components."""
    from sklearn.decomposition import PCA

    from outsample import NoveltyDetector, PCAExtension

    plain = PCAExtension(n_neighbors=15, weighting="distance", order=0, loss="squared")
    return NoveltyDetector(plain).fit(X, PCA(2, random_state=0).fit_transform(X))


def by_detector(X: Array) -> tuple[Callable[[Array], Array], Array]:
    """Fit `NoveltyDetector()`."""
    from outsample import NoveltyDetector

    detector: Any = NoveltyDetector().fit(X)
    return detector.abnormality, detector.scores_


def by_factor(X: Array) -> tuple[Callable[[Array], Array], Array]:
    """Fit scikit-learn's LocalOutlierFactor."""
    from sklearn.neighbors import LocalOutlierFactor

    factor: Any = LocalOutlierFactor(novelty=True).fit(X)
    return lambda new: -factor.score_samples(new), -factor.negative_outlier_factor_


def by_forest(X: Array) -> tuple[Callable[[Array], Array], Array]:
    """Fit scikit-learn's IsolationForest."""
    from sklearn.ensemble import IsolationForest

    forest: Any = IsolationForest(random_state=0).fit(X)
    return lambda new: -forest.score_samples(new), -forest.score_samples(X)


def learners() -> tuple[list[Entry], list[str]]:
    """Return the learners, ours first, and notes on those that cannot run."""
    nightly = "refitted each night to the last 5000 minutes, and calibrated by their scores"
    entries = [
        Entry(METHOD, OURS, Streaming, "window=5000, else defaults; learns after each batch"),
        Entry("no learning", OURS, Fixed, "NoveltyDetector() of the first day"),
        Entry("NoveltyDetector nightly", OURS, lambda: Nightly(by_detector), nightly),
        Entry("LocalOutlierFactor nightly", PEER, lambda: Nightly(by_factor), nightly),
        Entry("IsolationForest nightly", PEER, lambda: Nightly(by_forest), nightly),
    ]
    if find_spec("river") is None:
        return entries, ["HalfSpaceTrees: river is not installed: pip install outsample-lab[bench]"]
    words = "river's defaults, learns every row; the last 5000 scores calibrate"
    return [*entries, Entry("HalfSpaceTrees", PEER, HalfSpaceTrees, words)], []
