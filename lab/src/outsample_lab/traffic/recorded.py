"""Recorded traffic: lists of connections and tables, as of the DARPA 1998 evaluation."""

import csv
import gzip
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import NoReturn

import numpy as np

from outsample_lab.traffic.days import DAY_START, Traffic, check_days, dated, simulate_traffic
from outsample_lab.traffic.features import DAY_LENGTH, FEATURES, Connection, minute_table

PathLike = str | os.PathLike[str]
Days = str | Sequence[str] | None

COLUMNS = ("day", "idx", "time", *FEATURES, "n_attack", "attacks")
ADDRESS = r"(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})"
LINE = re.compile(rf"{ADDRESS},{ADDRESS},(\d\d/\d\d/\d{{4}}-\d\d:\d\d),([^,\s]+)")
SLIPS = {"07/32/1998": "08/01/1998"}  # Invalid date of ten connections of the DARPA list


def load_traffic(folder: PathLike | None = None, days: Days = None) -> Traffic:
    """Return the DARPA 1998 days in a folder, or simulated traffic without them.

    ``darpa98/minutes14.csv.gz`` is read if it is there, else ``darpa98/connections_minute.csv.gz``;
    both give the same rows, the former with entropies of six digits. Simulated days bear other
    names, so `days` is ignored if the traffic is simulated; see the flag `simulated`.

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


def load_connections(path: PathLike, days: Days = None) -> Traffic:
    """Return the traffic of a list of connections, of all or selected days.

    Text without header, gzipped if the name ends in ``.gz``, a connection a line:
    ``source address,destination address,MM/DD/YYYY-HH:MM,label``. Addresses are padded with zeros
    (172.016.* is inside); label ``-`` is normal, others name an attack. ValueError for a line of
    another form, with its number; for a day without traffic.
    """
    wanted = _as_days(days)
    table = minute_table(_read_connections(Path(path), wanted))
    names = np.datetime_as_string((table.stamps // DAY_LENGTH).astype("datetime64[D]"))
    check_days(wanted or (), names)
    times = np.datetime_as_string((table.stamps + DAY_START).astype("datetime64[m]"))
    return dated(table, names, times, simulated=False)


def load_minutes(path: PathLike, days: Days = None) -> Traffic:
    """Return the traffic of a saved table, of all or selected days.

    CSV with a header, gzipped if the name ends in ``.gz``; the columns are `COLUMNS`, entropies
    with six digits. ValueError for other columns or a line that is not numbers, with its number;
    for a missing day.
    """
    wanted, path = _as_days(days), Path(path)
    rows: list[list[str]] = []
    values: list[list[float]] = []
    lines = csv.reader(line.decode("utf-8", "replace") for line in _lines(path))
    if (header := next(lines, [])) != list(COLUMNS):
        raise ValueError(f"{path}, line 1: expected the columns {','.join(COLUMNS)}, got {header}")
    for number, row in enumerate(lines, start=2):
        if len(row) != len(COLUMNS):
            wrong = f"expected {len(COLUMNS)} columns, got {len(row)}"
            raise ValueError(f"{path}, line {number}: {wrong}")
        if wanted is None or row[0] in wanted:
            rows.append(row)
            try:
                values.append([float(text) for text in (row[1], *row[3:-1])])
            except ValueError as fault:
                raise ValueError(f"{path}, line {number}: expected numbers, {fault}") from None
    names = np.array([row[0] for row in rows], dtype=np.str_)
    check_days(wanted or (), names)
    table = np.array(values).reshape(-1, len(FEATURES) + 2)
    minutes, n_attack = table[:, 0].astype(np.int64), table[:, -1].astype(np.int64)
    times, attacks = (np.array([row[at] for row in rows], dtype=np.str_) for at in (2, -1))
    X = table[:, 1:-1].copy()
    return Traffic(names, minutes, times, X, attacks, n_attack, simulated=False)


def _as_days(days: Days) -> tuple[str, ...] | None:
    return (days,) if isinstance(days, str) else None if days is None else tuple(days)


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a plain or gzipped file."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        try:
            yield from file
        except (EOFError, gzip.BadGzipFile, zlib.error) as fault:
            raise ValueError(f"{path}: not a whole gzip file ({fault})") from fault


def _read_connections(path: Path, days: Sequence[str] | None) -> Iterator[Connection]:
    """Yield the distinct connections of a list with their counts."""
    wanted = None if days is None else {_day_number(day) for day in days}
    stamps: dict[str, int] = {}
    # Equal lines are counted before they are parsed, because a pair often has hundreds of equal
    # lines per minute: only an eighth of the lines of the DARPA list is distinct.
    for line, n in Counter(_lines(path)).items():
        match = LINE.fullmatch(line.decode("ascii", "replace").rstrip("\r\n"))
        if match is None:
            _raise_bad_line(path, line, "source,destination,MM/DD/YYYY-HH:MM,label")
        source, destination, time, label = match.groups()
        stamp = stamps.get(time)
        if stamp is None:
            try:
                stamp = stamps[time] = _stamp(time)
            except ValueError:
                _raise_bad_line(path, line, "a date and time that exist")
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


def _raise_bad_line(path: Path, line: bytes, expected: str) -> NoReturn:
    """Raise the error of a bad line, reading the file again for its number."""
    number = next(i for i, other in enumerate(_lines(path), start=1) if other == line)
    text = line.decode("ascii", "replace").rstrip("\r\n")
    raise ValueError(f"{path}, line {number}: expected {expected}, got {text!r}")
