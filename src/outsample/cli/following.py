"""`outsample place --follow`: an answer to every line as soon as it is there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import click
import numpy as np

from outsample.cli.exit_codes import BAD_DATA, Failure
from outsample.cli.models import Opened
from outsample.cli.options import COLUMNS_HINT
from outsample.files.batch_placing import BatchPlacing
from outsample.files.matching import Matched, check_apart, match_features
from outsample.files.source import CellError
from outsample.files.table_writer import JsonWriter, TextWriter, write_all
from outsample.files.text_format import (
    MAX_ROW_BYTES,
    TextFormat,
    feature_value,
    quoted,
    split_line,
    text_format,
)

AT_ONCE = 2**16


def follow(opened: Opened, placing: BatchPlacing, given: dict[str, Any]) -> None:
    """Place the lines that have come, all at once, and write an answer to each.

    Lines that come slowly are answered one by one; of many that wait already, a batch is made,
    which gives the same answers. A line that is no row of numbers is told on the standard error
    and answered by empty cells, or ends it with ``--bad-rows stop``.
    """
    out = sys.stdout.buffer
    writer = JsonWriter() if given["as_json"] else TextWriter(given["delimiter"] or ",")
    heading = None
    for first, lines in _arriving(sys.stdin.buffer):
        used = 0
        if heading is None:
            blank = next(at for at, line in enumerate(lines) if line is None or line.strip())
            heading = _Heading(lines[blank], first + blank, opened, given)
            used = blank + heading.format.heading
            check_apart(heading.carried, placing.names)
            write_all(out, writer.begin(dict.fromkeys([*heading.carried, *placing.names], ())))
        stop = given["bad_rows"] == "stop"
        _answer(heading, lines[used:], first + used, placing, writer, out, stop=stop)


class _Heading:
    """What the first line says, and where in a line the features are."""

    def __init__(
        self, line: str | None, line_number: int, opened: Opened, given: dict[str, Any]
    ) -> None:
        self.path = "standard input"
        try:
            self.format: TextFormat = text_format(_checked(line), given["delimiter"])
        except CellError as error:
            raise CellError(f"{self.path}: line {line_number} {error}") from None
        self.names, self.has_names = self.format.names, self.format.heading
        self.matched: Matched = match_features(
            self, opened.feature_names, opened.info.n_features, columns=given["columns"],
            carried=given["ids"], carried_if_there=list(opened.columns), hint=COLUMNS_HINT,
        )  # fmt: skip
        self.carried = [self.names[at] for at in self.matched.carried]

    def cells(self, line: str | None) -> tuple[list[float], list[str], str]:
        """Numbers of a line, what is carried, and what is wrong with it."""
        fault = ""
        try:
            cells = split_line(_checked(line), self.format.delimiter)
            if len(cells) != len(self.names):
                fault = f"has {len(cells)} columns, but others have {len(self.names)}"
        except CellError as error:
            fault = str(error)
        if fault:
            return [np.nan] * len(self.matched.features), [""] * len(self.carried), fault
        values = [feature_value(cells[at]) for at in self.matched.features]
        for at, value in zip(self.matched.features, values, strict=True):
            if value is None or not np.isfinite(value):
                fault = f"column {self.names[at]!r}: {quoted(cells[at])} is no finite number"
                break
        numbers = [np.nan if value is None else value for value in values]
        return numbers, [cells[at] for at in self.matched.carried], fault


def _answer(
    heading: _Heading, lines: list[str | None], first: int, placing: BatchPlacing, writer: Any,
    out: Any, *, stop: bool,
) -> None:  # fmt: skip
    rows, fault = [], ""
    for at, line in enumerate(lines, start=first):
        if line is not None and not line.strip():
            continue
        numbers, carried, wrong = heading.cells(line)
        if wrong:
            fault = f"line {at} {wrong}"
            if stop:
                break
            click.echo(f"Error: {fault}", err=True)
        rows.append((numbers, carried))
    if rows:
        X = np.array([numbers for numbers, _ in rows])
        texts = zip(*(carried for _, carried in rows), strict=True)
        columns: dict[str, Any] = {
            name: np.array(text, dtype=object)
            for name, text in zip(heading.carried, texts, strict=True)
        }
        write_all(out, writer.chunk(columns | placing.columns(X)))
    if fault and stop:
        raise Failure(fault, BAD_DATA)


def _checked(line: str | None) -> str:
    if line is None:
        raise CellError(f"is longer than {MAX_ROW_BYTES >> 20} MB")
    return line


def _arriving(stream: Any) -> Iterator[tuple[int, list[str | None]]]:
    """Lines as they come, with the number of the first; the last may lack its end.

    A line that is too long is None: what is beyond the limit is read, but not kept.
    """
    read = getattr(stream, "read1", stream.read)
    pending, first = bytearray(), 1
    while True:
        more = read(AT_ONCE)
        *ends, begin = more.split(b"\n")
        lines: list[str | None] = []
        for end in ends:
            lines.append(_line(pending, end, first + len(lines)))
            pending.clear()
        pending += begin[: MAX_ROW_BYTES + 1 - len(pending)]
        if not more and pending:
            lines.append(_line(pending, b"", first))
        if any(line is None or line.strip() for line in lines):
            yield first, lines
        first += len(lines)
        if not more:
            return


def _line(begin: bytearray, end: bytes, number: int) -> str | None:
    if len(begin) + len(end) > MAX_ROW_BYTES:
        return None
    return (begin + end).decode("utf-8-sig" if number == 1 else "utf-8", "replace")
