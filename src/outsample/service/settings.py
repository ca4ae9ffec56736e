"""Settings of a service: the model, who may ask, and bounds on what a client can make large."""

from __future__ import annotations

from pydantic import BaseModel

# JSON is parsed while other requests wait for the interpreter; larger tables are sent as Arrow.
MAX_JSON_BYTES = 2**22
# Bytes of all request bodies held at a time, and the size of a body that always fits.
MAX_HELD_BYTES, SMALL_BODY_BYTES = 2**28, 2**16
MAX_LISTENERS = 64
# Open connections; uvicorn answers 503 beyond it.
MAX_CONNECTIONS = 4096
MAX_HEAD_BYTES = 2**16
HEAD_SECONDS = 10.0
KEEP_ALIVE_SECONDS = 30


class Settings(BaseModel):
    """Everything that `outsample serve` is told.

    Attributes
    ----------
    model : str
        Path of the model file.
    alpha : float
        A row with a p-value of at most ``alpha`` counts as strange.
    tokens, read_tokens : list of str
        Tokens that allow everything, and tokens that do not allow ``/learn`` and ``/reload``.
    learned : str or None
        File of learned rows; None serves a model that does not learn.
    window, guard : int and float or None
        Parameters of `StreamingExtension`; None takes those of the file of learned rows.
    max_bytes, max_rows : int
        Maximum size of a request; JSON is limited to ``MAX_JSON_BYTES`` as well.
    max_waiting : int
        Requests that may wait for the model; the next one is answered 429.
    timeout : float
        Seconds to send a body, to compute an answer, or to read it.
    log_rows : bool
        Write the values of the rows into the log.
    workers : int
        Processes.
    copies : str or None
        Folder where workers share private copies of the model file.
    """

    model: str
    alpha: float = 0.01
    tokens: list[str] = []
    read_tokens: list[str] = []
    learned: str | None = None
    window: int | None = None
    guard: float | None = None
    max_bytes: int = 2**25
    max_rows: int = 100_000
    max_waiting: int = 64
    timeout: float = 30.0
    log_rows: bool = False
    workers: int = 1
    copies: str | None = None
