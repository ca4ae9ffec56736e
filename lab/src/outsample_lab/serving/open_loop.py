"""Open-loop load generator: requests are sent by a timetable, whatever the responses.

One thread and prepared bytes, so that it costs little beside the service. A request's time counts
from when it was due, not from when it was sent: a service that is slow cannot hide it by holding
up those who ask. What the generator itself was late by, with connections free, is known apart: at
three times what the service can answer it shares the machine with it, and is late itself. Bounded
in number and time, and to this machine only.
"""

from __future__ import annotations

import select
import selectors
import socket
import time
from collections import Counter, deque
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

HOST = "127.0.0.1"
# Connections at most; and seconds after the last request was due, when what is left is given up.
CONNECTIONS = 256
PATIENCE = 5.0
END_OF_HEAD, LENGTH = b"\r\n\r\n", b"content-length: "


class Outcome(NamedTuple):
    """Results of requests (n,); status 0 means no response."""

    due: NDArray[np.float64]  # Since the first one
    seconds: NDArray[np.float64]
    status: NDArray[np.int64]
    faults: dict[str, int]  # Why there was no answer, and how often
    lasted: float
    late: NDArray[np.float64]  # Seconds from when they were due until they were sent
    own_late: NDArray[np.float64]  # Of these, while connections were free: the generator was busy

    def count(self, *statuses: int) -> int:
        """Return the number of responses with these statuses."""
        return int(np.isin(self.status, statuses).sum())

    def quantile(self, share: float, status: int = 200) -> float:
        """Return a quantile of the response times with one status."""
        seconds = self.seconds[self.status == status]
        return float(np.quantile(seconds, share)) if len(seconds) else float("nan")

    def quantile_of_service(self, share: float) -> float:
        """Return `quantile` of successful responses, without the delay of the generator."""
        seconds = (self.seconds - self.own_late)[self.status == 200]
        return float(np.quantile(seconds, share)) if len(seconds) else float("nan")

    @property
    def answered_per_second(self) -> float:
        """Successful responses per second."""
        return self.count(200) / self.lasted


