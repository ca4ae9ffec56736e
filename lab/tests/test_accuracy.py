"""The accuracy benchmark: on tiny maps, with stand-ins for libraries that may not be there."""

import json
import sys
import types
from functools import partial

import numpy as np
import pytest
from click.testing import CliRunner
from threadpoolctl import threadpool_limits

from outsample.cli import main
from outsample.comparison.holdout import ComparisonRow
from outsample.demo.digits import load_digits
from outsample.plots import canvas
from outsample_lab.accuracy import accuracy_bench, accuracy_page, maps, peers
from outsample_lab.accuracy import errors as accuracy
from outsample_lab.accuracy.map_result import MapResult, MapRow
from outsample_lab.accuracy.maps import MapSpec, Unavailable
from outsample_lab.environment import data_folder
from outsample_lab.plots.dots import ratio_chart
from outsample_lab.sphere import sphere


def small_digits(folder):
    X = load_digits().X[:120, :40]
    return X, X[:, [20, 21]] + 0.1 * X[:, [29, 30]]


def missing(folder):
    raise Unavailable("no file here")


TINY = (
    MapSpec("ball", "ball", "sphere", 1e-1, lambda folder: sphere(8)[:2], 1.0),
    MapSpec("torn", "torn", "tsne", None, small_digits, 1.0),
    MapSpec("gone", "gone", "isomap", None, missing, 1.0),
)


@pytest.fixture
def tiny(monkeypatch):
    """Small maps, and no openTSNE."""
    monkeypatch.setattr(accuracy, "MAPS", TINY)
    monkeypatch.setattr(peers, "find_spec", lambda name: None)


@pytest.fixture
def run(tiny, tmp_path):
    return invoke("--out", tmp_path / "out"), tmp_path / "out"


def invoke(*words):
    result = CliRunner().invoke(main, ["bench", "accuracy", *map(str, words)])
    assert result.exit_code == 0, result.output
    return result


def test_the_command_from_end_to_end(run):
    result, folder = run
    record = json.loads((folder / "accuracy.json").read_text())
    ball, torn, gone = record["maps"]
    assert gone == {"name": "gone", "title": "gone", "kind": "isomap", "skipped": "no file here"}
    assert ball["error"] == "absolute" and ball["met"] and 0 < ball["coverage"] <= 1
    assert ball["tenths"]["share"] == ball["coverage"] and len(ball["tenths"]["density"]) == 10
    assert len(ball["chosen"]) == 1 and len(torn["chosen"]) == 3
    assert record["seeds"] == [0, 1, 2] and record["versions"]["scikit-learn"]
    failed = next(row for row in torn["rows"] if row["name"].startswith("openTSNE"))
    assert "not installed" in failed["failure"] and failed["error"] is None
    errors = [row["error"] for row in torn["rows"] if row["error"] is not None]
    assert errors == sorted(errors) and len(errors) == len(torn["rows"]) - 1
    assert [row["family"] for row in ball["rows"]].count("paper") == 3
    for words in ("ball: 64 points, 2 to 3 dimensions", "gone: skipped, no file here", "Summary"):
        assert words in result.stdout
    assert result.stdout.splitlines()[-1] == f"Wrote {folder / 'accuracy.html'}"
    assert result.stderr.splitlines()[-1].startswith("[100%] done")
    assert max(map(len, result.stdout.splitlines()[:-4])) <= 80
    html = (folder / "accuracy.html").read_text()
    assert html.count("error bar, from narrow to wide") == 2
    assert "gone was skipped: no file here." in html and "failed. ImportError" in html
    assert html.count("<img ") == 1 and (folder / "accuracy.png").read_bytes()[:4] == b"\x89PNG"
    # From the file of results alone, and with nothing measured: the same page, picture and summary.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accuracy, "run", None)
        patch.setattr(accuracy, "MAPS", ())
        again = invoke("--from", folder / "accuracy.json", "--out", folder / "again")
    assert (folder / "again" / "accuracy.html").read_text() == html
    assert (folder / "again" / "accuracy.png").read_bytes() == (
        folder / "accuracy.png"
    ).read_bytes()
    assert sorted(path.name for path in (folder / "again").iterdir()) == [
        "accuracy.html", "accuracy.png"
    ]  # fmt: skip
    summary = again.stdout.splitlines()[:-3]
    assert "\n".join(summary) in result.stdout and len(summary) > 5
    assert accuracy_bench.run_record(accuracy_bench.restored_run(record)) == record


