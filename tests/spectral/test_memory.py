"""Available memory is checked before a large matrix is allocated."""

from __future__ import annotations

import pytest

from outsample.spectral import memory


def test_memory_is_checked_first(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 16e9)
    with pytest.raises(MemoryError, match=r"n = 200,000 points needs 320 GB.*use fewer"):
        memory.require_memory(200_000, "The kernel", "use fewer.")
    memory.require_memory(40_000, "The kernel", "use fewer.")
    with pytest.raises(MemoryError):
        memory.require_memory(40_000, "The kernel", "use fewer.", arrays=2)
    monkeypatch.setattr(memory, "available_memory", lambda: None)
    memory.require_memory(10**9, "The kernel", "use fewer.")


def test_available_memory_without_proc(monkeypatch):
    def closed(*args):
        raise OSError

    assert memory.available_memory() > 1e6
    monkeypatch.setattr("builtins.open", closed)
    assert memory.available_memory() > 1e6
    monkeypatch.setattr(memory.os, "sysconf", closed)
    assert memory.available_memory() is None
