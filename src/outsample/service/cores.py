"""Few rows are placed by one thread, many on all cores.

Search libraries share even a few rows among all cores, through OpenMP. These threads wait for one
another at full speed, and the web server needs a core: on a busy machine eight rows took a hundred
times as long as by one thread.
"""

from __future__ import annotations

import threading
from typing import Any

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

# Rows from which on more than one thread pays.
MANY_ROWS = 256


class Cores:
    """How many OpenMP threads the calling thread may have; that is a setting of each thread."""

    def __init__(self) -> None:
        self.own = threading.local()

    def are_for(self, n_rows: int) -> None:
        """Take one thread for few rows, all of them for many."""
        if not hasattr(self.own, "controller"):
            found = ThreadpoolController().select(user_api="openmp")
            self.own.controller = found
            self.own.all = max((one.num_threads for one in found.lib_controllers), default=1)
            self.own.now = self.own.all
        wanted = 1 if n_rows < MANY_ROWS else self.own.all
        if wanted != self.own.now:
            _set(self.own.controller, wanted)
            self.own.now = wanted


def _set(controller: Any, threads: int) -> None:
    for library in controller.lib_controllers:
        library.set_num_threads(threads)
