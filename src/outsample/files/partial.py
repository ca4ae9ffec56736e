"""An output file that appears when it is complete; an interrupted run can be resumed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from time import monotonic
from typing import Any, BinaryIO

from outsample.files.atomic import (
    OutputError,
    atomic_write,
    check_target,
    errors_of,
    move_into_place,
    open_locked,
)
from outsample.files.source import Position

# Syncing after every chunk would take a third of the time of a run.
SECONDS_BETWEEN_SYNCS = 1.0


class PartialFile:
    """``OUT.partial``, locked, with a journal of how much of the input it contains.

    Both are removed by `finish`. The journal is written after the bytes it counts are on the disk;
    bytes beyond it are cut off when a run is resumed.

    Parameters
    ----------
    out : str or path-like
        The file to make; symbolic links are followed.
    task : mapping
        Description of the run in JSON values; a run is resumed only with the same task.
    """

    def __init__(self, out: str | os.PathLike[str], task: Mapping[str, Any]) -> None:
        self.out = check_target(out)
        self.path = self.out.with_name(self.out.name + ".partial")
        self.journal = self.out.with_name(self.out.name + ".partial.json")
        self.task = json.loads(json.dumps(task))
        self.n_bytes = 0
        self._file: BinaryIO | None = None
        # Position and size after the last whole chunk, and those in the journal.
        self._whole = self._recorded = (Position(), 0)
        self._synced_at = -SECONDS_BETWEEN_SYNCS

    @property
    def position(self) -> Position:
        """The end of the rows in the file."""
        return self._whole[0]

    def open(self, *, resume: bool = False, restart: bool = False) -> bool:
        """Start, or resume an interrupted run; return whether it is resumed."""
        self._file = open_locked(self.path, self.out, keep=True)
        try:
            record = None if restart else self._read_journal()
            if record is not None and not resume:
                raise OutputError(
                    f"{self.path} of an interrupted run has {record['row']} rows: continue with "
                    "--resume, or start again with --restart"
                )
            if record is not None:
                self._check_task(record["task"])
                position = Position(record["row"], record["offset"], record["line"])
                self._whole = self._recorded = position, record["n_bytes"]
        except BaseException:
            self._file.close()
            raise
        self.n_bytes = self._whole[1]
        self._file.truncate(self.n_bytes)
        self._file.seek(self.n_bytes)
        return record is not None

    def append(self, data: bytes, position: Position | None = None) -> None:
        """Write bytes; with a position, the input up to there is now in the file."""
        assert self._file is not None
        with errors_of(self.path):
            self._file.write(data)
            self._file.flush()
        self.n_bytes += len(data)
        if position is not None:
            self._whole = position, self.n_bytes
            if monotonic() - self._synced_at >= SECONDS_BETWEEN_SYNCS:
                self._write_journal()

    def close(self) -> None:
        """Keep the rows written so far, up to `position`; without rows, remove the file."""
        if self._file is not None:
            with suppress(OSError):  # on a full disk the last journal stays valid
                if self._whole != self._recorded:
                    self._write_journal()
            self._whole = self._recorded
            if not self.position.row:
                self.remove()
                return
            self._file.close()
            self._file = None

    def finish(self) -> None:
        """Give the complete file its name."""
        assert self._file is not None
        # A journal without a partial file would stop the next run; the reverse only repeats work.
        self.journal.unlink(missing_ok=True)
        with errors_of(self.out):
            move_into_place(self._file, self.path, self.out)
        self._file.close()
        self._file = None

    def remove(self) -> None:
        """Remove the file and its journal."""
        self.journal.unlink(missing_ok=True)
        self.path.unlink(missing_ok=True)
        if self._file is not None:
            self._file.close()
            self._file = None

    def _read_journal(self) -> dict[str, Any] | None:
        n_bytes = os.path.getsize(self.path)
        if n_bytes == 0:  # nothing was written, or this run has just created the file
            return None
        try:
            record = json.loads(self.journal.read_text(encoding="utf-8"))
            if n_bytes < record["n_bytes"]:
                raise ValueError
            return dict(record)
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, UnicodeDecodeError):
            raise OutputError(
                f"{self.journal} is damaged, or ahead of {self.path}: start again with --restart"
            ) from None

    def _check_task(self, recorded: Mapping[str, Any]) -> None:
        changed = [name for name in self.task if recorded.get(name) != self.task[name]]
        if changed:
            raise OutputError(
                f"{self.path} belongs to another run ({', '.join(changed)} differ): start again "
                "with --restart"
            )

    def _write_journal(self) -> None:
        """Sync the rows, then record them."""
        assert self._file is not None
        position, n_bytes = self._whole
        record = {**position._asdict(), "n_bytes": n_bytes, "task": self.task}
        with errors_of(self.path):
            os.fsync(self._file.fileno())
        with atomic_write(self.journal) as stream:
            stream.write(json.dumps(record).encode())
        self._recorded, self._synced_at = self._whole, monotonic()
