"""Simulated network traffic: the connections of a day, with planted attacks.

A day has 22 hours from 08:00, as in the recordings of the DARPA 1998 evaluation: browsing, mail, a
monitor that polls a router every minute, and a backup at night. The hourly profile and the volumes
were set by eye to match 20 July 1998 of the recordings; no recorded line is included, and external
addresses are from ranges reserved for documentation and tests.
"""

from collections import Counter
from collections.abc import Callable

import numpy as np

Day = Counter[tuple[str, str, int, str]]
Attack = Callable[[np.random.Generator, Day, int], None]

HOURS = 22
# Activity of users by hour from 08:00; at night there is only machine traffic.
ACTIVITY = np.r_[0.7, 1.1, 1, 1, 0.95, 0.9, 1, 1, 0.8, 0.4, 0.13, 0.13, 0.1, np.full(9, 0.004)]

WORKSTATIONS = [f"172.016.{112 + i % 6}.{20 + 7 * i:03d}" for i in range(20)]
STATIONS = [f"192.000.002.{10 + i:03d}" for i in range(10)]
SITES = [f"198.051.100.{i:03d}" for i in range(256)] + [f"203.000.113.{i:03d}" for i in range(256)]
# A few sites get most visits.
VISITS = np.cumsum(1.0 / np.arange(1.0, len(SITES) + 1.0))
SERVER, NAME_SERVER, VICTIM = "172.016.114.050", "172.016.112.020", "172.016.112.050"
MONITOR, ROUTER, RESOLVER, BACKUP = (f"192.168.001.{i:03d}" for i in (30, 1, 10, 20))


def _activity(rng: np.random.Generator) -> np.ndarray:
    """Return the activity of each minute: an hourly profile with correlated noise."""
    shape = np.repeat(ACTIVITY, 60)
    noise = np.zeros(len(shape))
    for i in range(1, len(noise)):
        noise[i] = 0.85 * noise[i - 1] + 0.4 * rng.standard_normal()
    return shape * np.exp(noise)


def _machines(rng: np.random.Generator, day: Day) -> None:
    """Add machine traffic: polls, occasional replies, and a backup at night."""
    for minute in range(60 * HOURS):
        day[MONITOR, ROUTER, minute, "-"] += 12 - int(rng.random() < 0.1)
        if rng.random() < 0.17:
            day[ROUTER, MONITOR, minute, "-"] += 1
        if rng.random() < 0.14:
            day[ROUTER, "255.255.255.255", minute, "-"] += 1
    start = int(rng.integers(1020, 1080))
    for minute in range(start, start + 5):
        day[BACKUP, RESOLVER, minute, "-"] += 1 + int(rng.integers(1, 5))
    day[BACKUP, RESOLVER, start + 2, "-"] += int(rng.integers(400, 560))


def _starts(rng: np.random.Generator, n: int) -> list[int]:
    """Return n minutes, distributed over the day like the activity."""
    # One start is drawn from each n-th of the day's activity, so that no hour is empty.
    busy = np.cumsum(np.repeat(ACTIVITY, 60))
    minutes: list[int] = np.searchsorted(
        busy / busy[-1], (np.arange(n) + rng.random(n)) / n
    ).tolist()
    return minutes


def _browse(rng: np.random.Generator, day: Day, client: str, start: int) -> None:
    """Add a session in which an inside user loads pages of outside sites."""
    # A page with many pictures causes many connections per minute: a heavy tail.
    length = 8 + int(rng.exponential(38.0))
    site = 0
    for minute in range(start, min(start + length, 60 * HOURS)):
        if rng.random() < 0.3:
            continue  # reading
        for _ in range(rng.geometric(0.55)):
            if rng.random() < 0.8:
                site = int(np.searchsorted(VISITS, VISITS[-1] * rng.random()))
            pictures = rng.lognormal(2.5, 0.65) if rng.random() < 0.36 else rng.exponential(1.0)
            day[client, SITES[site], minute, "-"] += 1 + int(pictures)


def _visit(rng: np.random.Generator, day: Day, client: str, start: int) -> None:
    """Add a session in which an outside user loads pages of the inside server."""
    for minute in range(start, min(start + 8 + int(rng.exponential(20.0)), 60 * HOURS)):
        if rng.random() < 0.7:
            day[client, SERVER, minute, "-"] += 1 + int(rng.lognormal(1.2, 0.8))


def _people(rng: np.random.Generator, day: Day) -> None:
    """Add browsing from inside and outside."""
    for start in _starts(rng, 84):
        # Some people browse more than others.
        _browse(rng, day, WORKSTATIONS[int(len(WORKSTATIONS) * rng.random() ** 1.3)], start)
    for start in _starts(rng, 12):
        _visit(rng, day, STATIONS[rng.integers(10)], start)


