"""How many requests may wait: many for a moment, few when the queue stands.

A burst that is worked off at once does no harm. A queue that stands does: everybody in it waits
longer, and nobody gains. It is told by the *smallest* wait of a tenth of a second, as CoDel does
(Nichols, Jacobson 2012): after a burst somebody waits little, in a standing queue nobody does. Then
fewer are let in, in proportion, until waits are short; when they are, it is more again.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from outsample.service.refusal import Refusal

# Seconds over which the smallest wait is taken, the wait that is too long, and what is never
# refused: a few clients that ask for large things wait long, though there is no queue.
WINDOW = 0.1
TARGET = 0.003
LEAST = 8
# How fast the limit falls and rises again, a window; from the least to 128 in 1.3 seconds.
FALL, RISE = 0.25, 1.25


class Admission:
    """Counts requests that wait for a worker, and says whether there may be one more.

    Parameters
    ----------
    name : str
        What refusals call the worker.
    most : int
        Requests that may wait at most.
    target : float
        Seconds; the queue stands if nobody waits less.
    clock : callable
        Tells the time in seconds.
    """

    def __init__(
        self, name: str, most: int, target: float = TARGET,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.most, self.target, self.clock = most, target, clock
        self.least, self.limit = min(LEAST, most), float(most)
        self.inside = self.most_inside = 0  # now, and in this window
        self.smallest, self.window_began = float("inf"), clock()
        self.reason = f"more requests wait for {name} than can be answered soon; try again"

    @property
    def is_full(self) -> bool:
        """Whether one more is refused."""
        return self.inside >= int(self.limit)

    def check(self) -> None:
        """Refuse one more if it is full."""
        if self.is_full:
            raise self.refusal()

    def refusal(self) -> Refusal:
        """Return what is told: a new one each time, as one that is raised keeps what it passed."""
        return Refusal(429, self.reason, retry_after=1)

    def enter(self) -> None:
        """Let one in, or refuse it."""
        self.check()
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)

    def leave(self, waited: float) -> None:
        """Let one out that waited so long, the work itself not counted."""
        self.inside -= 1
        self.smallest = min(self.smallest, waited)
        now = self.clock()
        passed = (now - self.window_began) / WINDOW
        if passed < 1:
            return
        if self.smallest > self.target:
            share = max(FALL, self.target / self.smallest)
            # Far too long: from those who are there, as the limit may be far above them.
            is_far = self.smallest > 3 * self.target
            begin = min(self.limit, self.most_inside) if is_far else self.limit
            self.limit = max(self.least, begin * share)
        else:
            self.limit = min(self.most, self.limit * RISE ** min(passed, 100.0))
        self.smallest, self.window_began = float("inf"), now
        self.most_inside = self.inside
