"""What every request passes: token, bounds on number and time, headers, log and metrics.

A request is refused before its body is read where that can be told. It counts as under way when
its body is there, until its answer is made: clients that send or read slowly are counted apart.
"""

from __future__ import annotations

import asyncio
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from outsample.service.early_refusal import EarlyRefusal
from outsample.service.headers import SECURITY, headers_of
from outsample.service.json_rows import to_json
from outsample.service.refusal import Refusal
from outsample.service.service import Service
from outsample.service.tokens import check_token
from outsample.service.transfers import Transfer, Transfers

ABORT = "outsample.abort"
# Answers up to this size fit into the buffer of a connection that is not stuck already.
SMALL = 2**16
FAULT = Refusal(500, "a fault of the service; its log has more")
Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
Direct = Mapping[str, Callable[[Request], Awaitable[Response]]]


class Gate:
    """Wraps the application; nothing but answers in JSON comes out of it.

    Parameters
    ----------
    app : ASGI application
        What is inside.
    service : Service
        Its limits, token, log and metrics.
    static : collection of str
        Paths of files that hold no data, and need no token.
    paths : collection of str
        Paths that metrics tell apart.
    direct : mapping of str to callable
        What answers a POST at these paths, without the detour through the application, which
        takes longer than all else that the web server does for one row.
    """

    def __init__(self, app: Any, service: Service, static: Any, paths: Any, direct: Direct) -> None:
        self.app, self.service, self.static, self.paths = app, service, static, set(paths)
        self.direct = direct
        limits = service.limits
        self.transfers = Transfers(limits.transfers, max(limits.held_bytes, 2 * limits.body_bytes))
        self.under_way = self.n_listeners = 0
        self.early_refusal = EarlyRefusal(service)
        tell = service.metrics.gauge
        tell("requests_under_way", "Requests being served.", lambda: self.under_way)
        tell("transfers", "Bodies that come, answers that go.", lambda: len(self.transfers.moving))
        tell("listeners", "Open event streams.", lambda: self.n_listeners)

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = _Passing(self, scope, receive, send)
        streams = scope["path"] == "/events"
        try:
            check_token(scope, self.service.token, scope["path"] not in self.static)
            if streams:
                await self._listen(request)
            elif scope["method"] == "POST":
                await self._post(request)
            else:
                request.has_arrived()
                await self.app(scope, receive, request.send)
        except Refusal as refusal:
            await request.refuse(refusal)
        except (TimeoutError, OSError):  # the client went, or does not take what it asked for
            request.abort()
        except Exception:
            self._tell_fault()
            if not request.status:
                await request.refuse(FAULT)
        finally:
            request.end()
            self._tell(scope, request)

    async def _post(self, request: _Passing) -> None:
        path = request.scope["path"]
        self.service.worker_of(path).admission.check()
        self.check_room()
        request.transfer = self.transfers.begin(request.abort)
        answer = self.direct.get(path)
        if answer is None:
            await self.app(request.scope, request.receive, request.send)
            return
        made = await answer(Request(request.scope, request.receive))
        await made(request.scope, request.receive, request.send)

    async def _listen(self, request: _Passing) -> None:
        limits = self.service.limits
        if self.n_listeners >= limits.listeners:
            said = f"{limits.listeners} event streams are open already"
            raise Refusal(503, said, retry_after=10)
        self.n_listeners += 1
        try:
            await self.app(request.scope, request.receive, request.send)
        finally:
            self.n_listeners -= 1

    def check_room(self) -> None:
        """Refuse if too many requests are under way."""
        limits = self.service.limits
        if self.under_way >= limits.concurrent:
            said = f"{limits.concurrent} requests are under way already; try again"
            raise Refusal(503, said, retry_after=1)

    def _tell(self, scope: Any, request: _Passing) -> None:
        seconds, path = time.perf_counter() - request.began, scope["path"]
        known = path if path in self.paths else scope.get("outsample.path", "other")
        status = str(request.status or 499)  # the client went before there was an answer
        self.service.metrics.count("requests_total", path=known, status=status)
        if known != "/events":
            self.service.metrics.time(known, seconds)
        if self.service.log is not None:
            told = {"method": scope["method"], "path": path[:200], "status": int(status)}
            more = scope.get("outsample.told", {})
            self.service.log.add(**told, ms=round(seconds * 1e3, 3), **more)

    def _tell_fault(self) -> None:
        fault = traceback.format_exc()
        if self.service.log is not None:
            self.service.log.add(fault=fault)
        else:
            sys.stderr.write(fault)


class _Passing:
    """One request: its body comes, it is under way, its answer goes with the headers of all."""

    def __init__(self, gate: Gate, scope: Any, receive: Any, send: Send) -> None:
        self.gate, self.scope, self._receive, self._send = gate, scope, receive, send
        self.seconds = gate.service.limits.seconds
        self.began = time.perf_counter()
        self.status = 0
        self.transfer: Transfer | None = None
        self.is_under_way = self.arrived = False
        self.connection = (scope.get("extensions") or {}).get(ABORT)

    async def receive(self) -> Message:
        message: Message = await self._receive()
        if message["type"] == "http.request" and self.transfer is not None and not self.arrived:
            self.gate.transfers.came(self.transfer, len(message.get("body", b"")))
            if not message.get("more_body", False):
                self.gate.transfers.rest(self.transfer)
                self.has_arrived()
        return message

    def has_arrived(self) -> None:
        """Count the request as under way, if there is room."""
        self.arrived = True
        self.gate.check_room()
        self.gate.under_way += 1
        self.is_under_way = True

    def is_answered(self) -> None:
        self.gate.under_way -= self.is_under_way
        self.is_under_way = False

    def end(self) -> None:
        self.is_answered()
        if self.transfer is not None:
            self.gate.transfers.end(self.transfer)

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.is_answered()
            names = {name.lower() for name, _ in message["headers"]}
            more = [pair for pair in SECURITY.items() if pair[0] not in names]
            if b"cache-control" not in names:
                more.append((b"cache-control", b"no-store"))
            message = {**message, "headers": [*message["headers"], *more]}
        await self._taken(message)

    async def _taken(self, message: Message) -> None:
        """Send a message; wait, not for ever, until the client has taken what is large."""
        size = len(message.get("body", b""))
        if size <= SMALL and self.connection is not None and not self.connection["is_stuck"]():
            await self._send(message)
            return
        if size > SMALL:
            self.transfer = self.transfer or Transfer(self.abort)
            self.gate.transfers.answer(self.transfer, size)
        async with asyncio.timeout(self.seconds):
            if size <= SMALL or message.get("more_body", False):
                await self._send(message)
            else:  # the second is sent when the first is on its way
                await self._send({**message, "more_body": True})
                await self._send({**message, "body": b""})

    async def refuse(self, refusal: Refusal) -> None:
        if self.status:  # the answer has begun
            self.abort()
            return
        told = refusal.told()
        if self.scope["path"].startswith("/v2"):
            told["error"] = refusal.reason  # as the protocol calls it
        body = to_json(told)
        pairs = headers_of(refusal, body)
        start = {"type": "http.response.start", "status": refusal.status, "headers": pairs}
        try:
            await self.send(start)
            await self.send({"type": "http.response.body", "body": body})
        except (TimeoutError, OSError):
            self.abort()

    def abort(self) -> None:
        if self.connection is not None:
            self.connection["now"]()
