"""The index of a pandas frame is never a feature nor a coordinate, in any format."""

import json

import numpy as np
import pytest

from cli_data import CHEAP, images, points, run
from outsample import BatchPlacer, PCAExtension, place_batches, save
from outsample.files.tables import open_table, read_table

pandas = pytest.importorskip("pandas")
pyarrow = pytest.importorskip("pyarrow")
ENDINGS = [".parquet", ".feather", ".arrow", ".arrows"]


def frame_file(path, frame, metadata=True):
    from pyarrow import ipc, parquet

    table = pyarrow.Table.from_pandas(frame)
    table = table if metadata else table.replace_schema_metadata(None)
    if path.suffix == ".parquet":
        parquet.write_table(table, path)
    else:
        make = ipc.new_stream if path.suffix == ".arrows" else ipc.new_file
        with make(str(path), table.schema) as writer:
            writer.write_table(table)
    return path


def frames(index_name=None):
    """Return points and map with an index that pandas stores as a column."""
    X = points(300)
    index = pandas.Index(np.random.default_rng(0).permutation(900)[:300], name=index_name)
    features = pandas.DataFrame(X, columns=list("abc"), index=index)
    coordinates = pandas.DataFrame(images(X), columns=["u", "v"], index=index)
    return features, coordinates


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("index_name", [None, "cell"])
def test_fit_and_place_leave_the_index_out(tmp_path, monkeypatch, ending, index_name):
    monkeypatch.chdir(tmp_path)
    features, coordinates = frames(index_name)
    frame_file(tmp_path / f"points{ending}", features)
    frame_file(tmp_path / f"map{ending}", coordinates)
    fitted = run("fit", f"points{ending}", f"map{ending}", "-o", "m.outsample", "--json", *CHEAP)
    summary = json.loads(fitted.stdout)
    assert summary["feature_names"] == ["a", "b", "c"] and summary["map_names"] == ["u", "v"]
    named = "column 'cell' is the index of a pandas frame" in fitted.stderr
    assert named == (index_name is not None)
    run("place", "m.outsample", f"points{ending}", "-o", "placed.csv")
    placed = pandas.read_csv("placed.csv")
    np.testing.assert_allclose(placed[["u", "v"]], coordinates)
    run("report", "m.outsample", f"points{ending}", "-o", "page.html")
    run("compare", f"points{ending}", f"map{ending}", "--splits", "1", "--json")


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_stored_index_without_metadata_is_recognised_by_its_name(tmp_path, ending):
    path = frame_file(tmp_path / f"a{ending}", frames()[0], metadata=False)
    assert open_table(path).names[-1] == "__index_level_0__"
    assert read_table(path).shape == (300, 3)


def test_the_index_can_be_copied_or_used_as_a_feature(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    features, coordinates = frames("cell")
    frame_file(tmp_path / "points.parquet", features)
    frame_file(tmp_path / "map.parquet", coordinates)
    options = ["points.parquet", "map.parquet", "-o", "m.outsample", "--json", *CHEAP]
    summary = json.loads(run("fit", *options, "--id", "cell").stdout)
    assert summary["columns"] == ["cell"] and summary["n_features"] == 3
    run("place", "m.outsample", "points.parquet", "-o", "placed.csv")
    assert pandas.read_csv("placed.csv")["cell"].tolist() == features.index.tolist()
    summary = json.loads(run("fit", *options, "--columns", "cell,a").stdout)
    assert summary["feature_names"] == ["cell", "a"]


def test_batches_of_arrow_leave_the_index_out(tmp_path):
    features, coordinates = frames()
    model = PCAExtension(n_neighbors=5, order=0, loss="squared")
    model.fit(features.to_numpy(), coordinates.to_numpy())
    save(model, tmp_path / "m.outsample")
    table = pyarrow.Table.from_pandas(features)
    for placed in (BatchPlacer(tmp_path / "m.outsample")(table), *place_batches(model, [table])):
        np.testing.assert_allclose(placed.column("map_1").to_numpy(), coordinates["u"])


def test_metadata_of_others_is_ignored(tmp_path):
    from pyarrow import parquet

    table = pyarrow.table({"x": [1.0], "y": [2.0]})
    for text in ("{", "[]", '{"index_columns": 3}', '{"index_columns": [{"kind": "range"}]}'):
        marked = table.replace_schema_metadata({b"pandas": text.encode()})
        parquet.write_table(marked, tmp_path / "a.parquet")
        assert read_table(tmp_path / "a.parquet").tolist() == [[1.0, 2.0]]
