"""Tables in requests and answers: JSON and Arrow in, the model's columns out."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson
from pydantic import BaseModel, ValidationError

from outsample._validation import LARGEST_VALUE
from outsample.files.matching import listed
from outsample.service.errors import RequestError
from outsample.service.schemas import Records, Rows
from outsample.service.served_model import ServedModel

JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"
RECORDS = re.compile(rb'"rows"\s*:\s*\[\s*\{')
PROBLEMS = {
    "float_type": "is not a number", "finite_number": "is not finite",
    "list_type": "is not a list", "dict_type": "is not an object",
}  # fmt: skip


def read_json(body: bytes, model: ServedModel, max_rows: int) -> np.ndarray:
    """Return the rows (q, D) of a JSON body in the model's order of columns."""
    if RECORDS.search(body):
        records = parse_json(Records, body).rows
        names = list(records[0])
        rows = _record_values(records, names)
        if model.feature_names is None:
            raise RequestError(422, "the model has no column names; send rows as lists of numbers")
    else:
        table = parse_json(Rows, body)
        names, width = table.columns, len(table.rows[0])
        for row, values in enumerate(table.rows):
            if len(values) != width or not width:
                reason = f"row {row} has {len(values)} numbers, but row 0 has {width}"
                raise RequestError(422, reason if width else "row 0 has no numbers", row=row)
        rows = np.array(table.rows, dtype=np.float64)
        if names is not None and len(names) != width:
            raise RequestError(422, f"{len(names)} columns are named, but rows have {width}")
    order = column_order(names, rows.shape[1], model)
    return check_values(rows if order is None else rows[:, order], model, max_rows)


def read_arrow(body: bytes, model: ServedModel, max_rows: int) -> np.ndarray:
    """Return the rows (q, D) of an Arrow stream in the model's order of columns.

    Compressed buffers are rejected: a small body could decode to gigabytes.
    """
    import pyarrow as pa

    chunks, n_rows = [], 0
    try:
        messages = pa.ipc.MessageReader.open_stream(pa.BufferReader(body))
        schema = pa.ipc.read_schema(messages.read_next_message())
        order = column_order(schema.names, len(schema), model)
        _check_types(pa, schema)
        for message in messages:
            if message.type != "record batch" or _is_compressed(message.metadata):
                raise RequestError(422, "send record batches without compression or dictionaries")
            batch = pa.ipc.read_record_batch(message, schema)
            batch.validate(full=True)
            n_rows += _check_n_rows(n_rows + batch.num_rows, max_rows) and batch.num_rows
            chunks.append(batch)
    except (
        pa.ArrowException, OSError, EOFError, UnicodeDecodeError, StopIteration, struct.error,
    ) as error:  # fmt: skip
        detail = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise RequestError(422, f"the body is not an Arrow stream: {detail}") from None
    if not n_rows:
        raise RequestError(422, "the stream has no rows; send at least one")
    rows, start = np.empty((n_rows, model.n_features)), 0
    for batch in chunks:
        for column, at in enumerate(range(len(schema)) if order is None else order):
            values = batch.column(at)
            if values.null_count:
                row = start + int(np.flatnonzero(values.is_null().to_numpy(False))[0])
                name = schema.names[at]
                reason = f"row {row}, column {name[:60]!r} is null, but must be a number"
                raise RequestError(422, reason, row=row, column=name)
            rows[start : start + batch.num_rows, column] = values.to_numpy(zero_copy_only=False)
        start += batch.num_rows
    return check_values(rows, model, max_rows)


