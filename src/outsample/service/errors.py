"""Rejected requests: an HTTP status, a reason, and when to try again."""

from __future__ import annotations

from typing import Any

from fastapi import HTTPException, Request
from fastapi.exceptions import RequestValidationError
from starlette.responses import JSONResponse, Response

REASONS = {404: "there is nothing at this path", 405: "this path takes another method"}


class RequestError(HTTPException):
    """A request that is rejected.

    Parameters
    ----------
    status : int
        HTTP status.
    reason : str
        What is wrong, where, and what to do.
    retry_after : int, default=None
        Seconds after which the client may try again.
    location
        ``row`` and ``column`` of a wrong value.
    """

    def __init__(
        self, status: int, reason: str, *, retry_after: int | None = None, **location: Any
    ) -> None:
        headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        if status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        if status in (408, 413):  # the remaining body is not read
            headers["Connection"] = "close"
        super().__init__(status, reason, headers)
        self.location = location


def error_response(
    request: Request, status: int, reason: str, headers: Any = None, **location: Any
) -> Response:
    """Return an error as JSON."""
    payload = {"reason": reason, **location}
    if request.url.path.startswith("/v2"):
        payload["error"] = reason  # the name that the inference protocol uses
    return JSONResponse(payload, status, headers)


async def handle_http_error(request: Request, error: Any) -> Response:
    """Answer an `HTTPException`, ours or the framework's."""
    location = getattr(error, "location", None)
    reason = error.detail if location is not None else REASONS.get(error.status_code, error.detail)
    return error_response(request, error.status_code, reason, error.headers, **(location or {}))


async def handle_invalid_parameter(request: Request, error: Any) -> Response:
    """Answer a header or query parameter that FastAPI rejects."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    return error_response(request, 422, f"{first['loc'][-1]}: {first['msg']}")

