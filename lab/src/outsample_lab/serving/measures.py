"""Measurements of a service: one row, many rows, loads, an overload, unruly clients."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outsample import NoveltyDetector, PCAExtension
from outsample_lab.serving.open_loop import HOST, OpenLoop, Outcome, http_request
from outsample_lab.serving.service_process import ServiceProcess
from outsample_lab.serving.service_result import LoadRow
from outsample_lab.serving.unruly_clients import UnrulyClients
from outsample_lab.speed.speed_result import Target
from outsample_lab.speed.stopwatch import take_turns

Array = NDArray[np.float64]
ARROW = "application/vnd.apache.arrow.stream"
CLIENTS = 32  # Who ask without a pause when capacity is measured
BELOW, ABOVE, AMONG = 0.8, 3.0, 0.5  # Loads, of capacity
BIN = 0.1  # Seconds over which a recovery is looked at


class Lengths(NamedTuple):
    """Sizes and seconds of a run."""

    points: int
    columns: int
    rows: int  # In a batch
    turns: int
    capacity: float
    below: float
    above: float
    after: float
    among: float  # With bad clients and without, each turn
    among_turns: int


FULL = Lengths(10_000, 14, 10_000, 9, 5.0, 180.0, 20.0, 5.0, 10.0, 3)
QUICK = Lengths(1000, 14, 1000, 3, 0.5, 1.0, 1.0, 1.0, 1.0, 1)


class Ground(NamedTuple):
    """What a measurement needs: a service, its model in this process, one row and many."""

    service: ServiceProcess
    model: Any
    row: Array
    many: Array

    @property
    def load(self) -> OpenLoop:
        """Ask for one row again and again."""
        return OpenLoop(self.service.port, http_request(json_rows(self.row)))


def fitted(lengths: Lengths) -> Any:
    """Return a detector with a map of normal points."""
    X = np.random.default_rng(0).normal(size=(lengths.points, lengths.columns))
    plain = PCAExtension(n_neighbors=15, weighting="distance", order=0, loss="squared")
    return NoveltyDetector(plain).fit(X, X[:, :2])


def one_row(ground: Ground, repeats: int = 1000) -> Target:
    """Return the time of one row through the service over that in the process."""
    asked = http_request(json_rows(ground.row))
    with _connection(ground.service.port) as plain:
        works = {
            "service": lambda: _answer(plain, asked),
            "process": lambda: ground.model.place(ground.row),
        }
        times = take_turns("", works, repeats, 30.0)
    inside, outside = times.median("process") * 1e3, times.median("service") * 1e3
    note = f"{outside:.2f} ms, in the process {inside:.2f} ms"
    words = "one row: median time beyond that in the process"
    return Target(words, 1.0, outside - inside, unit="ms", note=note)


def many_rows(ground: Ground, turns: int) -> Target:
    """Return the rows per second of the service by Arrow over those of the library."""
    asked = http_request(_arrow_rows(ground.many), ARROW)
    with _connection(ground.service.port) as plain:
        works = {
            "service": lambda: _answer(plain, asked),
            "process": lambda: ground.model.place(ground.many),
        }
        times = take_turns("", works, turns, 60.0)
    inside, outside = times.seconds["process"], times.seconds["service"]
    low, middle, high = np.quantile(inside / outside, [0.25, 0.5, 0.75]).tolist()
    words = f"{len(ground.many):,} rows by Arrow: rows a second over the library's"
    rate = len(ground.many) / times.median("service")
    note = f"{rate:,.0f} rows a second"
    return Target(words, 0.7, middle, low, high, at_least=True, note=note)


def capacity(ground: Ground, seconds: float) -> float:
    """Return the responses per second to clients without pause: the better of two turns."""
    ground.load.without_pause(CLIENTS, min(seconds, 1.0))
    turns = [ground.load.without_pause(CLIENTS, seconds) for _ in range(2)]
    return max(turn.answered_per_second for turn in turns)


def below_capacity(
    ground: Ground, rate: float, seconds: float, tell: Callable[[LoadRow], None]
) -> tuple[list[Target], Outcome]:
    """Run a long load after a warm-up; return targets and the outcome."""
    ground.load.at_rate(BELOW * rate, min(seconds, 10.0))
    before = ground.service.megabytes
    outcome = ground.load.at_rate(BELOW * rate, seconds)
    after = ground.service.megabytes
    tell(load_row("80 % of capacity", BELOW * rate, outcome, after))
    share = outcome.count(200) / len(outcome.status)
    note = f"{before:.0f} MB, then {after:.0f} MB"
    return [
        Target("80 % of capacity: share of the requests answered", 1.0, share, at_least=True),
        Target("80 % of capacity: memory at the end over the beginning", 1.05, after / before,
               note=note),
    ], outcome  # fmt: skip


def above_capacity(
    ground: Ground, rate: float, seconds: float, after: float, usual: Outcome,
    tell: Callable[[LoadRow], None],
) -> list[Target]:  # fmt: skip
    """Overload the service, then return to the usual load; return the targets."""
    outcome = ground.load.at_rate(ABOVE * rate, seconds)
    tell(load_row("300 % of capacity", ABOVE * rate, outcome, ground.service.megabytes))
    later = ground.load.at_rate(BELOW * rate, after)
    tell(load_row("80 % again, at once", BELOW * rate, later, ground.service.megabytes))
    p99, usual_p99 = outcome.quantile_of_service(0.99), usual.quantile_of_service(0.99)
    due, usual_due = (measured.quantile(0.99) * 1e3 for measured in (outcome, usual))
    accepted = f"{outcome.answered_per_second:,.0f} a second accepted"
    since = f"with what the generator was late by {due:.1f} over {usual_due:.1f}"
    note = f"{p99 * 1e3:.1f} over {usual_p99 * 1e3:.1f} ms, {since}; {accepted}"
    return [
        Target("300 % of capacity: 99th per cent of those accepted over that at 80 %", 3.0,
               p99 / usual_p99, note=note),
        Target("after 300 %: time to recover", 2.0, recovery(later, usual_p99), unit="s"),
    ]  # fmt: skip


def recovery(outcome: Outcome, usual_p99: float) -> float:
    """Return when the last tenth of a second ends in which some were refused, or most were slow."""
    bins = (outcome.due / BIN).astype(int)
    last = -1
    for at in range(bins.max() + 1):
        here = bins == at
        slow = np.median(outcome.seconds[here]) > usual_p99
        if slow or (outcome.status[here] != 200).any():
            last = at
    return (last + 1) * BIN


def among_unruly_clients(
    ground: Ground, rate: float, seconds: float, turns: int, tell: Callable[[LoadRow], None]
) -> Target:
    """Return the 99th per cent of those who behave, among those who do not, over that alone."""
    outcomes: dict[str, list[Outcome]] = {"alone": [], "among": []}
    for _ in range(turns):
        outcomes["alone"].append(ground.load.at_rate(AMONG * rate, seconds))
        with UnrulyClients(ground.service.port, 3 * seconds + 30, ground.row.shape[1]):
            time.sleep(min(2.0, seconds))  # all of them have begun
            outcomes["among"].append(ground.load.at_rate(AMONG * rate, seconds))
        time.sleep(min(2.0, seconds))
    both = {name: _joined(parts) for name, parts in outcomes.items()}
    for name, words in (("alone", "50 % of capacity"), ("among", "50 % among unruly clients")):
        tell(load_row(words, AMONG * rate, both[name], ground.service.megabytes))
    p99 = {name: outcome.quantile(0.99) for name, outcome in both.items()}
    note = f"{p99['among'] * 1e3:.1f} over {p99['alone'] * 1e3:.1f} ms"
    words = "among slow, broken and oversized clients: 99th per cent of the others over that alone"
    return Target(words, 2.0, p99["among"] / p99["alone"], note=note)


def load_row(name: str, rate: float, outcome: Outcome, megabytes: float) -> LoadRow:
    """Return the results of a load."""
    answered, refused = outcome.count(200), outcome.count(429, 503)
    errors = len(outcome.status) - answered - refused
    p50, p99 = (outcome.quantile(share) * 1e3 for share in (0.5, 0.99))
    return LoadRow(name, rate, outcome.lasted, answered, refused, errors, p50, p99,
                   float(np.quantile(outcome.late, 0.99)) * 1e3, megabytes)  # fmt: skip


def json_rows(rows: Array) -> bytes:
    """Return rows as a JSON body."""
    return json.dumps({"rows": rows.tolist()}).encode()


def _arrow_rows(rows: Array) -> bytes:
    pa: Any = import_module("pyarrow")
    batch = pa.record_batch({str(at): rows[:, at] for at in range(rows.shape[1])})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _connection(port: int) -> socket.socket:
    made = socket.create_connection((HOST, port), timeout=60)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def _answer(connection: socket.socket, request: bytes) -> bytes:
    """Send a request and read the whole response."""
    connection.sendall(request)
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(2**16)
    head, _, body = received.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r")[0])
    pieces, left = [body], length - len(body)
    while left:
        pieces.append(connection.recv(min(left, 2**20)))
        left -= len(pieces[-1])
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"the service said {head.splitlines()[0].decode()}")
    return b"".join(pieces)


def _joined(parts: list[Outcome]) -> Outcome:
    faults: dict[str, int] = {}
    for part in parts:
        for name, count in part.faults.items():
            faults[name] = faults.get(name, 0) + count
    due, seconds, status = (np.concatenate(field) for field in list(zip(*parts, strict=True))[:3])
    late, own_late = (np.concatenate(field) for field in list(zip(*parts, strict=True))[-2:])
    return Outcome(due, seconds, status, faults, sum(part.lasted for part in parts), late, own_late)
