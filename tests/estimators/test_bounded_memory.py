"""Memory for new points is set by a piece of them, not by their number."""

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
    """Return new points in a file that is mapped into memory, of several types and orders."""
    numbers = RNG.random((Q, D)) * (10_000 if kind == "int16" else 1)
    if kind == "columns first":
        numbers, kind = np.asfortranarray(numbers), "float64"
    np.save(path, numbers.astype(kind, order="K"))
    return np.load(path, mmap_mode="r")


def peak_beside_the_answer(ask, rows):
    """Return bytes held at once while rows are answered for, less those of the answer."""
    tracemalloc.start()
    answer = ask(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    arrays = answer if isinstance(answer, tuple) else (answer,)
    assert all(len(array) == len(rows) for array in arrays)
    return peak - sum(array.nbytes for array in arrays)


ASKED = {
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


CASES = [(name, "float32") for name in ASKED]
CASES += [("PCAExtension.place", kind) for kind in ("float64", "int16", "columns first")]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_twice_as_many_rows_need_no_more_memory(name, kind, monkeypatch, tmp_path):
    monkeypatch.setattr(chunks, "CHUNK_ENTRIES", 1)
    new, ask = mapped(kind, tmp_path / "new.npy"), ASKED[name]
    ask(new[:9])  # what is built and compiled at first use
    once = peak_beside_the_answer(ask, new[: Q // 2])
    twice = peak_beside_the_answer(ask, new)
    assert twice < once + 0.5 * Q // 2 * D * 8  # half of a copy of the rows that were added


@pytest.mark.parametrize("name", ASKED)
def test_pieces_answer_as_one(name, monkeypatch):
    new = RNG.random((3000, D))
    at_once = ASKED[name](new)
    monkeypatch.setattr(chunks, "CHUNK_ENTRIES", 1)
    by_piece = ASKED[name](new)
    both = (one if isinstance(one, tuple) else (one,) for one in (at_once, by_piece))
    for whole, parts in zip(*both, strict=True):
        np.testing.assert_array_equal(whole, parts)


def test_a_bad_entry_of_a_long_map_is_found_without_a_copy(tmp_path):
    new = RNG.random((Q, D))
    new[[5000, 9000], [1, 3]] = np.nan, np.inf
    np.save(tmp_path / "new.npy", new)
    new = np.load(tmp_path / "new.npy", mmap_mode="r")
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"row 5000, column 1 \(2 such entries\)"):
        ASKED["PCAExtension.place"](new)
    assert tracemalloc.get_traced_memory()[1] < 0.5 * new.nbytes
    tracemalloc.stop()
