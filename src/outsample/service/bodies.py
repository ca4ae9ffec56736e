"""Request bodies, read with limits on size and time; answers in the format that was asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from fastapi import Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from outsample.service.errors import RequestError
from outsample.service.row_formats import (
    ARROW,
    JSON,
    read_arrow,
    read_json,
    write_arrow,
    write_json,
)
from outsample.service.served_model import ServedModel
from outsample.service.service import MANY_ROWS, Service
from outsample.service.settings import MAX_JSON_BYTES

# Larger bodies are parsed by a thread, while other requests are served.
LARGE_BODY_BYTES = 2**16
T = TypeVar("T")


async def read_body(request: Request, service: Service, max_bytes: int) -> bytes:
    """Return the body of a request, unless it is too large or too slow."""
    too_large = f"the body is larger than {max_bytes:,} bytes; send it in parts"
    if max_bytes < service.settings.max_bytes:
        too_large += ", or send Arrow instead of JSON"
    length = request.headers.get("content-length", "0")
    if length.isdigit() and int(length) > max_bytes:
        raise RequestError(413, too_large)
    message = await request.receive()
    body = bytearray(message.get("body", b""))
    if not message.get("more_body", False):
        return bytes(body)
    # A slow client does not count among those that wait for the model.
    request.scope["outsample.release"]()
    held = 0
    try:
        async with asyncio.timeout(service.settings.timeout):
            while True:
                if len(body) > max_bytes:
                    raise RequestError(413, too_large)
                service.hold(held, len(body) - held)
                held = len(body)
                if not message.get("more_body", False):
                    break
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                body += message.get("body", b"")
        gate = service.gates["/learn" if request.url.path == "/learn" else "/place"]
        if gate.is_full:
            raise RequestError(429, "more requests wait than can be answered soon", retry_after=1)
        request.scope["outsample.enter"]()
        return bytes(body)
    except TimeoutError:
        reason = f"the body took more than {service.settings.timeout:g} seconds"
        raise RequestError(408, reason) from None
    finally:
        service.held_bytes -= held


async def in_thread(is_large: bool, function: Callable[..., T], *arguments: Any) -> T:
    """Call a function, in a thread if there is much to do."""
    return await asyncio.to_thread(function, *arguments) if is_large else function(*arguments)


async def read_rows(request: Request) -> np.ndarray:
    """Return the rows (q, D) of a request in the model's order of columns."""
    service: Service = request.scope["state"]["service"]
    service.check_ready()
    settings, kind = service.settings, content_type(request)
    if kind == JSON:
        body = await read_body(request, service, min(MAX_JSON_BYTES, settings.max_bytes))
        read, is_large = read_json, len(body) > LARGE_BODY_BYTES
    elif kind == ARROW:
        body = await read_body(request, service, settings.max_bytes)
        read, is_large = read_arrow, True
    else:
        raise RequestError(415, f"send {JSON} or {ARROW}, not {kind[:60]!r}")
    rows = await in_thread(is_large, read, body, service.model, settings.max_rows)
    log_rows(request, rows)
    return rows


def log_rows(request: Request, rows: np.ndarray) -> None:
    """Have the log tell the number of rows, and their values if that is wanted."""
    fields: dict[str, Any] = {"rows": len(rows)}
    if request.scope["state"]["service"].settings.log_rows:
        fields["values"] = rows.tolist()
    request.scope["outsample.log"] = fields


def content_type(request: Request) -> str:
    """Return the media type of a body, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def answer_rows(request: Request, model: ServedModel, answer: dict[str, Any]) -> Response:
    """Return an answer as JSON or Arrow: what is accepted, otherwise what was sent."""
    accepted = request.headers.get("accept", "*/*")
    headers = {"X-Model-Digest": answer["digest"]}
    if ARROW in accepted or (content_type(request) == ARROW and JSON not in accepted):
        headers["X-First-Id"] = str(answer["first_id"])
        body = await asyncio.to_thread(write_arrow, model.table(answer))
        return Response(body, media_type=ARROW, headers=headers)
    body = await in_thread(answer["n_rows"] > MANY_ROWS, write_json, answer)
    return Response(body, media_type=JSON, headers=headers)
