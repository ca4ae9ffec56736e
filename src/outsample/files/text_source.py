"""Tables in text, plain or compressed, from a file or a pipe: read block by block.

pyarrow reads large blocks if it is installed, because it is faster. Blocks that it rejects are read
cell by cell. Both give the same numbers.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import IO, Any

import numpy as np

from outsample.files.source import CellError, Position, Rows
from outsample.files.text_format import (
    MAX_ROW_BYTES,
    feature_value,
    has_plain_digits,
    quoted,
    split_blanks,
    text_format,
)

BLOCK_BYTES = 2**20
# Smaller blocks are read before pyarrow is imported.
MIN_ARROW_BYTES = 2**16
BOM = b"\xef\xbb\xbf"


class TextSource:
    """A table in text; ``stream`` is a pipe that is read once."""

    def __init__(
        self, path: str, *, delimiter: str | None = None, stream: IO[bytes] | None = None
    ) -> None:
        self.path = path
        self._stream = stream
        self.size: int | None = None
        with _readable_errors(path), self._opened() as opened:
            self._start, first_line, self._buffer = _first_line(opened, path)
            try:
                self.format = text_format(first_line, delimiter)
            except CellError as error:
                raise CellError(f"{path}: line {self._start.line + 1} {error}") from None
            if self.format.heading:
                heading, newline, self._buffer = self._buffer.partition(b"\n")
                self._start = _after(self._start, heading + newline)
                if stream is None:  # the next line of a pipe may take long to arrive
                    opened.seek(self._start.offset)
                    second_line = opened.readline(BLOCK_BYTES).decode("utf-8", "replace")
                    self.format = self.format.with_row_names(second_line)
        self.names, self.has_names = self.format.names, self.format.heading
        self.feature_columns = self.format.feature_columns

    def rows(
        self,
        features: Sequence[int],
        carried: Sequence[int] = (),
        start: Position = Position(),  # noqa: B008
        *,
        lenient: bool = False,
    ) -> Iterator[Rows]:
        """Read columns by number; with ``lenient``, cells that are not numbers become NaN."""
        begin = max(start, self._start)
        with self._opened() as opened:
            buffer = self._buffer
            if self._stream is None:
                with _readable_errors(self.path):
                    opened.seek(begin.offset)
                buffer = b""
            for block in _blocks(opened, buffer, self.path, begin):
                numbers, texts = self._parsed(block, features, carried, begin.line, lenient)
                end = _after(begin, block, len(numbers))
                if len(numbers):
                    names = [self.names[at] for at in carried]
                    yield Rows(numbers, dict(zip(names, texts, strict=True)), begin, end)
                begin = end

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        """Open the file; a pipe stays open."""
        if self._stream is not None:
            yield self._stream
        elif self.path.lower().endswith(".gz"):
            with gzip.open(self.path, "rb") as opened:
                yield opened
        else:
            with open(self.path, "rb") as opened:
                self.size = opened.seek(0, io.SEEK_END)
                opened.seek(0)
                yield opened

    def _parsed(
        self,
        block: bytes,
        features: Sequence[int],
        carried: Sequence[int],
        first_line: int,
        lenient: bool,
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return the numbers (m, D) of a block, and its columns of text."""
        delimiter = self.format.delimiter
        if delimiter is not None and len(block) > MIN_ARROW_BYTES and find_spec("pyarrow"):
            parsed = _by_arrow(block, delimiter, len(self.names), features, carried)
            if parsed is not None:
                return parsed
        rows, lines = self._cells(block, first_line, lenient)
        numbers = np.empty((len(rows), len(features)))
        for to, at in enumerate(features):
            cells = [row[at] for row in rows]
            try:  # the usual case, five times as fast
                if not has_plain_digits("".join(cells)):
                    raise ValueError
                numbers[:, to] = np.fromiter(map(float, cells), np.float64, len(rows))
            except ValueError:
                values = [feature_value(cell) for cell in cells]
                if None in values and not lenient:
                    raise self._first_error(rows, lines, features) from None
                numbers[:, to] = np.array(values, dtype=np.float64)  # None is NaN
        return numbers, [np.array([row[at] for row in rows], dtype=object) for at in carried]

    def _cells(
        self, block: bytes, first_line: int, lenient: bool
    ) -> tuple[list[list[str]], list[int]]:
        """Return rows of cells, and the line on which each row ends."""
        width = len(self.names)
        with _readable_errors(self.path):
            stream = io.StringIO(block.decode("utf-8"), newline=None)
        reader: Any = map(split_blanks, stream)
        if self.format.delimiter is not None:
            reader = csv.reader(stream, delimiter=self.format.delimiter)
        rows, lines = [], []
        try:
            for at, row in enumerate(reader, start=1):
                if not any(map(str.strip, row)) and len(row) <= 1:
                    continue
                line = first_line + getattr(reader, "line_num", at)
                if len(row) != width and not lenient:
                    raise CellError(
                        f"{self.path}: line {line} has {len(row)} columns, but others have {width}"
                    )
                rows.append(row if len(row) == width else [""] * width)
                lines.append(line)
        except csv.Error as error:
            raise CellError(f"{self.path}: after line {first_line}: {error}") from None
        return rows, lines

    def _first_error(
        self, rows: list[list[str]], lines: list[int], features: Sequence[int]
    ) -> CellError:
        """Return the error of the first cell that is not a number; columns count from 1."""
        for line, row in zip(lines, rows, strict=True):
            for at in features:
                if feature_value(row[at]) is None:
                    cell = row[at].strip()
                    problem = f"{quoted(cell)} is not a number" if cell else "a cell is empty"
                    return CellError(f"{self.path}: line {line}, column {at + 1}: {problem}", at)
        raise AssertionError("all cells are numbers")


