"""Who may ask: anybody on this machine, others with the token; learning always needs it."""

from __future__ import annotations

import functools
import hmac
from ipaddress import ip_address
from typing import Any

from outsample.service.refusal import Refusal

VARIABLE = "OUTSAMPLE_TOKEN"
# Anybody may see that the service lives, and the page itself, which holds no data.
OPEN = ("/health", "/ready", "/v2/health/live", "/v2/health/ready")
GUARDED = ("/learn",)


@functools.lru_cache(1000)
def is_loopback(host: str) -> bool:
    """Whether a host is this machine and nothing else.

    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "a.example")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_token(scope: Any, token: str | None, is_data: bool = True) -> None:
    """Refuse a request that needs the token and does not have it.

    A request is local if it comes from this machine and is addressed to it: a page of another
    site, whose name leads here, is not.
    """
    path, headers = scope["path"], dict(scope["headers"])
    if path in OPEN or not (is_data or path in GUARDED):
        return
    client = (scope.get("client") or ("", 0))[0]
    host = headers.get(b"host", b"").decode("latin-1")
    name = host[: host.rfind("]") + 1] if host.startswith("[") else host.partition(":")[0]
    if is_loopback(client) and is_loopback(name) and path not in GUARDED:
        return
    if not token:
        raise Refusal(403, f"{path} needs a token: start the service with {VARIABLE} set")
    scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
    if scheme.lower() != b"bearer" or not hmac.compare_digest(given.strip(), token.encode()):
        raise Refusal(401, "send the token: Authorization: Bearer ...")
