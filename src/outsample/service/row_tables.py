"""Rows in requests and answers: JSON or Arrow, read with limits on size and time."""

from __future__ import annotations

import asyncio
import re
import struct
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from fastapi import Request
from pydantic import BaseModel, ValidationError
from starlette.responses import Response

from outsample.service.errors import RequestError
from outsample.service.schemas import Records, Rows, write_json
from outsample.service.served_model import ServedModel
from outsample.service.service import Service
from outsample.service.settings import MAX_JSON_BYTES

JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"
# Larger bodies are parsed, and longer answers written, by a thread while others are served.
LARGE_BODY_BYTES, MANY_ROWS = 2**16, 1000
RECORDS = re.compile(rb'"rows"\s*:\s*\[\s*\{')
PROBLEMS = {
    "float_type": "is not a number", "finite_number": "is not finite",
    "list_type": "is not a list", "dict_type": "is not an object",
}  # fmt: skip
T = TypeVar("T")


async def read_rows(request: Request) -> np.ndarray:
    """Return the rows (q, D) of a request in the model's order of columns."""
    service: Service = request.app.state.service
    kind, max_bytes = content_type(request), service.settings.max_bytes
    if kind == JSON:
        body = await read_body(request, min(MAX_JSON_BYTES, max_bytes))
        return await parse_rows(request, len(body), read_json, body, service.model)
    if kind == ARROW:
        body = await read_body(request, max_bytes)
        max_rows = service.settings.max_rows
        return await parse_rows(request, max_bytes, read_arrow, body, service.model, max_rows)
    raise RequestError(415, f"send {JSON} or {ARROW}, not {kind[:60]!r}")


async def read_body(request: Request, max_bytes: int) -> bytes:
    """Return the body of a request, unless it is too large or too slow, or too many wait."""
    service: Service = request.app.state.service
    service.check_ready()
    gate = service.gates["/learn" if request.url.path == "/learn" else "/place"]
    gate.check()
    settings, body = service.settings, bytearray()
    too_large = f"the body is larger than {max_bytes:,} bytes; send it in parts"
    if max_bytes < settings.max_bytes:
        too_large += ", or send Arrow instead of JSON"
    length = request.headers.get("content-length", "0")
    if length.isdigit() and int(length) > max_bytes:
        raise RequestError(413, too_large)
    try:
        async with asyncio.timeout(settings.timeout):
            async for chunk in request.stream():
                if len(body) + len(chunk) > max_bytes:
                    raise RequestError(413, too_large)
                service.hold(len(body), len(chunk))
                body += chunk
    except TimeoutError:
        reason = f"the body took more than {settings.timeout:g} seconds"
        raise RequestError(408, reason) from None
    finally:
        service.held_bytes -= len(body)
    gate.check()
    return bytes(body)


async def parse_rows(
    request: Request, n_bytes: int, read: Callable[..., np.ndarray], *arguments: Any
) -> np.ndarray:
    """Return rows (q, D) that a function reads, checked; they are counted in the log."""
    service: Service = request.app.state.service
    settings = service.settings

    def read_and_check() -> np.ndarray:
        rows = read(*arguments)
        check_n_rows(len(rows), settings.max_rows)
        return service.model.check_values(rows)

    rows = await in_thread(n_bytes > LARGE_BODY_BYTES, read_and_check)
    values = {"values": rows.tolist()} if settings.log_rows else {}
    request.scope["outsample.log"] = {"rows": len(rows), **values}
    return rows


async def in_thread(is_large: bool, function: Callable[..., T], *arguments: Any) -> T:
    """Call a function, in a thread if there is much to do."""
    return await asyncio.to_thread(function, *arguments) if is_large else function(*arguments)


def content_type(request: Request) -> str:
    """Return the media type of a body, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def read_json(body: bytes, model: ServedModel) -> np.ndarray:
    """Return the rows (q, D) of a JSON body in the model's order of columns."""
    if RECORDS.search(body):
        return model.match_records(parse_json(Records, body).rows)
    table: Rows = parse_json(Rows, body)
    names, width = table.columns, len(table.rows[0])
    for row, values in enumerate(table.rows):
        if len(values) != width or not width:
            reason = f"row {row} has {len(values)} numbers, but row 0 has {width}"
            raise RequestError(422, reason if width else "row 0 has no numbers", row=row)
    if names is not None and len(names) != width:
        raise RequestError(422, f"{len(names)} columns are named, but rows have {width}")
    return np.array(table.rows)[:, model.column_order(names, width)]


