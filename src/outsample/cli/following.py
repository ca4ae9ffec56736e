"""`outsample place --follow`: each line of a pipe is answered as soon as it arrives."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import click
import numpy as np

from outsample.cli.exit_codes import BAD_DATA, Failure
from outsample.cli.options import COLUMNS_HINT
from outsample.files.matching import check_apart
from outsample.files.source import CellError
from outsample.files.table_writer import JsonWriter, TextWriter, write_all
from outsample.files.text_format import (
    MAX_ROW_BYTES,
    feature_value,
    quoted,
    split_line,
    text_format,
)
from outsample.opened_model import OpenedModel

READ_BYTES = 2**16


def follow(opened: OpenedModel, settings: dict[str, Any]) -> None:
    """Place the lines that have arrived, and write an answer to each.

    Lines that are already waiting are placed as one batch, which gives the same answers. A line
    that is not a row of numbers is reported on the standard error and answered by empty cells;
    with ``--bad-rows stop`` it ends the command.
    """
    out = sys.stdout.buffer
    writer = JsonWriter() if settings["as_json"] else TextWriter(settings["delimiter"] or ",")
    stops, table = settings["bad_rows"] == "stop", None
    for first, lines in _arriving(sys.stdin.buffer):
        n_used = 0
        if table is None:
            blank = next(at for at, line in enumerate(lines) if line is None or line.strip())
            table = _FollowedTable(lines[blank], first + blank, opened, settings)
            n_used = blank + table.has_names
            names = list(opened.empty(explain=settings["explain"]))
            check_apart(table.carried, names)
            write_all(out, writer.begin(dict.fromkeys([*table.carried, *names], ())))
        rows, problem = [], ""
        for at, line in enumerate(lines[n_used:], start=first + n_used):
            if line is not None and not line.strip():
                continue
            numbers, texts, problem = table.cells(line)
            if problem:
                problem = f"line {at} {problem}"
                if stops:
                    break
                click.echo(f"Error: {problem}", err=True)
            rows.append((numbers, texts))
        if rows:
            X = np.array([numbers for numbers, _ in rows])
            columns: dict[str, Any] = {
                name: np.array([texts[at] for _, texts in rows], dtype=object)
                for at, name in enumerate(table.carried)
            }
            columns |= opened.place_rows(X, explain=settings["explain"])
            write_all(out, writer.chunk(columns))
        if problem and stops:
            raise Failure(problem, BAD_DATA)


class _FollowedTable:
    """A table of which only the first line has arrived."""

    path = "standard input"

    def __init__(
        self, line: str | None, line_number: int, opened: OpenedModel, settings: dict[str, Any]
    ) -> None:
        try:
            layout = text_format(_checked(line), settings["delimiter"])
        except CellError as error:
            raise CellError(f"{self.path}: line {line_number} {error}") from None
        self.delimiter, self.names, self.has_names = layout.delimiter, layout.names, layout.heading
        self.feature_columns = layout.feature_columns
        self.matched = opened.match(
            self, columns=settings["columns"], carried=settings["ids"],
            carried_if_present=list(opened.training_columns), hint=COLUMNS_HINT,
        )  # fmt: skip
        self.carried = [self.names[at] for at in self.matched.carried]

    def cells(self, line: str | None) -> tuple[list[float], list[str], str]:
        """Return the numbers of a line, the cells to carry, and what is wrong with the line."""
        problem = ""
        try:
            cells = split_line(_checked(line), self.delimiter)
            if len(cells) != len(self.names):
                problem = f"has {len(cells)} columns, but others have {len(self.names)}"
        except CellError as error:
            problem = str(error)
        if problem:
            return [np.nan] * len(self.matched.features), [""] * len(self.carried), problem
        values = [feature_value(cells[at]) for at in self.matched.features]
        for at, value in zip(self.matched.features, values, strict=True):
            if value is None or not np.isfinite(value):
                problem = f"column {self.names[at]!r}: {quoted(cells[at])} is not a finite number"
                break
        numbers = [np.nan if value is None else value for value in values]
        return numbers, [cells[at] for at in self.matched.carried], problem


def _checked(line: str | None) -> str:
    if line is None:
        raise CellError(f"is longer than {MAX_ROW_BYTES >> 20} MB")
    return line


def _arriving(stream: Any) -> Iterator[tuple[int, list[str | None]]]:
    """Yield lines as they arrive, with the number of the first; the last may lack its end.

    A line that is too long is None: the part beyond the limit is read, but not kept.
    """
    read = getattr(stream, "read1", stream.read)
    pending, first = bytearray(), 1
    while True:
        block = read(READ_BYTES)
        *ends, begin = block.split(b"\n")
        lines: list[str | None] = []
        for end in ends:
            lines.append(_decoded(pending, end, first + len(lines)))
            pending.clear()
        pending += begin[: MAX_ROW_BYTES + 1 - len(pending)]
        if not block and pending:
            lines.append(_decoded(pending, b"", first))
        if any(line is None or line.strip() for line in lines):
            yield first, lines
        first += len(lines)
        if not block:
            return


def _decoded(begin: bytearray, end: bytes, number: int) -> str | None:
    if len(begin) + len(end) > MAX_ROW_BYTES:
        return None
    return (begin + end).decode("utf-8-sig" if number == 1 else "utf-8", "replace")
