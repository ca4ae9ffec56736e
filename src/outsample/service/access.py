"""Who may ask: those with a token; without any token, this machine alone."""

from __future__ import annotations

import asyncio
import functools
import hmac
import os
from ipaddress import ip_address
from urllib.parse import urlsplit

from fastapi import Depends, Request
from fastapi.security import HTTPBearer

from outsample.service.errors import RequestError

TOKEN_VARIABLE, READ_VARIABLE = "OUTSAMPLE_TOKEN", "OUTSAMPLE_READ_TOKEN"
MIN_TOKEN_LENGTH = 16
# A wrong token is answered late, and only so many are answered at a time.
WRONG_TOKEN_SECONDS, MAX_WRONG_TOKENS = 0.5, 32


def read_tokens(variable: str) -> list[str]:
    """Return the tokens in an environment variable, separated by commas or spaces.

    Two tokens are valid at a time while clients change from one to the other.
    """
    tokens = os.environ.get(variable, "").replace(",", " ").split()
    if len(tokens) > 2:
        raise ValueError(f"{variable} has {len(tokens)} tokens, but at most 2 are allowed")
    if any(len(token) < MIN_TOKEN_LENGTH for token in tokens):
        raise ValueError(
            f"{variable} has a token of fewer than {MIN_TOKEN_LENGTH} characters; make one with: "
            "openssl rand -hex 32"
        )
    return tokens


@functools.lru_cache(1000)
def is_loopback(host: str) -> bool:
    """Return whether a host is this machine and nothing else.

    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "a.example")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Access(HTTPBearer):
    """The dependency of a route on a token; FastAPI adds it to the OpenAPI description.

    It reads the header itself: each dependency of a dependency costs a tenth of a millisecond.
    """

    n_wrong_tokens = 0  # that are being answered

    def __init__(self, can_write: bool) -> None:
        super().__init__(scheme_name="token", auto_error=False)
        self.can_write = can_write

    async def __call__(self, request: Request) -> None:  # type: ignore[override]
        """Require a token; without any token, a request from this machine that only reads."""
        settings, path = request.app.state.service.settings, request.scope["path"]
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        token = token.strip() if scheme.lower() == "bearer" else ""
        if not settings.tokens and (self.can_write or not _is_local(request)):
            reason = f"{path} needs a token: start the service with {TOKEN_VARIABLE}"
            raise RequestError(403, reason)
        if settings.tokens and not _matches(token, settings.tokens):
            if not _matches(token, settings.read_tokens):
                await self._reject(token)
            if self.can_write:
                raise RequestError(403, f"{path} needs a token that is not for reading only")
        if request.method == "POST" and not _is_same_site(request):
            raise RequestError(403, "requests from pages of other sites are rejected")

    async def _reject(self, token: str) -> None:
        if not token:
            raise RequestError(401, "send a token: Authorization: Bearer ...")
        if Access.n_wrong_tokens >= MAX_WRONG_TOKENS:
            raise RequestError(429, "too many wrong tokens; try again", retry_after=1)
        Access.n_wrong_tokens += 1
        try:
            await asyncio.sleep(WRONG_TOKEN_SECONDS)
        finally:
            Access.n_wrong_tokens -= 1
        raise RequestError(401, "the token is wrong")


READ, WRITE = [Depends(Access(can_write=False))], [Depends(Access(can_write=True))]


def _matches(token: str, tokens: list[str]) -> bool:
    # All tokens are compared, each in constant time.
    return any([hmac.compare_digest(token.encode(), valid.encode()) for valid in tokens])


def _is_local(request: Request) -> bool:
    """Return whether a request comes from this machine and is addressed to it.

    A page of another site whose name leads to this machine is not local.
    """
    client = request.client.host if request.client is not None else ""
    return is_loopback(client) and is_loopback(request.url.hostname or "")


def _is_same_site(request: Request) -> bool:
    """Return whether a request comes from our page or from no page."""
    origin = request.headers.get("origin")
    is_other = origin is not None and urlsplit(origin).netloc != request.headers.get("host")
    return not is_other and request.headers.get("sec-fetch-site") in (None, "same-origin", "none")
