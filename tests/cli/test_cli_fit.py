"""`outsample fit`, `inspect` and `report`: from files to a model and a page."""

import inspect
import json
import os

import numpy as np
import pytest
from click.shell_completion import ShellComplete

import outsample
from cli_data import CHEAP, images, make_model, named, points, run, write_csv
from outsample.cli import main
from outsample.cli.fit_command import PARAMETERS, WEIGHTINGS
from outsample.files.model_file import describe, read_columns
from outsample.placers.candidates import NAMED

X, Y = points(120), images(points(120))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "points.csv", named(X, "p"))
    names = [f"p{at}" for at in range(len(X))]
    write_csv(tmp_path / "map.csv", {"name": names, "u": Y[:, 0], "v": Y[:, 1]})
    np.savez(tmp_path / "both.npz", X=X, Y=Y, label=np.arange(120))
    return tmp_path


def fit(*words, code=0):
    return run("fit", *words, "-o", "m.outsample", *CHEAP, code=code)


def extension():
    return outsample.load("m.outsample").extension_


def library():
    """Fit as Python does it."""
    cheap = {"weighting": "distance", "n_neighbors": 8, "order": 0, "loss": "squared"}
    return outsample.PCAExtension(**cheap).fit(X, Y)


def test_the_model_is_the_librarys(folder):
    told = fit("points.csv", "map.csv", "--id", "name", "--id", "kind").stdout.splitlines()
    assert told[0].startswith("Fitted to 120 points with 3 features and a map of 2 coordinates")
    assert told[2].startswith("Wrote m.outsample (")
    info = describe("m.outsample")
    assert info.feature_names == ["a", "b", "c"] and info.map_names == ["u", "v"]
    assert info.columns == ["name", "kind"]
    assert read_columns("m.outsample")["name"][:2].tolist() == ["p0", "p1"]
    Q = points(20, seed=3)
    assert (extension().transform(Q) == library().transform(Q)).all()


def test_a_data_frame_of_other_columns_is_refused_by_name(folder):
    pandas = pytest.importorskip("pandas")
    fit("points.csv", "map.csv", "--id", "name", "--id", "kind")
    model = outsample.load("m.outsample")
    frame = pandas.DataFrame(X, columns=list("abc"))
    assert len(model.p_values(frame)) == 120
    with pytest.raises(ValueError, match="feature names"):
        model.p_values(frame.rename(columns={"a": "z"}))


def test_json(folder):
    told = json.loads(fit("both.npz", "--json").stdout)
    assert told["n_points"] == 120 and told["n_features"] == 3 and told["columns"] == []
    assert told["map_names"] == ["map_1", "map_2"] and 0 < told["loo_error"] < 1
    assert told["file_bytes"] == os.path.getsize("m.outsample")


def test_maps_inside_the_file_of_the_points(folder):
    Q = points(20, seed=3)
    fit("both.npz", "--id", "label")
    assert read_columns("m.outsample")["label"].tolist() == list(range(120))
    assert (extension().transform(Q) == library().transform(Q)).all()
    write_csv(folder / "one.csv", named(X, "p") | {"u": Y[:, 0], "v": Y[:, 1]})
    fit("one.csv", "--map-columns", "u,v", "--columns", "a,b,c")
    assert (extension().transform(Q) == library().transform(Q)).all()
    fit("one.csv", "--map-columns", "u,v", "--id", "name", "--id", "kind")
    assert (extension().transform(Q) == library().transform(Q)).all()


def test_points_from_a_pipe(folder):
    write_csv(folder / "one.csv", named(X, "p") | {"u": Y[:, 0], "v": Y[:, 1]})
    words = ["-", "--map-columns", "u,v", "--id", "name", "--id", "kind", "-o", "m.outsample"]
    run("fit", *words, *CHEAP, input=(folder / "one.csv").read_bytes())
    Q = points(20, seed=3)
    assert (extension().transform(Q) == library().transform(Q)).all()


