"""Tables in text, plain or compressed, from a file or a pipe: read block by block.

pyarrow reads the blocks where it is installed, because it is quick; what it refuses, or all where
it is missing, is read cell by cell. A block that both can read gives the same numbers by both.
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

BLOCK = 2**20
SMALL = 2**16  # bytes that are read sooner than pyarrow is imported
BOM = b"\xef\xbb\xbf"


class TextSource:
    """A table in text; ``stream`` is a pipe that is read once."""

    def __init__(
        self, path: str, *, delimiter: str | None = None, stream: IO[bytes] | None = None
    ) -> None:
        self.path = path
        self._stream = stream
        self.size: int | None = None
        with _damage_told(path):
            opened = self._open()
            self._start, first, self._rest = _first_line(opened, path)
            if stream is None:
                opened.close()
            try:
                self.format = text_format(first, delimiter)
            except CellError as error:
                raise CellError(f"{path}: line {self._start.line + 1} {error}") from None
        if self.format.heading:
            rest = self._rest.partition(b"\n")[2]
            used = len(self._rest) - len(rest)
            self._start, self._rest = _after(self._start, self._rest[:used]), rest
            if stream is None:  # of a pipe the next line may be long in coming
                self.format = self.format.with_row_names(self._second_line())
        self.names, self.has_names = self.format.names, self.format.heading

    def rows(
        self,
        features: Sequence[int],
        carried: Sequence[int] = (),
        start: Position = Position(),  # noqa: B008
        *,
        lenient: bool = False,
    ) -> Iterator[Rows]:
        """Read columns by number; if lenient, cells that are no numbers are NaN."""
        begin = max(start, self._start)
        opened = self._open()
        try:
            rest = self._rest
            if self._stream is None:
                with _damage_told(self.path):
                    opened.seek(begin.offset)
                rest = b""
            for block in _blocks(opened, rest, self.path, begin):
                numbers, texts = self._parsed(block, features, carried, begin, lenient)
                end = _after(begin, block, len(numbers))
                if len(numbers):
                    names = [self.names[at] for at in carried]
                    yield Rows(numbers, dict(zip(names, texts, strict=True)), begin, end)
                begin = end
        finally:
            if self._stream is None:
                opened.close()

    def _open(self) -> Any:
        if self._stream is not None:
            return self._stream
        if self.path.lower().endswith(".gz"):
            return gzip.open(self.path, "rb")
        opened = open(self.path, "rb")
        self.size = opened.seek(0, io.SEEK_END)
        opened.seek(0)
        return opened

    def _second_line(self) -> str:
        with _damage_told(self.path), self._open() as opened:
            opened.seek(self._start.offset)
            return opened.readline(BLOCK).decode("utf-8", "replace")

    def _parsed(
        self,
        block: bytes,
        features: Sequence[int],
        carried: Sequence[int],
        begin: Position,
        lenient: bool,
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        delimiter, width = self.format.delimiter, len(self.names)
        if delimiter is not None and len(block) > SMALL and find_spec("pyarrow"):
            found = _by_arrow(block, delimiter, width, features, carried)
            if found is not None:
                return found
        careful = _CellByCell(self.path, delimiter, width, begin.line, lenient)
        return careful.read(block, features, carried)


def _first_line(stream: Any, path: str) -> tuple[Position, str, bytes]:
    """Return where the first line with anything in it starts, that line, and what was read on."""
    begin, rest = Position(), stream.read(len(BOM))
    if rest == BOM:
        begin, rest = Position(offset=len(BOM)), b""
    while True:
        line, newline, after = rest.partition(b"\n")
        if newline and not line.strip():
            begin, rest = _after(begin, line + newline), after
        elif newline:
            break
        else:
            more = stream.read1(BLOCK) if hasattr(stream, "read1") else stream.read(BLOCK)
            if not more:
                break
            rest += more
            if len(rest) > MAX_ROW_BYTES:
                raise _endless_row(path, begin.line)
    if b"\r" in line.rstrip(b"\r"):
        raise CellError(f"{path}: its lines end by a carriage return alone; convert them")
    return begin, line.decode("utf-8"), rest


def _after(begin: Position, block: bytes, n_rows: int = 0) -> Position:
    lines = block.count(b"\n") + (block[-1:] not in (b"\n", b""))
    return Position(begin.row + n_rows, begin.offset + len(block), begin.line + lines)


def _blocks(stream: Any, rest: bytes, path: str, begin: Position) -> Iterator[bytes]:
    """Cut a stream at the ends of rows: at line ends outside quotation marks."""
    row = begin.line
    while True:
        with _damage_told(path):
            # As many from where a block begins, so that they are the same when reading goes on.
            more = stream.read(BLOCK - len(rest) % BLOCK)
        if not more:
            if rest.strip():
                yield rest
            return
        rest += more
        cut = _row_end(rest)
        if cut:
            yield rest[:cut]
            row += rest[:cut].count(b"\n")
            rest = rest[cut:]
        elif len(rest) > MAX_ROW_BYTES:
            raise _endless_row(path, row)


def _endless_row(path: str, line: int) -> CellError:
    return CellError(
        f"{path}: the row from line {line + 1} on has no end within {MAX_ROW_BYTES >> 20} MB; "
        "is a quotation mark missing?"
    )


def _row_end(block: bytes) -> int:
    """Bytes up to the last line end that is in no quotation; 0 without one."""
    cut = block.rfind(b"\n") + 1
    while cut and block.count(b'"', 0, cut) % 2:
        # The last line end is inside a quotation, which begins after the end that is sought.
        cut = block.rfind(b"\n", 0, block.rfind(b'"', 0, cut)) + 1
    return cut


def _by_arrow(
    block: bytes, delimiter: str, width: int, features: Sequence[int], carried: Sequence[int]
) -> tuple[np.ndarray, list[np.ndarray]] | None:
    """Numbers (m, D) and texts by pyarrow, or None where it cannot read a cell as a number."""
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
    texts = [table.column(str(at)).to_numpy() for at in carried]
    return numbers, texts


class _CellByCell:
    """Reads a block with Python alone, and says where it is no table of numbers."""

    def __init__(
        self, path: str, delimiter: str | None, width: int, line: int, lenient: bool
    ) -> None:
        self.path, self.delimiter, self.width = path, delimiter, width
        self.line, self.lenient = line, lenient

    def read(
        self, block: bytes, features: Sequence[int], carried: Sequence[int]
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        rows, lines = self._cells(block)
        numbers = np.empty((len(rows), len(features)))
        for to, at in enumerate(features):
            cells = [row[at] for row in rows]
            try:  # the usual case, five times as fast
                if not has_plain_digits("".join(cells)):
                    raise ValueError
                numbers[:, to] = np.fromiter(map(float, cells), np.float64, len(rows))
            except ValueError:
                values = [feature_value(cell) for cell in cells]
                if None in values and not self.lenient:
                    raise self._first_fault(rows, lines, features) from None
                numbers[:, to] = np.array(values, dtype=np.float64)  # None is NaN
        texts = [np.array([row[at] for row in rows], dtype=object) for at in carried]
        return numbers, texts

    def _cells(self, block: bytes) -> tuple[list[list[str]], list[int]]:
        """Rows of cells, and the line on which each ends."""
        try:
            stream = io.StringIO(block.decode("utf-8"), newline=None)
        except UnicodeDecodeError:
            raise CellError(f"{self.path}: is not text in UTF-8") from None
        reader: Any = map(split_blanks, stream)
        if self.delimiter is not None:
            reader = csv.reader(stream, delimiter=self.delimiter)
        rows, lines = [], []
        try:
            for at, row in enumerate(reader, start=1):
                if not any(map(str.strip, row)) and len(row) <= 1:
                    continue
                line = self.line + getattr(reader, "line_num", at)
                if len(row) != self.width and self.lenient:
                    row = [""] * self.width
                elif len(row) != self.width:
                    raise CellError(
                        f"{self.path}: line {line} has {len(row)} columns, but others have "
                        f"{self.width}"
                    )
                rows.append(row)
                lines.append(line)
        except csv.Error as error:
            raise CellError(f"{self.path}: after line {self.line}: {error}") from None
        return rows, lines

    def _first_fault(
        self, rows: list[list[str]], lines: list[int], features: Sequence[int]
    ) -> CellError:
        """Say where the first cell is that is no number; lines and columns count from 1."""
        for line, row in zip(lines, rows, strict=True):
            for at in features:
                if feature_value(row[at]) is None:
                    cell = row[at].strip()
                    what = f"{quoted(cell)} is no number" if cell else "a cell is empty"
                    return CellError(f"{self.path}: line {line}, column {at + 1}: {what}", at)
        raise AssertionError("a number was none, and now all are")


@contextmanager
def _damage_told(path: str) -> Iterator[None]:
    """Say in one sentence what is wrong with a compressed or foreign file, and name it."""
    try:
        yield
    except UnicodeDecodeError:
        raise CellError(f"{path}: is not text in UTF-8") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise CellError(f"{path}: damaged ({error})") from None
