"""Network traffic by the minute: 14 counts of connections.

A *capture day* runs from 07:00 to 06:59 of the next morning, and has one row for every minute
between its first and its last connection, with zeros for minutes without traffic.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outsample_lab.traffic.features import DAY_LENGTH, Connection, MinuteTable, minute_table
from outsample_lab.traffic.simulator import SIMULATED_DAYS, simulated_connections

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Strings = NDArray[np.str_]

DAY_START = 7 * 60  # minutes after midnight


class Traffic(NamedTuple):
    """Minutes of traffic, one row each: time, 14 counts, and attacks."""

    days: Strings  # Capture day, ``"1998-07-20"`` or ``"simulated-1"``, shape (q,)
    minutes: Ints  # Minute within the day, from 0 at the day's first connection, shape (q,)
    times: Strings  # The minute itself, "1998-07-20T08:00"; a simulated day has only its name
    X: Array  # Counts and entropies as they are, columns in the order of `FEATURES`, shape (q, 14)
    attacks: Strings  # "name:count" joined by ";", most frequent first; empty if none, shape (q,)
    n_attack: Ints  # Connections of the minute that belong to an attack, shape (q,)
    simulated: bool  # Whether the simulator made it

    @property
    def is_attack(self) -> NDArray[np.bool_]:
        """Mask (q,) of minutes with a connection of an attack."""
        return self.n_attack > 0

    def day(self, name: str) -> "Traffic":
        """Return the minutes of one capture day; raise ValueError if there are none.

        >>> day = simulate_traffic().day("simulated-2")
        >>> day.X.shape, int(day.is_attack.sum())
        ((1320, 14), 7)
        """
        check_days((name,), self.days)
        return self.rows(self.days == name)

    def rows(self, which: Any) -> "Traffic":
        """Return the minutes of a mask or a slice."""
        return self._replace(**{name: getattr(self, name)[which] for name in self._fields[:-1]})


def log_features(X: ArrayLike) -> Array:
    """Return log(1 + x) of the counts (q, 14), which have heavy tails."""
    return np.log1p(np.asarray(X, dtype=np.float64))


def simulate_traffic(days: str | Sequence[str] = SIMULATED_DAYS, seed: int = 0) -> Traffic:
    """Simulate the connections of days with attacks, and count them.

    ``"simulated-1"`` has no attacks, ``"simulated-2"`` seven minutes of them, of which three show
    clearly, ``"simulated-3"`` floods and sweeps. Each has 1320 minutes.

    >>> traffic = simulate_traffic("simulated-2")
    >>> traffic.X.shape, str(traffic.attacks[488])
    ((1320, 14), 'teardrop:200')
    """
    names = (days,) if isinstance(days, str) else tuple(days)

    def connections() -> Iterator[Connection]:
        for i, name in enumerate(names):
            first = i * DAY_LENGTH + 60  # 08:00
            simulated = simulated_connections(name, seed)
            for (source, destination, minute, label), n in simulated.items():
                yield first + minute, source, destination, label, n

    table = minute_table(connections())
    name_of_row = np.array(names, dtype=np.str_)[table.stamps // DAY_LENGTH]
    clock = np.datetime_as_string((table.stamps + DAY_START).astype("datetime64[m]"))
    times = [f"{name}T{time[-5:]}" for name, time in zip(name_of_row, clock, strict=True)]
    return dated(table, name_of_row, np.array(times, dtype=np.str_), simulated=True)


def dated(table: MinuteTable, days: Strings, times: Strings, *, simulated: bool) -> Traffic:
    """Return the traffic of a table, with minutes counted from the first of each day."""
    day = table.stamps // DAY_LENGTH
    _, first, which = np.unique(day, return_index=True, return_inverse=True)
    minutes = table.stamps - table.stamps[first][which]
    return Traffic(days, minutes, times, table.X, table.attacks, table.n_attack, simulated)


def check_days(days: Sequence[str], available: Strings) -> None:
    """Raise ValueError if there is a day without traffic."""
    available_days = set(available.tolist())
    missing = [day for day in days if day not in available_days]
    if missing or not available_days:
        raise ValueError(f"no traffic on {', '.join(missing) or 'any day'}")
