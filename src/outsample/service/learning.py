"""Rows that are learned: written ahead, then learned, then acknowledged."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from threading import Lock
from time import monotonic
from typing import Any

import numpy as np

from outsample.estimators.novelty_detector import NoveltyDetector
from outsample.estimators.pca_extension import PCAExtension
from outsample.estimators.streaming import StreamingExtension
from outsample.files.model_file import identity, load, save
from outsample.service.joining import Job
from outsample.service.refusal import Refusal
from outsample.service.write_ahead import LearnedFileError, WriteAhead

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# Rows in one record at most, if they are of several requests; and when a file is begun anew.
GROUP_BYTES = 2**26
COMPACT_BYTES = 2**28
REFRESH_SECONDS = 1.0


class Learning:
    """A stream that learns, and the file from which it learns again after a crash.

    Parameters
    ----------
    stream : StreamingExtension
        What learns.
    log : WriteAhead
        Where rows are before they are acknowledged.
    """

    def __init__(self, stream: Any, log: WriteAhead) -> None:
        self.stream, self.log = stream, log
        self.n_replayed = self.n_skipped = 0
        self.compact_bytes = COMPACT_BYTES
        self.told: dict[str, Any] = {}
        for rows in log.calls():
            try:
                stream.learn(rows)
                self.n_replayed += len(rows)
            except Exception:  # as at first, when they were refused: the state is the same
                self.n_skipped += len(rows)
        self.refreshing = Lock()
        self.refresh()

    def round(
        self, jobs: list[Job], arrived: Callable[[np.ndarray, Any, dict[str, Any]], dict[str, Any]]
    ) -> list[Job]:
        """Learn the rows of jobs that wait, after one write for all; return those left."""
        group, n_bytes = [jobs[0]], jobs[0].rows.nbytes
        for job in jobs[1:]:
            n_bytes += job.rows.nbytes
            if n_bytes > GROUP_BYTES:
                break
            group.append(job)
        try:
            self.log.append([job.rows for job in group])
        except OSError as error:
            refusal = _unwritten(error)
            for job in group:
                job.tell(refusal)
            return jobs[len(group) :]
        answers: list[Any] = []
        for job in group:
            try:
                learned = self.stream.learn(job.rows)
                more = {"accepted": np.asarray(learned.accepted)}
                answers.append(arrived(job.rows, learned.placement, more))
            except ValueError as error:
                answers.append(Refusal(422, str(error)))
            except Exception as error:
                answers.append(error)
        seen, learned = int(self.stream.n_seen_), int(self.stream.n_learned_)
        self.told = {**self.told, "n_seen": seen, "n_learned": learned}
        self.is_stale = True
        for job, answer in zip(group, answers, strict=True):  # who asks next is told the above
            job.tell(answer)
        self._compact()
        return jobs[len(group) :]

    @property
    def needs_refresh(self) -> bool:
        """Whether what is told of drift is of more than a moment ago."""
        return self.is_stale and monotonic() > self.told_at + REFRESH_SECONDS

    def refresh(self) -> None:
        """Look again at whether the map is out of date, which takes a few milliseconds."""
        with self.refreshing:
            self.is_stale, self.told_at = False, monotonic()
            drift = self.stream.drift_
            self.told = {
                "learning": True,
                "n_seen": int(self.stream.n_seen_),
                "n_learned": int(self.stream.n_learned_),
                "drift": str(drift),
                "needs_refit": bool(drift.reason),
                "refit_reason": str(drift.reason),
            }

    def _compact(self) -> None:
        """Keep the stream itself, instead of all it ever learned, when the file is large."""
        if self.log.n_bytes < self.compact_bytes:
            return
        old = self.log.snapshot
        name = f"{self.log.path.name}.{self.log.number}.outsample"
        try:
            save(self.stream, self.log.path.with_name(name))
            digest = identity(self.log.path.with_name(name))
            self.log.restart({"file": name, "digest": digest})
        except Exception:  # no room: go on with the old file, and try again when it is larger
            self.compact_bytes = 2 * self.log.n_bytes
            return
        if old is not None:
            self.log.path.with_name(old["file"]).unlink(missing_ok=True)


def can_learn(model: Any) -> bool:
    """Whether a model is a stream, or can be made one."""
    if isinstance(model, NoveltyDetector):
        return model._map is not None
    return isinstance(model, PCAExtension | StreamingExtension)


def open_learning(
    model: Any, path: str | os.PathLike[str], digest: str, settings: dict[str, Any]
) -> Learning:
    """Open the file of what a model has learned, and learn it again.

    ``settings`` are those of `StreamingExtension`, for a model that is not one yet.
    """
    if isinstance(model, StreamingExtension) and settings:
        raise ValueError("the model is a stream already, with a window and a guard of its own")
    about = {"model": digest, "n_features": int(model.n_features_in_), **settings}
    log = WriteAhead(path, about)
    try:
        if log.snapshot is None:
            is_stream = isinstance(model, StreamingExtension)
            return Learning(model if is_stream else StreamingExtension(model, **settings), log)
        kept = log.path.with_name(log.snapshot["file"])
        if not kept.is_file() or identity(kept) != log.snapshot["digest"]:
            raise LearnedFileError(
                f"{log.path}: needs {kept}, which holds what was learned before, and which is "
                "missing or another. Restore both from a copy."
            )
        return Learning(load(kept), log)
    except BaseException:
        log.close()
        raise


def _unwritten(error: OSError) -> Refusal:
    if error.errno in FULL:
        said = "the disk is full: nothing was learned. Placing goes on."
        return Refusal(507, said, retry_after=60)
    said = f"learned rows cannot be written: {error.strerror or error}. Placing goes on."
    return Refusal(503, said, retry_after=60)
