"""Arrays and texts in one file, in the layout of safetensors, with checksums.

The first eight bytes are the length of a JSON header, little-endian. The header has the dtype,
shape and position of every array, and texts under ``__metadata__``. The arrays follow without gaps.
Safetensors itself verifies nothing: here the texts have a SHA-256 of every array and of the header.
"""

from __future__ import annotations

import hashlib
import json
import math
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
MAX_HEADER_BYTES = 2**20
MAX_ARRAYS = 10_000
# The first array begins at a multiple of this.
ALIGNMENT_BYTES = 64
MAX_SIDE = 2**48
METADATA, CHECKSUMS, OWN_CHECKSUM = "__metadata__", "sha256", "header_sha256"
NO_DIGEST = "0" * 64
CHUNK_BYTES = 2**24


class ModelFileError(ValueError):
    """A file that is not a model, is damaged, or was written by a newer outsample.

    The message names the file, the problem and a remedy.

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
    """An array in a file: its dtype, its shape, and its first and last byte in the file."""

    dtype: np.dtype
    shape: tuple[int, ...]
    start: int
    stop: int


class Header(NamedTuple):
    """Header of a file: texts by name, arrays by name, and the size of the file."""

    path: str
    texts: dict[str, str]
    entries: dict[str, Entry]
    checksums: dict[str, str]
    file_bytes: int


def _own(checksum: str) -> bytes:
    """Return the checksum of the header as in its JSON; a text cannot contain these quotes."""
    return f'"{OWN_CHECKSUM}":"{checksum}"'.encode()


def digest(array: np.ndarray) -> str:
    """Return the SHA-256 of the bytes of a contiguous array."""
    return hashlib.sha256(_raw(array)).hexdigest()


def _raw(array: np.ndarray) -> Any:
    return array.reshape(-1).view(np.uint8) if array.size else b""


def write(path: str, texts: dict[str, str], arrays: dict[str, np.ndarray], sums: dict) -> None:
    """Write texts, contiguous arrays and the SHA-256 sums of the arrays, atomically."""
    # The widest dtypes first, so that every array is aligned without gaps.
    names = sorted(arrays, key=lambda name: -arrays[name].itemsize)
    header: dict[str, Any] = {
        METADATA: {**texts, CHECKSUMS: json.dumps(sums), OWN_CHECKSUM: NO_DIGEST}
    }
    start = 0
    for name in names:
        array = arrays[name]
        stop = start + array.nbytes
        header[name] = {
            "dtype": NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [start, stop]
        }  # fmt: skip
        start = stop
    raw = json.dumps(header, separators=(",", ":")).encode()
    raw += b" " * (-(len(raw) + 8) % ALIGNMENT_BYTES)
    if len(raw) > MAX_HEADER_BYTES:
        raise ValueError(
            f"{path}: the description of the model has {len(raw):,} bytes, but at most "
            f"{MAX_HEADER_BYTES:,} can be written; save fewer columns."
        )
    raw = raw.replace(_own(NO_DIGEST), _own(hashlib.sha256(raw).hexdigest()))
    with atomic_write(path) as stream:
        stream.write(len(raw).to_bytes(8, "little") + raw)
        for name in names:
            data = memoryview(_raw(arrays[name]))
            for start in range(0, len(data), CHUNK_BYTES):
                stream.write(data[start : start + CHUNK_BYTES])


@contextmanager
def open_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a regular file for reading."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            kind = "a folder" if os.path.isdir(path) else "not a regular file"
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


def read_header(path: str | os.PathLike[str], stream: BinaryIO, check_version: Any) -> Header:
    """Read and verify the header of an open file, without its arrays.

    ``check_version(texts)`` is called before anything that depends on the version.
    """
    size = os.fstat(stream.fileno()).st_size
    start = stream.read(8)
    length = int.from_bytes(start, "little")
    if len(start) < 8:
        raise ModelFileError(f"{path}: is not a model of outsample: it has {size} bytes.")
    # In files of another format, these bytes almost always are a huge number.
    if length > MAX_HEADER_BYTES or length < 2:
        raise ModelFileError(
            f"{path}: is not a model of outsample, or its beginning is damaged; a header of at "
            f"most {MAX_HEADER_BYTES:,} bytes is expected. Save the model again with "
            "outsample.save."
        )
    raw = stream.read(length)
    if len(raw) < length:
        raise damaged(path, f"it ends within its header, after {size} bytes")
    try:
        header = parse_json(raw.decode())
        texts: Any = header.pop(METADATA, None) if isinstance(header, dict) else None
        if not _is_texts(texts):
            raise ValueError("it has no texts")
    except (ValueError, RecursionError) as error:
        raise ModelFileError(
            f"{path}: is not a model of outsample, or its header is damaged ({error})."
        ) from None
    with content_errors(path):
        check_version(texts)
        own = texts.get(OWN_CHECKSUM, "")
        if len(own) != len(NO_DIGEST) or raw.count(_own(own)) != 1:
            raise ValueError("its header has no checksum")
        if hashlib.sha256(raw.replace(_own(own), _own(NO_DIGEST))).hexdigest() != own:
            raise ValueError("its header does not agree with its checksum")
        entries = _entries(header, 8 + length, size)
        sums = parse_json(texts.get(CHECKSUMS, ""))
        if not _is_texts(sums) or set(sums) != set(entries):
            raise ValueError("it does not have one checksum per array")
    return Header(os.fspath(path), texts, entries, sums, size)


def damaged(path: object, reason: str) -> ModelFileError:
    """Return the error for a model file that is not as it was written."""
    return ModelFileError(
        f"{path}: is damaged or was tampered with: {reason[:300]}. Restore it from a backup, or "
        "save the model again."
    )


@contextmanager
def content_errors(path: object) -> Iterator[None]:
    """Convert errors that the contents of a file cause to a `ModelFileError`."""
    try:
        yield
    except ModelFileError:
        raise
    except KeyError as error:
        raise damaged(path, f"it has no {error}") from None
    except (
        ValueError, TypeError, AttributeError, IndexError, OverflowError, RecursionError
    ) as error:  # fmt: skip
        raise damaged(path, str(error)) from None


def parse_json(text: str) -> Any:
    """Parse JSON without repeated names and without NaN."""
    return json.loads(text, object_pairs_hook=_unique, parse_constant=_reject_constant)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a name occurs twice")
    return dict(pairs)


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def parse_bytes(data: np.ndarray) -> Any:
    """Parse JSON that is stored as an array of bytes."""
    if data.dtype != np.uint8 or data.ndim != 1:
        raise ValueError("strings are not stored as bytes")
    return parse_json(data.tobytes().decode())


def parse_strings(data: np.ndarray) -> list[str]:
    """Parse a list of strings that is stored as an array of bytes."""
    strings = parse_bytes(data)
    if not isinstance(strings, list) or not all(isinstance(item, str) for item in strings):
        raise ValueError("strings are not a list of strings")
    return strings


def _is_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


def _entries(header: dict[str, Any], begin: int, size: int) -> dict[str, Entry]:
    """Return the arrays by name; they must fill the file after the header without gaps."""
    if len(header) > MAX_ARRAYS:
        raise ValueError(f"it has {len(header):,} arrays, but at most {MAX_ARRAYS:,} are allowed")
    entries = {name: _entry(name, description, begin) for name, description in header.items()}
    end = begin
    for name, entry in sorted(entries.items(), key=lambda pair: pair[1][2:]):
        if entry.start != end:
            raise ValueError(f"array {name!r} does not begin where the previous one ends")
        if entry.start % entry.dtype.itemsize:
            raise ValueError(f"array {name!r} is not aligned")
        end = entry.stop
    if end != size:
        raise ValueError(f"it has {size:,} bytes, but its arrays end at {end:,}")
    return entries


def _entry(name: str, description: Any, begin: int) -> Entry:
    match description:
        case {"dtype": dtype, "shape": shape, "data_offsets": offsets} if len(description) == 3:
            if not isinstance(dtype, str) or dtype not in DTYPES:
                raise ValueError(f"array {name!r} has an unknown dtype")
            if not _are_sizes(shape, 4) or not _are_sizes(offsets, 2) or len(offsets) != 2:
                raise ValueError(f"array {name!r} has no valid shape or offsets")
        case _:
            raise ValueError(f"array {name!r} is not described")
    start, stop = offsets
    if stop - start != math.prod(shape) * np.dtype(DTYPES[dtype]).itemsize:
        raise ValueError(f"array {name!r} of shape {shape} does not fit its offsets {offsets}")
    return Entry(np.dtype(DTYPES[dtype]), tuple(shape), begin + start, begin + stop)


def _are_sizes(values: Any, max_length: int) -> bool:
    is_list = isinstance(values, list) and len(values) <= max_length
    return is_list and all(type(value) is int and 0 <= value < MAX_SIDE for value in values)


class Mapped:
    """The memory-mapped arrays of a file: processes share them and read them at first use.

    The mapping is private and writable because kernels are compiled for writable arrays; writing
    copies the pages concerned and does not change the file.
    """

    def __init__(self, header: Header, stream: BinaryIO) -> None:
        self.header = header
        self.map = mmap.mmap(stream.fileno(), header.file_bytes, access=mmap.ACCESS_COPY)

    def array(self, name: str) -> np.ndarray:
        """Return an array as it is in the file, without verifying it."""
        entry = self.header.entries[name]
        if entry.start == entry.stop:
            return np.empty(entry.shape, entry.dtype)
        count = (entry.stop - entry.start) // entry.dtype.itemsize
        return np.frombuffer(self.map, entry.dtype, count, entry.start).reshape(entry.shape)

    def verify(self, names: Any = None) -> None:
        """Raise if arrays, by default all of them, do not agree with their checksums."""
        for name in self.header.entries if names is None else names:
            if digest(self.array(name)) != self.header.checksums[name]:
                raise damaged(self.header.path, f"array {name!r} does not agree with its checksum")
