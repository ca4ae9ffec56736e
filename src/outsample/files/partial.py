"""An output file that appears only when it is complete, and whose making can be gone on with."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from outsample.files.source import Position


class UnfinishedError(ValueError):
    """What an interrupted run left behind is in the way, or is of another task."""


class PartialFile:
    """``OUT.partial``, with a journal beside it of how much of the input is in it.

    Both are removed by `finish`. After a crash the journal is never ahead of the bytes that were
    written; what is written beyond it is cut off.

    Parameters
    ----------
    out : str or path-like
        The file that is to be.
    task : mapping
        What is done, in plain values; a run goes on only with the same task.
    """

    def __init__(self, out: str | os.PathLike[str], task: Mapping[str, Any]) -> None:
        self.out = Path(out)
        self.path = self.out.with_name(self.out.name + ".partial")
        self.journal = self.out.with_name(self.out.name + ".partial.json")
        self.task = json.loads(json.dumps(task))
        self.position, self.n_bytes = Position(), 0
        self._file: IO[bytes] | None = None

    def open(self, *, resume: bool = False, restart: bool = False) -> bool:
        """Begin, or go on where the last run was interrupted; return whether it goes on."""
        known = None if restart else self._read_journal()
        if known is not None and not resume:
            raise UnfinishedError(
                f"{self.path} of an interrupted run has {known['row']} rows: go on with --resume, "
                "or begin again with --restart"
            )
        if known is not None:
            self._check_task(known["task"])
            self.position = Position(known["row"], known["offset"], known["line"])
            self.n_bytes = known["n_bytes"]
        self._file = open(self.path, "r+b" if known is not None else "wb")
        self._file.truncate(self.n_bytes)
        self._file.seek(self.n_bytes)
        return known is not None

    def append(self, data: bytes, position: Position | None = None) -> None:
        """Write bytes; with a position, all that was read up to there is now in the file."""
        assert self._file is not None
        try:
            self._file.write(data)
            self._file.flush()
        except OSError as error:  # of a full disk, which does not say what was written
            raise OSError(error.errno, error.strerror, str(self.path)) from None
        self.n_bytes += len(data)
        if position is not None:
            self.position = position
            self._write_journal()

    def close(self) -> None:
        """Leave the file as it is, to go on another time."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def sync(self) -> None:
        """Close after all bytes are on the disk."""
        assert self._file is not None
        self._file.flush()
        os.fsync(self._file.fileno())
        self.close()

    def finish(self, made: Path | None = None) -> None:
        """Give the complete file its name: this one, or another made from it."""
        os.replace(made or self.path, self.out)
        self.remove()

    def remove(self) -> None:
        """Leave nothing behind."""
        self.close()
        self.path.unlink(missing_ok=True)
        self.journal.unlink(missing_ok=True)

    def _read_journal(self) -> dict[str, Any] | None:
        try:
            known = json.loads(self.journal.read_text(encoding="utf-8"))
            if os.path.getsize(self.path) < known["n_bytes"]:
                raise ValueError
            return dict(known)
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, UnicodeDecodeError):
            raise UnfinishedError(
                f"{self.journal} is damaged, or ahead of {self.path}: begin again with --restart"
            ) from None

    def _check_task(self, known: Mapping[str, Any]) -> None:
        other = [name for name in self.task if known.get(name) != self.task[name]]
        if other:
            raise UnfinishedError(
                f"{self.path} is of another run ({', '.join(other)} differ): begin again with "
                "--restart"
            )

    def _write_journal(self) -> None:
        written = {**self.position._asdict(), "n_bytes": self.n_bytes, "task": self.task}
        new = self.journal.with_name(self.journal.name + ".new")
        new.write_text(json.dumps(written), encoding="utf-8")
        os.replace(new, self.journal)