def parse_json(schema: type[BaseModel], body: bytes) -> Any:
    """Return a body as a pydantic model; an error names the row and column."""
    try:
        return schema.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    path, problem = first["loc"], PROBLEMS.get(first["type"], first["msg"])
    if first["type"] == "json_invalid":
        raise RequestError(422, f"the body is not valid JSON: {problem}")
    if path[:1] == ("rows",) and len(path) > 1:
        location = dict(zip(("row", "column"), path[1:], strict=False))
        where = ", column ".join(repr(at) for at in location.values())
        raise RequestError(422, f"row {where} {problem}", None, **location)
    name = ".".join(map(str, path)) or "the body"
    raise RequestError(422, f"{name[:100]!r}: {problem}")


def read_arrow(body: bytes, model: ServedModel, max_rows: int) -> np.ndarray:
    """Return the rows (q, D) of an Arrow stream in the model's order of columns.

    Compressed buffers are rejected: a small body could decode to gigabytes.
    """
    import pyarrow as pa

    batches, n_rows = [], 0
    try:
        messages = pa.ipc.MessageReader.open_stream(pa.BufferReader(body))
        schema = pa.ipc.read_schema(messages.read_next_message())
        order = model.column_order(schema.names, len(schema))
        for field in schema:
            if not (pa.types.is_integer(field.type) or pa.types.is_floating(field.type)):
                kind = f"{str(field.type)[:60]}, but must be numbers"
                reason = f"column {field.name[:60]!r} is {kind}"
                raise RequestError(422, reason, column=field.name)
        for message in messages:
            if message.type != "record batch" or _is_compressed(message.metadata):
                raise RequestError(422, "send record batches without compression or dictionaries")
            batches.append(pa.ipc.read_record_batch(message, schema))
            batches[-1].validate(full=True)
            n_rows += batches[-1].num_rows
            check_n_rows(n_rows, max_rows)
    except (
        pa.ArrowException, OSError, EOFError, UnicodeDecodeError, StopIteration, struct.error,
    ) as error:  # fmt: skip
        detail = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise RequestError(422, f"the body is not an Arrow stream: {detail}") from None
    if not n_rows:
        raise RequestError(422, "the stream has no rows; send at least one")
    table, rows = pa.Table.from_batches(batches, schema), np.empty((n_rows, len(order)))
    for column, at in enumerate(order):
        values, name = table.column(at), schema.names[at]
        if values.null_count:
            row = values.is_null().index(True).as_py()
            reason = f"row {row}, column {name[:60]!r} is null, but must be a number"
            raise RequestError(422, reason, row=row, column=name)
        rows[:, column] = values
    return rows


def check_n_rows(n_rows: int, max_rows: int) -> None:
    """Reject a request with too many rows."""
    if n_rows > max_rows:
        raise RequestError(422, f"at most {max_rows} rows per request; send them in parts")


def _is_compressed(metadata: Any) -> bool:
    """Return whether the flatbuffer of an Arrow message has RecordBatch.compression.

    Message.header is field 2 of the message, compression field 3 of the record batch.
    """
    data = memoryview(metadata)

    def field(table: int, number: int) -> int:
        vtable = table - struct.unpack_from("<i", data, table)[0]
        if 4 + 2 * number >= struct.unpack_from("<H", data, vtable)[0]:
            return 0
        return int(struct.unpack_from("<H", data, vtable + 4 + 2 * number)[0])

    message = struct.unpack_from("<I", data, 0)[0]
    header = message + field(message, 2)
    batch = header + struct.unpack_from("<I", data, header)[0]
    return field(batch, 3) != 0


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


def write_arrow(columns: dict[str, np.ndarray]) -> bytes:
    """Return columns of equal length as an Arrow stream."""
    import pyarrow as pa

    batch = pa.record_batch({name: pa.array(values) for name, values in columns.items()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())