def column_order(names: Sequence[str] | None, width: int, model: ServedModel) -> list[int] | None:
    """Return where the model's columns are in a table; None if it has them in order.

    Columns are matched by name where both have names, otherwise by position.
    """
    features = model.feature_names
    if names is None or features is None:
        if width != model.n_features:
            reason = f"rows have {width} columns, but the model takes {model.n_features}"
            raise RequestError(422, reason)
        return None
    if list(names) == features:
        return None
    at = {name: number for number, name in enumerate(names)}
    missing = [name for name in features if name not in at]
    if missing:
        reason = f"{len(missing)} of the model's columns are missing: {listed(missing)}"
        raise RequestError(422, reason, column=missing[0])
    if width > len(features):
        expected = set(features)
        extra = next((name for name in names if name not in expected), None)
        if extra is None:
            extra = next(name for number, name in enumerate(names) if at[name] != number)
        reason = f"column {extra[:60]!r} is repeated, or is not one of the model's columns"
        raise RequestError(422, reason, column=extra)
    return [at[name] for name in features]


def check_values(rows: np.ndarray, model: ServedModel, max_rows: int) -> np.ndarray:
    """Return rows (q, D) that are finite, not too large and not too many."""
    _check_n_rows(len(rows), max_rows)
    is_valid = abs(rows) <= LARGEST_VALUE  # false for NaN
    if not is_valid.all():
        row, column = (int(at) for at in np.argwhere(~is_valid)[0])
        name = model.feature_names[column] if model.feature_names is not None else column
        value = rows[row, column]
        problem = "is too large" if np.isfinite(value) else "must be finite"
        reason = f"row {row}, column {name!r} is {value}, but {problem}"
        raise RequestError(422, reason, row=row, column=name)
    return np.ascontiguousarray(rows, dtype=np.float64)


def parse_json(schema: type[BaseModel], body: bytes) -> Any:
    """Return a body as a pydantic model; an error names the row and column."""
    try:
        return schema.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    path, problem = first["loc"], PROBLEMS.get(first["type"], first["msg"])
    if first["type"] == "json_invalid":
        raise RequestError(422, f"the body is not valid JSON: {problem}")
    if len(path) == 3 and path[0] == "rows":
        _, row, column = path
        reason = f"row {row}, column {column!r} {problem}"
        raise RequestError(422, reason, row=row, column=column)
    if len(path) == 2 and path[0] == "rows":
        raise RequestError(422, f"row {path[1]} {problem}", row=path[1])
    name = ".".join(map(str, path)) or "the body"
    raise RequestError(422, f"{name[:100]!r}: {problem}")


def write_json(payload: Any) -> bytes:
    """Return an answer as JSON; values that are not finite become null."""
    return orjson.dumps(payload, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS)


def write_arrow(columns: dict[str, np.ndarray]) -> bytes:
    """Return columns of equal length as an Arrow stream."""
    import pyarrow as pa

    batch = pa.record_batch({name: pa.array(values) for name, values in columns.items()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _record_values(records: list[dict[str, float]], names: list[str]) -> np.ndarray:
    if not names:
        raise RequestError(422, "row 0 has no columns", row=0)
    rows = []
    for row, record in enumerate(records):
        try:
            rows.append([record[name] for name in names])
        except KeyError as error:
            reason = f"row {row} has no column {str(error.args[0])[:60]!r}"
            raise RequestError(422, reason, row=row, column=error.args[0]) from None
        if len(record) != len(names):
            extra = next(name for name in record if name not in names)
            reason = f"row {row} has a column {extra[:60]!r}, but row 0 does not"
            raise RequestError(422, reason, row=row, column=extra)
    return np.array(rows, dtype=np.float64)


def _check_n_rows(n_rows: int, max_rows: int) -> bool:
    if n_rows > max_rows:
        raise RequestError(422, f"at most {max_rows} rows per request; send them in parts")
    return True


def _check_types(pa: Any, schema: Any) -> None:
    if not len(schema):
        raise RequestError(422, "the stream has no columns")
    for field in schema:
        if not (pa.types.is_integer(field.type) or pa.types.is_floating(field.type)):
            reason = f"column {field.name[:60]!r} is {str(field.type)[:60]}, but must be numbers"
            raise RequestError(422, reason, column=field.name)


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
