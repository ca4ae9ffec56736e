"""Files of learned rows as outsample wrote them before it used SQLite; read once and converted.

Format: 8 bytes ``OSLEARN1``, length and CRC-32 of a JSON header, the header; then records: 4 bytes
of mark, number (8 bytes), length and CRC-32 of the rows, CRC-32 of these 20 bytes, and the rows of
each call: their number in 4 bytes and numbers of 8 bytes, row by row.
"""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np

OLD_FORMAT = b"OSLEARN1"
MARK = b"\xf1REC"
HEADER = struct.Struct("<8sII")
RECORD = struct.Struct("<4sQIII")
N_ROWS = struct.Struct("<I")


class LearnedFileError(ValueError):
    """A file of learned rows is damaged, belongs to another model, or is in use."""


def read_old_file(path: Path) -> tuple[dict[str, Any], list[np.ndarray]]:
    """Return the header and the rows (q, D) of every call that was acknowledged.

    Only the last record can be incomplete, as it was acknowledged after it was on the disk. A
    record that is complete but damaged is an error.
    """
    with open(path, "rb") as file:
        _check_unused(path, file)
        data = file.read()
    if len(data) < HEADER.size:
        raise _damaged(path, 0)
    _, length, checksum = HEADER.unpack_from(data)
    text = data[HEADER.size : HEADER.size + length]
    if len(text) != length or zlib.crc32(text) != checksum:
        raise _damaged(path, 0)
    about = json.loads(text)
    width, calls, at = about["about"]["n_features"], [], HEADER.size + length
    while len(data) - at >= RECORD.size and any(data[at:]):
        mark, _, length, checksum, head_checksum = RECORD.unpack_from(data, at)
        if mark != MARK or zlib.crc32(data[at : at + RECORD.size - 4]) != head_checksum:
            raise _damaged(path, at)
        payload = data[at + RECORD.size : at + RECORD.size + length]
        if len(payload) < length:
            break  # never acknowledged
        if zlib.crc32(payload) != checksum:
            raise _damaged(path, at)
        calls += _split(payload, width)
        at += RECORD.size + length
    return about, calls


def _split(payload: bytes, width: int) -> list[np.ndarray]:
    calls, at = [], 0
    while at < len(payload):
        (n_rows,) = N_ROWS.unpack_from(payload, at)
        at += N_ROWS.size
        rows = np.frombuffer(payload, "<f8", n_rows * width, at).reshape(n_rows, width)
        calls.append(rows.astype(np.float64))
        at += rows.nbytes
    return calls


def _check_unused(path: Path, file: Any) -> None:
    """Raise if a service of an older version still writes to the file."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise LearnedFileError(f"{path}: another service writes to it; stop that one.") from None


def _damaged(path: Path, at: int) -> LearnedFileError:
    return LearnedFileError(
        f"{path}: is damaged at byte {at}. Restore it from a backup, or move it away to begin "
        "without what was learned."
    )
