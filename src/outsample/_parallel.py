"""Rows over threads: the kernels release the interpreter lock, so plain threads are enough.

Numba's own parallel loops are avoided on purpose: two of their three thread layers may not be
entered from several threads at once, which a threaded server does.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

# Below this many rows a thread, starting it costs more than it saves.
ROWS_PER_THREAD = 64


def thread_count(n_jobs: int | None) -> int:
    """Threads meant by scikit-learn's ``n_jobs``: None is 1, -1 every core, -2 all but one."""
    if n_jobs is None:
        return 1
    if n_jobs < 0:
        return max(1, (os.cpu_count() or 1) + 1 + n_jobs)
    return n_jobs


def over_rows(
    kernel: Callable[..., None],
    n_rows: int,
    n_jobs: int | None,
    *arguments: object,
    each: int = ROWS_PER_THREAD,
) -> None:
    """Call ``kernel(start, stop, *arguments)`` on slices that cover ``range(n_rows)``.

    It writes its rows into arrays of the caller; rows must not depend on one another. No thread
    is started for fewer than ``each`` of them.
    """
    threads = min(thread_count(n_jobs), n_rows // each)
    if threads <= 1:
        kernel(0, n_rows, *arguments)
        return
    edges = [n_rows * i // threads for i in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(kernel, a, b, *arguments) for a, b in pairwise(edges)]:
            done.result()


@cache
def _openmp() -> Any:
    """Return what limits the threads of OpenMP; it looks at every library that is loaded, once."""
    return ThreadpoolController().select(user_api="openmp")


def openmp_threads(count: int) -> Any:
    """Context in which OpenMP has so many threads when called from this one, and no others."""
    return _openmp().limit(limits=count)


class _OneBlasThread:
    """Context in which BLAS has one thread, for as long as anybody is inside."""

    def __init__(self) -> None:
        self.lock, self.inside = Lock(), 0
        self.controller: Any = None
        self.limits: Any = None

    def __enter__(self) -> None:
        with self.lock:
            if self.inside == 0:
                if self.controller is None:  # looks at every library that is loaded: once
                    self.controller = ThreadpoolController()
                self.limits = self.controller.limit(limits=1, user_api="blas")
            self.inside += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                self.limits.restore_original_limits()


# A factorisation rounds differently on two threads than on one, and on a busy machine two threads
# that wait for one another take a hundred times as long.
one_blas_thread = _OneBlasThread()
