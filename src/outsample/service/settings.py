"""Settings of a service, and limits on what a client can make large."""

from __future__ import annotations

from pydantic import BaseModel

# JSON is parsed while other requests wait for the interpreter; larger tables are sent as Arrow.
MAX_JSON_BYTES = 2**22
# Bytes of all request bodies in memory at a time, and the size of a body that always fits.
MAX_HELD_BYTES, SMALL_BODY_BYTES = 2**28, 2**16
MAX_LISTENERS = 64
MAX_CONNECTIONS = 4096  # uvicorn answers 503 beyond it
MAX_HEAD_BYTES, HEAD_SECONDS, KEEP_ALIVE_SECONDS = 2**16, 10.0, 30


class Settings(BaseModel):
    """Options of `outsample serve`."""

    model: str  # path of the model file
    alpha: float = 0.01  # rows with a p-value of at most alpha are unusual
    tokens: list[str] = []  # allow everything
    read_tokens: list[str] = []  # allow everything but /learn and /reload
    learned: str | None = None  # file of learned rows; None does not learn
    window: int | None = None  # None takes the value of the file of learned rows
    guard: float | None = None
    max_bytes: int = 2**25  # of a request
    max_rows: int = 100_000
    max_waiting: int = 64  # requests that wait for the model; the next one is answered 429
    timeout: float = 30.0  # seconds to send a body, to compute an answer, or to read it
    log_rows: bool = False  # write the values of the rows into the log
    workers: int = 1
    copies: str | None = None  # folder where workers share private copies of the model file
