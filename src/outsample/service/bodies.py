"""Bodies of requests, read in pieces and bounded; answers in the form that was asked for."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from outsample.service.arrow_rows import ARROW, rows_of_arrow, to_arrow
from outsample.service.json_pieces import in_pieces, many_to_json
from outsample.service.json_rows import columns_of, rows_of_json, to_json
from outsample.service.limits import Limits
from outsample.service.named_columns import matched
from outsample.service.refusal import Refusal
from outsample.service.served_model import ServedModel

JSON = "application/json"
# Larger bodies are parsed by a thread, while others are served.
LARGE = 2**16
# Answers with more rows are written by a thread.
MANY_ROWS = 1000


async def read_body(request: Request, limits: Limits) -> bytes:
    """Read a body; one that is too large, or too slow, is refused before all of it is there."""
    said = f"the body is larger than {limits.body_bytes:,} bytes; send it in parts"
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > limits.body_bytes:
        raise Refusal(413, said)
    pieces, size = [], 0
    try:
        async with asyncio.timeout(limits.seconds):
            async for piece in request.stream():
                size += len(piece)
                if size > limits.body_bytes:
                    raise Refusal(413, said)
                pieces.append(piece)
    except TimeoutError:
        raise Refusal(408, f"the body took more than {limits.seconds:g} seconds") from None
    return b"".join(pieces)


async def read_rows(request: Request, model: ServedModel, limits: Limits) -> np.ndarray:
    """Read rows (q, D) as the model takes them."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in (JSON, ARROW):
        raise Refusal(415, f"send {JSON} or {ARROW}, not {kind[:60]!r}")
    body = await read_body(request, limits)

    def rows() -> np.ndarray:
        columns: list[str] | None
        if kind != JSON:
            found, columns = rows_of_arrow(body, limits.rows)
        elif len(body) > LARGE and (cut := in_pieces(body, limits.rows)) is not None:
            found, columns = cut[0], columns_of(cut[1])
        else:
            found, columns = rows_of_json(body)
        return matched(found, columns, model.feature_names, model.n_features, limits.rows)

    return await asyncio.to_thread(rows) if len(body) > LARGE else rows()


async def answered(request: Request, model: ServedModel, told: dict[str, Any]) -> Response:
    """Answer in JSON or Arrow: what is accepted, else what was sent."""
    accepted = request.headers.get("accept", "*/*")
    sent = request.headers.get("content-type", "").lower().startswith(ARROW)
    if ARROW in accepted or (sent and JSON not in accepted):
        table = model.table(told)
        if "accepted" in told:
            table["accepted"] = told["accepted"]
        headers = {"X-First-Id": str(told["first_id"])}
        return Response(to_arrow(table), media_type=ARROW, headers=headers)
    if told["n_rows"] > MANY_ROWS:
        return Response(await asyncio.to_thread(many_to_json, told), media_type=JSON)
    return Response(to_json(told), media_type=JSON)
