"""Slow, broken or greedy clients, in their own process, for a limited time.

Only to this machine. None of them asks for work of the model: whatever others lose, they lose to
how the service treats its clients.
"""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

import numpy as np

from outsample_lab.serving.open_loop import HOST, http_request

PROGRAM = "from outsample_lab.serving.unruly_clients import main; main()"
# Connections that stay, by kind; and seconds between those that come and go.
SLOW_HEADS, SLOW_BODIES, NEVER_READING = 50, 200, 20
BROKEN_EVERY, OVERSIZED_EVERY, LARGE_EVERY = 0.05, 0.2, 1.0
WORDS = (
    f"{SLOW_HEADS} clients send a head, and {SLOW_BODIES} a body, of one byte a second;"
    f" {NEVER_READING} watch events or take maps and never read; every {BROKEN_EVERY:g} s one sends"
    f" garbage or half a request and hangs up; every {OVERSIZED_EVERY:g} s one announces a"
    f" gigabyte; every {LARGE_EVERY:g} s one sends 4 MB of rows with a fault at their end, or an"
    " endless body"
)


class UnrulyClients:
    """Unruly clients, until the block ends or the time is over."""

    def __init__(self, port: int, seconds: float, columns: int) -> None:
        self.command = [sys.executable, "-c", PROGRAM, f"{port}", f"{seconds}", f"{columns}"]

    def __enter__(self) -> UnrulyClients:
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        self.process.stdout.readline()  # they have begun
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


def main() -> None:
    """Run the unruly clients; port, seconds and columns are command-line arguments."""
    port, seconds, columns = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    end = time.monotonic() + seconds
    large = _large_with_a_fault(columns)
    works: list[tuple[Callable[..., None], float, tuple[Any, ...]]] = [
        (_send_slowly, 1.0, ([],)),
        (_come_and_go, BROKEN_EVERY, ([0],)),
        (_announce_too_much, OVERSIZED_EVERY, ()),
        (_send_much, LARGE_EVERY, (large, [0])),
    ]
    idle = [_connected(port, b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")]
    asked = b"GET /map HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 40
    idle += [_connected(port, asked) for _ in range(NEVER_READING - 1)]
    for work, every, state in works:
        arguments = (work, port, every, end, state)
        threading.Thread(target=_again_and_again, args=arguments, daemon=True).start()
    print("begun", flush=True)
    time.sleep(max(0.0, end - time.monotonic()))


def _again_and_again(
    work: Callable[..., None], port: int, every: float, end: float, state: tuple[Any, ...]
) -> None:
    while time.monotonic() < end:
        begin = time.monotonic()
        try:
            work(port, *state)
        except OSError:  # hung up, as it should
            pass
        time.sleep(max(0.001, every - (time.monotonic() - begin)))


def _connected(port: int, data: bytes) -> socket.socket:
    made = socket.create_connection((HOST, port), timeout=5)
    made.sendall(data)
    return made


def _send_slowly(port: int, open_ones: list[socket.socket]) -> None:
    """Send one byte per connection; connections that were closed are opened again."""
    for connection in list(open_ones):
        try:
            connection.send(b" ")
        except OSError:
            connection.close()
            open_ones.remove(connection)
    body = http_request(b" " * 1000)[:-999]
    for at in range(len(open_ones), SLOW_HEADS + SLOW_BODIES):
        begin = b"POST /place HTTP/1.1\r\nHost:" if at % 5 == 0 else body
        open_ones.append(_connected(port, begin))


def _come_and_go(port: int, count: list[int]) -> None:
    count[0] += 1
    half = http_request(b'{"rows": [[1, 2,' + b" " * 1000)[:-900]
    connection = _connected(port, half if count[0] % 2 else b"\xff\x00 nonsense\r\n\r\n")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
    connection.close()


def _announce_too_much(port: int) -> None:
    head = http_request(b"x" * 1000).replace(b"Length: 1000", b"Length: 1000000000")
    with _connected(port, head) as connection:
        connection.recv(1000)


def _send_much(port: int, large: bytes, count: list[int]) -> None:
    count[0] += 1
    if count[0] % 2:
        with _connected(port, large) as connection:
            connection.recv(1000)
        return
    head = http_request(b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    piece = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    with _connected(port, head) as connection:
        for _ in range(1000):  # it is let go long before
            connection.sendall(piece)


def _large_with_a_fault(columns: int) -> bytes:
    row = "[" + ", ".join(f"{x:.17g}" for x in np.random.default_rng(0).normal(size=columns)) + "]"
    rows = ", ".join([row] * (4_000_000 // len(row)))
    return http_request(f'{{"rows": [{rows}, [1, 2, "three"]]}}'.encode())
