"""Services for tests: a small model, and clients that stay inside the process."""

from __future__ import annotations

import asyncio
import functools
import threading
import time

import httpx
import numpy as np
import uvicorn

from outsample import NoveltyDetector, PCAExtension, save
from outsample.service.app import create_app
from outsample.service.learning import open_learning
from outsample.service.limits import Limits
from outsample.service.running import Server
from outsample.service.served_model import open_served
from outsample.service.service import Service

NAMES = ["a", "b", "c"]
TOKEN = "a long random text"
AUTHORISED = {"Authorization": f"Bearer {TOKEN}"}


@functools.cache
def fitted():
    """A detector with a map of two coordinates, fitted on named columns."""
    pandas = __import__("pandas")
    X = np.random.default_rng(0).normal(size=(200, 3))
    extension = PCAExtension(n_neighbors=10, weighting="distance", order=0, loss="squared")
    return NoveltyDetector(extension).fit(pandas.DataFrame(X, columns=NAMES), X[:, :2])


def saved(folder):
    """Its file, with a column about the training rows."""
    path = folder / "small.outsample"
    if not path.exists():
        ids = [f"point {at}" for at in range(200)]
        save(fitted(), path, columns={"id": ids}, map_names=["x", "y"])
    return path


def rows(n, seed=1):
    return np.random.default_rng(seed).normal(size=(n, 3))


class Client:
    """Requests from one address to a service in this process."""

    def __init__(self, service, client="127.0.0.1", host="127.0.0.1"):
        self.service = service
        self.app = create_app(service)
        self.transport = httpx.ASGITransport(self.app, client=(client, 1234))
        self.base = f"http://{host}:8000"

    async def asked(self, method, path, **more):
        async with httpx.AsyncClient(transport=self.transport, base_url=self.base) as client:
            self.service.ring.loop = asyncio.get_running_loop()
            return await client.request(method, path, **more)

    def get(self, path, **more):
        return asyncio.run(self.asked("GET", path, **more))

    def post(self, path, **more):
        return asyncio.run(self.asked("POST", path, **more))


def made(folder, alpha=0.05, limits=None, **more):
    """A service that reads only."""
    return Service(open_served(saved(folder), alpha), limits or Limits(), token=TOKEN, **more)


def learner(folder, **settings):
    """A service that learns."""
    served = open_served(saved(folder), 0.05)
    path = folder / "small.outsample.learned"
    learning = open_learning(served.model, path, served.about["digest"], settings)
    served.model = learning.stream
    return Service(served, Limits(), token=TOKEN, learning=learning)


class Running:
    """A service that listens at a port of this machine, in a thread of this process."""

    def __init__(self, service, port=0):
        self.service = service
        config = uvicorn.Config(
            create_app(service), port=port, log_config=None, access_log=False, ws="none",
            timeout_graceful_shutdown=5,
        )  # fmt: skip
        self.server = Server(config, service)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        end = time.monotonic() + 30
        while not self.server.started:
            assert self.thread.is_alive() and time.monotonic() < end, "it does not listen"
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
        """Stop listening; what is being told to watchers ends."""
        self.server.handle_exit(15, None)
        self.thread.join(20)
        assert not self.thread.is_alive()
