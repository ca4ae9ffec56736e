"""`OpenedModel`: the same matching, checks and columns for tables of every kind."""

from __future__ import annotations

import numpy as np
import pytest

import outsample
from cli_data import make_model, points, run
from outsample import NoveltyDetector, PCAExtension, StreamingExtension, place_batches
from outsample.files.array_source import ArraySource
from outsample.files.matching import ColumnError
from outsample.files.source import CellError, check_finite
from outsample.files.table_writer import Records
from outsample.opened_model import OpenedModel
from outsample.placed_frame import PLACED_NUMBERS

X = points(80)
Y = X[:, :2] ** 3
FIXED = {"n_neighbors": 5, "weighting": "distance", "order": 0, "loss": "squared"}


@pytest.fixture
def opened(tmp_path):
    detector = NoveltyDetector(PCAExtension(**FIXED)).fit(X, Y)
    detector.feature_names_in_ = np.array(["a", "b", "c"], dtype=object)
    names = [f"p{row}" for row in range(80)]
    path = tmp_path / "m.outsample"
    outsample.save(detector, path, columns={"name": names}, map_names=["u", "v"])
    return OpenedModel.open(path)


def test_names_and_columns_come_from_the_file(opened):
    assert opened.feature_names == ["a", "b", "c"] and opened.n_features == 3
    assert opened.map_names == ["u", "v"] and opened.numbers == PLACED_NUMBERS
    assert opened.training_columns["name"][3] == "p3"
    assert list(opened.empty(explain=True)) == [
        "u", "v", *PLACED_NUMBERS, "main_reason", "neighbors"
    ]  # fmt: skip


@pytest.mark.filterwarnings("error")
def test_the_columns_of_a_placement(opened):
    new = points(9, seed=1)
    placed = NoveltyDetector(PCAExtension(**FIXED)).fit(X, Y).place(new)
    columns = opened.place(new, explain=True)
    np.testing.assert_array_equal(np.column_stack([columns["u"], columns["v"]]), placed.coordinates)
    for name in PLACED_NUMBERS:
        np.testing.assert_array_equal(columns[name], getattr(placed, name))
    record = columns["neighbors"][0]
    assert record["names"] == [f"p{row}" for row in record["ids"]]


def test_rows_that_are_not_finite_have_no_results(opened):
    new = points(5, seed=1)
    new[[1, 3], 0] = np.nan, np.inf
    columns = opened.place_rows(new, explain=True)
    good = opened.place(new[[0, 2, 4]], explain=True)
    assert np.ma.getmaskarray(columns["u"]).tolist() == [False, True, False, True, False]
    np.testing.assert_array_equal(columns["u"].compressed(), good["u"])
    assert isinstance(columns["neighbors"], Records) and columns["neighbors"][1] is None
    assert columns["main_reason"][3] == ""
    with pytest.raises(CellError, match=r"new: row 2, column 'a' is missing .* \(at least 2"):
        check_finite(new, ["a", "b", "c"], "new")


def test_every_kind_of_table_has_the_same_messages(opened, tmp_path):
    ad, pd = pytest.importorskip("anndata"), pytest.importorskip("pandas")
    from outsample.anndata import map_query

    new = points(4, seed=1)
    frame = pd.DataFrame(new[:, :2], columns=["b", "a"])
    cells = ad.AnnData(new[:, :2].astype(np.float32), var=pd.DataFrame(index=["b", "a"]))
    message = r"lacks 1 of the model's 3 features: 'c'"
    for place in (
        lambda: opened.match(ArraySource("table", new[:, :2], names=["b", "a"])),
        lambda: list(place_batches(opened.model, [frame])),
        lambda: map_query(cells, model=opened.model, use_rep="X"),
    ):
        with pytest.raises(ColumnError, match=message):
            place()
    matched = opened.match(ArraySource("table", new[:, [0, 2, 1, 0]], names=["a", "c", "b", "d"]))
    assert matched.features == [0, 2, 1] and matched.unused == [3]
    with pytest.raises(ColumnError, match="has 2 columns for the model's 3 features; look there"):
        opened.match(ArraySource("table", new[:, :2]), hint="; look there")


@pytest.mark.filterwarnings("error")
def test_a_snapshot_of_a_stream_has_scores(tmp_path):
    pd = pytest.importorskip("pandas")
    detector = NoveltyDetector(PCAExtension(**FIXED)).fit(pd.DataFrame(X, columns=list("abc")), Y)
    stream = StreamingExtension(detector, window=50).start()
    stream.learn(pd.DataFrame(points(10, seed=2), columns=list("abc")))
    outsample.save(stream, tmp_path / "stream.outsample")
    opened = OpenedModel.open(tmp_path / "stream.outsample")
    new = points(6, seed=1)
    columns, placed = opened.place(new), stream.place(pd.DataFrame(new, columns=list("abc")))
    assert opened.numbers == PLACED_NUMBERS
    np.testing.assert_array_equal(columns["map_1"], placed.coordinates[:, 0])
    np.testing.assert_array_equal(columns["p_value"], placed.p_value)


def test_coordinates_may_have_any_name_but_those_of_the_result(tmp_path):
    """`residual` is a column of data frames only, not of files."""
    model = PCAExtension(**FIXED).fit(X, Y)
    outsample.save(model, tmp_path / "m.outsample", map_names=["residual", "v"])
    assert list(OpenedModel.open(tmp_path / "m.outsample").place(X[:2]))[:2] == ["residual", "v"]
    outsample.save(model, tmp_path / "m.outsample", map_names=["bound", "v"])
    with pytest.raises(ValueError, match="A coordinate is called 'bound'"):
        OpenedModel.open(tmp_path / "m.outsample")


def test_output_in_arrays_is_not_made_of_text(tmp_path, monkeypatch):
    """float32 stays float32, which no text of numbers could keep."""
    make_model(tmp_path)
    monkeypatch.chdir(tmp_path)
    new = points(20, seed=1).astype(np.float32)
    np.save("new.npy", new)
    run("place", "m.outsample", "new.npy", "-o", "out.npz")
    model = OpenedModel.open("m.outsample")
    with np.load("out.npz") as out:
        assert out["u"].dtype == np.float32 and out["n_neighbors"].dtype.kind == "i"
        np.testing.assert_array_equal(out["u"], model.place(new)["u"])
