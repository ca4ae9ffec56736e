"""What a client is told when its request is not served: a status, a reason, when to come back."""

from __future__ import annotations

from typing import Any


class Refusal(Exception):
    """A request that is not served.

    Parameters
    ----------
    status : int
        HTTP status.
    reason : str
        One sentence: what is wrong, where, what to do.
    retry_after : int, default=None
        Seconds after which it may be tried again.
    where
        Where it is: ``row`` and ``column`` of a bad number, say.
    """

    def __init__(
        self, status: int, reason: str, *, retry_after: int | None = None, **where: Any
    ) -> None:
        super().__init__(reason)
        self.status, self.reason, self.retry_after, self.where = status, reason, retry_after, where

    def told(self) -> dict[str, Any]:
        """Return what the client reads.

        >>> Refusal(422, "row 3 is short", row=3).told()
        {'reason': 'row 3 is short', 'row': 3}
        """
        return {"reason": self.reason, **self.where}

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the answer."""
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        if self.status in (408, 413):  # the rest of the body is not waited for
            headers["Connection"] = "close"
        return headers
