"""Requests that wait are placed together: no request waits for others to come.

One thread takes all that waits, places it in one call and splits the answer. That is safe because
a batch is its rows one by one, bit for bit. A large request goes through in pieces, so that a row
never waits behind a hundred thousand.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from outsample.service.admission import Admission
from outsample.service.cores import stay_on_one_core
from outsample.service.refusal import Refusal


class Job:
    """Rows (q, D) of one request, and where its answer goes."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = rows
        self.loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[Any] = self.loop.create_future()
        self.done = 0
        self.pieces: list[Any] = []
        self.came = time.monotonic()
        self.head_waited: float | None = None
        self.told = 0.0

    @property
    def is_given_up(self) -> bool:
        """Whether nobody waits for the answer any more."""
        return self.answer.cancelled()

    @property
    def waited(self) -> float:
        """Seconds for which it stood in the queue, and until the loop had its answer.

        Of those taken together it is the wait of the first: the last has hardly waited, however
        long the queue.
        """
        now = time.monotonic()
        before = now - self.came if self.head_waited is None else self.head_waited
        return before + (now - (self.told or now))

    def tell(self, result: Any) -> None:
        """Hand the answer, or an error, to the loop that waits for it."""
        self.told = time.monotonic()
        try:
            self.loop.call_soon_threadsafe(_settle, self.answer, result)
        except RuntimeError:  # the loop has ended: nobody waits
            pass


class Worker:
    """A thread that takes all jobs that wait, up to a number of them, and works on them.

    Parameters
    ----------
    name : str
        What refusals call it.
    admission : Admission
        How many may wait.
    work : callable
        Takes jobs; returns those that are not finished, which go on in the next round.
    """

    def __init__(
        self, name: str, admission: Admission, work: Callable[[list[Job]], list[Job]]
    ) -> None:
        self.name, self.admission, self.work = name, admission, work
        self.waiting: deque[Job] = deque()
        self.under_way = 0
        self.changed = threading.Condition()
        self.is_ending = False
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.thread.start()

    async def answer(self, rows: np.ndarray, seconds: float) -> Any:
        """Queue rows, and wait for their answer, no longer than that."""
        self.admission.enter()
        job = Job(rows)
        try:
            self._submit(job)
            return await asyncio.wait_for(job.answer, seconds)
        finally:
            self.admission.leave(job.waited)

    def _submit(self, job: Job) -> None:
        with self.changed:
            if len(self.waiting) >= self.admission.most:  # these are given up, or it were refused
                self.waiting = deque(one for one in self.waiting if not one.is_given_up)
            if self.is_ending:
                raise Refusal(503, "the service is ending", retry_after=5)
            self.waiting.append(job)
            self.changed.notify()

    @property
    def depth(self) -> int:
        """Jobs that wait or are worked on."""
        return len(self.waiting) + self.under_way

    def end(self) -> None:
        """Finish what waits, then stop."""
        with self.changed:
            self.is_ending = True
            self.changed.notify()
        self.thread.join()

    def _run(self) -> None:
        stay_on_one_core()
        going: list[Job] = []
        while True:
            with self.changed:
                while not (self.waiting or going or self.is_ending):
                    self.changed.wait()
                if not (self.waiting or going):
                    return
                for job in self.waiting:
                    job.head_waited = time.monotonic() - self.waiting[0].came
                going += self.waiting
                self.waiting.clear()
                going = [job for job in going if not job.is_given_up]
                self.under_way = len(going)
            try:
                if going:
                    going = self.work(going)
            except Exception as error:
                for job in going:
                    job.tell(error)
                going = []
            self.under_way = len(going)


def place_round(
    jobs: list[Job],
    place: Callable[[np.ndarray], Any],
    finish: Callable[[np.ndarray, Any], Any],
    most_rows: int,
) -> list[Job]:
    """Place a piece of every job in one call; return the jobs that are not finished.

    ``place`` makes a named tuple of arrays (q, ...) of rows (q, D); ``finish`` is given all rows of
    a job with all its arrays, and makes the answer.
    """
    share = max(1, most_rows // len(jobs))
    pieces = [job.rows[job.done : job.done + share] for job in jobs]
    joined = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
    try:
        placed = place(joined)
    except Exception as error:
        if len(jobs) == 1:
            jobs[0].tell(error)
            return []
        # One of them has rows that the model refuses: the others do not suffer.
        return [left for job in jobs for left in place_round([job], place, finish, most_rows)]
    at, unfinished = 0, []
    for job, piece in zip(jobs, pieces, strict=True):
        end = at + len(piece)
        job.pieces.append(placed if len(jobs) == 1 else _cut(placed, at, end))
        at, job.done = end, job.done + len(piece)
        if job.done < len(job.rows):
            unfinished.append(job)
        else:
            job.tell(finish(job.rows, _joined(job.pieces)))
    return unfinished


def _cut(placed: Any, start: int, stop: int) -> Any:
    return type(placed)(*(field[start:stop] for field in placed))


def _joined(pieces: list[Any]) -> Any:
    if len(pieces) == 1:
        return pieces[0]
    return type(pieces[0])(*(np.concatenate(field) for field in zip(*pieces, strict=True)))


def _settle(answer: asyncio.Future[Any], result: Any) -> None:
    if answer.done():
        return
    if isinstance(result, Exception):
        answer.set_exception(result)
    else:
        answer.set_result(result)
