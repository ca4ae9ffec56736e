"""One connection: uvicorn's protocol with limits on request heads, which httptools does not have.

While the service is full, a small request that is complete in one piece is answered 429 before it
is parsed. At three times the capacity rejecting is most of the work: with uvicorn's own limits
alone, the 99th percentile of accepted requests grew to seconds.
"""

from __future__ import annotations

import asyncio
import re
import time
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from outsample.service.logs import log_event
from outsample.service.middleware import ABORT, BUSY_BODY, BUSY_HEADERS, SECURITY_HEADERS
from outsample.service.service import Service
from outsample.service.settings import HEAD_SECONDS, KEEP_ALIVE_SECONDS, MAX_HEAD_BYTES

PATH = re.compile(rb"POST (/place|/learn) HTTP/1\.1\r\n")
LENGTH = re.compile(rb"\r\ncontent-length: *(\d{1,9}) *(?=\r\n)")
BUSY_LENGTH = (b"content-length", b"%d" % len(BUSY_BODY))
LINES = b"".join(b"%s: %s\r\n" % pair for pair in [*BUSY_HEADERS, BUSY_LENGTH, *SECURITY_HEADERS])
BUSY_ANSWER = b"HTTP/1.1 429 Too Many Requests\r\n" + LINES + b"\r\n" + BUSY_BODY
TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\n"
    b"connection: close\r\n\r\n"
)


class Connection(HttpToolsProtocol):
    """A connection with a timeout and a size limit for request heads."""

    _timer: asyncio.TimerHandle | None = None
    _deadline: float | None = None  # of the head that is awaited
    _is_between, _is_in_head = True, False  # requests; the head of one
    _head_bytes = 0

    def connection_made(self, transport: Any) -> None:
        """Wait for a request."""
        super().connection_made(transport)
        self._await_head(HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._deadline = None
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Answer at once while the service is full, or parse."""
        is_idle = self.cycle is None or self.cycle.response_complete
        if self._is_between and is_idle and not self.flow.write_paused and self._is_rejected(data):
            self._unset_keepalive_if_required()
            self._await_head(KEEP_ALIVE_SECONDS)
            self.transport.write(BUSY_ANSWER)
            return
        super().data_received(data)
        if self._is_in_head:
            self._head_bytes += len(data)
            self._check_head()

    def on_message_begin(self) -> None:
        """Limit the time for the remaining head."""
        super().on_message_begin()
        self._is_between, self._is_in_head, self._head_bytes = False, True, 0
        self._await_head(HEAD_SECONDS)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count header lines, those after a chunked body included."""
        super().on_header(name, value)
        if not self._is_in_head:
            self._head_bytes += len(name) + len(value)
            self._check_head()

    def on_headers_complete(self) -> None:
        """Let the application close the connection at once."""
        self._deadline, self._is_in_head, self._head_bytes = None, False, 0
        extension: dict[Any, Any] = {"abort": self.transport.abort}
        self.scope["extensions"] = {ABORT: extension}
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Expect the next request."""
        super().on_message_complete()
        self._is_between = True

    def _check_head(self) -> None:
        if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self.transport.write(TOO_LARGE)
            self.transport.close()

    def _is_rejected(self, data: bytes) -> bool:
        """Return whether data is one complete request that the service is too busy for."""
        match = PATH.match(data)
        if match is None:
            return False
        service: Service = self.app_state["service"]
        path = match[1].decode()
        if not service.gates[path].is_full:
            return False
        head, _, body = data.partition(b"\r\n\r\n")
        head = (head + b"\r\n").lower()
        lengths = LENGTH.findall(head)
        is_plain = head.count(b"\ncontent-length") == 1 and b"\ntransfer-encoding" not in head
        if not is_plain or lengths != [b"%d" % len(body)] or b"\nconnection: close" in head:
            return False
        service.metrics.count_request(path, 429, None)
        _log_rejected(service, path)
        return True

    def _await_head(self, seconds: float) -> None:
        self._deadline = self.loop.time() + seconds
        if self._timer is None:  # a running timer looks at the deadline: cheaper than a new one
            self._timer = self.loop.call_later(seconds, self._check_deadline)

    def _check_deadline(self) -> None:
        self._timer = None
        if self._deadline is None:
            return
        left = self._deadline - self.loop.time()
        if left > 0.01:
            self._timer = self.loop.call_later(left, self._check_deadline)
        else:
            self.transport.abort()


def _log_rejected(service: Service, path: str) -> None:
    """Log requests that were rejected unparsed together, at most one line per second."""
    service.n_rejected += 1
    now = time.monotonic()
    if now >= service.rejected_logged + 1.0:
        log_event(path=path, status=429, requests=service.n_rejected)
        service.n_rejected, service.rejected_logged = 0, now