class _Connection:
    """A connection with at most one pending request."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection((HOST, port), timeout=PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.number = -1
        self.received = b""

    def finished(self) -> int:
        """Read the available bytes; return the status of a complete response, else 0."""
        piece = self.socket.recv(65536)
        if not piece:
            raise ConnectionError("closed by the service")
        self.received = whole = self.received + piece
        head = whole.find(END_OF_HEAD)
        if head < 0:
            return 0
        at = whole.find(LENGTH, 0, head + 2) + len(LENGTH)
        length = int(whole[at : whole.find(b"\r", at)])
        if len(whole) < head + len(END_OF_HEAD) + length:
            return 0
        self.received = b""
        return int(whole[9:12])


class OpenLoop:
    """Sends the same request to a local port again and again.

    Parameters
    ----------
    port : int
        Where it listens.
    request : bytes
        Head and body, small enough for the socket to take at once.
    connections : int
        How many there are at most; a request that finds none free waits for one, and its time runs.
    """

    def __init__(self, port: int, request: bytes, connections: int = CONNECTIONS) -> None:
        self.port, self.request, self.connections = port, request, connections

    def at_rate(self, rate: float, seconds: float) -> Outcome:
        """Send requests at a rate per second."""
        total = max(1, int(rate * seconds))
        return self._run(np.arange(total) / rate)

    def without_pause(self, clients: int, seconds: float) -> Outcome:
        """Let clients send the next request as soon as they have a response."""
        return self._run(None, clients, seconds)

    def _run(
        self, timetable: NDArray[np.float64] | None, clients: int = 0, seconds: float = 0.0
    ) -> Outcome:
        open_ones = [_Connection(self.port) for _ in range(clients or self.connections)]
        self.free, self.faults = deque(open_ones), Counter[str]()
        with selectors.DefaultSelector() as self.selector:
            for connection in open_ones:
                self.selector.register(connection.socket, selectors.EVENT_READ, connection)
            try:
                if timetable is None:
                    return self._closed(seconds)
                return self._open(timetable)
            finally:
                for key in list(self.selector.get_map().values()):
                    key.fileobj.close()  # type: ignore[union-attr]

    def _open(self, timetable: NDArray[np.float64]) -> Outcome:
        total, due = len(timetable), timetable.tolist()
        ended, status = np.full(total, np.nan), np.zeros(total, dtype=np.int64)
        sent, lateness, own, is_held = 0, np.zeros(total), np.zeros(total), False
        begin = time.perf_counter()
        left, deadline = total, due[-1] + PATIENCE
        while left and (now := time.perf_counter() - begin) < deadline:
            while sent < total and due[sent] <= now and self.free:
                self._send(self.free.popleft(), sent)
                lateness[sent] = now - due[sent]
                own[sent] = 0.0 if is_held else lateness[sent]
                sent += 1
            is_held = sent < total and due[sent] <= now  # by the service: no connection is free
            wait = deadline - now
            if sent < total and self.free:
                wait = max(0.0, due[sent] - (time.perf_counter() - begin))
            for connection, code in self._answers(wait):
                if connection.number >= 0:
                    left -= 1
                    ended[connection.number] = time.perf_counter() - begin
                    status[connection.number] = code
                    connection.number = -1
                if code >= 0:
                    self.free.append(connection)
        if left:
            self.faults["no answer in time"] += left
        lasted, seconds = time.perf_counter() - begin, ended - timetable
        return Outcome(timetable, seconds, status, dict(self.faults), lasted, lateness, own)

    def _closed(self, seconds: float) -> Outcome:
        begin = time.perf_counter()
        due, took, status = [], [], []
        asked = [0.0] * len(self.free)
        for number, connection in enumerate(self.free):
            asked[number] = time.perf_counter() - begin
            self._send(connection, number)
        while (now := time.perf_counter() - begin) < seconds:
            for connection, code in self._answers(seconds - now):
                if connection.number < 0:
                    continue
                now = time.perf_counter() - begin
                due.append(asked[connection.number])
                took.append(now - asked[connection.number])
                status.append(code)
                asked[connection.number] = now
                self._send(connection, connection.number)
        lasted, kinds = time.perf_counter() - begin, np.array(status, dtype=np.int64)
        late = np.zeros(len(kinds))
        return Outcome(np.array(due), np.array(took), kinds, dict(self.faults), lasted, late, late)

    def _send(self, connection: _Connection, number: int) -> None:
        connection.number = number
        try:
            connection.socket.send(self.request)
        except OSError as fault:  # found again when it is read from
            self.faults[type(fault).__name__] += 1

    def _answers(self, wait: float) -> list[tuple[_Connection, int]]:
        """Wait with sub-millisecond precision; return connections with their statuses."""
        if wait > 0:
            select.select([self.selector], [], [], wait)
        answers = []
        for key, _ in self.selector.select(0):
            connection: _Connection = key.data
            try:
                if status := connection.finished():
                    answers.append((connection, status))
            except (OSError, ValueError) as fault:
                if connection.number >= 0:
                    self.faults[f"{type(fault).__name__}: {fault}"] += 1
                answers.append((self._opened_again(connection), 0))
        return answers

    def _opened_again(self, connection: _Connection) -> _Connection:
        self.selector.unregister(connection.socket)
        connection.socket.close()
        new = _Connection(self.port)
        new.number = connection.number
        self.selector.register(new.socket, selectors.EVENT_READ, new)
        return new


def http_request(body: bytes, kind: str = "application/json", path: str = "/place") -> bytes:
    """Return the bytes of a request that posts a body.

    >>> http_request(b"{}").splitlines()[0]
    b'POST /place HTTP/1.1'
    """
    head = f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: {kind}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
