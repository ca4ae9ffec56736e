"""Arrays in one file, in the layout of safetensors, with our own checksums.

Eight bytes tell the length of a JSON header, little-endian; it names the type, shape and place of
every array, and holds texts under ``__metadata__``; the arrays follow without gaps. Safetensors
itself verifies nothing: here every array has a SHA-256 in the texts, and the header has its own.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from outsample.files.atomic import atomic_write

DTYPES = {
    "F64": "<f8", "I64": "<i8", "U64": "<u8", "F32": "<f4", "I32": "<i4", "U32": "<u4",
    "F16": "<f2", "I16": "<i2", "U16": "<u2", "I8": "|i1", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip
NAMES = {np.dtype(code): name for name, code in DTYPES.items()}
LARGEST_HEADER = 2**20
MOST_ARRAYS = 10_000
# Where arrays begin, and the largest side of one.
ALIGNMENT = 64
LONGEST_SIDE = 2**48
METADATA, CHECKSUMS, OWN_CHECKSUM = "__metadata__", "sha256", "header_sha256"
NO_DIGEST = "0" * 64
CHUNK_BYTES = 2**24


class ModelFileError(ValueError):
    """A file that is no model, is damaged, or was made by a newer outsample.

    The message says what is wrong with which file, and what to do.

    Examples
    --------
    >>> import outsample
    >>> try:
    ...     outsample.load("nothing.outsample")
    ... except outsample.ModelFileError as error:
    ...     print(error)
    nothing.outsample: there is no such file.
    """


class Entry(NamedTuple):
    """An array in a file: its type, shape, and the bytes from `start` to `stop` of the file."""

    dtype: np.dtype
    shape: tuple[int, ...]
    start: int
    stop: int


class Header(NamedTuple):
    """What a file says before its arrays: texts by name, arrays by name, and its size."""

    path: str
    texts: dict[str, str]
    entries: dict[str, Entry]
    checksums: dict[str, str]
    file_bytes: int


def _own(checksum: str) -> bytes:
    """Place of the header's own checksum: such quotes cannot stand within a text."""
    return f'"{OWN_CHECKSUM}":"{checksum}"'.encode()


def digest(array: np.ndarray) -> str:
    """SHA-256 of the bytes of a contiguous array."""
    return hashlib.sha256(_raw(array)).hexdigest()


def _raw(array: np.ndarray) -> Any:
    return array.reshape(-1).view(np.uint8) if array.size else b""


