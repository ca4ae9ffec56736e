"""A running service: model, queues, and what it remembers of its requests."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import Any

import numpy as np

from outsample.service.admission import Admission
from outsample.service.arrivals import LEARNED, PLACED, Arrivals, Ring
from outsample.service.joining import Job, Worker, place_round
from outsample.service.learning import Learning
from outsample.service.limits import Limits
from outsample.service.metrics import Metrics
from outsample.service.refusal import Refusal
from outsample.service.request_log import RequestLog
from outsample.service.served_model import ServedModel

# Reasons of strange arrivals that are remembered.
MOST_REASONS = 10_000
# Seconds that rows may wait to be learned in a queue that stands: disks take a part of that.
LEARNING_TARGET = 0.2


class Service:
    """Everything behind the doors of `app`.

    Parameters
    ----------
    model : ServedModel
        What answers.
    limits : Limits
        What is taken at most.
    token : str, default=None
        What others than this machine, and `learn`, have to send.
    log : RequestLog, default=None
        Where requests are told.
    log_rows : bool, default=False
        Tell the rows too.
    learning : Learning, default=None
        The stream that the model is, and its file; None places only.
    """

    def __init__(
        self,
        model: ServedModel,
        limits: Limits,
        *,
        token: str | None = None,
        log: RequestLog | None = None,
        log_rows: bool = False,
        learning: Learning | None = None,
    ) -> None:
        self.model, self.limits, self.token = model, limits, token
        self.log, self.log_rows = log, log_rows
        self.metrics, self.ring = Metrics(), Ring()
        self.learning = learning
        self.placing = Worker("placing", Admission("placing", limits.waiting), self._place)
        if learning is not None:
            self._begin_learning(learning)
        self.reasons: dict[int, str] = {}
        self.is_ending, self.started = False, time.time()
        self.metrics.gauge("waiting_requests", "Requests that wait.", lambda: self.placing.depth)
        limit = self.placing.admission
        self.metrics.gauge("waiting_limit", "Requests that may wait.", lambda: int(limit.limit))

    def worker_of(self, path: str) -> Worker:
        """Return who answers a request."""
        return self.learners if path == "/learn" and self.learning is not None else self.placing

    async def place(self, rows: np.ndarray) -> dict[str, Any]:
        """Place rows (q, D) together with what else waits."""
        return await self.answer(self.placing, rows)

    async def answer(self, worker: Worker, rows: np.ndarray) -> dict[str, Any]:
        """Wait for a worker's answer, as long as the limit allows."""
        try:
            answer: dict[str, Any] = await worker.answer(rows, self.limits.seconds)
            return answer
        except TimeoutError:
            said = f"no answer within {self.limits.seconds:g} seconds; try again, or fewer rows"
            raise Refusal(503, said, retry_after=1) from None

    async def learn(self, rows: np.ndarray) -> dict[str, Any]:
        """Place rows (q, D), and let the model learn them."""
        if self.learning is None:
            raise Refusal(403, "this service does not learn: start it without --no-learn")
        answer = await self.answer(self.learners, rows)
        return {**answer, "n_learned": self.learning.told["n_learned"]}

    async def status(self) -> dict[str, Any]:
        """Return what changes while the service runs."""
        ring = {"first_id": self.ring.first_id, "next_id": self.ring.next_id}
        return {**ring, **await self.fresh_status()}

    async def fresh_status(self) -> dict[str, Any]:
        """Return what has been learned, and whether the map is out of date."""
        if self.learning is not None and self.learning.needs_refresh:
            await asyncio.to_thread(self.learning.refresh)
        told = {"learning": False} if self.learning is None else self.learning.told
        return {"started": self.started, **told}

    async def main_reasons(self, found: Arrivals, at: np.ndarray) -> dict[int, str]:
        """Return the main reasons of some arrivals by id; they are found out once."""
        ids = (found.first + at).tolist()
        unknown = [number for number in ids if number not in self.reasons]
        if unknown:
            rows = found.rows[np.array(unknown) - found.first]
            explained = await asyncio.to_thread(self.model.reasons, rows)
            if explained is None:
                return {}
            for number, one in zip(unknown, explained, strict=True):
                self.reasons[number] = one.main_reason
            while len(self.reasons) > MOST_REASONS:
                del self.reasons[next(iter(self.reasons))]
        return {number: self.reasons[number] for number in ids if number in self.reasons}

    def begin_ending(self) -> None:
        """Let watchers go; everything else is finished."""
        self.is_ending = True
        self.ring.wake()

    def end(self) -> None:
        """Finish what waits."""
        self.begin_ending()
        self.placing.end()
        if self.learning is not None:
            self.learners.end()
            self.learning.log.close()
        if self.log is not None:
            self.log.end()

    def _place(self, jobs: list[Job]) -> list[Job]:
        self.metrics.count("rounds_total")
        self.metrics.count("joined_requests_total", len(jobs))
        finish = partial(self.arrived, PLACED)
        return place_round(jobs, self.model.place, finish, self.limits.round_rows)

    def _begin_learning(self, learning: Learning) -> None:
        admission = Admission("learning", self.limits.waiting, LEARNING_TARGET)
        self.learners = Worker(
            "learning", admission, partial(learning.round, arrived=self._learned)
        )
        tell = self.metrics.gauge
        tell("learned_points", "Points learned and kept.", lambda: learning.told["n_learned"])
        tell("learned_file_bytes", "Size of the write-ahead file.", lambda: learning.log.n_bytes)
        tell("needs_refit", "1 if the map is out of date.", lambda: learning.told["needs_refit"])

    def _learned(self, rows: np.ndarray, placed: Any, more: dict[str, Any]) -> dict[str, Any]:
        return self.arrived(LEARNED, rows, placed, more)

    def arrived(
        self, kind: str, rows: np.ndarray, placed: Any, more: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Keep rows that were answered; return the answer."""
        told = {**self.model.judged(placed), **(more or {})}
        first = self.ring.add(kind, rows, told)
        self.metrics.count("rows_total", len(rows), kind=kind)
        if "p_value" in told:
            strange = int(np.count_nonzero(told["p_value"] <= self.model.alpha))
            self.metrics.count("rows_total", strange, kind="strange")
        return {"first_id": first, "n_rows": len(rows), **told}
