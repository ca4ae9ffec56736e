"""Check that a dense matrix fits into memory, before it is allocated."""

from __future__ import annotations

import os


def require_memory(n: int, what: str, advice: str, arrays: int = 1) -> None:
    """Raise MemoryError if this number of dense (n, n) matrices does not fit into memory.

    >>> require_memory(10**9, "The kernel matrix", "use fewer points.")
    Traceback (most recent call last):
    ...
    MemoryError: The kernel matrix of n = 1,000,000,000 points needs 8,000,000,000 GB, but...
    """
    needed = 8.0 * n * n * arrays
    available = available_memory()
    if available is not None and needed > available:
        raise MemoryError(
            f"{what} of n = {n:,} points needs {needed / 1e9:,.0f} GB, but "
            f"{available / 1e9:,.0f} GB of memory are available; {advice}"
        )


def available_memory() -> float | None:
    """Return the bytes of available memory, or None if the system does not report them."""
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return 1024.0 * int(line.split()[1])
    except (OSError, ValueError):
        pass
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
