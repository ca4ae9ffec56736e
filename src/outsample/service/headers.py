"""Headers of all answers, and of refusals."""

from __future__ import annotations

from outsample.service.refusal import Refusal

SECURITY = {
    b"content-security-policy": b"default-src 'none'; script-src 'self'; style-src 'self'; "
    b"connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
    b"frame-ancestors 'none'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
}


def headers_of(refusal: Refusal, body: bytes) -> list[tuple[bytes, bytes]]:
    """Headers of a refusal with that body, without those of all answers."""
    headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
    headers |= refusal.headers
    return [(name.lower().encode(), value.encode()) for name, value in headers.items()]
