"""How far a long run has come: shares of the work, told to whoever shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

# Called with the share of the work done, from 0 to 1, and what is done next.
Progress = Callable[[float, str], None]


class Teller:
    """Turns the progress of named parts into that of the whole; weights are rough seconds."""

    def __init__(self, progress: Progress | None, weights: Mapping[str, float]) -> None:
        self.progress, self.weights, self.done = progress, weights, 0.0
        self.total = sum(weights.values())

    def part(self, name: str) -> Progress:
        """Return the progress callback of one part; those before it are done."""
        begin, weight = self.done, self.weights[name]
        self.done += weight

        def tell(share: float, what_next: str) -> None:
            if self.progress is not None:
                self.progress((begin + share * weight) / self.total, what_next)

        return tell