def write(path: str, texts: dict[str, str], arrays: dict[str, np.ndarray], sums: dict) -> None:
    """Write contiguous arrays, whose SHA-256 sums are known, and texts.

    The file appears under its name when it is complete and on the disk, and not before.
    """
    # The widest types first, so that every array is aligned without gaps.
    names = sorted(arrays, key=lambda name: -arrays[name].itemsize)
    header: dict[str, Any] = {
        METADATA: {**texts, CHECKSUMS: json.dumps(sums), OWN_CHECKSUM: NO_DIGEST}
    }
    at = 0
    for name in names:
        array = arrays[name]
        place = [at, at + array.nbytes]
        header[name] = {
            "dtype": NAMES[array.dtype], "shape": list(array.shape), "data_offsets": place
        }  # fmt: skip
        at += array.nbytes
    raw = json.dumps(header, separators=(",", ":")).encode()
    raw += b" " * (-(len(raw) + 8) % ALIGNMENT)
    if len(raw) > LARGEST_HEADER:
        raise ValueError(
            f"{path}: the description of the model takes {len(raw):,} bytes, but at most "
            f"{LARGEST_HEADER:,} can be written; keep fewer columns."
        )
    raw = raw.replace(_own(NO_DIGEST), _own(hashlib.sha256(raw).hexdigest()))
    with atomic_write(path) as stream:
        stream.write(len(raw).to_bytes(8, "little") + raw)
        for name in names:
            data = memoryview(_raw(arrays[name]))
            for start in range(0, len(data), CHUNK_BYTES):
                stream.write(data[start : start + CHUNK_BYTES])


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a plain file for reading."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            kind = "a folder" if os.path.isdir(path) else "no plain file"
            raise ModelFileError(f"{path}: is {kind}; give the name of a model file.")
        with open(path, "rb") as stream:
            yield stream
    except FileNotFoundError:
        raise ModelFileError(f"{path}: there is no such file.") from None
    except (OSError, ValueError) as error:
        if isinstance(error, ModelFileError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise ModelFileError(f"{path}: cannot be read ({reason}).") from error


def read_header(path: str | os.PathLike[str], stream: BinaryIO, check: Any) -> Header:
    """Read and verify the header of an open file; nothing of the arrays is read.

    ``check(texts)`` comes before all that another version may do differently.
    """
    size = os.fstat(stream.fileno()).st_size
    start = stream.read(8)
    length = int.from_bytes(start, "little")
    if len(start) < 8:
        raise ModelFileError(f"{path}: is no model of outsample's: it has {size} bytes.")
    # Another kind of file has other bytes where the length is: a huge number, as good as always.
    if length > LARGEST_HEADER or length < 2:
        raise ModelFileError(
            f"{path}: is no model of outsample's, or its beginning is damaged; a header of at most "
            f"{LARGEST_HEADER:,} bytes is expected. Save the model again with outsample.save."
        )
    raw = stream.read(length)
    if len(raw) < length:
        raise damaged(path, f"it ends within its header, after {size} bytes")
    try:
        header = parsed(raw.decode())
        texts: Any = header.pop(METADATA, None) if isinstance(header, dict) else None
        if not _is_texts(texts):
            raise ValueError("it has no texts")
    except (ValueError, RecursionError) as error:
        raise ModelFileError(
            f"{path}: is no model of outsample's, or its header is damaged ({error})."
        ) from None
    try:
        check(texts)
        own = texts.get(OWN_CHECKSUM, "")
        if len(own) != len(NO_DIGEST) or raw.count(_own(own)) != 1:
            raise ValueError("its header has no checksum")
        if hashlib.sha256(raw.replace(_own(own), _own(NO_DIGEST))).hexdigest() != own:
            raise ValueError("its header is not what was written")
        entries = _entries(header, 8 + length, size)
        sums = parsed(texts.get(CHECKSUMS, ""))
        if not _is_texts(sums) or set(sums) != set(entries):
            raise ValueError("its checksums are not those of its arrays")
    except ModelFileError:
        raise
    except (ValueError, RecursionError) as error:
        raise damaged(path, str(error)) from None
    return Header(os.fspath(path), texts, entries, sums, size)


def damaged(path: object, reason: str) -> ModelFileError:
    """Make the error for a file that is a model, but not as it was written."""
    return ModelFileError(
        f"{path}: is damaged or was tampered with: {reason[:300]}. Take it from a backup, or save "
        "the model again."
    )


def parsed(text: str) -> Any:
    """Parse strict JSON: no name twice, no NaN."""
    return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


def _is_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


def _entries(header: dict[str, Any], begin: int, size: int) -> dict[str, Entry]:
    """Arrays by name; they fill the rest of the file without gaps."""
    if len(header) > MOST_ARRAYS:
        raise ValueError(f"it has {len(header):,} arrays, but at most {MOST_ARRAYS:,} are allowed")
    entries = {name: _entry(name, told, begin) for name, told in header.items()}
    at = begin
    for name, entry in sorted(entries.items(), key=lambda pair: pair[1][2:]):
        if entry.start != at:
            raise ValueError(f"array {name!r} does not begin where the one before it ends")
        if entry.start % entry.dtype.itemsize:
            raise ValueError(f"array {name!r} is not aligned")
        at = entry.stop
    if at != size:
        raise ValueError(f"it has {size:,} bytes, but its arrays end at {at:,}")
    return entries


def _entry(name: str, told: Any, begin: int) -> Entry:
    if not isinstance(told, dict) or set(told) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"array {name!r} is not described")
    dtype, shape, place = told["dtype"], told["shape"], told["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ValueError(f"array {name!r} has an unknown type")
    if not _are_counts(shape) or len(shape) > 4 or not _are_counts(place) or len(place) != 2:
        raise ValueError(f"array {name!r} has no shape or place")
    kind, count = np.dtype(DTYPES[dtype]), 1
    for side in shape:
        count *= side
    if place[1] - place[0] != count * kind.itemsize:
        raise ValueError(f"array {name!r} of shape {shape} does not fit its place {place}")
    return Entry(kind, tuple(shape), begin + place[0], begin + place[1])


def _are_counts(values: Any) -> bool:
    return isinstance(values, list) and all(
        type(value) is int and 0 <= value < LONGEST_SIDE for value in values
    )


class Mapped:
    """The arrays of a file, mapped: processes share them, and nothing is read before its use.

    The map is private and writable, since kernels are compiled for arrays that can be written;
    whoever writes gets pages of its own, and the file stays as it is.
    """

    def __init__(self, header: Header, stream: BinaryIO) -> None:
        self.header = header
        self.map = mmap.mmap(stream.fileno(), header.file_bytes, access=mmap.ACCESS_COPY)

    def array(self, name: str) -> np.ndarray:
        """Return an array as it is in the file; it may not have been verified."""
        entry = self.header.entries[name]
        if entry.start == entry.stop:
            return np.empty(entry.shape, entry.dtype)
        count = (entry.stop - entry.start) // entry.dtype.itemsize
        return np.frombuffer(self.map, entry.dtype, count, entry.start).reshape(entry.shape)

    def verify(self, names: Any = None) -> None:
        """Refuse arrays, by default all of them, that are not what was written."""
        for name in self.header.entries if names is None else names:
            if digest(self.array(name)) != self.header.checksums[name]:
                raise damaged(self.header.path, f"array {name!r} is not what was written")
