"""Learned rows on the disk before they are acknowledged, so that a killed service has them all.

A file begins with a header that ties it to its model; then come records, each with its number, its
length and two checksums, of its head and of its rows. Only the last record can be incomplete, as
the next is written when it is on the disk: what was not acknowledged is dropped. Anything else
that is wrong is refused by the place where it is.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from outsample.files.atomic import atomic_write

BEGIN = b"OSLEARN1"
MARK = b"\xf1REC"
HEADER = struct.Struct("<8sII")  # beginning, length and checksum of the JSON after it
HEAD = struct.Struct("<4sQII")  # mark, number, length and checksum of the rows
CHECK = struct.Struct("<I")  # checksum of the head
ROWS = struct.Struct("<I")  # number of rows of one call
LARGEST_HEADER = 2**20


class LearnedFileError(ValueError):
    """A file of learned rows is damaged, of another model, or in use."""


class WriteAhead:
    """A file of rows that were learned, call after call.

    Parameters
    ----------
    path : path-like
        The file; it is made if it is not there.
    about : dict
        What the file belongs to, in plain values: another file is refused. ``n_features`` is
        among them.

    Attributes
    ----------
    snapshot : dict or None
        Model file that holds all that was learned before the first record of this file.
    n_dropped : int
        Bytes at the end that were never acknowledged, and were cut off by `calls`.
    """

    def __init__(self, path: str | os.PathLike[str], about: dict[str, Any]) -> None:
        self.path, self.about = Path(path), about
        self.broken: str | None = None
        self.n_dropped = 0
        if not self.path.exists():
            self._begin(None, 1)
        self._open()

    def _begin(self, snapshot: dict[str, Any] | None, number: int) -> None:
        """Put a new file in the place of the old one, if there is one."""
        told = {"about": self.about, "snapshot": snapshot, "first": number}
        text = json.dumps(told).encode()
        with atomic_write(self.path) as stream:
            stream.write(HEADER.pack(BEGIN, len(text), zlib.crc32(text)) + text)

    def _open(self) -> None:
        self.file = open(self.path, "r+b", buffering=0)
        try:
            self._lock()
            told, self.begin = self._header()
        except BaseException:
            self.file.close()
            raise
        self.snapshot, self.number, self.end = told["snapshot"], told["first"], self.begin

    def calls(self) -> Iterator[np.ndarray]:
        """Return the rows (q, D) of every call that was acknowledged, and cut off what was not."""
        size = os.fstat(self.file.fileno()).st_size
        while self.end < size:
            record = self._record(self.end, size)
            if record is None:
                if self._is_followed(self.end + 1, size):
                    raise LearnedFileError(
                        f"{self.path}: damaged at byte {self.end}, in record {self.number}, with "
                        "sound records after it. Restore it from a copy, or move it away to begin "
                        "without what it holds."
                    )
                self.n_dropped = size - self.end
                os.ftruncate(self.file.fileno(), self.end)
                os.fsync(self.file.fileno())
                return
            payload, stop = record
            yield from self._split(payload)
            self.end, self.number = stop, self.number + 1

    def append(self, calls: Sequence[np.ndarray]) -> None:
        """Write the rows of calls as one record; when this returns they are on the disk.

        On an `OSError`, of a full disk say, the file is as it was before.
        """
        if self.broken is not None:
            raise OSError(self.broken)
        parts = [ROWS.pack(len(rows)) + rows.astype("<f8").tobytes() for rows in calls]
        payload = b"".join(parts)
        head = HEAD.pack(MARK, self.number, len(payload), zlib.crc32(payload))
        data = memoryview(head + CHECK.pack(zlib.crc32(head)) + payload)
        descriptor = self.file.fileno()
        try:
            os.lseek(descriptor, self.end, os.SEEK_SET)
            while data:
                data = data[os.write(descriptor, data) :]
            os.fsync(descriptor)
        except OSError:
            self._take_back()
            raise
        self.end = os.lseek(descriptor, 0, os.SEEK_CUR)
        self.number += 1

    def restart(self, snapshot: dict[str, Any]) -> None:
        """Go on in a new file: a snapshot holds all that was learned until now."""
        self._begin(snapshot, self.number)
        self.file.close()
        self._open()

    def close(self) -> None:
        """Let others have the file."""
        self.file.close()

    @property
    def n_bytes(self) -> int:
        """Size of the file."""
        return self.end

    def _take_back(self) -> None:
        try:
            os.ftruncate(self.file.fileno(), self.end)
            os.fsync(self.file.fileno())
        except OSError as error:
            self.broken = f"{self.path} could not be put right after a failure: {error.strerror}"

    def _lock(self) -> None:
        try:
            import fcntl
        except ImportError:  # not on Windows
            return
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            said = f"{self.path}: another service writes to it; end that, or name another file."
            raise LearnedFileError(said) from None

    def _header(self) -> tuple[dict[str, Any], int]:
        head = self.file.read(HEADER.size)
        if len(head) < HEADER.size or not head.startswith(BEGIN):
            raise LearnedFileError(f"{self.path}: is no file of learned rows.")
        _, length, checksum = HEADER.unpack(head)
        text = self.file.read(min(length, LARGEST_HEADER))
        if len(text) != length or zlib.crc32(text) != checksum:
            raise LearnedFileError(f"{self.path}: its header, at byte 0, is damaged.")
        told = json.loads(text)
        for name, value in self.about.items():
            if told["about"].get(name) != value:
                raise LearnedFileError(
                    f"{self.path}: was begun with {name} {told['about'].get(name)!r}, not "
                    f"{value!r}. Serve that model, or name another file."
                )
        return told, HEADER.size + length

    def _record(self, at: int, size: int) -> tuple[bytes, int] | None:
        """Return a record's rows and where the next begins; None if it is not sound."""
        start = at + HEAD.size + CHECK.size
        self.file.seek(at)
        head = self.file.read(HEAD.size + CHECK.size)
        if len(head) < start - at or CHECK.unpack(head[HEAD.size :])[0] != zlib.crc32(
            head[: HEAD.size]
        ):
            return None
        mark, number, length, checksum = HEAD.unpack(head[: HEAD.size])
        if mark != MARK or number != self.number or start + length > size:
            return None
        payload = _read(self.file, length)
        return (payload, start + length) if zlib.crc32(payload) == checksum else None

    def _is_followed(self, at: int, size: int) -> bool:
        """Whether a sound head of a later record is anywhere after a place."""
        with mmap.mmap(self.file.fileno(), size, access=mmap.ACCESS_READ) as whole:
            while (at := whole.find(MARK, at)) >= 0:
                head = whole[at : at + HEAD.size]
                check = whole[at + HEAD.size : at + HEAD.size + CHECK.size]
                if len(check) == CHECK.size and CHECK.unpack(check)[0] == zlib.crc32(head):
                    return True
                at += 1
        return False

    def _split(self, payload: bytes) -> Iterator[np.ndarray]:
        at, width = 0, self.about["n_features"]
        while at < len(payload):
            (n,) = ROWS.unpack_from(payload, at)
            at += ROWS.size
            rows = np.frombuffer(payload, "<f8", n * width, at).reshape(n, width)
            yield rows.astype(np.float64)
            at += rows.nbytes


def _read(file: Any, length: int) -> bytes:
    """Read that much; one read of an unbuffered file may give less."""
    parts = []
    while length and (part := file.read(length)):
        parts.append(part)
        length -= len(part)
    return b"".join(parts)