@pytest.mark.parametrize("text", ["{}", "[1]", "no JSON", '{"maps": [{"name": 3}]}'])
def test_a_foreign_file_is_rejected_in_one_line(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    for name in ("accuracy", "novelty"):
        words = ["bench", name, "--from", str(tmp_path / "x.json"), "--out", str(tmp_path)]
        result = CliRunner().invoke(main, words)
        assert result.exit_code == 3 and "does not hold results of this benchmark" in result.stderr
        assert result.stderr.startswith("Error: ") and result.stderr.count("\n") == 1


def test_plain_bench_is_accuracy_and_quick_has_one_split(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(accuracy_bench, "QUICK", ("ball",))
    monkeypatch.setattr(canvas, "find_spec", lambda name: None)
    benchmark = accuracy_bench.run_accuracy(tmp_path, quick=True)
    assert [path.name for path in benchmark.files] == ["accuracy.json", "accuracy.html"]
    record = json.loads(benchmark.files[0].read_text())
    assert record["seeds"] == [0] and [result["name"] for result in record["maps"]] == ["ball"]
    monkeypatch.setattr(accuracy, "MAPS", TINY[2:])
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["bench"])
    assert result.exit_code == 0 and (tmp_path / "outsample-bench" / "accuracy.html").is_file()


def test_unknown_maps_are_named(tmp_path):
    result = CliRunner().invoke(main, ["bench", "accuracy", "--maps", "x", "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: there is no map 'x'; the maps are: sphere-900, ")


def test_an_exact_name_is_preferred_to_a_prefix():
    assert [spec.name for spec in accuracy.select(["digits-isomap"])] == ["digits-isomap"]
    assert len(accuracy.select(["mnist"])) == 4 and len(accuracy.select([])) == len(maps.MAPS)
    assert {*maps.QUICK} <= {spec.name for spec in maps.MAPS}


def row(name, error, family=peers.PEER):
    failure = "" if np.isfinite(error) else "failed"
    return MapRow(ComparisonRow(name, error, 0, 0, 0, 0, 0, failure), family, "")


@pytest.mark.parametrize(
    ("target", "ours", "peer", "met"),
    [(0.2, 0.1, 0.05, True), (0.05, 0.1, 0.2, False), (None, 0.1, 0.2, True),
     (None, 0.3, 0.2, False), (0.2, np.nan, 0.3, False)],
)  # fmt: skip
def test_targets(target, ours, peer, met):
    rows = [row("ours", ours, peers.OURS), row("peer", peer)]
    result = MapResult("ball", "ball", "sphere", target, rows)
    assert result.met is met and result.best_peer.name == "peer"
    assert accuracy_page._summary(result)[5] == ("yes" if met else "no")
    assert ratio_chart(["a"], [ours], [[peer, 100.0]])[:4] == b"\x89PNG"


def test_without_peers_there_is_nothing_to_compare_with():
    result = MapResult("torn", "torn", "tsne", None, [row("ours", 0.1, peers.OURS)])
    assert result.best_peer is None and result.target is None and not result.met
    assert accuracy_page._summary(result)[2:4] == ["-", "-"]
    assert accuracy_page.ratios([result]) is None
    assert accuracy_page._covered(result) == ""


def test_splits_hide_a_fifth():
    X, Y = small_digits(None)
    first, second = maps.cases(TINY[1], X, Y, (0, 1))
    assert len(first.X) == 96 and len(first.truth) == 24 and not (first.X_new == second.X_new).all()
    all_points = np.concatenate([first.X, first.X_new])
    assert sorted(map(tuple, all_points)) == sorted(map(tuple, X))
    (ball,) = maps.cases(TINY[0], *sphere(8)[:2])
    assert len(ball.X_new) == 800 and ball.draws == 8


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_peers_reproduce_an_affine_map():
    rng = np.random.default_rng(0)
    X, new = rng.random((150, 2)), 0.2 + 0.6 * rng.random((10, 2))
    matrix = rng.random((2, 3))
    for extender in peers.extenders("isomap"):
        if extender.name in ("RBF thin plate", "LLE weights", "Gaussian process", "kernel ridge"):
            with threadpool_limits(1):
                placed = extender.build().fit(X, X @ matrix).predict(new)
            assert placed.shape == (10, 3)
            assert np.abs(placed - new @ matrix).max() < 0.02, extender.name


def test_leave_one_out_of_kernel_ridge_equals_a_loop():
    from sklearn.kernel_ridge import KernelRidge

    rng = np.random.default_rng(0)
    X, Y = rng.random((25, 2)), rng.random((25, 2))
    errors_by_penalty = {penalty: error for error, penalty in peers.ridge_errors(X, Y, 3.0)}
    squared = []
    for at in range(25):
        is_other = np.arange(25) != at
        ridge = KernelRidge(kernel="rbf", gamma=3.0, alpha=1e-2).fit(X[is_other], Y[is_other])
        squared.append(((ridge.predict(X[at : at + 1]) - Y[at]) ** 2).sum())
    assert errors_by_penalty[1e-2] == pytest.approx(np.mean(squared))


def test_opentsne_s_shift_of_the_map_is_undone(monkeypatch):
    class Embedding:
        def __init__(self, Y, affinities, random_state):
            self.Y = Y

        def __array__(self, dtype=None, copy=None):
            return self.Y

        def transform(self, X):
            self.Y -= 7.0  # as openTSNE does
            return np.zeros((len(X), 2))

    module = types.ModuleType("openTSNE")
    module.TSNEEmbedding = Embedding
    part = types.ModuleType("openTSNE.affinity")
    part.PerplexityBasedNN = lambda X, **parameters: None
    monkeypatch.setitem(sys.modules, "openTSNE", module)
    monkeypatch.setitem(sys.modules, "openTSNE.affinity", part)
    Y = np.arange(8.0).reshape(4, 2)
    placed = peers.by_opentsne(Y, Y)(Y[:3])
    assert placed.tolist() == [[7.0, 7.0]] * 3
    assert (np.arange(8.0).reshape(4, 2) == Y).all()  # the caller's map is as it was


def test_umap_gets_the_frozen_map(monkeypatch):
    class UMAP:
        def __init__(self, **parameters):
            self.n_epochs = parameters.get("n_epochs")

        def fit(self, X):
            self.embedding_ = np.zeros((len(X), 2))

        def fit_transform(self, X):
            return X[:, :2]

        def transform(self, X):
            assert self.n_epochs is None
            return self.embedding_[: len(X)]

    module = types.ModuleType("umap")
    module.UMAP = UMAP
    monkeypatch.setitem(sys.modules, "umap", module)
    Y = np.arange(8.0).reshape(4, 2)
    assert (peers.by_umap(Y, Y)(Y[:3]) == Y[:3]).all()
    monkeypatch.setattr(maps, "find_spec", lambda name: True)
    assert (maps._umap(Y) == Y).all()
    monkeypatch.setattr(maps, "find_spec", lambda name: None)
    with pytest.raises(Unavailable, match="umap-learn is not installed"):
        maps._umap(Y)
    monkeypatch.setattr(peers, "find_spec", lambda name: True)
    last = peers.extenders("umap")[-1]
    assert last.name == "umap-learn, own transform" and last.build().learn.func is peers.by_umap


def test_maps_are_computed():
    X = load_digits().X[:60]
    for embed in (maps._isomap, maps._lle, maps.tsne):
        Y = embed(X)
        assert Y.shape == (60, 2) and Y.dtype == np.float64 and np.isfinite(Y).all()
    assert maps._isomap_5d(X).shape == (60, 5)
    for name in ("swiss_roll", "s_curve"):
        X, Y = maps._made(partial(maps._sheet, name), lambda X: X[:, :2], None)
        assert X.shape == (5000, 3) and Y.shape == (5000, 2)
    assert len(maps._sphere(8, None)[0]) == 64 and len(maps._digits(None)) == 1797


def test_mnist_is_read_from_the_folder_or_reported_missing(tmp_path):
    with pytest.raises(Unavailable, match="no file"):
        maps._mnist(tmp_path)
    with pytest.raises(Unavailable, match=r"embedding/mnist\.npz; name its folder with --data"):
        maps._mnist(None)
    (tmp_path / "embedding").mkdir()
    images = np.random.default_rng(0).integers(0, 255, (80, 784), dtype=np.uint8)
    np.savez(tmp_path / "embedding" / "mnist.npz", X_train=images)
    X, n = maps._made(maps._mnist, len, tmp_path)
    assert X.shape == (80, 50) and n == 80


def test_where_the_data_are(tmp_path, monkeypatch):
    monkeypatch.delenv("OUTSAMPLE_DATA", raising=False)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    assert data_folder() is None
    (tmp_path / "shared" / "data").mkdir(parents=True)
    assert data_folder().resolve() == tmp_path / "shared" / "data"
    monkeypatch.setenv("OUTSAMPLE_DATA", str(tmp_path))
    assert data_folder() == tmp_path and data_folder(".").resolve() == tmp_path / "work"
