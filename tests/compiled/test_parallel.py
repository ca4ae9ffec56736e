"""The shared thread pool: slices, exceptions, nested calls, forks."""

from __future__ import annotations

import multiprocessing
import threading

import numpy as np
import pytest

from outsample import _parallel
from outsample._parallel import over_rows


def fill(start, stop, out):
    out[start:stop] = np.arange(start, stop)


def test_slices_cover_all_rows_and_threads_are_reused():
    names = set()

    def note(start, stop, out):
        names.add(threading.current_thread().name)
        fill(start, stop, out)

    for _ in range(20):
        out = np.full(1000, -1)
        over_rows(note, 1000, 3, out)
        np.testing.assert_array_equal(out, np.arange(1000))
    assert len(names) <= 1 + _parallel._pool._max_workers  # the caller and the shared threads


def test_an_exception_is_raised_after_all_slices_ended():
    ended = []

    def fail(start, stop):
        ended.append(start)
        if start:
            raise ValueError("slice")

    with pytest.raises(ValueError, match="slice"):
        over_rows(fail, 400, 4)
    assert len(ended) == 4


def test_nested_calls_end():
    out = np.zeros((64, 200))

    def outer(start, stop):
        for row in range(start, stop):
            over_rows(fill, 200, 8, out[row], each=1)

    over_rows(outer, 64, 8, each=1)
    np.testing.assert_array_equal(out, np.tile(np.arange(200), (64, 1)))


def in_child(queue):
    out = np.full(1000, -1)
    over_rows(fill, 1000, 4, out)
    queue.put(bool((out == np.arange(1000)).all()))


def test_a_forked_child_has_its_own_threads():
    """Those of the parent do not survive the fork: the child would wait for ever."""
    over_rows(fill, 1000, 4, np.empty(1000))
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=60)
    child.join(60)
