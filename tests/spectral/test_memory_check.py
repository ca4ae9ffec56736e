"""Memory is asked for before a large matrix is made."""

from __future__ import annotations

import pytest

from outsample.spectral import memory_check


def test_memory_is_asked_for_first(monkeypatch):
    monkeypatch.setattr(memory_check, "available_memory", lambda: 16e9)
    with pytest.raises(MemoryError, match=r"n = 200,000 points needs 320 GB.*use fewer"):
        memory_check.require_memory(200_000, "The kernel", "use fewer.")
    memory_check.require_memory(40_000, "The kernel", "use fewer.")
    with pytest.raises(MemoryError):
        memory_check.require_memory(40_000, "The kernel", "use fewer.", arrays=2)
    monkeypatch.setattr(memory_check, "available_memory", lambda: None)
    memory_check.require_memory(10**9, "The kernel", "use fewer.")


def test_available_memory_without_proc(monkeypatch):
    def closed(*args):
        raise OSError

    assert memory_check.available_memory() > 1e6
    monkeypatch.setattr("builtins.open", closed)
    assert memory_check.available_memory() > 1e6
    monkeypatch.setattr(memory_check.os, "sysconf", closed)
    assert memory_check.available_memory() is None
