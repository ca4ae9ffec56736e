"""What every request passes: token, bounds on number and time, headers, log and metrics."""

from __future__ import annotations

import asyncio
import sys
import time
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

from outsample.service.json_rows import to_json
from outsample.service.refusal import Refusal
from outsample.service.service import Service
from outsample.service.tokens import check_token

ABORT = "outsample.abort"
SECURITY = {
    b"content-security-policy": b"default-src 'none'; script-src 'self'; style-src 'self'; "
    b"connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
    b"frame-ancestors 'none'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
}
Message = dict[str, Any]
Send = Callable[[Message], Awaitable[None]]


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
    """

    def __init__(self, app: Any, service: Service, static: Any, paths: Any) -> None:
        self.app, self.service, self.static, self.paths = app, service, static, set(paths)
        self.under_way = self.n_listeners = 0
        tell = service.metrics.gauge
        tell("requests_under_way", "Requests being served.", lambda: self.under_way)
        tell("listeners", "Open event streams.", lambda: self.n_listeners)

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = _Sending(scope, send, self.service.limits.seconds)
        streams = scope["path"] == "/events"
        counted = False
        try:
            check_token(scope, self.service.token, scope["path"] not in self.static)
            self._check_room(streams)
            counted = True
            self.n_listeners += streams
            self.under_way += not streams
            await self.app(scope, receive, request.send)
        except Refusal as refusal:
            await request.refuse(refusal)
        except (TimeoutError, OSError):  # the client went, or does not take what it asked for
            request.abort()
        except Exception:
            self._tell_fault()
        finally:
            if counted:
                self.n_listeners -= streams
                self.under_way -= not streams
            self._tell(scope, request)

    def _check_room(self, streams: bool) -> None:
        limits = self.service.limits
        if streams and self.n_listeners >= limits.listeners:
            said = f"{limits.listeners} event streams are open already"
            raise Refusal(503, said, retry_after=10)
        if self.under_way >= limits.concurrent:
            said = f"{limits.concurrent} requests are under way already; try again"
            raise Refusal(503, said, retry_after=1)

    def _tell(self, scope: Any, request: _Sending) -> None:
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


class _Sending:
    """Sends an answer with the headers of all answers, and only so long."""

    def __init__(self, scope: Any, send: Send, seconds: float) -> None:
        self.scope, self._send, self.seconds = scope, send, seconds
        self.began = time.perf_counter()
        self.status = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            names = {name.lower() for name, _ in message["headers"]}
            more = [pair for pair in SECURITY.items() if pair[0] not in names]
            if b"cache-control" not in names:
                more.append((b"cache-control", b"no-store"))
            await self._send({**message, "headers": [*message["headers"], *more]})
            return
        async with asyncio.timeout(self.seconds):
            await self._send(message)

    async def refuse(self, refusal: Refusal) -> None:
        if self.status:  # the answer has begun
            self.abort()
            return
        body = to_json(refusal.told())
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        headers |= refusal.headers
        pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        start = {"type": "http.response.start", "status": refusal.status, "headers": pairs}
        try:
            await self.send(start)
            await self.send({"type": "http.response.body", "body": body})
        except (TimeoutError, OSError):
            self.abort()

    def abort(self) -> None:
        extensions = self.scope.get("extensions") or {}
        if ABORT in extensions:
            extensions[ABORT]["now"]()
