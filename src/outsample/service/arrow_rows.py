"""Rows as an Arrow stream, in and out: nothing is parsed, columns are copied as they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from outsample.service.refusal import Refusal

ARROW = "application/vnd.apache.arrow.stream"


def rows_of_arrow(body: bytes, most_rows: int) -> tuple[np.ndarray, list[str]]:
    """Return rows (q, D) and the names of their columns."""
    import pyarrow as pa

    try:
        with pa.ipc.open_stream(pa.BufferReader(body)) as stream:
            names = _checked_names(pa, stream.schema)
            batches, n_rows = [], 0
            for batch in stream:
                n_rows += batch.num_rows
                if n_rows > most_rows:
                    raise Refusal(422, f"at most {most_rows} rows at once; send them in parts")
                batch.validate(full=True)
                batches.append(batch)
    except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError) as error:
        told = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise Refusal(422, f"the body is no Arrow stream: {told}") from None
    if not n_rows:
        raise Refusal(422, "the stream has no rows; send at least one")
    rows, done = np.empty((n_rows, len(names))), 0
    for batch in batches:
        part = rows[done : done + batch.num_rows]
        for column, values in enumerate(batch.columns):
            if values.null_count:
                at = done + int(np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))[0])
                raise Refusal(
                    422, f"row {at}, column {names[column]!r} is null, but must be a number",
                    row=at, column=names[column],
                )  # fmt: skip
            part[:, column] = values.to_numpy(zero_copy_only=False)
        done += batch.num_rows
    return rows, names


def to_arrow(columns: dict[str, np.ndarray]) -> bytes:
    """Write columns as an Arrow stream."""
    import pyarrow as pa

    batch = pa.record_batch({name: pa.array(values) for name, values in columns.items()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _checked_names(pa: Any, schema: Any) -> list[str]:
    if not len(schema):
        raise Refusal(422, "the stream has no columns")
    for field in schema:
        if not (pa.types.is_integer(field.type) or pa.types.is_floating(field.type)):
            raise Refusal(
                422, f"column {field.name[:60]!r} is {str(field.type)[:60]}, but must be numbers",
                column=field.name,
            )  # fmt: skip
    return list(schema.names)
