"""Results of the benchmark: of a learner on a day, of a learner on all days, of a run."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from outsample_lab.stream.arriving_days import FLOODED_FROM
from outsample_lab.stream.learners import METHOD

LEVEL = 0.01  # A minute raises an alarm if its p-value is at most this
FIRST_WEEK = 5  # Days after the first one that belong to its week


class DayResult(NamedTuple):
    """One learner on one day."""

    day: str
    n_normal: int
    false_alarms: int  # Normal minutes with an alarm
    delays: tuple[float, ...]  # Of each episode, minutes to its first alarm; NaN: never
    drifted: bool  # True if the learner reported drift on that day

    @property
    def rate(self) -> float:
        """Share of the normal minutes with an alarm; NaN without any."""
        return self.false_alarms / self.n_normal if self.n_normal else math.nan


class Chance(NamedTuple):
    """Average precision of a random ranking, as in `LearnerRow`: shares of minutes."""

    precision: float = math.nan
    loud_precision: float = math.nan
    daily_precision: float = math.nan


class LearnerRow(NamedTuple):
    """One learner on all days."""

    name: str
    family: str
    note: str
    days: Sequence[DayResult]
    precision: float  # Average precision by p-value, without the flooded days
    loud_precision: float  # Likewise of minutes with at least 100 connections of attacks
    seconds: float
    daily_precision: float = math.nan  # By p-value within a day, mean of the days with attacks
    score_precision: float = math.nan  # Of all minutes by score alone
    loud_score_precision: float = math.nan

    @property
    def before(self) -> list[DayResult]:
        """Days before one attack runs in nearly every minute."""
        return [day for day in self.days if not FLOODED_FROM <= day.day < "1999"]

    @property
    def median_rate(self) -> float:
        """Median over these days of the rate of false alarms."""
        rates = [day.rate for day in self.before if day.n_normal]
        return float(np.median(rates)) if rates else math.nan

    @property
    def worst(self) -> DayResult | None:
        """The day with most false alarms after the first week, with or without drift."""
        later = [day for day in self.before[FIRST_WEEK:] if day.n_normal]
        return max(later, key=lambda day: day.rate, default=None)

    @property
    def delays(self) -> NDArray[np.float64]:
        """Delays of all episodes of these days, NaN where there was no alarm."""
        return np.array([delay for day in self.before for delay in day.delays])

    @property
    def at_once(self) -> float:
        """Share of the episodes with an alarm in their first minute."""
        return float((self.delays == 0).mean()) if len(self.delays) else math.nan


class StreamRun(NamedTuple):
    """The contents of the results file."""

    protocol: dict[str, str]
    simulated: bool
    n_minutes: int
    versions: dict[str, str]
    seconds: float
    rows: Sequence[LearnerRow]
    missing: Sequence[str]  # Sentences on learners that could not run
    chance: Chance = Chance()

    @property
    def ours(self) -> LearnerRow | None:
        """The row of the learner under test."""
        return next((row for row in self.rows if row.name == METHOD), None)
