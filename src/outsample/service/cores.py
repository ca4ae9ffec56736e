"""A worker stays on one core; the web server needs another.

Search libraries share even a few rows among all cores, through OpenMP. These threads wait for one
another at full speed: on a busy machine of two cores, ten thousand rows in pieces of 512 took six
times as long as by one thread, in pieces of 128 thirteen times.
"""

from __future__ import annotations

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]


def stay_on_one_core() -> None:
    """Let the calling thread have one OpenMP thread, itself; that is a setting of each thread."""
    for library in ThreadpoolController().select(user_api="openmp").lib_controllers:
        library.set_num_threads(1)
