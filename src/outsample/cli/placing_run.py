"""One run of `outsample place`: read a chunk, place it, write it, note that it is written."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from outsample.files.batch_placing import BatchPlacing
from outsample.files.matching import Matched
from outsample.files.output import complete, writer_for
from outsample.files.partial import PartialFile
from outsample.files.source import Position, Source
from outsample.files.table_writer import Columns, TextWriter, write_all

Tell = Callable[[int, int], None]


class Run(NamedTuple):
    """What to read, and how to place it."""

    source: Source
    matched: Matched
    placing: BatchPlacing
    jobs: int
    lenient: bool
    delimiter: str | None

    def chunks(self, start: Position) -> Iterator[tuple[Columns, Position]]:
        """Columns of the answer, and where the rows they answer end."""
        rows = self.source.rows(
            self.matched.features, self.matched.carried, start, lenient=self.lenient
        )
        names = [self.source.names[at] for at in self.matched.features]
        placed = self.placing.place(
            rows, jobs=self.jobs, path=self.source.path, features=names, lenient=self.lenient
        )
        for read, columns in placed:
            yield read.carried | columns, read.end

    def empty(self) -> Columns:
        """Columns of an answer without rows."""
        carried = {self.source.names[at]: np.empty(0, object) for at in self.matched.carried}
        return carried | self.placing.empty()


def run_into_file(run: Run, partial: PartialFile, out: str, tell: Tell) -> int:
    """Write into a partial file, and make the file ``out`` of it; return the number of rows."""
    writer = writer_for(out, run.delimiter)
    begun = partial.n_bytes > 0
    written = False
    for columns, end in run.chunks(partial.position):
        if not written:
            heading = writer.begin(columns)
            if not begun:
                partial.append(heading)
            written = True
        partial.append(writer.chunk(columns), end)
        tell(end.row, end.offset)
    if not written and not begun:
        partial.append(writer.begin(run.empty()))
    partial.append(writer.end())
    n_rows = partial.position.row
    complete(partial, out, run.source.path, run.placing.map_names)
    return n_rows


def run_into_pipe(run: Run, tell: Tell) -> int:
    """Write text to the standard output; return the number of rows."""
    writer, out = TextWriter(run.delimiter or ","), sys.stdout.buffer
    end = Position()
    for columns, after in run.chunks(end):
        heading = b"" if end.row else writer.begin(columns)
        write_all(out, heading + writer.chunk(columns))
        end = after
        tell(end.row, end.offset)
    if not end.row:
        write_all(out, writer.begin(run.empty()))
    return end.row
