"""Network traffic minute by minute: 14 counts of who talks to whom, for finding odd minutes.

The table is built from a list of connections (source, destination, minute, label). Lists of the
DARPA 1998 evaluation are read if there are any; without them a simulator makes the connections.

A *capture day* runs from 07:00 to 06:59 of the next morning, and has one row for every minute
between its first and its last connection, with zeros for minutes without traffic.
"""

import csv
import gzip
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outsample.lab.traffic.features import (
    DAY_LENGTH,
    FEATURES,
    Connection,
    MinuteTable,
    minute_table,
)
from outsample.lab.traffic.simulator import SIMULATED_DAYS, simulated_connections

__all__ = [
    "FEATURES",
    "Traffic",
    "load_connections",
    "load_minutes",
    "load_traffic",
    "log_features",
    "simulate_traffic",
]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Strings = NDArray[np.str_]
PathLike = str | os.PathLike[str]

COLUMNS = ("day", "idx", "time", *FEATURES, "n_attack", "attacks")

DAY_START = 7 * 60  # minutes after midnight
ADDRESS = r"(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})"
LINE = re.compile(rf"{ADDRESS},{ADDRESS},(\d\d/\d\d/\d{{4}}-\d\d:\d\d),([^,\s]+)")
# Ten connections of the DARPA list carry a date that does not exist.
SLIPS = {"07/32/1998": "08/01/1998"}


class Traffic(NamedTuple):
    """Minutes of traffic, a row each: when it was, its 14 counts, and the attacks in it."""

    days: Strings
    """Capture day, ``"1998-07-20"`` or ``"simulated-1"``, shape (q,)."""
    minutes: Ints
    """Minute within the day, from 0 at the day's first connection, shape (q,)."""
    times: Strings
    """The minute itself, ``"1998-07-20T08:00"``; a simulated day has no date, only its name."""
    X: Array
    """Counts and entropies as they are, columns in the order of `FEATURES`, shape (q, 14)."""
    attacks: Strings
    """``"name:count"`` joined by ``";"``, most frequent first; empty if none, shape (q,)."""
    n_attack: Ints
    """Connections of the minute that belong to an attack, shape (q,)."""
    simulated: bool
    """Whether the simulator made it."""

    @property
    def is_attack(self) -> NDArray[np.bool_]:
        """Whether the minute holds a connection of an attack, shape (q,)."""
        return self.n_attack > 0

    def day(self, name: str) -> "Traffic":
        """Return the minutes of one capture day.

        Parameters
        ----------
        name : str
            As in `days`.

        Returns
        -------
        Traffic
            The rows of that day.

        Examples
        --------
        >>> from outsample.lab.traffic.days import simulate_traffic
        >>> day = simulate_traffic().day("simulated-2")
        >>> day.X.shape, int(day.is_attack.sum())
        ((1320, 14), 7)
        """
        _check_days((name,), self.days)
        here = self.days == name
        return self._replace(**{name: getattr(self, name)[here] for name in self._fields[:-1]})


def log_features(X: ArrayLike) -> Array:
    r"""Return :math:`\log(1 + x)` of every entry: the counts have very heavy tails.

    Parameters
    ----------
    X : array-like of shape (q, 14)
        Raw features.

    Returns
    -------
    ndarray of shape (q, 14)
        Zero stays zero.

    Examples
    --------
    >>> from outsample.lab.traffic.days import log_features
    >>> log_features([[0.0, 65009.0]]).round(2)
    array([[ 0.  , 11.08]])
    """
    return np.log1p(np.asarray(X, dtype=np.float64))