def _mail(rng: np.random.Generator, day: Day) -> None:
    """Add mail, mostly to one and sometimes to many recipients, with name lookups."""
    busy = _activity(rng)
    for minute in range(60 * HOURS):
        for _ in range(rng.poisson(1.6 * busy[minute])):
            sender, n_readers = STATIONS[rng.integers(10)], rng.geometric(0.6)
            for reader in rng.choice(14, size=min(n_readers, 14), replace=False):
                day[sender, WORKSTATIONS[reader], minute, "-"] += rng.geometric(0.85)
        for _ in range(rng.poisson(0.7 * busy[minute])):
            sender, reader = WORKSTATIONS[rng.integers(14)], STATIONS[rng.integers(10)]
            day[sender, reader, minute, "-"] += rng.geometric(0.8)
        if rng.random() < 0.6 * busy[minute]:
            day[NAME_SERVER, RESOLVER, minute, "-"] += rng.geometric(0.35)
        if rng.random() < 0.4 * busy[minute]:
            day[RESOLVER, NAME_SERVER, minute, "-"] += rng.geometric(0.5)


def _flood(label: str, minutes: int, low: int, high: int, n_victims: int = 1) -> Attack:
    """Return an attack of one source on few hosts: `low` to `high` connections per minute."""

    def attack(rng: np.random.Generator, day: Day, start: int) -> None:
        source = f"198.018.000.{int(rng.integers(1, 255)):03d}"
        for minute in range(start, start + minutes):
            for victim in [VICTIM, SERVER, NAME_SERVER][:n_victims]:
                day[source, victim, minute, label] += int(rng.integers(low, high))

    return attack


def _smurf(n_sources: int) -> Attack:
    """Return an attack of very many sources on one host, one connection each."""

    def attack(rng: np.random.Generator, day: Day, start: int) -> None:
        for i in range(n_sources):
            # The last answers arrive in the next minute.
            minute = start + int(i > 0.99 * n_sources)
            day[f"198.019.{i // 250:03d}.{i % 250:03d}", SERVER, minute, "smurf"] += 1

    return attack


def _ipsweep(minutes: int, n_hosts: int) -> Attack:
    """Return a scan for hosts: one source tries `n_hosts` addresses per minute, in order."""

    def attack(rng: np.random.Generator, day: Day, start: int) -> None:
        source = STATIONS[rng.integers(10)]
        for i in range(minutes * n_hosts):
            target = f"172.016.{112 + i // 250:03d}.{1 + i % 250:03d}"
            day[source, target, start + i // n_hosts, "ipsweep"] += 1

    return attack


# Attacks with one or two connections, which counts hardly show, are included on purpose.
ATTACKS: dict[str, Attack] = {
    "break-in multihop": _flood("multihop", 1, 2, 3),
    "break-in ps": _flood("ps", 1, 1, 3),
    "break-in syslog": _flood("syslog", 1, 1, 2),
    "pod": _flood("pod", 1, 400, 460),
    "teardrop": _flood("teardrop", 1, 200, 201),
    "neptune": _flood("neptune", 20, 2600, 6000),
    "satan": _flood("satan", 4, 900, 1300, n_victims=2),
    "portsweep": _flood("portsweep", 1, 100, 130),
    "slow portsweep": _flood("portsweep", 30, 1, 3),
    "smurf": _smurf(7000),
    "small smurf": _smurf(270),
    "ipsweep": _ipsweep(1, 250),
    "slow ipsweep": _ipsweep(20, 12),
}
SCRIPTS: dict[str, dict[int, str]] = {
    "simulated-1": {},
    "simulated-2": {
        79: "break-in multihop", 171: "portsweep", 409: "pod", 488: "teardrop",
        526: "break-in syslog", 552: "break-in ps", 553: "break-in ps",
    },
    "simulated-3": {
        40: "small smurf", 130: "neptune", 200: "slow portsweep", 240: "smurf", 300: "ipsweep",
        350: "slow ipsweep", 430: "satan", 500: "pod", 560: "teardrop", 610: "break-in ps",
    },
}  # fmt: skip
SIMULATED_DAYS = tuple(SCRIPTS)


def simulated_connections(day: str, seed: int = 0) -> Day:
    """Return the connections of a simulated day with their counts.

    Keys are (source, destination, minute from 08:00, label); label ``"-"`` is normal. Equal seeds
    give equal days; every day has its own random stream.

    >>> day = simulated_connections("simulated-2")
    >>> sorted({label for _, _, _, label in day})
    ['-', 'multihop', 'pod', 'portsweep', 'ps', 'syslog', 'teardrop']
    """
    if day not in SCRIPTS:
        raise ValueError(f"day must be one of {SIMULATED_DAYS}, got {day!r}")
    rng = np.random.default_rng([seed, SIMULATED_DAYS.index(day)])
    connections: Day = Counter()
    for part in (_machines, _people, _mail):
        part(rng, connections)
    for start, name in SCRIPTS[day].items():
        ATTACKS[name](rng, connections, start)
    return connections
