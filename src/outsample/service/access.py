"""Who may ask: those with a token; without any token, this machine alone."""

from __future__ import annotations

import asyncio
import functools
import hmac
import os
from ipaddress import ip_address
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from outsample.service.errors import RequestError

TOKEN_VARIABLE, READ_VARIABLE = "OUTSAMPLE_TOKEN", "OUTSAMPLE_READ_TOKEN"
MIN_TOKEN_LENGTH = 16
# A wrong token is answered late, and only so many are answered at a time.
WRONG_TOKEN_SECONDS, MAX_WRONG_TOKENS = 0.5, 32
bearer = HTTPBearer(auto_error=False, description="A token of the service.")
Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]
_wrong_tokens = 0


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


async def check_reader(request: Request, credentials: Credentials) -> None:
    """Require a token of any kind, if the service has tokens."""
    settings = request.scope["state"]["service"].settings
    if settings.tokens:
        await _check(request, credentials, [*settings.tokens, *settings.read_tokens])
    elif not _is_local(request):
        raise RequestError(403, f"start the service with {TOKEN_VARIABLE} to serve other machines")
    if request.method == "POST":
        check_same_site(request)


async def check_writer(request: Request, credentials: Credentials) -> None:
    """Require a token that allows everything."""
    settings = request.scope["state"]["service"].settings
    path = request.url.path
    if not settings.tokens:
        raise RequestError(403, f"{path} needs a token: start the service with {TOKEN_VARIABLE}")
    if credentials is not None and _matches(credentials, settings.read_tokens):
        raise RequestError(403, f"{path} needs a token that is not for reading only")
    await _check(request, credentials, settings.tokens)
    check_same_site(request)


def check_same_site(request: Request) -> None:
    """Reject requests that a page of another site sends."""
    headers = request.headers
    site = headers.get("sec-fetch-site", "none")
    origin = headers.get("origin")
    is_other = origin is not None and urlsplit(origin).netloc != headers.get("host")
    if site not in ("same-origin", "none") or is_other:
        raise RequestError(403, "requests from pages of other sites are rejected")


async def _check(request: Request, credentials: Any, tokens: list[str]) -> None:
    global _wrong_tokens
    if credentials is not None and _matches(credentials, tokens):
        return
    if credentials is None:
        raise RequestError(401, "send a token: Authorization: Bearer ...")
    request.scope["outsample.release"]()  # it does not keep others from the model
    if _wrong_tokens >= MAX_WRONG_TOKENS:
        raise RequestError(429, "too many wrong tokens; try again", retry_after=1)
    _wrong_tokens += 1
    try:
        await asyncio.sleep(WRONG_TOKEN_SECONDS)
    finally:
        _wrong_tokens -= 1
    raise RequestError(401, "the token is wrong")


def _matches(credentials: HTTPAuthorizationCredentials, tokens: list[str]) -> bool:
    given = credentials.credentials.strip().encode()
    # All tokens are compared, each in constant time.
    return any([hmac.compare_digest(given, token.encode()) for token in tokens])


def _is_local(request: Request) -> bool:
    """Return whether a request comes from this machine and is addressed to it.

    A page of another site whose name leads to this machine is not local.
    """
    client = request.client.host if request.client is not None else ""
    return is_loopback(client) and is_loopback(request.url.hostname or "")
