"""Send rows to a running service at the times when they happened, or faster."""

import json
import math
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

# Attempts to send a request to a busy service.
MAX_ATTEMPTS = 20
TIMEOUT_SECONDS = 60.0
# Rows that are due within this time are sent in one request.
JOINED_SECONDS = 0.05
MAX_REQUEST_ROWS = 1000


class ServiceError(RuntimeError):
    """A service that cannot be reached, or that rejects a request."""


class Recording(NamedTuple):
    """Rows in the order of their times."""

    columns: list[str] | None  # Names of the columns; None for the model's own order
    X: NDArray[np.float64]  # shape (q, D)
    seconds: NDArray[np.float64]  # When each happened, from the first one on, shape (q,)


class Fed(NamedTuple):
    """How many rows were sent, and how many were unusual."""

    n_rows: int
    n_unusual: int  # with a p-value of at most the service's alpha
    seconds: float


class Client:
    """A connection to a service, with the token of its requests, if it needs one."""

    def __init__(self, url: str, token: str | None = None) -> None:
        parts = urlsplit(url if "//" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ServiceError(
                f"{url!r} is not the address of a service, such as http://127.0.0.1:8000"
            )
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self.url, self.prefix = url, parts.path.rstrip("/")
        self.connection: Any = kind(parts.hostname, parts.port, timeout=TIMEOUT_SECONDS)
        self.headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if token:
            self.headers["Authorization"] = f"Bearer {token}"

    def get(self, path: str) -> Any:
        """Return the answer of the service at a path."""
        return self._request("GET", path, None)

    def post(self, path: str, payload: Any) -> Any:
        """Send rows, again after a while if the service is busy or the connection was lost.

        The idempotency key lets the service learn the rows once, however often they are sent.
        """
        return self._request("POST", path, json.dumps(payload), {"Idempotency-Key": uuid4().hex})

    def _request(
        self, method: str, path: str, body: str | None, extra: dict[str, str] | None = None
    ) -> Any:
        sent = {**self.headers, **(extra or {})}
        for last in [False] * (MAX_ATTEMPTS - 1) + [True]:
            status, headers, answer = self._once(method, path, body, sent)
            if status == 200:
                return json.loads(answer)
            if status not in (429, 503) or last:
                raise ServiceError(f"{self.url}{path} answers {status}: {_reason(answer)}")
            time.sleep(min(float(headers.get("Retry-After") or 1), 10.0))
        raise AssertionError("never reached")

    def _once(
        self, method: str, path: str, body: str | None, headers: dict[str, str]
    ) -> tuple[int, Any, bytes]:
        for fresh in (False, True):  # a connection that was kept may have been closed
            try:
                self.connection.request(method, self.prefix + path, body, headers)
                answer = self.connection.getresponse()
                return answer.status, answer.headers, answer.read()
            except (OSError, HTTPException) as error:
                self.connection.close()
                if fresh or isinstance(error, ConnectionRefusedError):
                    raise ServiceError(
                        f"no service answers at {self.url} ({error}); "
                        "start one with: outsample serve MODEL"
                    ) from error
        raise AssertionError("never reached")


def feed(
    client: Client, recording: Recording, speed: float, path: str, on_rows: Callable[[int], None]
) -> Fed:
    """Send rows ``speed`` times as fast as they happened, or as fast as they are answered for 0."""
    alpha = float(client.get("/model").get("alpha", 0.01))
    begin, n_unusual = time.monotonic(), 0
    for rows in due_rows(recording.seconds, speed):
        if speed:
            time.sleep(max(0.0, begin + recording.seconds[rows.start] / speed - time.monotonic()))
        payload: dict[str, Any] = {"rows": recording.X[rows].tolist()}
        if recording.columns is not None:
            payload["columns"] = recording.columns
        p_values = client.post(path, payload).get("p_value") or ()
        n_unusual += sum(p is not None and p <= alpha for p in p_values)
        on_rows(rows.stop)
    return Fed(len(recording.X), n_unusual, time.monotonic() - begin)


def due_rows(seconds: NDArray[np.float64], speed: float) -> Iterator[slice]:
    """Yield rows that are sent together.

    >>> list(due_rows(np.array([0.0, 1.0, 60.0, 61.0]), 60.0))
    [slice(0, 2, None), slice(2, 4, None)]
    """
    at, joined = 0, JOINED_SECONDS * speed if speed else math.inf
    while at < len(seconds):
        end = int(np.searchsorted(seconds, seconds[at] + joined, side="right"))
        end = min(max(end, at + 1), at + MAX_REQUEST_ROWS)
        yield slice(at, end)
        at = end


def _reason(answer: bytes) -> str:
    try:
        return str(json.loads(answer)["reason"])
    except (ValueError, KeyError, TypeError):
        return answer[:200].decode("utf-8", "replace") or "nothing"
