"""Services for tests: in this process, in a listening thread, or in separate processes."""

from __future__ import annotations

import asyncio
import atexit
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import httpx
import numpy as np
import uvicorn
from sse_starlette.sse import AppStatus

from outsample import NoveltyDetector, PCAExtension, save
from outsample.service.app import create_app
from outsample.service.connection import Connection
from outsample.service.service import Service
from outsample.service.settings import Settings

NAMES = ["a", "b", "c"]
TOKEN = "a-long-random-text-for-tests"
READ_TOKEN = "another-text-that-may-only-read"
AUTHORISED = {"Authorization": f"Bearer {TOKEN}"}
READER = {"Authorization": f"Bearer {READ_TOKEN}"}
ARROW = "application/vnd.apache.arrow.stream"
COMMAND = [sys.executable, "-c", "from outsample.cli import main; main()", "serve"]


@functools.cache
def fitted(seed=0):
    """Return a detector with a two-dimensional map, fitted on named columns."""
    pandas = __import__("pandas")
    X = np.random.default_rng(seed).normal(size=(200, 3))
    extension = PCAExtension(n_neighbors=10, weighting="distance", order=0, loss="squared")
    return NoveltyDetector(extension).fit(pandas.DataFrame(X, columns=NAMES), X[:, :2])


def saved(folder, seed=0, name="small.outsample"):
    """Return the path of a saved detector with one additional column."""
    path = folder / name
    if not path.exists():
        ids = [f"point {at}" for at in range(200)]
        save(fitted(seed), path, columns={"id": ids}, map_names=["x", "y"])
    return path


def rows(n, seed=1):
    return np.random.default_rng(seed).normal(size=(n, 3))


def make_service(folder, learns=False, tokens=(TOKEN,), **options):
    """Return a service for the small model."""
    path = str(saved(folder))
    learned = f"{path}.learned" if learns else None
    options = {"alpha": 0.05, "learned": learned, "tokens": list(tokens), **options}
    service = Service(Settings(model=path, **options))
    service.recover()
    return service


class Client:
    """Sends requests with the token to a service in this process."""

    def __init__(self, service, client="127.0.0.1", host="127.0.0.1", headers=AUTHORISED):
        self.service, self.headers = service, dict(headers)
        self.transport = httpx.ASGITransport(
            create_app(service), client=(client, 1234), raise_app_exceptions=False
        )
        self.base = f"http://{host}:8000"

    async def request(self, method, path, headers=(), **options):
        async with httpx.AsyncClient(transport=self.transport, base_url=self.base) as client:
            self.service.ring.loop = asyncio.get_running_loop()
            headers = {**self.headers, **dict(headers)}
            return await client.request(method, path, headers=headers, **options)

    def get(self, path, **options):
        return asyncio.run(self.request("GET", path, **options))

    def post(self, path, **options):
        return asyncio.run(self.request("POST", path, **options))

    def send(self, path, X, **headers):
        return self.post(path, json={"rows": X.tolist()}, headers=headers)


class Running:
    """A service that listens on a local port, in a thread of this process."""

    def __init__(self, service, port=0):
        self.service = service
        AppStatus.should_exit = False  # an earlier service of this process has ended
        config = uvicorn.Config(
            create_app(service), port=port, log_config=None, access_log=False, ws="none",
            timeout_graceful_shutdown=5, http=Connection, lifespan="on",
        )  # fmt: skip
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        end = time.monotonic() + 30
        while not self.server.started:
            assert self.thread.is_alive() and time.monotonic() < end, "the service does not listen"
            time.sleep(0.01)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def place(self, X):
        return self.post("/place", X)

    def learn(self, X):
        return self.post("/learn", X)

    def post(self, path, X):
        answer = httpx.post(
            self.url + path, json={"rows": X.tolist()}, headers=AUTHORISED, timeout=30
        )
        return answer.raise_for_status().json()

    def end(self):
        """Stop listening; event streams end."""
        self.server.handle_exit(15, None)
        self.thread.join(20)
        assert not self.thread.is_alive()


class Process:
    """A service in a separate process, on a free local port."""

    def __init__(self, model, *options, token=TOKEN, ready=True):
        self.lines = []
        environment = os.environ | {"OUTSAMPLE_TOKEN": token, "OUTSAMPLE_READ_TOKEN": READ_TOKEN}
        if not token:
            del environment["OUTSAMPLE_READ_TOKEN"]
        self.process = subprocess.Popen(
            [*COMMAND, str(model), "--port", "0", *map(str, options)],
            stderr=subprocess.PIPE, env=environment,
        )  # fmt: skip
        atexit.register(self.process.kill)  # also if the test fails
        for line in self.process.stderr:
            if not line.startswith(b"{"):
                self.lines.append({"text": line.decode()})
                continue
            self.lines.append(json.loads(line))
            if "listening" in self.lines[-1]:
                break
        else:
            raise AssertionError(f"the service did not start: {self.lines}")
        self.url = self.lines[-1]["listening"]
        self.port = int(self.url.rpartition(":")[2])
        self.reading = threading.Thread(target=self._drain, daemon=True)
        self.reading.start()
        self.client = httpx.Client(base_url=self.url, headers=AUTHORISED, timeout=120)
        if ready:
            self.wait_until_ready()

    def _drain(self):
        for line in self.process.stderr:
            self.lines.append(json.loads(line))

    def wait_until_ready(self, seconds=120):
        end = time.monotonic() + seconds
        while self.client.get("/ready").status_code != 200:
            assert self.process.poll() is None and time.monotonic() < end, self.lines
            time.sleep(0.02)

    def line_with(self, name, seconds=30):
        """Return the first log line with a field; wait for it."""
        end = time.monotonic() + seconds
        while not (matching_lines := [line for line in self.lines if name in line]):
            assert time.monotonic() < end, self.lines
            time.sleep(0.02)
        return matching_lines[0]

    def place(self, X, **headers):
        return self.client.post("/place", json={"rows": X.tolist()}, headers=headers)

    def learn(self, X, **headers):
        return self.client.post("/learn", json={"rows": X.tolist()}, headers=headers)

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        code = self.process.wait(60)
        self.reading.join(20)  # the last lines of its log
        return code

    def connect(self, data=b""):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        connection.sendall(data)
        return connection


def http_request(body, path="/place", length=None, headers=""):
    """Return the bytes of a request."""
    length = len(body) if length is None else length
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    head += f"Authorization: Bearer {TOKEN}\r\n{headers}"
    return f"{head}Content-Length: {length}\r\n\r\n".encode() + body


def arrow_stream(columns, **options):
    """Return columns as the bytes of an Arrow stream."""
    import pyarrow as pa

    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, **options) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()
