"""Rejected requests: an HTTP status, a reason, and when to try again."""

from __future__ import annotations

from typing import Any

from fastapi import HTTPException, Request
from fastapi.exceptions import RequestValidationError
from starlette.responses import JSONResponse, Response

REASONS = {404: "there is nothing at this path", 405: "this path takes another method"}


class RequestError(HTTPException):
    """A rejected request; ``location`` is the row and column of a wrong value."""

    def __init__(
        self, status: int, reason: str, retry_after: int | None = None, **location: Any
    ) -> None:
        headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        if status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        if status in (408, 413):  # the remaining body is not read
            headers["Connection"] = "close"
        super().__init__(status, reason, headers)
        self.location = location


async def answer_error(request: Request, error: Any) -> Response:
    """Answer a rejected request; FastAPI rejects unknown paths and wrong parameters itself."""
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        error = RequestError(422, f"{first['loc'][-1]}: {first['msg']}")
    elif not isinstance(error, RequestError):
        reason = REASONS.get(error.status_code, error.detail)
        error = RequestError(error.status_code, reason)
    payload = {"reason": error.detail, **error.location}
    if request.url.path.startswith("/v2"):
        payload["error"] = error.detail  # the name that the inference protocol uses
    return JSONResponse(payload, error.status_code, error.headers)
