"""The service as a process: it listens, and finishes what is under way when told to end."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from outsample.service.app import create_app
from outsample.service.early_refusal import EarlyRefusal
from outsample.service.gate import ABORT
from outsample.service.service import Service

KEEP_ALIVE_SECONDS = 30
# Threads that compute in Python hand over to the one that serves after this time, not after 5 ms.
SWITCH_SECONDS = 1e-4
MOST_FILES = 8192
# New objects after which rubbish is looked for among them.
GARBAGE = 5000


class ListenError(RuntimeError):
    """The address is taken, or not of this machine."""


class Connection(HttpToolsProtocol):
    """A connection that is closed if a request's head does not come in time.

    A request that is to be refused because too many wait is answered before it is parsed.
    """

    head_seconds = 10.0
    _timer: asyncio.TimerHandle | None = None
    _due: float | None = None  # when the head has to be there, if one is waited for
    _is_between = True  # requests: nothing of the next one has come

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._early: EarlyRefusal | None = getattr(self.config.app, "early_refusal", None)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Refuse at once, or go on with what came."""
        if self._early is not None and self._is_between and not self.flow.write_paused:
            if self.cycle is None or self.cycle.response_complete:
                refused = self._early.answer(data)
                if refused is not None:
                    self._unset_keepalive_if_required()
                    self._await_head(KEEP_ALIVE_SECONDS)
                    self.transport.write(refused)
                    return
        super().data_received(data)

    def on_message_complete(self) -> None:
        """Wait for the next request."""
        super().on_message_complete()
        self._is_between = True

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._due = None
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Wait for the rest of the head."""
        super().on_message_begin()
        self._is_between = False
        self._await_head()

    def on_headers_complete(self) -> None:
        """Let the application end the connection at once."""
        self._due = None
        super().on_headers_complete()
        flow, abort = self.flow, self.transport.abort
        told: dict[Any, Any] = {"now": abort, "is_stuck": lambda: flow.write_paused}
        self.scope["extensions"] = {ABORT: told}

    def _await_head(self, seconds: float | None = None) -> None:
        seconds = seconds or self.head_seconds
        self._due = self.loop.time() + seconds
        if self._timer is None:  # else that one looks again: to set one for each request costs more
            self._timer = self.loop.call_later(seconds, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._due is None:
            return
        left = self._due - self.loop.time()
        if left > 0.01:
            self._timer = self.loop.call_later(left, self._look)
        else:
            self.transport.abort()


class Server(uvicorn.Server):
    """Tells the service that it ends, so that event streams do."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self.service = service

    async def startup(self, sockets: Any = None) -> None:
        """Begin to listen, and tell where."""
        await super().startup(sockets)
        if self.started and self.service.log is not None:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            name = f"[{host}]" if ":" in host else host
            self.service.log.add(listening=f"http://{name}:{port}")

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Begin to end; requests under way are finished."""
        super().handle_exit(sig, frame)
        loop = self.service.ring.loop
        if loop is not None:
            loop.call_soon_threadsafe(self.service.begin_ending)


def run(service: Service, host: str, port: int) -> None:
    """Serve until the process is told to end."""
    limits = service.limits
    config = uvicorn.Config(
        create_app(service), host=host, port=port, http=Connection, ws="none", log_config=None,
        access_log=False, server_header=False, proxy_headers=False, lifespan="on",
        timeout_keep_alive=KEEP_ALIVE_SECONDS, timeout_graceful_shutdown=int(limits.seconds) + 5,
        limit_concurrency=8 * (limits.concurrent + limits.listeners),
    )  # fmt: skip
    server = Server(config, service)
    _allow_many_connections()
    _collect_often_and_little()
    sys.setswitchinterval(SWITCH_SECONDS)
    logger = logging.getLogger("uvicorn")
    logger.handlers, logger.propagate = [_Lines(service)], False
    try:
        server.run()
    except SystemExit:
        pass  # of uvicorn, which could not listen
    if not server.started:
        raise ListenError(f"cannot listen at {host}:{port}: is the port in use?")


def _collect_often_and_little() -> None:
    """Look for rubbish among what requests leave, not among all that was imported.

    A look at the million objects of the libraries takes a tenth of a second, in which nobody is
    served; and closed connections have to go soon.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE, 10, 10)


def _allow_many_connections() -> None:
    """Have as many connections as the system allows; a process begins with fewer."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    wanted = min(most, MOST_FILES) if most >= 0 else MOST_FILES
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


class _Lines(logging.Handler):
    """What the server itself has to say, as lines of the service's log."""

    def __init__(self, service: Service) -> None:
        super().__init__(logging.WARNING)
        self.service = service

    def emit(self, record: logging.LogRecord) -> None:
        if self.service.log is not None:
            self.service.log.add(level=record.levelname.lower(), message=self.format(record))
