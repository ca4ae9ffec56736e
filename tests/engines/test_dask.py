"""Dask arrays and frames are answered lazily, as arrays and frames of the same rows are."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest

from outsample import DiffusionMaps, Extended, NoveltyDetector, NystroemExtension, PCAExtension

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

FIXED = {"n_neighbors": 4, "weighting": "tangent", "order": 0, "loss": "squared"}
RNG = np.random.default_rng(0)
X = RNG.random((80, 3))
Y = np.column_stack([X[:, 0], X[:, 1] ** 2])
NEW = RNG.random((100, 3)).astype(np.float32)
MODELS = {
    "map": PCAExtension(**FIXED).fit(X, Y),
    "detector": NoveltyDetector(PCAExtension(**FIXED)).fit(X, Y),
    "extended": Extended(DiffusionMaps(), PCAExtension(**FIXED)).fit(X),
    "kernel": NystroemExtension(bandwidth=0.5).fit(X, Y),
    "diffusion": DiffusionMaps().fit(X),
}
NAMED = PCAExtension(**FIXED).fit(pd.DataFrame(X, columns=list("abc")), Y)
FRAME = pd.DataFrame(NEW, columns=list("abc"), index=np.arange(100) * 10)
ASKED = [
    (name, method)
    for name, model in MODELS.items()
    for method in ("transform", "place", "abnormality", "p_values", "predict")
    if hasattr(model, method)
]


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def same(lazy, known):
    """Tell whether what was computed is what is known, bit for bit."""
    arrays = known if isinstance(known, tuple) else (known,)
    computed = lazy if isinstance(lazy, tuple) else (lazy,)
    assert [a.dtype for a in computed] == [a.dtype for a in arrays]
    return all(np.array_equal(a, b) for a, b in zip(computed, arrays, strict=True))


@pytest.mark.parametrize(("name", "method"), ASKED)
def test_arrays(name, method):
    ask = getattr(MODELS[name], method)
    lazy = ask(da.from_array(NEW, chunks=(30, 2)))
    (found,) = dask.compute(lazy)
    known = ask(NEW)
    assert type(found) is type(known)
    assert same(found, known)
    for one, array in zip(
        *(a if isinstance(a, tuple) else (a,) for a in (lazy, known)), strict=True
    ):
        assert isinstance(one, da.Array)
        assert one.shape == array.shape
        assert one.dtype == array.dtype


def test_blocks_of_unknown_and_no_length():
    new = da.from_array(NEW, chunks=(30, 3))
    some = NEW[NEW[:, 0] > 0.9]
    for ask in (MODELS["map"].transform, MODELS["detector"].place):
        assert same(*dask.compute(ask(new[new[:, 0] > 0.9])), ask(some))
        (nothing,) = dask.compute(ask(new[new[:, 0] > 9]))
        assert len(nothing if isinstance(nothing, np.ndarray) else nothing.bound) == 0


def test_frames():
    new = dd.from_pandas(FRAME, npartitions=4)
    placed = NAMED.place(new)
    known = NAMED.place(FRAME).to_frame(index=FRAME.index)
    assert isinstance(placed, dd.DataFrame)
    assert placed.divisions == new.divisions
    pd.testing.assert_frame_equal(placed.compute(), known)
    assert same(NAMED.transform(new).compute(), NAMED.transform(FRAME))
    pd.testing.assert_frame_equal(
        NAMED.place(new[new.a > 0.95]).compute(), known[(FRAME.a > 0.95).to_numpy()]
    )
    assert same(NAMED.transform(new[new.a > 9]).compute(), NAMED.transform(FRAME)[:0])


def test_the_model_is_in_the_graph_once():
    model = PCAExtension(**FIXED).fit(RNG.random((2000, 3)), RNG.random((2000, 2)))
    size = len(pickle.dumps(model))
    array, frame = da.from_array(NEW, chunks=(10, 3)), dd.from_pandas(FRAME, npartitions=10)
    for lazy in (model.transform(array), model.place(array).bound, model.place(frame)):
        (ready,) = dask.optimize(lazy)
        sizes = sorted(len(pickle.dumps(task)) for task in dict(ready.__dask_graph__()).values())
        assert sizes[-1] > 0.9 * size
        assert sizes[-2] < 0.1 * size


def test_what_is_wrong_is_said_before_anything_is_computed():
    frame = dd.from_pandas(FRAME, npartitions=4)
    with pytest.raises(ValueError, match="Feature names seen at fit time, yet now missing:\n- c"):
        NAMED.place(frame[["a", "b"]])
    with pytest.raises(ValueError, match="X has 2 features, but PCAExtension is expecting 3"):
        MODELS["map"].transform(da.zeros((5, 2)))
    with pytest.raises(ValueError, match="1 dimensions, but must have 2"):
        MODELS["map"].transform(da.zeros(5))
    with pytest.raises(TypeError, match="must be a Dask array or a Dask data frame"):
        MODELS["map"].transform(dask.delayed(NEW))


def test_a_bad_row_is_found_with_its_partition():
    bad = NEW.copy()
    bad[70, 1] = np.nan
    lazy = MODELS["map"].transform(da.from_array(bad, chunks=(30, 3)))
    with pytest.raises(ValueError, match=r"^Partition 2 of X(.|\n)*row 10, column 1"):
        lazy.compute()
    frame = FRAME.copy()
    frame.iloc[70, 1] = np.nan
    lazy = NAMED.place(dd.from_pandas(frame, npartitions=4))
    with pytest.raises(ValueError, match=r"^Partition 2 of X(.|\n)*row 20, column 1"):
        lazy.compute()


def test_dask_is_not_imported_for_arrays():
    program = """
import sys, numpy as np
from outsample import PCAExtension
X = np.random.default_rng(0).random((30, 2))
PCAExtension(n_neighbors=3, weighting="distance", order=0, loss="squared").fit(X, X).place(X)
assert "dask" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