@pytest.mark.parametrize(
    "name", ["tsne", "diffusion", "isomap", pytest.param("umap", marks=pytest.mark.long)]
)
def test_maps_made_on_the_way(folder, name):
    if name == "umap":
        pytest.importorskip("umap")
    fit("both.npz", "--embed", name, "--n-components", 2)
    assert describe("m.outsample").map_names == [f"{name}_1", f"{name}_2"]
    assert extension().embedding_.shape == (120, 2)


def test_without_umap_the_extra_is_named(folder, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "umap", None)
    assert "outsample[umap]" in fit("both.npz", "--embed", "umap", code=2).stderr


def test_without_a_detector(folder):
    fit("both.npz", "--no-novelty")
    assert describe("m.outsample").class_name == "PCAExtension"
    np.save("new.npy", points(5, seed=1))
    told = run("place", "m.outsample", "new.npy").stdout.splitlines()
    assert told[0] == "map_1,map_2,error_bar,bound,n_neighbors" and len(told) == 6
    assert (
        "fit a model with a detector"
        in run("place", "m.outsample", "new.npy", "--explain", code=3).stderr
    )


def test_models_of_other_kinds_place_too(folder):
    np.save("new.npy", points(5, seed=1))
    outsample.save(outsample.NoveltyDetector().fit(X), "d.outsample")
    told = run("place", "d.outsample", "new.npy").stdout.splitlines()
    assert told[0] == "abnormality,p_value" and len(told) == 6
    other = outsample.NystroemExtension().fit(X, Y)
    outsample.save(other, "n.outsample", map_names=["x", "y"])
    told = run("place", "n.outsample", "new.npy").stdout.splitlines()
    assert told[0] == "x,y"
    expected = other.transform(points(5, seed=1))
    assert [list(map(float, row.split(","))) for row in told[1:]] == expected.tolist()


@pytest.mark.parametrize("kind", ["extension", "extended", "judged", "diffusion"])
def test_models_saved_by_python_without_names(folder, kind):
    from sklearn.manifold import Isomap

    np.save("new.npy", points(5, seed=1))
    cheap = {"weighting": "distance", "n_neighbors": 8, "order": 0, "loss": "squared"}
    extended = outsample.Extended(Isomap(), outsample.PCAExtension(**cheap))
    model = {
        "extension": library(),
        "extended": extended.fit(X),
        "judged": outsample.NoveltyDetector(extended).fit(X),
        "diffusion": outsample.DiffusionMaps(n_components=2).fit(X),
    }[kind]
    outsample.save(model, "m.outsample")
    told = run("place", "m.outsample", "new.npy").stdout.splitlines()
    assert told[0].startswith("map_1,map_2") and len(told) == 6


def test_columns_that_the_answer_has_too_cannot_be_carried(folder):
    fit("points.csv", "map.csv", "--columns", "a,b,c", "--map-columns", "u,v")
    write_csv(folder / "again.csv", named(X, "p") | {"u": Y[:, 0]})
    result = run("place", "m.outsample", "again.csv", "--id", "u", code=3)
    assert "'u' cannot be carried" in result.stderr


def test_every_parameter_of_the_extension_is_an_option():
    signature = inspect.signature(outsample.PCAExtension).parameters
    assert list(PARAMETERS) == [name for name in signature if name != "n_jobs"]
    for name, (_, default, _) in PARAMETERS.items():
        assert default == signature[name].default
    assert set(WEIGHTINGS) == {"auto", "correlated", "diffusion", *NAMED}


