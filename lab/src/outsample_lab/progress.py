"""Progress of a long run, as shares of the work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count

# Called with the share of the work done, from 0 to 1, and what is done next.
Progress = Callable[[float, str], None]


class RunProgress:
    """Converts the progress of named parts to that of the run; weights are rough seconds."""

    def __init__(self, progress: Progress | None, weights: Mapping[str, float]) -> None:
        self.progress, self.weights, self.done = progress, weights, 0.0
        self.total = sum(weights.values())

    def part(self, name: str) -> Progress:
        """Return the progress callback of one part."""
        begin, weight = self.done, self.weights[name]
        self.done += weight

        def tell(share: float, next_step: str) -> None:
            if self.progress is not None:
                self.progress((begin + share * weight) / self.total, next_step)

        return tell

    def finish(self) -> None:
        """Report that the run is complete."""
        if self.progress is not None:
            self.progress(1.0, "done")


def step_by_step(report: Progress, n_steps: int, task: str) -> Callable[[object], None]:
    """Report the start of a task, and return a callback for the end of each of its steps."""
    done = count(1)
    report(0.0, task)
    return lambda step: report(next(done) / n_steps, task)
