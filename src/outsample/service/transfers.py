"""Bodies that come and answers that go: as many, and as large, as fit; the slowest leave.

Clients that send a byte a second, or never read, cost nothing but a place here, which they lose
when others need it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from outsample.service.refusal import Refusal

# Seconds after which one may be called slow.
PATIENCE = 1.0
# Bytes of a client that always fit: who asks for little is not held up by those who send much.
LITTLE = 2**16


class Transfer:
    """What one client sends or is sent; ``abort`` hangs up."""

    __slots__ = ("abort", "began", "held", "moved")

    def __init__(self, abort: Callable[[], None], began: float = 0.0) -> None:
        self.abort, self.began = abort, began
        self.moved = self.held = 0


class Transfers:
    """All transfers under way.

    Parameters
    ----------
    most : int
        Clients at a time; more if none of them can be called slow yet.
    most_bytes : int
        Bytes of theirs that are held at a time, those of requests being answered included.
    clock : callable
        Tells the time in seconds.
    """

    def __init__(
        self, most: int, most_bytes: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.most, self.most_bytes, self.clock = most, most_bytes, clock
        self.moving: dict[Transfer, None] = {}
        self.n_bytes = 0

    def begin(self, abort: Callable[[], None]) -> Transfer:
        """Let a client begin to send; a slow one may have to go."""
        transfer = Transfer(abort, self.clock())
        self._move(transfer)
        return transfer

    def came(self, transfer: Transfer, n_bytes: int) -> None:
        """Count bytes that a client has sent."""
        transfer.moved += n_bytes
        self._hold(transfer, n_bytes)

    def rest(self, transfer: Transfer) -> None:
        """Tell that a client has sent, or taken, all it should; its bytes are still held."""
        self.moving.pop(transfer, None)

    def answer(self, transfer: Transfer, n_bytes: int) -> None:
        """Let a client begin to take an answer."""
        transfer.began, transfer.moved = self.clock(), 0
        self._hold(transfer, n_bytes)
        self._move(transfer)

    def end(self, transfer: Transfer) -> None:
        """Forget a client."""
        self.moving.pop(transfer, None)
        self.n_bytes -= transfer.held
        transfer.held = 0

    def _move(self, transfer: Transfer) -> None:
        if len(self.moving) >= self.most:
            self._slowest_is_gone()
        self.moving[transfer] = None

    def _hold(self, transfer: Transfer, n_bytes: int) -> None:
        is_much = transfer.held + n_bytes > LITTLE
        while is_much and self.n_bytes + n_bytes > self.most_bytes and self.n_bytes > transfer.held:
            if not self._slowest_is_gone():
                said = "bodies of others fill the memory for them already; try again"
                raise Refusal(503, said, retry_after=1)
        self.n_bytes += n_bytes
        transfer.held += n_bytes

    def _slowest_is_gone(self) -> bool:
        """Let the slowest client go, if one is slow."""
        now = self.clock()
        old = [one for one in self.moving if now - one.began >= PATIENCE]
        if not old:
            return False
        slowest = min(old, key=lambda one: one.moved / (now - one.began))
        self.end(slowest)
        slowest.abort()
        return True
