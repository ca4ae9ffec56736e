"""What every request passes: limits on its head, admission, an id, headers, log and metrics.

While the service is full, a small request that is complete in one piece is answered 429 before it
is parsed. At three times the capacity rejecting is most of the work: with uvicorn's own limits
alone, the 99th percentile of accepted requests grew to seconds.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from outsample.service.monitoring import log, log_event
from outsample.service.service import Service
from outsample.service.settings import HEAD_SECONDS, MAX_HEAD_BYTES

SECURITY_HEADERS = [
    (b"content-security-policy", b"default-src 'none'; script-src 'self'; style-src 'self'; "
     b"connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
     b"frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]  # fmt: skip
REQUEST_ID = re.compile(rb"[\w.:/+=@-]{1,128}", re.ASCII)
TRACE_PARENT = re.compile(rb"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
# Larger parts of an answer do not fit into the buffer of a connection.
BUFFER_BYTES = 2**16
BUSY = JSONResponse(
    {"reason": "more requests wait than can be answered soon; try again"}, 429, {"Retry-After": "1"}
)
FAULT = JSONResponse({"reason": "an error inside the service; see its log"}, 500)

SMALL_REQUEST = re.compile(rb"POST (/place|/learn) HTTP/1\.1\r\n")
LENGTH = re.compile(rb"\r\ncontent-length: *(\d{1,9}) *(?=\r\n)")
BUSY_HEAD = [b"%s: %s\r\n" % pair for pair in [*BUSY.raw_headers, *SECURITY_HEADERS]]
BUSY_ANSWER = b"".join([b"HTTP/1.1 429 Too Many Requests\r\n", *BUSY_HEAD, b"\r\n", BUSY.body])
TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\n"
    b"connection: close\r\n\r\n"
)


class Connection(HttpToolsProtocol):
    """uvicorn's protocol, with limits on request heads, which httptools does not have."""

    _head_timer: asyncio.TimerHandle | None = None
    _awaits_head = True
    _n_bytes = 0  # received since the last part of a body

    def connection_made(self, transport: Any) -> None:
        """Limit the time until the first head."""
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(HEAD_SECONDS, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Answer at once while the service is full, or parse."""
        is_idle = self.cycle is None or self.cycle.response_complete
        if self._awaits_head and not self._n_bytes and is_idle and self._is_rejected(data):
            self._stop_timer()
            self.transport.write(BUSY_ANSWER)
            self.on_response_complete()  # waits for the next request
            return
        self._n_bytes += len(data)
        super().data_received(data)
        if self._n_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self.transport.write(TOO_LARGE)
            self.transport.close()
        if self._awaits_head and is_idle and self._n_bytes and self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def on_headers_complete(self) -> None:
        """Let the application close the connection at once."""
        self._stop_timer()
        self._awaits_head = False
        self.scope["outsample.abort"] = self.transport.abort  # type: ignore[typeddict-unknown-key]
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Begin to count the bytes that are not part of a body."""
        self._n_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Expect the next request."""
        self._n_bytes, self._awaits_head = 0, True
        super().on_message_complete()

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _is_rejected(self, data: bytes) -> bool:
        """Return whether data is one complete request that the service is too busy for."""
        match = SMALL_REQUEST.match(data)
        service: Service = self.app_state["service"]
        if match is None or not service.gates[match[1].decode()].is_full:
            return False
        head, _, body = data.partition(b"\r\n\r\n")
        head = (head + b"\r\n").lower()
        is_plain = head.count(b"\ncontent-length") == 1 and b"\ntransfer-encoding" not in head
        is_whole = LENGTH.findall(head) == [b"%d" % len(body)]
        if not is_plain or not is_whole or b"\nconnection: close" in head or self.flow.write_paused:
            return False
        service.metrics.requests.labels(match[1].decode(), "429").inc()
        return True


class RequestMiddleware:
    """Plain ASGI, which costs a third of what ``@app.middleware`` does."""

    def __init__(self, app: Any, service: Service) -> None:
        self.app, self.service = app, service

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve a request, and write it to the log and the metrics."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.perf_counter(), 0
        request_id, trace = _ids(scope)
        if scope["method"] == "HEAD" and scope["path"] != "/events":
            scope = {**scope, "method": "GET"}  # the server leaves out the body

        async def send_part(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message["headers"], *SECURITY_HEADERS, (b"x-request-id", request_id)]
                if trace:
                    headers.append((b"traceparent", trace))
                await send({**message, "headers": headers})
            elif len(message.get("body", b"")) > BUFFER_BYTES:
                async with asyncio.timeout(self.service.settings.timeout):
                    await send({**message, "more_body": True})  # returns when it is on its way
                    await send({**message, "body": b""})
            else:
                await send(message)

        try:
            await self.app(scope, receive, send_part)
        except ClientDisconnect:
            pass
        except Exception as error:
            is_lost = status and isinstance(error, OSError)  # or it does not read
            if not is_lost:
                log.exception("request %s", request_id.decode())
            if status:  # the answer has begun
                scope.get("outsample.abort", lambda: None)()
            else:
                await FAULT(scope, receive, send_part)
        finally:
            seconds = time.perf_counter() - start
            status = status or 499  # the client was gone before there was an answer
            path = getattr(scope.get("route"), "path", "other")
            self.service.metrics.requests.labels(path, str(status)).inc()
            if path != "/events":
                self.service.metrics.seconds.labels(path).observe(seconds)
            log_event(
                method=scope["method"], path=scope["path"][:200], status=status,
                ms=round(seconds * 1e3, 3), client=(scope.get("client") or ("", 0))[0],
                request_id=request_id.decode(), **scope.get("outsample.log", {}),
                **({"traceparent": trace.decode()} if trace else {}),
            )  # fmt: skip


def _ids(scope: Any) -> tuple[bytes, bytes]:
    """Return the id of a request, the client's or a new one, and its trace, if they are valid."""
    headers = dict(scope["headers"])
    request_id, trace = headers.get(b"x-request-id", b""), headers.get(b"traceparent", b"")
    if not REQUEST_ID.fullmatch(request_id):
        request_id = secrets.token_hex(8).encode()
    return request_id, trace if TRACE_PARENT.fullmatch(trace) else b""