def test_parameters_reach_the_model(folder):
    words = "--radius 0.7 --weighting tangent --order 0 --loss squared --level 0.8 --curvature 2"
    words += " --lipschitz 3 --index brute --jobs 2 --calibration split"
    run("fit", "both.npz", "-o", "m.outsample", *words.split())
    model = outsample.load("m.outsample")
    parameters = model.extension_.get_params()
    assert parameters["radius"] == 0.7 and parameters["lipschitz"] == 3.0
    assert parameters["index"] == "brute" and parameters["level"] == 0.8
    assert model.calibration == "split" and model.n_jobs == 2


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["points.csv", "map.csv"], 3, "column 'name': carry it with --id name, or choose"),
        (["points.csv", "map.csv", "--columns", "a,b", "--map-columns", "u,name"], 3,
         "line 2, column 1: 'p0' is not a number (column 'name': choose others with --map-"),
        (["bare.csv", "map.csv"], 3, "column 'column_1': carry it with --id 1, or choose"),
        (["points.csv"], 2, "MAP is missing: give its file"),
        (["points.csv", "map.csv", "--embed", "tsne"], 2, "give either MAP or --embed"),
        (["none.csv", "map.csv"], 2, "none.csv: no such file"),
        (["points.csv", "map.csv", "--columns", "a,z"], 3, "no column 'z'; it has 'name', 'a'"),
        (["points.csv", "short.csv", "--columns", "a,b"], 3, "has 120 rows, but short.csv has 2"),
        (["points.csv", "turned.csv", "--id", "name", "--id", "kind"], 3,
         "turned.csv: row 1 has name 'p119', but points.csv has 'p0' there"),
        (["nan.csv", "map.csv", "--columns", "a"], 3, "row 2, column 'a' is missing or infinite"),
        (["taken.csv", "--map-columns", "bound,v"], 3, "two columns 'bound'"),
        (["twice.csv", "--map-columns", "u,v"], 3, "column 'a' occurs more than once"),
        (["both.npz", "--n-neighbors", "0"], 2, "0 is not in the range"),
        (["both.npz", "--order", "auto", "--metric", "cosinus"], 2, "cosinus"),
        (["both.npz", "--id", "who"], 3, "no column 'who'"),
        (["both.npz", "--n-neighbors", "500"], 3, "n_neighbors is 500"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_sentence_with_a_code(folder, words, code, message):
    write_csv(folder / "short.csv", {"u": [1.0, 2.0]})
    names = [f"p{at}" for at in range(120)][::-1]
    write_csv(folder / "turned.csv", {"name": names, "u": Y[:, 0]})
    write_csv(folder / "nan.csv", {"a": [1.0, float("nan"), 2.0], "b": ["x", "y", "z"]})
    write_csv(folder / "taken.csv", {"a": X[:, 0], "bound": Y[:, 0], "v": Y[:, 1]})
    (folder / "bare.csv").write_text("x,1,2\ny,3,4\n")
    (folder / "twice.csv").write_text("a,a,u,v\n1,2,3,4\n")
    result = run("fit", *words, "-o", "m.outsample", code=code)
    last = result.stderr.splitlines()[-1]
    assert last.startswith("Error: ") and message in last
    assert not (folder / "m.outsample").exists()


def test_a_place_that_cannot_be_written_is_told_before_the_work(folder):
    result = run("fit", "both.npz", "-o", "none/m.outsample", code=1)
    assert "cannot write to" in result.stderr and "no such folder" in result.stderr


def test_a_label_taken_for_a_feature_is_noted(folder):
    write_csv(folder / "labels.csv", {"label": np.arange(120), "a": X[:, 0], "b": X[:, 1]})
    result = fit("labels.csv", "map.csv", "--map-columns", "u,v")
    assert result.stderr == (
        "Note: column 'label' is used as a feature; --id label carries it instead\n"
    )


def test_inspect(folder):
    fit("both.npz", "--id", "label")
    shown = run("inspect", "m.outsample").stdout
    for word in ("NoveltyDetector", "n_points", "120", "'map_1', 'map_2'", "'label'", "arrays"):
        assert word in shown
    told = json.loads(run("inspect", "m.outsample", "--json").stdout)
    assert told["n_points"] == 120 and told["columns"] == ["label"] and told["format_version"] == 1


@pytest.mark.parametrize("command", ["inspect", "place", "report"])
def test_broken_model_files(folder, command):
    fit("both.npz")
    broken = bytearray((folder / "m.outsample").read_bytes())
    broken[-100] ^= 1
    (folder / "flipped.outsample").write_bytes(broken)
    (folder / "cut.outsample").write_bytes(broken[: len(broken) // 2])
    (folder / "empty.outsample").touch()
    np.save("new.npy", points(5, seed=1))
    for name in ("cut", "empty", *([] if command == "inspect" else ["flipped"])):
        words = ["new.npy"] if command == "place" else []
        result = run(command, f"{name}.outsample", *words, code=4)
        assert result.stderr.startswith("Error: ") and result.stderr.count("\n") == 1


class TestReport:
    @pytest.fixture
    def model(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        return make_model(tmp_path)

    def test_of_the_model_alone(self, model):
        assert run("report", "m.outsample").stdout == "Wrote m.html\n"
        html = (model / "m.html").read_text()
        assert "<title>m</title>" in html

    def test_points_placed_before_or_now_give_the_same_page(self, model):
        run("place", "m.outsample", "new.csv", "-o", "placed.csv", "--explain")
        run("report", "m.outsample", "placed.csv", "-o", "one.html", "--title", "Map & more")
        run("report", "m.outsample", "new.csv", "-o", "two.html", "--title", "Map & more")
        html = (model / "one.html").read_text()
        assert "<title>Map &amp; more</title>" in html
        assert html == (model / "two.html").read_text()

    def test_rows_that_could_not_be_placed_are_no_harm(self, model):
        with open(model / "new.csv", "a") as file:
            file.write("bad,1,2,,left\n")
        words = "--bad-rows empty --explain -o placed.csv"
        run("place", "m.outsample", "new.csv", *words.split())
        result = run("report", "m.outsample", "placed.csv", "-o", "page.html")
        assert result.stderr == "Note: not on the page: 1 rows without coordinates\n"
        assert (model / "page.html").stat().st_size > 1000

    def test_a_table_of_something_else(self, model):
        write_csv(model / "other.csv", {"x": [1.0], "y": [2.0]})
        result = run("report", "m.outsample", "other.csv", code=3)
        assert "has neither the coordinates u, v nor the features of the model" in result.stderr


def write_h5ad(path, stem, P):
    """Write cells with a sparse X, two arrays in obsm, categories and gaps in obs."""
    ad = pytest.importorskip("anndata")
    import pandas as pd
    from scipy.sparse import csr_matrix

    n = len(P)
    gaps = np.arange(n) % 2 == 1
    obs = pd.DataFrame(index=[f"{stem}{at}" for at in range(n)])
    obs["cell_type"] = pd.Categorical(np.where(P[:, 0] > 0, "T", "B"))
    obs["n"] = np.arange(n)
    obs["gaps"] = pd.arrays.IntegerArray(np.arange(n), gaps)
    obs["flag"] = pd.arrays.BooleanArray(np.ones(n, dtype=bool), gaps)
    var = pd.DataFrame(index=["a", "b", "c"])
    obsm = {"X_pca": P, "X_umap": images(P)}
    ad.AnnData(csr_matrix(np.maximum(P, 0)), obs, var, obsm=obsm).write_h5ad(path)


class TestH5ad:
    @pytest.fixture
    def cells(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        for name, n, seed in (("reference", 120, 0), ("query", 30, 1)):
            write_h5ad(tmp_path / f"{name}.h5ad", name, points(n, seed))
        return tmp_path

    def test_from_one_file_to_the_next(self, cells):
        fit("reference.h5ad", "--id", "cell_type")
        info = describe("m.outsample")
        assert info.feature_names == ["pca_1", "pca_2", "pca_3"]
        assert info.map_names == ["umap_1", "umap_2"]
        assert info.columns == ["obs_names", "cell_type"]
        more = ["--id", "gaps", "--id", "flag"]
        told = run("place", "m.outsample", "query.h5ad", *more).stdout.splitlines()
        assert told[0].startswith("obs_names,cell_type,gaps,flag,umap_1,")
        assert told[1].split(",")[2:4] == ["0", "True"] and told[2].split(",")[2:4] == ["", ""]
        told = run("place", "m.outsample", "query.h5ad", "--id", "n").stdout.splitlines()
        assert told[0].startswith("obs_names,cell_type,n,umap_1,umap_2,")
        Q = points(30, seed=1)
        column = told[0].split(",").index("umap_1")
        placed = [float(row.split(",")[column]) for row in told[1:]]
        assert placed == library().transform(Q)[:, 0].tolist()
        kind = "T" if Q[0, 0] > 0 else "B"
        assert told[1].startswith(f"query0,{kind},0,") and told[30].startswith("query29,")
        run("report", "m.outsample", "query.h5ad", "-o", "page.html")

    @pytest.mark.filterwarnings("ignore:X does not have valid feature names")
    def test_a_copy_with_the_places_in_it(self, cells):
        import h5py

        fit("reference.h5ad")
        result = run("place", "m.outsample", "query.h5ad", "-o", "out.h5ad", "--explain")
        assert result.stderr == ""
        Q = points(30, seed=1)
        placed = outsample.load("m.outsample").place(Q)
        with h5py.File("out.h5ad") as file, h5py.File("query.h5ad") as before:
            assert (file["obsm/X_umap"][:] == placed.coordinates).all()
            assert (file["obs/outsample_p_value"][:] == placed.p_value).all()
            assert (file["X/data"][:] == before["X/data"][:]).all()
            order = list(file["obs"].attrs["column-order"])
            assert order[1:5] == ["n", "gaps", "flag", "outsample_error_bar"]
            assert order[-2:] == ["outsample_main_reason", "outsample_neighbors"]
        result = run("place", "m.outsample", "query.csv", "-o", "out.h5ad", code=2)
        assert "written as a copy of NEW" in result.stderr

    def test_the_matrix_itself_and_other_names(self, cells):
        fit("reference.h5ad", "--use-rep", "X", "--basis", "X_pca")
        assert describe("m.outsample").feature_names == ["a", "b", "c"]
        run("place", "m.outsample", "query.h5ad", "--use-rep", "X", "-o", "out.csv")
        for words, message in (
            (["--use-rep", "X_no"], "obsm has no 'X_no'; it contains 'X_pca', 'X_umap'"),
            (["--basis", "X_no"], "obsm has no 'X_no'"),
        ):
            assert message in fit("reference.h5ad", *words, code=3).stderr
        fit("reference.h5ad", "--id", "gaps")
        assert np.isnan(read_columns("m.outsample")["gaps"][1])
        result = fit("reference.h5ad", "--columns", "n", code=3)
        assert "'n' is not a column of the matrix" in result.stderr
        (cells / "bad.h5ad").write_bytes(b"no such thing")
        assert "is not an AnnData file" in fit("bad.h5ad", code=3).stderr


def test_completion_scripts(monkeypatch):
    for shell in ("bash", "zsh", "fish"):
        assert "_OUTSAMPLE_COMPLETE" in run("completion", shell).stdout
    run("completion", "tcsh", code=2)
    complete = ShellComplete(main, {}, "outsample", "_OUTSAMPLE_COMPLETE")
    assert [item.value for item in complete.get_completions([], "pl")] == ["place"]
    assert "--resume" in [item.value for item in complete.get_completions(["place"], "--re")]
    (file,) = complete.get_completions(["inspect"], "some")
    assert file.type == "file"


def test_ctrl_c_anywhere_is_one_word(folder, monkeypatch):
    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("outsample.NoveltyDetector.fit", stop)
    result = fit("both.npz", code=130)
    assert result.stderr == "Interrupted.\n" and not (folder / "m.outsample").exists()
