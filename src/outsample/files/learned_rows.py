"""Learned rows in SQLite: on the disk before they are acknowledged.

Table ``learned`` has one record per call: id, idempotency key, rows, checksum. Table ``about`` ties
the file to its model, and names the snapshot that contains everything up to an id. SQLite provides
transactions, recovery after a crash, backup and inspection.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from outsample.files.old_learned_rows import OLD_FORMAT, LearnedFileError, read_old_file

FORMAT = 1
TABLES = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS learned (
    id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT UNIQUE, rows BLOB NOT NULL,
    checksum INTEGER NOT NULL
);
"""
Call = tuple[np.ndarray, str | None]


class LearnedRows:
    """The file of learned rows of one model; one service at a time has it open.

    Parameters
    ----------
    path : path-like
        The file; it is created if it does not exist, and converted if it has the old format.
    model : str
        Digest of the model. A file of another model is rejected.
    n_features : int
        Columns of a row.
    settings : dict
        ``window`` and ``guard``. A value of None takes that of the file; other values have to agree
        with the file.
    defaults : dict
        Settings of a new file where ``settings`` has None.
    """

    def __init__(
        self, path: str | os.PathLike[str], model: str, n_features: int,
        settings: dict[str, Any], defaults: dict[str, Any],
    ) -> None:  # fmt: skip
        self.path, self.n_features = Path(os.path.realpath(path)), n_features
        self.transaction_lock = threading.Lock()
        self.lock = _acquire_lock(self.path)
        try:
            with self._errors():
                self._open(model, settings, defaults)
        except BaseException:
            self.close()
            raise

    def _open(self, model: str, settings: dict[str, Any], defaults: dict[str, Any]) -> None:
        if self.path.exists():
            with open(self.path, "rb") as file:
                is_old = file.read(len(OLD_FORMAT)) == OLD_FORMAT
            if is_old:
                self._convert(defaults)
        self.database = _connect(self.path)
        if not self.database.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]:
            self._create(model, {**defaults, **_without_none(settings)})
        about = self.about
        if about.get("format") != FORMAT:
            raise LearnedFileError(f"{self.path}: is not a file of learned rows.")
        expected = {"model": model, "n_features": self.n_features, **_without_none(settings)}
        for name, value in expected.items():
            if about[name] != value:
                raise LearnedFileError(
                    f"{self.path}: was begun with {name} {about[name]!r}, not {value!r}. Serve "
                    "that model with these settings, or name another file with --learned."
                )
        self.settings = {name: about[name] for name in defaults}

    @property
    def about(self) -> dict[str, Any]:
        """What the file belongs to: model, settings, snapshot."""
        with self._errors():
            pairs = self.database.execute("SELECT name, value FROM about").fetchall()
        return {name: json.loads(value) for name, value in pairs}

    @property
    def n_bytes(self) -> int:
        """Size of the file and of its write-ahead log."""
        paths = (self.path, self.path.with_name(f"{self.path.name}-wal"))
        return sum(path.stat().st_size for path in paths if path.exists())

    def add(self, calls: Sequence[Call]) -> list[int]:
        """Commit the rows of calls in one transaction; return their ids."""
        with self._transaction() as database:
            records = [(key, *_pack(rows)) for rows, key in calls]
            insert = "INSERT INTO learned (key, rows, checksum) VALUES (?, ?, ?)"
            return [int(database.execute(insert, record).lastrowid or 0) for record in records]

    def find(self, keys: Sequence[str]) -> dict[str, np.ndarray]:
        """Return the rows that were sent with idempotency keys, by key."""
        marks = ",".join("?" * len(keys))
        select = f"SELECT id, rows, checksum, key FROM learned WHERE key IN ({marks})"
        records = self.database.execute(select, list(keys)).fetchall()
        return {record[3]: self._rows(*record[:3]) for record in records}

    def discard(self, number: int) -> None:
        """Remove a call that the model rejected."""
        with self._transaction() as database:
            database.execute("DELETE FROM learned WHERE id = ?", (number,))

    def count_after(self, number: int) -> int:
        """Return the number of calls with ids above a number."""
        with self._errors():
            count = "SELECT COUNT(*) FROM learned WHERE id > ?"
            return int(self.database.execute(count, (number,)).fetchone()[0])

    def calls_after(self, number: int) -> Iterator[tuple[int, np.ndarray]]:
        """Yield ids and rows (q, D) of the calls with ids above a number, in order."""
        select = "SELECT id, rows, checksum FROM learned WHERE id > ? ORDER BY id"
        with self._errors():
            for record in self.database.execute(select, (number,)):
                yield record[0], self._rows(*record)

    def describe(self, **values: Any) -> None:
        """Change entries of ``about`` in one transaction."""
        with self._transaction() as database:
            _describe(database, values)

    def prune(self, number: int) -> None:
        """Remove calls with ids up to a number, which a snapshot contains."""
        with self._transaction() as database:
            database.execute("DELETE FROM learned WHERE id <= ?", (number,))
            _describe(database, {"pruned": number})

    def close(self) -> None:
        """Let another service have the file."""
        if hasattr(self, "database"):
            self.database.close()
        self.lock.close()

    def _rows(self, number: int, data: bytes, checksum: int) -> np.ndarray:
        row_bytes = 8 * self.n_features
        if not isinstance(data, bytes) or zlib.crc32(data) != checksum or len(data) % row_bytes:
            raise LearnedFileError(
                f"{self.path}: call {number} is damaged: its checksum does not agree. Restore the "
                "file from a backup, or move it away to begin without what was learned."
            )
        return np.frombuffer(data, "<f8").reshape(-1, self.n_features).astype(np.float64)

    def _create(self, model: str, settings: dict[str, Any]) -> None:
        about = {"format": FORMAT, "model": model, "n_features": self.n_features, **settings}
        self.database.executescript(f"BEGIN;{TABLES}")
        _describe(self.database, {**about, "snapshot": None, "pruned": 0})
        self.database.execute("COMMIT")

    def _convert(self, defaults: dict[str, Any]) -> None:
        """Replace a file of the old format; it is kept with the ending ``.old``."""
        about, calls = read_old_file(self.path)
        copy = self.path.with_name(f"{self.path.name}.converting")
        copy.unlink(missing_ok=True)
        self.database = _connect(copy)
        settings = {name: about["about"].get(name, value) for name, value in defaults.items()}
        self._create(about["about"]["model"], settings)
        self.add([(rows, None) for rows in calls])
        if about["snapshot"] is not None:
            self.describe(snapshot={**about["snapshot"], "last_id": 0}, pruned=-1)
        self.database.execute("PRAGMA journal_mode=DELETE")  # everything is in the one file
        self.database.close()
        backup = self.path.with_name(f"{self.path.name}.old")
        backup.unlink(missing_ok=True)
        os.link(self.path, backup)
        os.replace(copy, self.path)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self.transaction_lock:
            self.database.execute("BEGIN IMMEDIATE")
            try:
                yield self.database
                self.database.execute("COMMIT")
            except BaseException:
                if self.database.in_transaction:
                    self.database.execute("ROLLBACK")
                raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise LearnedFileError(
                f"{self.path}: cannot be read as a file of learned rows ({error}). Restore it from "
                "a backup, or move it away to begin without what was learned."
            ) from error


def _connect(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=FULL")
    return database


def _acquire_lock(path: Path) -> sqlite3.Connection:
    """Lock a file for this process, so that others can still read it and make backups."""
    lock = sqlite3.connect(
        path.with_name(f"{path.name}.lock"), isolation_level=None, timeout=0,
        check_same_thread=False,
    )  # fmt: skip
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        lock.close()
        if "locked" not in str(error):
            raise LearnedFileError(f"{path}: cannot be opened ({error}).") from error
        raise LearnedFileError(
            f"{path}: another service writes to it; stop that one, or name another file."
        ) from None
    return lock


def _pack(rows: np.ndarray) -> tuple[bytes, int]:
    data = rows.astype("<f8").tobytes()
    return data, zlib.crc32(data)


def _describe(database: sqlite3.Connection, values: dict[str, Any]) -> None:
    pairs = [(name, json.dumps(value)) for name, value in values.items()]
    database.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", pairs)


def _without_none(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}
