"""Placements as pandas and polars frames, and the map as a table for tools that draw maps."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from outsample import Extended, NoveltyDetector, NystroemExtension, PCAExtension, load, save
from outsample.files.atlas import map_table, write_parquet

polars = pytest.importorskip("polars")
pytest.importorskip("pyarrow")
PLAIN = {"weighting": "distance", "order": 0, "loss": "squared", "n_neighbors": 6}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = X[:, :2] + 0.1 * RNG.normal(size=(60, 2))
Q = RNG.normal(size=(5, 4))
NUMBERS = ["error_bar", "abnormality", "p_value", "bound", "n_neighbors"]
MORE = ["residual", "dispersion", "off_manifold", "isolation"]


@pytest.fixture(scope="module")
def detector():
    return NoveltyDetector(PCAExtension(**PLAIN)).fit(X, Y)


def test_a_frame_has_the_columns_of_files_in_their_order(detector):
    placed = detector.place(Q)
    frame = placed.to_frame()
    assert list(frame.columns) == ["map_1", "map_2", *NUMBERS, *MORE]
    for name in NUMBERS + MORE:
        np.testing.assert_array_equal(frame[name], getattr(placed, name))
    np.testing.assert_array_equal(frame[["map_1", "map_2"]], placed.coordinates)
    only = PCAExtension(**PLAIN).fit(X, Y).place(Q).to_frame(["x", "y"])
    assert list(only.columns) == ["x", "y", "error_bar", "bound", "n_neighbors", *MORE]


def test_names_of_points_are_the_index_or_a_column(detector):
    placed = detector.place(Q)
    names = pd.Index(list("abcde"), name="cell")
    assert placed.to_frame(index=names).loc["c", "map_2"] == placed.coordinates[2, 1]
    frame = placed.to_frame(index=names, kind="polars")
    assert frame.columns[:3] == ["cell", "map_1", "map_2"]
    assert frame["cell"].to_list() == list("abcde")
    assert placed.to_frame(index=list("abcde"), kind="polars").columns[0] == "index"
    plain = placed.to_frame(kind="polars")
    assert isinstance(plain, polars.DataFrame)
    np.testing.assert_array_equal(plain["p_value"].to_numpy(), placed.p_value)


def test_the_type_of_the_coordinates_is_kept(detector):
    placed = detector.place(Q.astype(np.float32))
    assert placed.to_frame()["map_1"].dtype == np.float32
    assert placed.to_frame(kind="polars")["map_1"].dtype == polars.Float32


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": ["x"]}, "1 names for the 2 coordinates"),
        ({"columns": ["x", "x"]}, "'x', the name of another"),
        ({"columns": ["x", "bound"]}, "'bound', the name of another"),
        ({"index": [1, 2]}, "index has 2 entries, but there are 5"),
        ({"kind": "arrow"}, "kind is 'arrow'"),
        ({"index": pd.RangeIndex(5, name="bound"), "kind": "polars"}, "index is called 'bound'"),
    ],
)
def test_bad_names_are_told(detector, arguments, message):
    with pytest.raises(ValueError, match=message):
        detector.place(Q).to_frame(**arguments)


@pytest.mark.parametrize(("kind", "extra"), [("pandas", "tables"), ("polars", "polars")])
def test_a_missing_package_names_its_extra(monkeypatch, detector, kind, extra):
    monkeypatch.setitem(sys.modules, kind, None)
    with pytest.raises(ImportError, match=rf'pip install "outsample\[{extra}\]"'):
        detector.place(Q).to_frame(kind=kind)


def test_a_map_table_has_the_reference_first_and_ids_are_its_rows(detector):
    table = map_table(
        detector,
        Q,
        columns={"name": np.arange(60).astype(str)},
        new_columns={"day": [1, 2, 3, 4, 5]},
    ).to_pandas()
    placed = detector.place(Q)
    assert len(table) == 65
    assert list(table.columns) == [
        "map_1", "map_2", "source", *NUMBERS, *MORE, "neighbors", "name", "day"
    ]  # fmt: skip
    assert table["source"].tolist() == ["reference"] * 60 + ["new"] * 5
    np.testing.assert_array_equal(table[["map_1", "map_2"]][60:], placed.coordinates)
    np.testing.assert_array_equal(table[["map_1", "map_2"]][:60], Y)
    assert table["p_value"][:60].isna().all() and (table["p_value"][60:] == placed.p_value).all()
    assert (
        table["name"][:60].tolist() == list(map(str, range(60))) and table["name"][60:].isna().all()
    )
    points = np.vstack([X, Q])
    for row, near in enumerate(table["neighbors"]):
        assert len(near["ids"]) == len(near["distances"]) == 15 and max(near["ids"]) < 60
        away = np.linalg.norm(points[row] - points[near["ids"]], axis=1)
        np.testing.assert_allclose(away, near["distances"], atol=1e-12)
        assert row >= 60 or near["ids"][0] == row


@pytest.mark.parametrize("copies", [3, 40])
def test_rows_with_copies_are_their_own_first_neighbour(copies):
    points, images = np.repeat(X[:20], copies, axis=0), np.repeat(Y[:20], copies, axis=0)
    table = map_table(PCAExtension(**PLAIN).fit(points, images), n_neighbors=5).to_pandas()
    for row, near in enumerate(table["neighbors"]):
        assert near["ids"][0] == row and len(set(near["ids"])) == 5
        away = np.linalg.norm(points[row] - points[near["ids"]], axis=1)
        np.testing.assert_allclose(away, near["distances"], atol=1e-12)


def test_a_detector_of_one_half_shows_the_rows_it_learnt():
    detector = NoveltyDetector(PCAExtension(**PLAIN), calibration="split").fit(X, Y)
    rows = detector.training_rows_
    table = map_table(detector, Q, columns={"row": np.arange(60)}, n_neighbors=4).to_pandas()
    assert table["row"][:30].tolist() == rows.tolist()
    near = table["neighbors"][32]
    away = np.linalg.norm(Q[2] - X[rows][near["ids"]], axis=1)
    np.testing.assert_allclose(away, near["distances"], atol=1e-12)


def test_an_extended_embedding_has_a_table_too():
    from sklearn.decomposition import PCA

    table = map_table(Extended(PCA(2), PCAExtension(**PLAIN)).fit(X), Q, map_names=["x", "y"])
    assert table.column_names[:4] == ["x", "y", "source", "error_bar"]


def test_a_model_from_a_file_has_the_same_table(detector, tmp_path):
    save(detector, tmp_path / "model.outsample")
    assert map_table(load(tmp_path / "model.outsample"), Q).equals(map_table(detector, Q))


def test_a_parquet_file_is_whole_or_not_there(detector, tmp_path, monkeypatch):
    path = tmp_path / "map.parquet"
    write_parquet(path, detector, Q, n_neighbors=3)
    frame = pd.read_parquet(path)
    assert set(frame["neighbors"][64]) == {"ids", "distances"}
    assert polars.read_parquet(path).schema["neighbors"] == polars.Struct(
        {"ids": polars.List(polars.Int64), "distances": polars.List(polars.Float64)}
    )
    from pyarrow import parquet

    def broken(table, where):
        where.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(parquet, "write_table", broken)
    with pytest.raises(OSError, match="disk full"):
        write_parquet(path, detector)
    assert [one.name for one in tmp_path.iterdir()] == ["map.parquet"]
    assert len(pd.read_parquet(path)) == 65


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": {"a": [1, 2]}}, r"columns\['a'\] has shape \(2,\), not \(60,\)"),
        ({"new_columns": {"a": [1]}}, r"new_columns\['a'\] has shape \(1,\), not \(5,\)"),
        ({"columns": {"map_1": np.zeros(60)}}, "contains 'map_1'"),
        ({"n_neighbors": 61}, "from 1 to 60"),
    ],
)
def test_bad_columns_of_a_map_table_are_told(detector, arguments, message):
    with pytest.raises(ValueError, match=message):
        map_table(detector, Q, **arguments)


def test_models_without_a_map_have_no_table():
    with pytest.raises(ValueError, match="no map"):
        map_table(NoveltyDetector().fit(X))
    with pytest.raises(TypeError, match="must be a fitted"):
        map_table(NystroemExtension().fit(X, Y))
    with pytest.raises(NotFittedError):
        map_table(PCAExtension())


def test_embedding_atlas_reads_the_neighbours(detector):
    metrics = pytest.importorskip("embedding_atlas.graph_metrics", reason="embedding-atlas")
    frame = map_table(detector, Q).to_pandas()
    found = metrics.compute_degree_columns(frame, neighbors="neighbors")
    assert len(found[0]) == 65 and (found[1][60:] == 15).all()  # every new point points at 15


def test_datamapplot_draws_the_table(detector):
    datamapplot = pytest.importorskip("datamapplot", reason="datamapplot is not installed")
    frame = map_table(detector, Q).to_pandas()
    figure, _ = datamapplot.create_plot(
        frame[["map_1", "map_2"]].to_numpy(), frame["source"].to_numpy(), use_medoids=False
    )
    assert figure.axes


def test_jupyter_scatter_takes_the_frame(detector):
    try:
        import jscatter
    except (ImportError, FileNotFoundError) as error:  # a wheel of it lacks one of its own files
        pytest.skip(f"jupyter-scatter cannot be imported: {error}")
    frame = map_table(detector, Q).to_pandas()
    scatter = jscatter.Scatter(data=frame, x="map_1", y="map_2", color_by="p_value")
    assert len(scatter.widget.points) == 65
