"""Run compiled loops over rows in threads; they release the interpreter lock.

Numba's own parallel loops are not used: two of their three threading layers are not thread-safe,
and a threaded server calls them from several threads at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from itertools import pairwise
from threading import Lock, local
from typing import Any

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

# With fewer rows per thread, starting a thread costs more than it saves.
ROWS_PER_THREAD = 64


def thread_count(n_jobs: int | None) -> int:
    """Return the threads of scikit-learn's ``n_jobs``: None is 1, -1 all cores, -2 all but one."""
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

    The kernel writes to arrays of the caller, and rows must be independent. Each thread gets at
    least ``each`` rows. The caller computes the first slice, a shared pool the others. A kernel
    that calls `over_rows` itself runs on its own thread: waiting for the pool could deadlock.
    """
    threads = min(thread_count(n_jobs), n_rows // each)
    if threads <= 1 or getattr(_worker, "is_in_pool", False):
        kernel(0, n_rows, *arguments)
        return
    edges = [n_rows * i // threads for i in range(threads + 1)]
    slices = pairwise(edges[1:])
    futures = [_pool.submit(kernel, start, stop, *arguments) for start, stop in slices]
    try:
        kernel(0, edges[1], *arguments)
    finally:
        wait(futures)
    for future in futures:
        future.result()


_worker = local()


def _mark_worker() -> None:
    _worker.is_in_pool = True


def _make_pool() -> None:
    """Make the pool of this process; its threads start with the first calls that need them."""
    global _pool
    _pool = ThreadPoolExecutor(os.cpu_count(), "outsample", _mark_worker)


_pool: ThreadPoolExecutor
_make_pool()
if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_make_pool)  # threads do not survive a fork


@cache
def _openmp() -> Any:
    """Return a controller of OpenMP; making it inspects every loaded library, so it is cached."""
    return ThreadpoolController().select(user_api="openmp")


def openmp_threads(count: int) -> Any:
    """Return a context in which OpenMP uses ``count`` threads when called from this thread."""
    return _openmp().limit(limits=count)


class _OneBlasThread:
    """Context in which BLAS uses one thread, until the last of several threads leaves it."""

    def __init__(self) -> None:
        self.lock, self.inside = Lock(), 0
        self.controller: Any = None
        self.limits: Any = None

    def __enter__(self) -> None:
        with self.lock:
            if self.inside == 0:
                if self.controller is None:  # expensive: it inspects every loaded library
                    self.controller = ThreadpoolController()
                self.limits = self.controller.limit(limits=1, user_api="blas")
            self.inside += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                self.limits.restore_original_limits()


# A factorisation by two threads rounds differently, and on a busy machine it takes up to a hundred
# times as long because the threads wait for each other.
one_blas_thread = _OneBlasThread()
