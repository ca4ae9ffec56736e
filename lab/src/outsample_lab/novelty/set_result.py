"""Results of the benchmark: of a detector on a set, of a set, of a run."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from outsample_lab.novelty.detectors import OURS, PEER

LEVEL = 0.01  # A row raises an alarm if its p-value is at most this


class DetectorRow(NamedTuple):
    """One detector on one set."""

    name: str
    family: str  # `detectors.OURS` or `PEER`
    parameters: str  # Settings and limits, for people
    auc_of_seeds: tuple[float, ...] = ()  # Area under the ROC curve, seed by seed
    precision_of_seeds: tuple[float, ...] = ()  # Average precision, seed by seed
    seconds: float = math.nan  # To fit and to rank, mean over the seeds
    failure: str = ""
    auc_of_parts: tuple[float, ...] = ()  # Of each part, such as a day; mean over the seeds

    @property
    def auc(self) -> float:
        """Mean over the seeds; NaN after a failure."""
        return math.nan if self.failure else float(np.mean(self.auc_of_seeds))

    @property
    def precision(self) -> float:
        """Mean over the seeds; NaN after a failure."""
        return math.nan if self.failure else float(np.mean(self.precision_of_seeds))

    @property
    def spreads(self) -> tuple[float, float]:
        """Standard deviations of both over the seeds."""
        return float(np.std(self.auc_of_seeds)), float(np.std(self.precision_of_seeds))


class Alarms(NamedTuple):
    """Shares of rows to which our detector gives a p-value of at most `level`."""

    anomalous: float
    normal: float  # The false-alarm rate; nominally `level`
    loud: float | None = None  # Of minutes with a loud attack, if any
    normal_on_loud_days: float | None = None  # Of normal minutes on days with a loud attack
    n_loud: int = 0
    level: float = LEVEL


class SetResult(NamedTuple):
    """One set with its rows, the best first, or the reason for skipping it."""

    name: str
    title: str
    group: str
    rows: Sequence[DetectorRow] = ()
    n_training: int = 0
    n_columns: int = 0
    n_new: int = 0
    n_anomalous: int = 0  # Number of anomalous rows among the new rows
    parts: tuple[str, ...] = ()  # What the set's figures are means over, such as days
    alarms: Alarms | None = None
    simulated: bool = False
    skipped: str = ""

    @property
    def ours(self) -> DetectorRow | None:
        """The row of our detector, unless it failed."""
        return next((row for row in self.ran if row.family == OURS), None)

    @property
    def best_peer(self) -> DetectorRow | None:
        """The best row of another detector."""
        return next((row for row in self.ran if row.family == PEER), None)

    @property
    def ran(self) -> list[DetectorRow]:
        """Rows with figures."""
        return [row for row in self.rows if not row.failure]


class NoveltyRun(NamedTuple):
    """The contents of the results file."""

    protocol: dict[str, str]  # How it was measured, for people, by kind of data
    seeds: tuple[int, ...]
    versions: dict[str, str]
    seconds: float
    sets: Sequence[SetResult]
