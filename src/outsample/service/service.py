"""A running service: its model, its queues, and what it remembers of recent requests."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from outsample.service.arrivals import LEARNED, PLACED, Arrivals, Ring
from outsample.service.batching import Batcher
from outsample.service.errors import RequestError
from outsample.service.learning import Learner
from outsample.service.logs import log_event
from outsample.service.metrics import Metrics
from outsample.service.served_model import ServedModel, open_model
from outsample.service.settings import MAX_HELD_BYTES, MAX_JSON_BYTES, SMALL_BODY_BYTES, Settings

# Rows that are placed in one call; a larger request takes several turns.
CHUNK_ROWS = 512
# Rows from which an answer is put together outside the event loop.
MANY_ROWS = 1000


@dataclass
class Gate:
    """Counts the requests that wait for the model or are being answered."""

    limit: int
    n_inside: int = 0

    @property
    def is_full(self) -> bool:
        """Whether the next request is rejected."""
        return self.n_inside >= self.limit


class Service:
    """Everything behind the routes; without a learner it only places."""

    def __init__(
        self, settings: Settings, model: ServedModel, learner: Learner | None = None
    ) -> None:
        self.settings, self.model, self.learner = settings, model, learner
        self.metrics, self.ring = Metrics(), Ring()
        self.gates = {path: Gate(settings.max_waiting) for path in ("/place", "/learn")}
        self.placing = Batcher("placing", self._place_calls, CHUNK_ROWS)
        self.learning = Batcher("learning", self._learn_calls, 2**16)
        self.reloading = threading.Lock()
        self.held_bytes = self.n_listeners = self.n_rejected = 0
        self.rejected_logged = 0.0
        self.is_ready, self.is_ending, self.started = learner is None, False, time.time()
        self.failure: Exception | None = None
        self.on_failure: Callable[[], Any] | None = None
        self._add_gauges()

    def recover(self) -> None:
        """Learn again what was acknowledged before the last end; then the service is ready."""
        learner = self.learner
        if learner is None:
            return
        try:
            learner.recover()
            self.model = self.model.with_model(learner.stream)
        except Exception as error:
            self.failure = error
            learner.rows.close()
            raise
        self.is_ready = True
        log_event(
            learned_file=str(learner.rows.path), replayed_calls=learner.n_replayed,
            rejected_calls=learner.n_skipped, n_seen=int(learner.stream.n_seen_),
        )  # fmt: skip

    def check_ready(self) -> None:
        """Reject a request while the service starts or ends."""
        if self.is_ending:
            raise RequestError(503, "the service is ending", retry_after=5)
        if not self.is_ready:
            reason = "the service is starting: it learns again what it had learned"
            raise RequestError(503, reason, retry_after=1, **self.progress())

    def progress(self) -> dict[str, int]:
        """Return how many calls have been learned again, of how many."""
        learner = self.learner
        if learner is None or self.is_ready:
            return {}
        return {"replayed": learner.n_replayed + learner.n_skipped, "total": learner.n_calls}

    def hold(self, held: int, n_bytes: int) -> None:
        """Count bytes of a body of which ``held`` bytes are there already."""
        is_large = held + n_bytes > SMALL_BODY_BYTES
        limit = max(MAX_HELD_BYTES, 2 * self.settings.max_bytes)
        if is_large and self.held_bytes + n_bytes > limit:
            reason = "the bodies of other requests fill the memory for them; try again"
            raise RequestError(503, reason, retry_after=1)
        self.held_bytes += n_bytes

    async def place(self, rows: np.ndarray) -> tuple[ServedModel, dict[str, Any]]:
        """Place rows (q, D) together with whatever else waits.

        A large request goes through the queue in chunks, between which others have their turn. All
        chunks are placed by the same model.
        """
        self.check_ready()
        model, chunks = self.model, []
        for start in range(0, len(rows), CHUNK_ROWS):
            chunk = rows[start : start + CHUNK_ROWS]
            answer = self.placing.answer((model, chunk), len(chunk), self.settings.timeout)
            chunks.append(await answer)
        finish = partial(self._finish, model, PLACED, rows, _joined(chunks))
        return model, await asyncio.to_thread(finish) if len(rows) > MANY_ROWS else finish()

    async def learn(self, rows: np.ndarray, key: str | None) -> tuple[ServedModel, dict[str, Any]]:
        """Place rows (q, D) and learn them; a key that was used before learns nothing."""
        if self.learner is None:
            raise RequestError(403, "this service does not learn: start it without --no-learn")
        self.check_ready()
        answer = await self.learning.answer((rows, key), len(rows), self.settings.timeout)
        return self.model, {**answer, "n_learned": int(self.learner.stream.n_learned_)}

    def _place_calls(self, calls: list[tuple[ServedModel, np.ndarray]]) -> list[Any]:
        self.metrics.rounds.inc()
        self.metrics.joined.inc(len(calls))
        model = calls[0][0]
        try:
            if any(call[0] is not model for call in calls):
                raise ValueError("the model was replaced in between")
            answer = model.place(np.concatenate([rows for _, rows in calls]))
        except Exception as error:
            if len(calls) == 1:
                return [RequestError(422, str(error)) if isinstance(error, ValueError) else error]
            # One call has rows that the model rejects; the others are answered.
            return [answer for call in calls for answer in self._place_calls([call])]
        stops = np.cumsum([len(rows) for _, rows in calls]).tolist()
        spans = zip([0, *stops], stops, strict=False)
        return [
            {name: values[start:stop] for name, values in answer.items()} for start, stop in spans
        ]

    def _learn_calls(self, calls: list[tuple[np.ndarray, str | None]]) -> list[Any]:
        assert self.learner is not None
        model, answers = self.model, self.learner.learn(calls)
        for at, (rows, _) in enumerate(calls):
            answer = answers[at]
            if isinstance(answer, dict):
                kind = PLACED if "repeated" in answer else LEARNED
                answers[at] = self._finish(model, kind, rows, answer)
        return answers

    def _finish(
        self, model: ServedModel, kind: str, rows: np.ndarray, answer: dict[str, Any]
    ) -> dict[str, Any]:
        """Remember rows that were answered; return the answer with their first id."""
        columns = {name: part for name, part in answer.items() if isinstance(part, np.ndarray)}
        first = self.ring.add(kind, rows, columns)
        self.metrics.rows.labels(kind).inc(len(rows))
        if "p_value" in answer:
            n_strange = np.count_nonzero(answer["p_value"] <= self.settings.alpha)
            self.metrics.rows.labels("strange").inc(int(n_strange))
        return {"first_id": first, "n_rows": len(rows), "digest": model.digest, **answer}

    def reload(self) -> bool:
        """Serve the model file as it is now; return whether it has changed.

        A file that cannot be served is rejected, and the present model stays. With learning, the
        new model begins without what the old one had learned.
        """
        with self.reloading:
            self.check_ready()
            model = open_model(self.settings.model, self.settings.copies)
            if model.digest == self.model.digest:
                return False
            if model.interface != self.model.interface:
                raise ValueError(
                    f"{self.settings.model}: has other columns than the model that is served; "
                    "start a new service for it."
                )
            if self.learner is not None:
                model = model.with_model(self.learner.replace(model))
            self.model, self.started = model, time.time()
            self.ring.clear()
        log_event(reloaded=self.settings.model, digest=model.digest)
        return True

    def describe(self) -> dict[str, Any]:
        """Return what is served."""
        settings, model = self.settings, self.model
        limits = {
            "body_bytes": settings.max_bytes, "rows": settings.max_rows,
            "json_bytes": min(MAX_JSON_BYTES, settings.max_bytes),
            "waiting": settings.max_waiting,
        }  # fmt: skip
        ring = {"first_id": self.ring.first_id, "next_id": self.ring.next_id}
        numbers = {"alpha": settings.alpha, "numbers": model.numbers, "limits": limits}
        return {**model.description, **numbers, **ring, **self.status()}

    def status(self) -> dict[str, Any]:
        """Return what has been learned, and whether the map is out of date."""
        status = {"learning": False} if self.learner is None else self.learner.status()
        return {"started": self.started, **status}

    def main_reasons(self, arrivals: Arrivals, at: np.ndarray) -> dict[int, str]:
        """Return the main reasons of strange arrivals by id; the model may have none."""
        explained = self.model.explain(arrivals.rows[at]) if len(at) else None
        ids = (arrivals.first + at).tolist()
        return dict(zip(ids, [x.main_reason for x in explained or ()], strict=False))

    def end(self) -> None:
        """Finish what waits, and write a last snapshot of what was learned."""
        self.is_ending = True
        self.placing.stop()
        self.learning.stop()
        if self.learner is not None and self.failure is None:
            self.learner.close()

    def _add_gauges(self) -> None:
        add, learner = self.metrics.add_gauge, self.learner
        place = self.gates["/place"]
        add("waiting_requests", "Requests that wait or are placed.", lambda: place.n_inside)
        add("listeners", "Open event streams.", lambda: self.n_listeners)
        add("body_bytes", "Bytes of request bodies in memory.", lambda: self.held_bytes)
        add("ready", "1 if the service takes requests.", lambda: self.is_ready)
        if learner is None:
            return
        add("learned_points", "Points learned.", lambda: learner.status()["n_learned"])
        add("learned_file_bytes", "Size of the file of learned rows.", lambda: learner.rows.n_bytes)
        add("needs_refit", "1 if the map is out of date.",
            lambda: learner.status().get("needs_refit", False))  # fmt: skip


def _joined(chunks: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    if len(chunks) == 1:
        return chunks[0]
    return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}
