"""Memory for queries depends on the chunk size, not on the number of queries."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from outsample import (
    DiffusionMaps,
    Extended,
    GeometricHarmonics,
    LaplacianPyramids,
    MultiscaleExtension,
    NoveltyDetector,
    NystroemExtension,
    PCAExtension,
    chunks,
)

D, Q = 16, 12_000
FIXED = {"n_neighbors": 4, "weighting": "distance", "order": 0, "loss": "squared"}
RNG = np.random.default_rng(0)
X = RNG.random((60, D))
Y = np.column_stack([X[:, 0], X[:, 1] ** 2])


def mapped(kind, path):
    """Return queries as a memory-mapped array of this dtype or order."""
    numbers = RNG.random((Q, D)) * (10_000 if kind == "int16" else 1)
    if kind == "columns first":
        numbers, kind = np.asfortranarray(numbers), "float64"
    np.save(path, numbers.astype(kind, order="K"))
    return np.load(path, mmap_mode="r")


def peak_without_the_result(method, rows):
    """Return the peak memory in bytes of a call, without its result."""
    tracemalloc.start()
    answer = method(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    arrays = answer if isinstance(answer, tuple) else (answer,)
    assert all(len(array) == len(rows) for array in arrays)
    return peak - sum(array.nbytes for array in arrays)


METHODS = {
    "PCAExtension.transform": PCAExtension(**FIXED).fit(X, Y).transform,
    "PCAExtension.place": PCAExtension(**FIXED).fit(X, Y).place,
    "cosine": PCAExtension(**FIXED, metric="cosine").fit(X, Y).place,
    "radius": PCAExtension(**FIXED | {"n_neighbors": 2}, radius=0.1).fit(X, Y).transform,
    "Extended.place": Extended(DiffusionMaps(), PCAExtension(**FIXED)).fit(X).place,
    "Extended.transform": Extended(DiffusionMaps(), PCAExtension(**FIXED)).fit(X).transform,
    "NoveltyDetector.place": NoveltyDetector(PCAExtension(**FIXED)).fit(X, Y).place,
    "NoveltyDetector.p_values": NoveltyDetector().fit(X).p_values,
    "NystroemExtension": NystroemExtension(bandwidth=0.5).fit(X, Y).transform,
    "GeometricHarmonics": GeometricHarmonics(bandwidth=0.5).fit(X, Y).transform,
    "LaplacianPyramids": LaplacianPyramids().fit(X, Y).transform,
    "MultiscaleExtension": MultiscaleExtension().fit(X, Y).transform,
    "DiffusionMaps": DiffusionMaps().fit(X).transform,
}


CASES = [(name, "float32") for name in METHODS]
CASES += [("PCAExtension.place", kind) for kind in ("float64", "int16", "columns first")]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_twice_as_many_rows_need_no_more_memory(name, kind, monkeypatch, tmp_path):
    monkeypatch.setattr(chunks, "CHUNK_ENTRIES", 1)
    new, method = mapped(kind, tmp_path / "new.npy"), METHODS[name]
    method(new[:9])  # builds and compiles everything
    once = peak_without_the_result(method, new[: Q // 2])
    twice = peak_without_the_result(method, new)
    assert twice < once + 0.5 * Q // 2 * D * 8  # half of a copy of the additional rows


@pytest.mark.parametrize("name", METHODS)
def test_chunks_give_the_result_of_one_call(name, monkeypatch):
    new = RNG.random((3000, D))
    whole_result = METHODS[name](new)
    monkeypatch.setattr(chunks, "CHUNK_ENTRIES", 1)
    chunked_result = METHODS[name](new)
    results = (
        result if isinstance(result, tuple) else (result,)
        for result in (whole_result, chunked_result)
    )
    for whole, parts in zip(*results, strict=True):
        np.testing.assert_array_equal(whole, parts)


def test_a_bad_entry_of_a_memory_map_is_found_without_a_copy(tmp_path):
    new = RNG.random((Q, D))
    new[[5000, 9000], [1, 3]] = np.nan, np.inf
    np.save(tmp_path / "new.npy", new)
    new = np.load(tmp_path / "new.npy", mmap_mode="r")
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"row 5000, column 1 \(2 such entries\)"):
        METHODS["PCAExtension.place"](new)
    assert tracemalloc.get_traced_memory()[1] < 0.5 * new.nbytes
    tracemalloc.stop()
