"""A running service: its model, its queues, and what it remembers of recent requests."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from outsample.service.arrivals import LEARNED, PLACED, Ring
from outsample.service.batching import Batcher, Gate
from outsample.service.errors import RequestError
from outsample.service.learning import Learner
from outsample.service.monitoring import Metrics, log_event
from outsample.service.served_model import ServedModel, open_model
from outsample.service.settings import MAX_HELD_BYTES, MAX_JSON_BYTES, SMALL_BODY_BYTES, Settings

# Rows that are placed in one call; a larger request takes several turns.
CHUNK_ROWS = 512


class Service:
    """Everything behind the routes; without a file of learned rows it only places."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.model = open_model(settings.model, settings.copies)
        self.learner = Learner(self.model, settings) if settings.learned is not None else None
        self.metrics, self.ring = Metrics(), Ring()
        self.gates = {path: Gate(settings.max_waiting) for path in ("/place", "/learn")}
        self.placing = Batcher("placing", self._place_calls, CHUNK_ROWS)
        self.learning = Batcher("learning", self._learn_calls, 2**16)
        self.reloading = threading.Lock()
        self.held_bytes = 0
        self.is_ready, self.is_ending, self.started = self.learner is None, False, time.time()
        self.failure: Exception | None = None
        self.on_failure: Callable[[], Any] = lambda: None
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
            self.on_failure()
            raise
        self.is_ready = True
        log_event(
            learned_file=str(learner.rows.path), replayed_calls=learner.n_replayed,
            rejected_calls=learner.n_skipped, n_seen=int(learner.stream.n_seen_),
        )  # fmt: skip

    def end(self) -> None:
        """Finish what waits, and write a last snapshot of what was learned."""
        self.is_ending = True
        self.placing.stop()
        self.learning.stop()
        if self.learner is not None and self.failure is None:
            self.learner.close()

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
        model, answers = self.model, []
        with self.gates["/place"]:
            for start in range(0, len(rows), CHUNK_ROWS):
                call = model, rows[start : start + CHUNK_ROWS]
                answers.append(await self.placing.answer(call, len(call[1]), self.settings.timeout))
            if len(answers) == 1:
                return model, self._finish(model, PLACED, rows, answers[0])
            joined = {
                name: np.concatenate([answer[name] for answer in answers]) for name in answers[0]
            }
            return model, await asyncio.to_thread(self._finish, model, PLACED, rows, joined)

    async def learn(self, rows: np.ndarray, key: str | None) -> tuple[ServedModel, dict[str, Any]]:
        """Place rows (q, D) and learn them; a key that was used before learns nothing."""
        if self.learner is None:
            raise RequestError(403, "this service does not learn: start it without --no-learn")
        with self.gates["/learn"]:
            answer = await self.learning.answer((rows, key), len(rows), self.settings.timeout)
        return self.model, {**answer, "n_learned": int(self.learner.stream.n_learned_)}

    def _place_calls(self, calls: list[tuple[ServedModel, np.ndarray]]) -> list[Any]:
        self.metrics.rounds.inc()
        self.metrics.joined.inc(len(calls))
        model = calls[0][0]
        try:
            if any(call[0] is not model for call in calls):
                raise ValueError("the model was replaced in between")
            answer = model.answer(np.concatenate([rows for _, rows in calls]))
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
            n_unusual = np.count_nonzero(answer["p_value"] <= self.settings.alpha)
            self.metrics.rows.labels("unusual").inc(int(n_unusual))
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
        return {
            **model.description, "alpha": settings.alpha, "numbers": model.numbers,
            "limits": limits, "first_id": self.ring.first_id, "next_id": self.ring.next_id,
            **self.status(),
        }  # fmt: skip

    def status(self) -> dict[str, Any]:
        """Return what has been learned, and whether the map is out of date."""
        status = {"learning": False} if self.learner is None else self.learner.status()
        return {"started": self.started, **status}

    def _add_gauges(self) -> None:
        add, learner, place = self.metrics.add_gauge, self.learner, self.gates["/place"]
        add("waiting_requests", "Requests that wait or are placed.", lambda: place.n_inside)
        add("listeners", "Open event streams.", lambda: len(self.ring.watchers))
        add("body_bytes", "Bytes of request bodies in memory.", lambda: self.held_bytes)
        add("ready", "1 if the service takes requests.", lambda: self.is_ready)
        if learner is None:
            return
        add("learned_points", "Points learned.", lambda: learner.status()["n_learned"])
        add("learned_file_bytes", "Size of the file of learned rows.", lambda: learner.rows.n_bytes)
        add("needs_refit", "1 if the map is out of date.",
            lambda: learner.status().get("needs_refit", False))  # fmt: skip
