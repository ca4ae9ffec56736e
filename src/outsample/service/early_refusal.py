"""Too many wait: a small request is told so before it is parsed, in a tenth of the time.

When three times as many ask as can be answered, refusing is most of the work, and what it takes is
taken from those who are answered.
"""

from __future__ import annotations

import time

from outsample.service.headers import SECURITY, headers_of
from outsample.service.json_rows import to_json
from outsample.service.refusal import Refusal
from outsample.service.service import Service

PATHS = {b"POST /place ": "/place", b"POST /learn ": "/learn"}
COUNTERS = {
    path: ("requests_total", (("path", path), ("status", "429"))) for path in PATHS.values()
}
LENGTH, END = b"\r\ncontent-length:", b"\r\n\r\n"
# Refusals are told together, in a line of the log as often as that.
SECONDS = 1.0


class EarlyRefusal:
    """Answers requests that are complete in one piece while their queue is full.

    Parameters
    ----------
    service : Service
        Its queues, log and metrics.
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        self.n_untold, self.told_at = 0, float("-inf")
        self.answers = {
            begin: _whole(service.worker_of(path).admission.refusal())
            for begin, path in PATHS.items()
        }

    def answer(self, data: bytes) -> bytes | None:
        """Return the refusal of a request; None if it is to be looked at closely."""
        path = PATHS.get(data[:12])
        if path is None or not self.service.worker_of(path).admission.is_full:
            return None
        if not _is_whole_request(data):
            return None
        self._tell(path)
        return self.answers[data[:12]]

    def _tell(self, path: str) -> None:
        self.service.metrics.count_one(COUNTERS[path])
        self.n_untold += 1
        now = time.monotonic()
        if now >= self.told_at + SECONDS and self.service.log is not None:
            self.service.log.add(path=path, status=429, requests=self.n_untold)
            self.n_untold, self.told_at = 0, now


def _is_whole_request(data: bytes) -> bool:
    r"""Whether data is one request with a plain body, all of it and nothing more.

    >>> _is_whole_request(b"POST /place HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}")
    True
    >>> _is_whole_request(b"POST /place HTTP/1.1\r\nContent-Length: 3\r\n\r\n{}")
    False
    """
    end = data.find(END)
    head = data[:end].lower()
    at = head.find(LENGTH)
    if end < 0 or at < 0 or b"\r\nconnection: close" in head or b" http/1.1\r\n" not in head:
        return False
    length = head[at + len(LENGTH) :].split(b"\r", 1)[0].strip()
    return length.isdigit() and len(data) == end + len(END) + int(length[:12])


def _whole(refusal: Refusal) -> bytes:
    body = to_json(refusal.told())
    pairs = [*headers_of(refusal, body), *SECURITY.items(), (b"cache-control", b"no-store")]
    lines = b"".join(name + b": " + value + b"\r\n" for name, value in pairs)
    return b"HTTP/1.1 429 Too Many Requests\r\n" + lines + b"\r\n" + body
