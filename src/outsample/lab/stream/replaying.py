"""Days of traffic shown to a learner in their order, and how it did."""

import math
from collections.abc import Callable
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from outsample.lab.stream.arriving_days import Arrivals, Episode, episodes
from outsample.lab.stream.learners import Entry, Judged
from outsample.lab.stream.stream_result import LEVEL, DayResult, LearnerRow
from outsample.lab.traffic.loud import loud_by_any_attack

Array = NDArray[np.float64]
# Minutes that arrive together; what is learned of them serves the next ones.
BATCH = 15


def replayed(entry: Entry, arriving: Arrivals, on_day: Callable[[str], None]) -> LearnerRow:
    """Show a learner the first day, then every other one; judge it by what it said at the time."""
    begin = perf_counter()
    learner = entry.build()
    learner.start(arriving.X[arriving.first])
    p_values, scores = np.full((2, len(arriving.X)), np.nan)
    drifted: set[str] = set()
    for day in arriving.days[1:]:
        for rows in arriving.batches(day, BATCH):
            judged: Judged = learner.arrive(arriving.X[rows])
            p_values[rows], scores[rows] = judged.p_values, judged.scores
        drifted |= {day} if learner.night() else set()
        on_day(day)
    found = episodes(arriving.traffic)
    days = [_day(day, arriving, p_values, found, day in drifted) for day in arriving.days[1:]]
    row = LearnerRow(entry.name, entry.family, entry.note, days, 0.0, 0.0, perf_counter() - begin)
    shown = np.isin(arriving.traffic.days, [day.day for day in row.before])
    strange = _strangeness(p_values[shown], scores[shown])
    n_attack = arriving.traffic.n_attack[shown]
    return row._replace(
        precision=average_precision(n_attack > 0, strange),
        loud_precision=average_precision(loud_by_any_attack(n_attack), strange),
    )


def average_precision(wanted: NDArray[np.bool_], strange: Array) -> float:
    """Average precision of a ranking; NaN where there is nothing to find."""
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(wanted, strange)) if wanted.any() else math.nan


def _strangeness(p_values: Array, scores: Array) -> Array:
    """Rank rows by p-value; among those of one p-value by score."""
    rank = np.empty(len(scores))
    rank[np.lexsort((scores, -p_values))] = np.arange(len(scores))
    return rank


def _day(
    day: str, arriving: Arrivals, p_values: Array, found: list[Episode], drifted: bool
) -> DayResult:
    traffic = arriving.traffic
    normal = (traffic.days == day) & ~traffic.is_attack
    alarms = p_values <= LEVEL
    delays = tuple(_delay(traffic.minutes[one.rows], alarms[one.rows]) for one in found
                   if one.day == day)  # fmt: skip
    return DayResult(day, int(normal.sum()), int((normal & alarms).sum()), delays, drifted)


def _delay(minutes: NDArray[np.int64], alarms: NDArray[np.bool_]) -> float:
    """Minutes from the first of an episode to its first alarm."""
    return float(minutes[alarms][0] - minutes[0]) if alarms.any() else math.nan