def _first_line(stream: Any, path: str) -> tuple[Position, str, bytes]:
    """Return where the first line with text starts, the line, and all bytes read from there on."""
    begin, buffer = Position(), stream.read(len(BOM))
    if buffer == BOM:
        begin, buffer = Position(offset=len(BOM)), b""
    while True:
        line, newline, following = buffer.partition(b"\n")
        if newline and not line.strip():
            begin, buffer = _after(begin, line + newline), following
        elif newline:
            break
        else:
            block = getattr(stream, "read1", stream.read)(BLOCK_BYTES)
            if not block:
                break
            buffer += block
            if len(buffer) > MAX_ROW_BYTES:
                raise _endless_row(path, begin.line)
    if b"\r" in line.rstrip(b"\r"):
        raise CellError(f"{path}: its lines end with a carriage return alone; convert them")
    return begin, line.decode("utf-8"), buffer


def _after(begin: Position, block: bytes, n_rows: int = 0) -> Position:
    n_lines = block.count(b"\n") + (block[-1:] not in (b"\n", b""))
    return Position(begin.row + n_rows, begin.offset + len(block), begin.line + n_lines)


def _blocks(stream: Any, buffer: bytes, path: str, begin: Position) -> Iterator[bytes]:
    """Cut a stream at ends of rows: line ends outside quotation marks."""
    line = begin.line
    while True:
        with _readable_errors(path):
            # Aligned with the start of a block, so that a resumed run cuts the same blocks.
            block = stream.read(BLOCK_BYTES - len(buffer) % BLOCK_BYTES)
        if not block:
            if buffer.strip():
                yield buffer
            return
        buffer += block
        cut = _row_end(buffer)
        if cut:
            yield buffer[:cut]
            line += buffer[:cut].count(b"\n")
            buffer = buffer[cut:]
        elif len(buffer) > MAX_ROW_BYTES:
            raise _endless_row(path, line)


def _endless_row(path: str, line: int) -> CellError:
    return CellError(
        f"{path}: the row from line {line + 1} on has no end within {MAX_ROW_BYTES >> 20} MB; "
        "is a quotation mark missing?"
    )


def _row_end(block: bytes) -> int:
    """Return the number of bytes up to the last line end outside quotation marks, or 0."""
    cut = block.rfind(b"\n") + 1
    while cut and block.count(b'"', 0, cut) % 2:
        # The line end is inside a quotation: look before the mark that opens it.
        cut = block.rfind(b"\n", 0, block.rfind(b'"', 0, cut)) + 1
    return cut


def _by_arrow(
    block: bytes, delimiter: str, width: int, features: Sequence[int], carried: Sequence[int]
) -> tuple[np.ndarray, list[np.ndarray]] | None:
    """Return numbers (m, D) and columns of text, or None if pyarrow rejects a cell."""
    import pyarrow
    from pyarrow import csv as arrow_csv

    types = {str(at): pyarrow.string() for at in carried}
    types |= {str(at): pyarrow.float64() for at in features}
    try:
        table = arrow_csv.read_csv(
            pyarrow.BufferReader(block),
            arrow_csv.ReadOptions(
                use_threads=False, block_size=len(block) + 1,
                column_names=[str(at) for at in range(width)],
            ),
            arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=b'"' in block),
            arrow_csv.ConvertOptions(
                column_types=types, null_values=[], include_columns=list(types)
            ),
        )  # fmt: skip
    except pyarrow.ArrowInvalid:
        return None
    numbers = np.empty((table.num_rows, len(features)))
    for to, at in enumerate(features):
        numbers[:, to] = table.column(str(at)).to_numpy()
    return numbers, [table.column(str(at)).to_numpy() for at in carried]


@contextmanager
def _readable_errors(path: str) -> Iterator[None]:
    """Turn errors of damaged or foreign files into one sentence with the name of the file."""
    try:
        yield
    except UnicodeDecodeError:
        raise CellError(f"{path}: is not text in UTF-8") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise CellError(f"{path}: damaged ({error})") from None
