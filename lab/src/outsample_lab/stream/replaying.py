"""Replay days of traffic to a learner, and measure its alarms."""

import math
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outsample_lab.stream.arriving_days import FLOODED_FROM, Arrivals, Episode, episodes
from outsample_lab.stream.learners import Entry, Judged
from outsample_lab.stream.stream_result import LEVEL, Chance, DayResult, LearnerRow
from outsample_lab.traffic.loud import loud_by_any_attack

Array = NDArray[np.float64]
# Minutes per batch; a batch is scored before it is learned.
BATCH = 15


def replayed(entry: Entry, arriving: Arrivals, on_day: Callable[[str], None]) -> LearnerRow:
    """Replay all days to a learner; return its results from the scores at the time."""
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
    attacks = episodes(arriving.traffic)
    days = [_day(day, arriving, p_values, attacks, day in drifted) for day in arriving.days[1:]]
    row = LearnerRow(entry.name, entry.family, entry.note, days, 0.0, 0.0, perf_counter() - begin)
    shown = summed_up(arriving)
    ranks, scores = _ranks_by_p_value(p_values[shown], scores[shown]), scores[shown]
    traffic = arriving.traffic.rows(shown)
    attack, loud = traffic.is_attack, loud_by_any_attack(traffic.n_attack)
    return row._replace(
        precision=average_precision(attack, ranks),
        loud_precision=average_precision(loud, ranks),
        daily_precision=daily(average_precision, traffic.days, attack, ranks),
        score_precision=average_precision(attack, scores),
        loud_score_precision=average_precision(loud, scores),
    )


def summed_up(arriving: Arrivals) -> NDArray[np.bool_]:
    """Return a mask of the ranked minutes: after the first day, before the permanent attack."""
    days = arriving.traffic.days
    counted: NDArray[np.bool_] = ~arriving.first & ~((days >= FLOODED_FROM) & (days < "1999"))
    return counted


def chance(arriving: Arrivals) -> Chance:
    """Return the average precision of a random ranking: the shares of attacks."""
    traffic = arriving.traffic.rows(summed_up(arriving))
    attack, loud = traffic.is_attack, loud_by_any_attack(traffic.n_attack)
    by_day = daily(lambda is_attack, _: float(is_attack.mean()), traffic.days, attack, attack)
    return Chance(float(attack.mean()), float(loud.mean()), by_day)


def daily(
    measure: Callable[[NDArray[np.bool_], Any], float],
    days: NDArray[np.str_],
    is_attack: NDArray[np.bool_],
    ranks: Any,
) -> float:
    """Return the mean of a measure over the days with attacks; NaN without any."""
    masks = [days == day for day in np.unique(days[is_attack])]
    values = [measure(is_attack[mask], ranks[mask]) for mask in masks]
    return float(np.mean(values)) if values else math.nan


def average_precision(is_positive: NDArray[np.bool_], ranks: Array) -> float:
    """Return the average precision of a ranking; NaN without positives."""
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(is_positive, ranks)) if is_positive.any() else math.nan


def _ranks_by_p_value(p_values: Array, scores: Array) -> Array:
    """Rank rows by p-value; among those of one p-value by score."""
    rank = np.empty(len(scores))
    rank[np.lexsort((scores, -p_values))] = np.arange(len(scores))
    return rank


def _day(
    day: str, arriving: Arrivals, p_values: Array, attacks: list[Episode], drifted: bool
) -> DayResult:
    traffic = arriving.traffic
    normal = (traffic.days == day) & ~traffic.is_attack
    alarms = p_values <= LEVEL
    delays = tuple(_delay(traffic.minutes[episode.rows], alarms[episode.rows])
                   for episode in attacks
                   if episode.day == day)  # fmt: skip
    return DayResult(day, int(normal.sum()), int((normal & alarms).sum()), delays, drifted)


def _delay(minutes: NDArray[np.int64], alarms: NDArray[np.bool_]) -> float:
    """Return the minutes from the start of an episode to its first alarm."""
    return float(minutes[alarms][0] - minutes[0]) if alarms.any() else math.nan