def load_connections(path: PathLike, days: str | Sequence[str] | None = None) -> Traffic:
    r"""Build the table from a list of connections.

    Parameters
    ----------
    path : path-like
        Text without header, gzipped if the name ends in ``.gz``, a connection a line:
        ``source address,destination address,MM/DD/YYYY-HH:MM,label``. Addresses are padded
        with zeros (172.016.* is inside); label ``-`` is normal, others name an attack.
    days : str or sequence of str, optional
        Capture days to keep, as ``"1998-07-20"``; all by default.

    Returns
    -------
    Traffic
        One row a minute.

    Raises
    ------
    ValueError
        For a line of another form, with its number; for a day without traffic.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from outsample.lab.traffic.days import load_connections
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "connections.csv")
    ...     _ = path.write_text(
    ...         "172.016.112.020,192.168.001.010,06/01/1998-07:55,-\n"
    ...         "010.020.030.040,172.016.112.020,06/01/1998-07:57,pod\n"
    ...     )
    ...     traffic = load_connections(path)
    >>> traffic.times.tolist(), traffic.attacks.tolist()
    (['1998-06-01T07:55', '1998-06-01T07:56', '1998-06-01T07:57'], ['', '', 'pod:1'])
    """
    table = minute_table(_read_connections(Path(path), _as_days(days)))
    stamps = table.stamps
    names = np.datetime_as_string((stamps // DAY_LENGTH).astype("datetime64[D]"))
    _check_days(_as_days(days) or (), names)
    times = np.datetime_as_string((stamps + DAY_START).astype("datetime64[m]"))
    return _traffic(table, names, times, simulated=False)


def load_minutes(path: PathLike, days: str | Sequence[str] | None = None) -> Traffic:
    r"""Read a table that was built before.

    Parameters
    ----------
    path : path-like
        CSV with a header, gzipped if the name ends in ``.gz``; columns day, idx, time, the 14
        of `FEATURES`, n_attack, attacks. Entropies are written with six digits there.
    days : str or sequence of str, optional
        Capture days to keep; all by default.

    Returns
    -------
    Traffic
        One row a minute.

    Raises
    ------
    ValueError
        For other columns or a line that is not numbers, with its number; for a missing day.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from outsample.lab.traffic.days import FEATURES, load_minutes
    >>> header = ",".join(["day", "idx", "time", *FEATURES, "n_attack", "attacks"])
    >>> row = "1998-06-01,0,1998-06-01T07:55,2,1,1,1,2,2,2,1,1,0,0,0,2,0,0,"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "minutes.csv")
    ...     _ = path.write_text(f"{header}\n{row}\n")
    ...     traffic = load_minutes(path)
    >>> traffic.days.tolist(), traffic.X[0, :4].tolist()
    (['1998-06-01'], [2.0, 1.0, 1.0, 1.0])
    """
    wanted, path = _as_days(days), Path(path)
    rows: list[list[str]] = []
    values: list[list[float]] = []
    lines = csv.reader(line.decode("utf-8", "replace") for line in _lines(path))
    if (header := next(lines, [])) != list(COLUMNS):
        raise ValueError(f"{path}, line 1: expected the columns {','.join(COLUMNS)}, got {header}")
    for number, row in enumerate(lines, start=2):
        if len(row) != len(COLUMNS):
            raise ValueError(
                f"{path}, line {number}: expected {len(COLUMNS)} columns, got {len(row)}"
            )
        if wanted is None or row[0] in wanted:
            rows.append(row)
            values.append(_numbers(path, number, row))
    names = np.array([row[0] for row in rows], dtype=np.str_)
    _check_days(wanted or (), names)
    table = np.array(values).reshape(-1, len(FEATURES) + 2)
    return Traffic(
        days=names,
        minutes=table[:, 0].astype(np.int64),
        times=np.array([row[2] for row in rows], dtype=np.str_),
        X=table[:, 1:-1].copy(),
        attacks=np.array([row[-1] for row in rows], dtype=np.str_),
        n_attack=table[:, -1].astype(np.int64),
        simulated=False,
    )


def load_traffic(
    folder: PathLike | None = None, days: str | Sequence[str] | None = None
) -> Traffic:
    """Return the traffic of the DARPA 1998 days, or simulated traffic where there is none.

    Parameters
    ----------
    folder : path-like, optional
        Folder of data sets. ``darpa98/minutes14.csv.gz`` in it is read if it is there, else
        ``darpa98/connections_minute.csv.gz``; both give the same rows, the
        former with entropies of six digits. Without a folder or
        without the files the result is `simulate_traffic`.
    days : str or sequence of str, optional
        Capture days to keep; all by default. Simulated days bear other names, so this is
        passed over if the traffic is simulated: see the flag `simulated`.

    Returns
    -------
    Traffic
        One row a minute.

    Examples
    --------
    >>> from outsample.lab.traffic.days import load_traffic
    >>> traffic = load_traffic(None, days="1998-07-20")
    >>> traffic.simulated, sorted(set(traffic.days.tolist()))
    (True, ['simulated-1', 'simulated-2', 'simulated-3'])
    """
    readers = {"minutes14.csv.gz": load_minutes, "connections_minute.csv.gz": load_connections}
    if folder is not None:
        for name, reader in readers.items():
            path = Path(folder, "darpa98", name)
            if path.is_file():
                return reader(path, days)
    return simulate_traffic()


def simulate_traffic(days: str | Sequence[str] = SIMULATED_DAYS, seed: int = 0) -> Traffic:
    """Make up the connections of some days, attacks included, and count them.

    Parameters
    ----------
    days : str or sequence of str
        ``"simulated-1"`` has no attacks, ``"simulated-2"`` seven minutes of them, of which
        three show clearly, ``"simulated-3"`` floods and sweeps. Each has 1320 minutes.
    seed : int, default=0
        Equal seeds give equal traffic.

    Returns
    -------
    Traffic
        One row a minute, days in the order given.

    Examples
    --------
    >>> from outsample.lab.traffic.days import simulate_traffic
    >>> traffic = simulate_traffic("simulated-2")
    >>> traffic.X.shape, str(traffic.attacks[488])
    ((1320, 14), 'teardrop:200')
    """
    names = _as_days(days) or ()

    def connections() -> Iterator[Connection]:
        for i, name in enumerate(names):
            first = i * DAY_LENGTH + 60  # 08:00
            for (source, destination, minute, label), n in simulated_connections(
                name, seed
            ).items():
                yield first + minute, source, destination, label, n

    table = minute_table(connections())
    name_of_row = np.array(names, dtype=np.str_)[table.stamps // DAY_LENGTH]
    clock = np.datetime_as_string((table.stamps + DAY_START).astype("datetime64[m]"))
    times = [f"{name}T{time[-5:]}" for name, time in zip(name_of_row, clock, strict=True)]
    return _traffic(table, name_of_row, np.array(times, dtype=np.str_), simulated=True)


def _traffic(table: MinuteTable, days: Strings, times: Strings, *, simulated: bool) -> Traffic:
    """Return the table with its days, and minutes counted from each day's first."""
    day = table.stamps // DAY_LENGTH
    _, first, which = np.unique(day, return_index=True, return_inverse=True)
    minutes = table.stamps - table.stamps[first][which]
    return Traffic(days, minutes, times, table.X, table.attacks, table.n_attack, simulated)


def _as_days(days: str | Sequence[str] | None) -> tuple[str, ...] | None:
    return (days,) if isinstance(days, str) else None if days is None else tuple(days)


def _check_days(asked: Sequence[str], found: Strings) -> None:
    there = set(found.tolist())
    missing = [day for day in asked if day not in there]
    if missing or not there:
        raise ValueError(f"no traffic on {', '.join(missing) or 'any day'}")


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a plain or gzipped file."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        try:
            yield from file
        except (EOFError, gzip.BadGzipFile, zlib.error) as fault:
            raise ValueError(f"{path}: not a whole gzip file ({fault})") from fault


def _read_connections(path: Path, days: Sequence[str] | None) -> Iterator[Connection]:
    """Yield the connections of a list, equal lines as one."""
    wanted = None if days is None else {_day_number(day) for day in days}
    stamps: dict[str, int] = {}
    # A minute of one pair is often hundreds of equal lines, so count first and parse after: an
    # eighth of the lines of the DARPA list are left, and only they are kept in memory.
    for line, n in Counter(_lines(path)).items():
        match = LINE.fullmatch(line.decode("ascii", "replace").rstrip("\r\n"))
        if match is None:
            _refuse(path, line, "source,destination,MM/DD/YYYY-HH:MM,label")
        source, destination, time, label = match.groups()
        stamp = stamps.get(time)
        if stamp is None:
            try:
                stamp = stamps[time] = _stamp(time)
            except ValueError:
                _refuse(path, line, "a date and time that exist")
        if wanted is None or stamp // DAY_LENGTH in wanted:
            yield stamp, source, destination, label, n


def _stamp(time: str) -> int:
    """Return the minutes since 07:00 of 1 January 1970, so that a capture day is a whole day."""
    written = SLIPS.get(time[:10], time[:10])
    moment = datetime.strptime(f"{written}{time[10:]}", "%m/%d/%Y-%H:%M").replace(tzinfo=UTC)
    return int(moment.timestamp()) // 60 - DAY_START


def _day_number(day: str) -> int:
    try:
        return date.fromisoformat(day).toordinal() - date(1970, 1, 1).toordinal()
    except ValueError:
        raise ValueError(f"a capture day is written like 1998-07-20, got {day!r}") from None


def _refuse(path: Path, line: bytes, expected: str) -> NoReturn:
    """Raise the error of a bad line; only now is its number worth a second reading."""
    number = next(i for i, other in enumerate(_lines(path), start=1) if other == line)
    text = line.decode("ascii", "replace").rstrip("\r\n")
    raise ValueError(f"{path}, line {number}: expected {expected}, got {text!r}")


def _numbers(path: Path, number: int, row: list[str]) -> list[float]:
    """Return the numeric columns of a row of the ready table."""
    try:
        return [float(text) for text in (row[1], *row[3:-1])]
    except ValueError as fault:
        raise ValueError(f"{path}, line {number}: expected numbers, {fault}") from None
