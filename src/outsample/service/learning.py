"""Learning: rows are committed to a file, then learned, then acknowledged."""

from __future__ import annotations

import copy
import sqlite3
import threading
import time
from typing import Any

import numpy as np

from outsample.files.learned_rows import LearnedRows
from outsample.files.model_file import identity, load, save
from outsample.files.old_learned_rows import LearnedFileError
from outsample.service.errors import RequestError
from outsample.service.monitoring import log
from outsample.service.served_model import ServedModel, placement_columns
from outsample.service.settings import Settings
from outsample.streaming.extension import StreamingExtension

# Calls or rows after which a snapshot is written, so that replay takes seconds; and the file size
# from which old calls are removed.
SNAPSHOT_CALLS, SNAPSHOT_ROWS = 2000, 50_000
PRUNE_BYTES = 2**28
# A snapshot takes at most a fifth of the time.
SNAPSHOT_PAUSE = 4.0
STATUS_SECONDS = 1.0
# Classes that are streams, or can become one.
STREAMED_CLASSES = ("NoveltyDetector", "PCAExtension", "StreamingExtension")


class Learner:
    """A stream that learns, with the file that restores it after a crash.

    After `recover`, ``stream`` contains everything that was acknowledged.
    """

    def __init__(self, served: ServedModel, settings: Settings) -> None:
        assert settings.learned is not None
        options = {"window": settings.window, "guard": settings.guard}
        is_stream = isinstance(served.model, StreamingExtension)
        example = served.model if is_stream else StreamingExtension(None)
        defaults = {name: getattr(example, name) for name in options}
        self.served = served
        self.rows = LearnedRows(
            settings.learned, served.digest, served.n_features, options, defaults
        )
        if is_stream and self.rows.settings != defaults:
            self.rows.close()
            raise ValueError(f"the model is a stream with settings of its own: {defaults}")
        self.stream = self._begin(served)
        self.last_id = self.snapshot_id = self.n_replayed = self.n_skipped = self.n_unsaved = 0
        self.n_calls = self.rows.count_after(0)
        self.lock, self.is_closing = threading.Lock(), False
        self.saving: threading.Thread | None = None
        self.next_snapshot, self.status_time = 0.0, -STATUS_SECONDS
        self._status: dict[str, Any] = {}

    def recover(self) -> None:
        """Load the last snapshot, and learn the calls after it again, call by call."""
        with self.lock:
            self._load_snapshot()
            self.last_id = self.snapshot_id
            self.n_calls = self.rows.count_after(self.last_id)
            for number, rows in self.rows.calls_after(self.last_id):
                if self.is_closing:
                    return
                try:
                    self.stream.learn(rows)
                    self.n_replayed += 1
                except ValueError:  # the model rejected the call when it came, too
                    self.n_skipped += 1
                self.last_id = number

    def learn(self, calls: list[tuple[np.ndarray, str | None]]) -> list[Any]:
        """Commit and learn the rows of calls; return answers or exceptions."""
        with self.lock:
            repeated = self._repeated(calls)
            new = [call for at, call in enumerate(calls) if at not in repeated]
            try:
                ids = iter(self.rows.add(new) if new else [])
            except sqlite3.Error as error:
                return [_unwritten(error)] * len(calls)
            answers = [
                self._repeat(rows, repeated[at]) if at in repeated
                else self._learn_call(next(ids), rows)
                for at, (rows, _) in enumerate(calls)
            ]  # fmt: skip
        n_calls = self.last_id - self.snapshot_id
        if n_calls >= SNAPSHOT_CALLS or self.n_unsaved >= SNAPSHOT_ROWS:
            self._snapshot_later()
        return answers

    def status(self) -> dict[str, Any]:
        """Return what was learned, and whether the map is out of date, at most a second old."""
        stream, now = self.stream, time.monotonic()
        counts = {"n_seen": int(stream.n_seen_), "n_learned": int(stream.n_learned_)}
        is_old = counts["n_seen"] != self._status.get("n_seen")
        if is_old and now > self.status_time + STATUS_SECONDS:
            self.status_time, drift = now, stream.drift_
            self._status = {
                "n_seen": counts["n_seen"], "drift": str(drift),
                "needs_refit": bool(drift.reason), "refit_reason": str(drift.reason),
            }  # fmt: skip
        return {"learning": True, **self._status, **counts}

    def replace(self, served: ServedModel) -> Any:
        """Go on with another model, which has learned nothing; return its stream."""
        with self.lock:
            self._wait_for_snapshot()
            stream = self._begin(served)
            stream.place(np.eye(2, served.n_features))
            self.rows.describe(model=served.digest, snapshot=None, pruned=self.last_id)
            self.served, self.stream, self.snapshot_id = served, stream, self.last_id
            self._status, self.status_time = {}, -STATUS_SECONDS
        return stream

    def close(self) -> None:
        """Write a last snapshot, so that the next start has nothing to learn again."""
        self.is_closing = True
        with self.lock:
            self._wait_for_snapshot()
            if self.last_id > self.snapshot_id:
                self._snapshot(copy.copy(self.stream), self.last_id)
            self.rows.close()

    def _begin(self, served: ServedModel) -> Any:
        if isinstance(served.model, StreamingExtension):
            return copy.copy(served.model)
        return StreamingExtension(served.model, **self.rows.settings)

    def _learn_call(self, number: int, rows: np.ndarray) -> Any:
        self.last_id, self.n_unsaved = number, self.n_unsaved + len(rows)
        try:
            learned = self.stream.learn(rows)
        except Exception as error:
            self.rows.discard(number)  # it is not acknowledged, and was not learned
            return RequestError(422, str(error)) if isinstance(error, ValueError) else error
        answer = placement_columns(learned.placement)
        return {**answer, "accepted": np.asarray(learned.accepted), "digest": self.served.digest}

    def _repeated(self, calls: list[tuple[np.ndarray, str | None]]) -> dict[int, np.ndarray]:
        """Return the calls whose idempotency key was used before, with the rows sent then."""
        keys = [key for _, key in calls if key is not None]
        earlier = self.rows.find(keys) if keys else {}
        repeated = {}
        for at, (rows, key) in enumerate(calls):
            if key is not None and key in earlier:
                repeated[at] = earlier[key]
            elif key is not None:
                earlier[key] = rows
        return repeated

    def _repeat(self, rows: np.ndarray, earlier: np.ndarray) -> Any:
        if not np.array_equal(rows, earlier):
            return RequestError(422, "this Idempotency-Key was used before with other rows")
        answer = placement_columns(self.stream.place(rows))
        return {**answer, "repeated": True, "digest": self.served.digest}

    def _load_snapshot(self) -> None:
        about = self.rows.about
        snapshot = about["snapshot"]
        if snapshot is None:
            self.snapshot_id = max(0, about["pruned"])
            return
        path = self.rows.path.with_name(snapshot["file"])
        if path.is_file() and identity(path) == snapshot["digest"]:
            self.stream, self.snapshot_id = load(path), snapshot["last_id"]
            self.stream.place(np.eye(2, self.served.n_features))  # verifies a large file
            return
        if about["pruned"]:
            raise LearnedFileError(
                f"{self.rows.path}: needs {path}, which contains what was learned before, and "
                "which is missing or was changed. Restore both from a backup."
            )
        log.warning("the snapshot is missing or was changed: all calls are learned again")

    def _snapshot_later(self) -> None:
        is_saving = self.saving is not None and self.saving.is_alive()
        if is_saving or time.monotonic() < self.next_snapshot:
            return
        arguments, self.n_unsaved = (copy.copy(self.stream), self.last_id), 0
        self.saving = threading.Thread(target=self._snapshot, args=arguments, name="snapshot")
        self.saving.start()

    def _wait_for_snapshot(self) -> None:
        if self.saving is not None:
            self.saving.join()

    def _snapshot(self, stream: Any, last_id: int) -> None:
        """Save a stream that contains the calls up to an id, then remember the file."""
        start, served, rows = time.monotonic(), self.served, self.rows
        path = rows.path.with_name(f"{rows.path.name}.snapshot-{last_id}.outsample")
        try:
            save(stream, path, columns=served.training_columns, map_names=served.map_names)
            earlier = rows.about["snapshot"]
            snapshot = {"file": path.name, "digest": identity(path), "last_id": last_id}
            rows.describe(snapshot=snapshot)
            self.snapshot_id = last_id
            # The newest snapshot has a name that stays, for replicas.
            temporary = rows.path.with_name(f".{rows.path.name}.latest.outsample")
            temporary.unlink(missing_ok=True)
            temporary.hardlink_to(path)
            temporary.replace(temporary.with_name(temporary.name[1:]))
            if earlier is not None and earlier["file"] != path.name:
                rows.path.with_name(earlier["file"]).unlink(missing_ok=True)
            if rows.n_bytes > PRUNE_BYTES:
                rows.prune(last_id)
        except Exception as error:  # no space: the calls are in the file, and it is tried again
            log.warning("no snapshot was written: %s", error)
        self.next_snapshot = time.monotonic() + SNAPSHOT_PAUSE * (time.monotonic() - start)


def _unwritten(error: sqlite3.Error) -> RequestError:
    if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_FULL:
        reason = "the disk is full: nothing was learned. Placing goes on."
        return RequestError(507, reason, retry_after=60)
    reason = f"learned rows cannot be written: {error}. Placing goes on."
    return RequestError(503, reason, retry_after=60)
