"""Minutes of traffic in the order of arrival, and the loud attacks among them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outsample_lab.traffic.days import Traffic, log_features, simulate_traffic
from outsample_lab.traffic.loud import loud_by_any_attack
from outsample_lab.traffic.recorded import load_traffic

Array = NDArray[np.float64]
# Loud minutes of a day at most this many minutes apart form one episode.
EPISODE_GAP = 5
# From this day on one attack runs in nearly every minute: these days are reported separately.
FLOODED_FROM = "1998-07-23"


class Arrivals(NamedTuple):
    """Minutes with traffic, in order, with their labels."""

    traffic: Traffic
    X: Array  # log(1 + x) of the counts, standardised by the first day, shape (q, 14)
    days: tuple[str, ...]  # The first day is for training; the others arrive later

    @property
    def first(self) -> NDArray[np.bool_]:
        """Mask (q,) of the minutes of the first day."""
        return self.traffic.days == self.days[0]

    def batches(self, day: str, size: int) -> Iterator[NDArray[np.int64]]:
        """Yield the rows of a day in batches."""
        rows = np.flatnonzero(self.traffic.days == day)
        for at in range(0, len(rows), size):
            yield rows[at : at + size]


class Episode(NamedTuple):
    """A flood or a fast scan: rows of its loud minutes, in order."""

    day: str
    rows: NDArray[np.int64]


def arrivals(folder: Path | None, most_days: int | None = None) -> Arrivals:
    """Return recorded days, all or the first ones; without recordings, three simulated days.

    >>> simulated = arrivals(None)
    >>> simulated.days, simulated.X.shape
    (('simulated-1', 'simulated-2', 'simulated-3'), (3960, 14))
    """
    traffic = simulate_traffic() if folder is None else load_traffic(folder)
    traffic = traffic.rows(traffic.X[:, 0] > 0)
    days = tuple(dict.fromkeys(traffic.days.tolist()))[:most_days]
    traffic = traffic.rows(np.isin(traffic.days, days))
    X = log_features(traffic.X)
    first = X[traffic.days == days[0]]
    spread = first.std(axis=0)
    return Arrivals(traffic, (X - first.mean(axis=0)) / np.where(spread > 0, spread, 1.0), days)


def episodes(traffic: Traffic) -> list[Episode]:
    """Return runs of minutes with at least 100 connections of attacks, day by day.

    >>> traffic = simulate_traffic("simulated-2")
    >>> [(len(run.rows), int(traffic.minutes[run.rows[0]])) for run in episodes(traffic)]
    [(1, 171), (1, 409), (1, 488)]
    """
    runs: list[Episode] = []
    loud: Any = loud_by_any_attack(traffic.n_attack)
    for day in dict.fromkeys(traffic.days.tolist()):
        rows = np.flatnonzero(loud & (traffic.days == day))
        cuts = np.flatnonzero(np.diff(traffic.minutes[rows]) > EPISODE_GAP) + 1
        runs += [Episode(day, part) for part in np.split(rows, cuts) if len(part)]
    return runs
