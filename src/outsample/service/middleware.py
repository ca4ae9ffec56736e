"""What every request passes: an id, admission, headers, the log and the metrics."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.requests import ClientDisconnect

from outsample.service.logs import log_event
from outsample.service.row_formats import write_json
from outsample.service.service import Gate, Service

SECURITY_HEADERS = [
    (b"content-security-policy", b"default-src 'none'; script-src 'self'; style-src 'self'; "
     b"connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
     b"frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
]  # fmt: skip
NO_STORE = (b"cache-control", b"no-store")
REQUEST_ID = re.compile(rb"[\w.:/+=@-]{1,128}", re.ASCII)
TRACE_PARENT = re.compile(rb"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
# Larger parts of an answer do not fit into the buffer of a connection.
BUFFER_BYTES = 2**16
JSON_HEADERS = [(b"content-type", b"application/json")]
BUSY_HEADERS = [*JSON_HEADERS, (b"retry-after", b"1")]
BUSY_BODY = write_json({"reason": "more requests wait than can be answered soon; try again"})
FAULT_BODY = write_json({"reason": "an error inside the service; see its log"})
ABORT = "outsample.abort"
Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]


class RequestMiddleware:
    """Plain ASGI, which costs a third of what ``@app.middleware`` does."""

    def __init__(self, app: Any, service: Service) -> None:
        self.app, self.service = app, service

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["method"] == "HEAD" and scope["path"] != "/events":
            scope = {**scope, "method": "GET"}  # the server leaves out the body
        scope.setdefault("state", {})["service"] = self.service
        request = _Request(self.service, scope, send)
        try:
            if request.gate is not None and request.gate.is_full:
                await request.answer(429, BUSY_HEADERS, BUSY_BODY)
                return
            request.enter()
            await self.app(scope, receive, request.send)
        except ClientDisconnect:
            pass
        except Exception as error:
            is_lost = request.status and isinstance(error, OSError)  # or it does not read
            if not is_lost:
                logging.getLogger("outsample.service").exception("request %s", request.id.decode())
            if request.status:  # the answer has begun
                request.abort()
            else:
                await request.answer(500, JSON_HEADERS, FAULT_BODY)
        finally:
            request.release()
            request.record()


def gate_of(service: Service, path: str) -> Gate | None:
    """Return the gate of requests that need the model."""
    if path.endswith("/infer"):
        path = "/place"
    return service.gates.get(path)


class _Request:
    """One request, from its head to the end of its answer."""

    def __init__(self, service: Service, scope: Any, send: Send) -> None:
        self.service, self.scope, self._send = service, scope, send
        self.start = time.perf_counter()
        self.status = 0
        self.is_inside = False
        self.gate = gate_of(service, scope["path"]) if scope["method"] == "POST" else None
        self.id, self.trace = b"", b""
        for name, value in scope["headers"]:
            if name == b"x-request-id" and REQUEST_ID.fullmatch(value):
                self.id = value
            elif name == b"traceparent" and TRACE_PARENT.fullmatch(value):
                self.trace = value
        self.id = self.id or secrets.token_hex(8).encode()
        scope["outsample.release"], scope["outsample.enter"] = self.release, self.enter

    def enter(self) -> None:
        """Count the request among those that wait for the model."""
        if self.gate is not None and not self.is_inside:
            self.gate.n_inside += 1
            self.is_inside = True

    def release(self) -> None:
        """Stop counting it, at its end or while it waits for its client."""
        if self.gate is not None and self.is_inside:
            self.gate.n_inside -= 1
            self.is_inside = False

    async def answer(self, status: int, headers: list[Any], body: bytes) -> None:
        """Answer without the application."""
        length = (b"content-length", str(len(body)).encode())
        start = {"type": "http.response.start", "status": status, "headers": [*headers, length]}
        await self.send(start)
        await self.send({"type": "http.response.body", "body": body})

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = message["headers"]
            names = {name for name, _ in headers}
            headers += SECURITY_HEADERS
            headers.append((b"x-request-id", self.id))
            if b"cache-control" not in names:
                headers.append(NO_STORE)
            if self.trace:
                headers.append((b"traceparent", self.trace))
        elif len(message.get("body", b"")) > BUFFER_BYTES:
            self.release()
            async with asyncio.timeout(self.service.settings.timeout):
                await self._send({**message, "more_body": True})  # returns when it is on its way
                await self._send({**message, "body": b""})
            return
        await self._send(message)

    def abort(self) -> None:
        """Close the connection at once."""
        extension = (self.scope.get("extensions") or {}).get(ABORT)
        if extension is not None:
            extension["abort"]()

    def record(self) -> None:
        """Write the request to the log and the metrics."""
        seconds, scope = time.perf_counter() - self.start, self.scope
        route = scope.get("route")
        path = getattr(route, "path", None) or (scope["path"] if self.gate is not None else "other")
        status = self.status or 499  # the client was gone before there was an answer
        is_stream = path == "/events"
        self.service.metrics.count_request(path, status, None if is_stream else seconds)
        client = (scope.get("client") or ("", 0))[0]
        fields = {
            "method": scope["method"], "path": scope["path"][:200], "status": status,
            "ms": round(seconds * 1e3, 3), "client": client, "request_id": self.id.decode(),
            **scope.get("outsample.log", {}),
        }  # fmt: skip
        if self.trace:
            fields["traceparent"] = self.trace.decode()
        log_event(**fields)
