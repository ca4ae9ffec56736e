"""Comparable timings: tasks take turns, and ratios are computed turn by turn."""

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outsample_lab.speed.speed_result import Target, Timing

Array = NDArray[np.float64]
Work = Callable[[], Any]


class Times(NamedTuple):
    """Seconds of tasks that took turns: one array per task, one entry per turn."""

    setting: str
    seconds: dict[str, Array]

    def median(self, work: str) -> float:
        """Return the median of a task."""
        return float(np.median(self.seconds[work]))

    def timings(self) -> list[Timing]:
        """Return one record per task."""
        return [Timing(work, self.setting, *quartiles(seconds), len(seconds))
                for work, seconds in self.seconds.items()]  # fmt: skip

    def target(self, words: str, asked: float, work: str, over: str, note: str = "") -> Target:
        """Return a target for the time of one task over that of another, turn by turn."""
        ratios = self.seconds[work] / self.seconds[over]
        middle, low, high = quartiles(ratios)
        if len(ratios) == 1:  # no spread
            low = high = np.nan
        return Target(words, asked, middle, low, high, note=note)


def take_turns(
    setting: str, works: Mapping[str, Work], repeats: int, budget: float, *, warm_up: bool = True
) -> Times:
    """Time tasks in turns, after one turn that is not counted (compilation, caches).

    There are ``repeats`` turns, or as many as begin within ``budget`` seconds, and at least one.
    """
    if warm_up:
        for work in works.values():
            work()
    seconds: dict[str, list[float]] = {name: [] for name in works}
    begin = perf_counter()
    for turn in range(repeats):
        if turn and perf_counter() - begin > budget:
            break
        for name, work in works.items():
            seconds[name].append(seconds_of(work))
    return Times(setting, {name: np.array(times) for name, times in seconds.items()})


def seconds_of(work: Work) -> float:
    """Return the seconds of one call."""
    begin = perf_counter()
    work()
    return perf_counter() - begin


def quartiles(values: Array) -> tuple[float, float, float]:
    """Return the median and the quartiles.

    >>> quartiles(np.array([1.0, 2.0, 3.0, 4.0, 9.0]))
    (3.0, 2.0, 4.0)
    """
    middle, low, high = np.quantile(values, [0.5, 0.25, 0.75]).tolist()
    return middle, low, high


def row_times(
    works: Mapping[str, Callable[[Array], Any]], Q: Array, setting: str
) -> tuple[Times, list[Timing]]:
    """Time single rows, tasks in turns: median and 99th percentile of each."""
    for work in works.values():
        for at in range(min(20, len(Q))):
            work(Q[at : at + 1])
    times_by_work: dict[str, list[float]] = {name: [] for name in works}
    for at in range(len(Q)):
        row = Q[at : at + 1]
        for name, work in works.items():
            begin = perf_counter()
            work(row)
            times_by_work[name].append(perf_counter() - begin)
    times = Times(setting, {name: np.array(seconds) for name, seconds in times_by_work.items()})
    lines = [timing._replace(p99=float(np.quantile(times.seconds[timing.work], 0.99)))
             for timing in times.timings()]  # fmt: skip
    return times, lines
