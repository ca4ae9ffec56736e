"""The novelty benchmark: on tiny sets, with stand-ins for detectors that may not be there."""

import gzip
import json
import sys
import types
from functools import partial

import click
import numpy as np
import pytest
from click.testing import CliRunner

import outsample
from outsample.cli import main
from outsample.plots import canvas
from outsample_lab.accuracy.maps import Unavailable
from outsample_lab.novelty import detectors, novelty_bench, splits, standings
from outsample_lab.novelty import ranking as novelty
from outsample_lab.novelty.detectors import OURS, PEER, Detector, Peer, mean_distance
from outsample_lab.novelty.set_result import DetectorRow, SetResult
from outsample_lab.novelty.splits import Source, Split, Trial
from outsample_lab.plots.dots import AreaGroup, _columns, area_chart


class Distance(Peer):
    """Stands for our detector: it gives p-values too."""

    def p_values(self, X):
        return np.where(self.score(X) > 2.0, 0.001, 0.5)


def broken(X):
    return lambda new: np.full(len(new), np.nan)


LISTED = [
    Detector("ours", OURS, lambda seed: Distance(partial(mean_distance, n_neighbors=3)), "stub"),
    Detector("near", PEER, lambda seed: Peer(partial(mean_distance, n_neighbors=1)), "nearest"),
    Detector("broken", PEER, lambda seed: Peer(broken)),
    Detector(
        "gone", PEER, lambda seed: detectors._peer(detectors.missing, reason="it is not installed")
    ),
]


def blob(name, shift, folder, seed):
    rng = np.random.default_rng(seed)
    new = rng.normal(size=(30, 2)) + np.repeat([0.0, shift], [20, 10])[:, None]
    return Split(rng.normal(size=(40, 2)), [Trial(name, new, np.arange(30) >= 20)])


def days(folder, seed):
    training, (trial,), _ = blob("days", 9.0, folder, seed)
    loud = trial.is_anomalous & (np.arange(30) > 25)
    monday = trial._replace(part="Mon", loud=loud)
    return Split(training, [monday, monday._replace(part="Tue", loud=loud & False)], True)


def missing(folder, seed):
    raise Unavailable("no file here")


def source(name, group, make):
    return Source(name, group, {name: name}, make, 1.0)


TINY = (
    source("far", splits.OUTLIERS, lambda *at: blob("far", 9.0, *at)),
    source("near", splits.OUTLIERS, lambda *at: blob("near", 1.0, *at)),
    source("days", splits.DARPA, days),
    source("lost", splits.MNIST, missing),
)


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setattr(novelty, "SOURCES", TINY)
    monkeypatch.setattr(novelty_bench, "QUICK", ("far", "lost"))
    monkeypatch.setattr(novelty_bench, "detectors", lambda names: LISTED)


def invoke(*words):
    result = CliRunner().invoke(main, ["bench", "novelty", *map(str, words)])
    assert result.exit_code == 0, result.output
    return result


def test_the_command_from_end_to_end(tiny, tmp_path):
    result = invoke("--out", tmp_path / "out")
    record = json.loads((tmp_path / "out" / "novelty.json").read_text())
    far, near, traffic, lost = record["sets"]
    assert lost["skipped"] == "no file here" and "rows" not in lost
    assert record["seeds"] == [0, 1, 2] and record["versions"]["scikit-learn"]
    assert far["ours"] == 1.0 and far["best_peer"] == "near" and near["ours"] < 1.0
    counts = [far[key] for key in ("n_training", "n_columns", "n_new", "n_anomalous")]
    assert counts == [40, 2, 30, 10]
    assert [row["name"] for row in far["rows"]][2:] == ["broken", "gone"]
    assert far["rows"][2]["failure"] == "ValueError: returned NaN" and "auc" not in far["rows"][2]
    assert "not installed" in far["rows"][3]["failure"]
    assert len(far["rows"][0]["auc_of_seeds"]) == 3 and far["alarms"]["anomalous"] == 1.0
    assert traffic["simulated"] and traffic["parts"] == ["Mon", "Tue"]
    assert traffic["title"] == "simulated traffic" and traffic["n_new"] == 60
    assert len(traffic["rows"][0]["auc_of_parts"]) == 2
    assert traffic["alarms"]["n_loud"] == 4 and traffic["alarms"]["loud"] == 1.0
    group = record["groups"]["outliers"]
    assert group["n_sets"] == 2 and "mnist" not in record["groups"]
    assert [line["rank"] for line in group["standings"][2:]] == [None, None]
    for words in ("lost: skipped, no file here", "Outlier sets: 2 sets", "(simulated): 1 set"):
        assert words in result.stdout
    assert max(map(len, result.stdout.splitlines()[:-4])) <= 80
    assert result.stdout.splitlines()[-1] == f"Wrote {tmp_path / 'out' / 'novelty.html'}"
    assert result.stderr.splitlines()[-1].startswith("[100%] done")
    html = (tmp_path / "out" / "novelty.html").read_text()
    assert "lost was skipped: no file here." in html and "broken failed. ValueError" in html
    assert "Of 4 loud minutes 100.0%" in html and "Network traffic (simulated)" in html
    assert (tmp_path / "out" / "novelty.png").read_bytes()[:4] == b"\x89PNG"


def test_the_page_is_drawn_again_from_the_results_alone(tiny, tmp_path, monkeypatch):
    first = invoke("--out", tmp_path)
    for name in ("run", "SOURCES"):
        monkeypatch.setattr(novelty, name, None)
    again = invoke("--from", tmp_path / "novelty.json", "--out", tmp_path / "again")
    for name in ("novelty.html", "novelty.png"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / name).read_bytes()
    assert not (tmp_path / "again" / "novelty.json").exists()
    tables = again.stdout.splitlines()[:-3]
    assert "\n".join(tables) in first.stdout and "Outlier sets: 2 sets" in tables[0]
    record = json.loads((tmp_path / "novelty.json").read_text())
    assert novelty_bench.run_record(novelty_bench.restored_run(record)) == record


def test_quick_has_one_seed_and_few_sets(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(canvas, "find_spec", lambda name: None)
    invoke("--quick", "--out", tmp_path)
    record = json.loads((tmp_path / "novelty.json").read_text())
    names = [result["name"] for result in record["sets"]]
    assert record["seeds"] == [0] and names == ["far", "lost"]
    assert not (tmp_path / "novelty.png").exists() and (tmp_path / "novelty.html").is_file()


def test_a_run_without_results_has_no_tables(tiny, tmp_path):
    benchmark = novelty_bench.run_novelty(tmp_path, names=["lost"])
    assert [path.name for path in benchmark.files] == ["novelty.json", "novelty.html"]
    assert benchmark.tables == []


def test_unknown_names_are_named(tmp_path):
    for option, words in (("--sets", "no set 'x'; the sets"), ("--detectors", "no detector 'x'")):
        at = ["bench", "novelty", option, "x", "--out", str(tmp_path)]
        result = CliRunner().invoke(main, at)
        assert result.exit_code == 2 and f"Error: there is {words}" in result.stderr


def test_every_option_has_a_help_text():
    command = main.get_command(None, "bench").commands["novelty"]
    assert command.help and all(
        option.help for option in command.params if isinstance(option, click.Option)
    )


def test_sets_are_selected_without_number_or_by_prefix():
    names = [source_of_set.name for source_of_set in novelty.select(["Vowels", "digits-0", "junk"])]
    assert names == ["40_vowels", "digits-0", "junk-digits", "junk-mnist"]
    assert len(novelty.select([])) == len(splits.SOURCES)
    assert len(novelty.select(["mnist-"])) == 10 and len(novelty.select(splits.QUICK)) > 2
    assert len(novelty.select(["outliers"])) == 20 and len(novelty.select(["m"])) == 12
    groups = [source_of_set.group for source_of_set in splits.SOURCES]
    assert groups.count(splits.OUTLIERS) == 20 and set(groups) == set(splits.GROUPS)


# The protocol


def rows(*arrays):
    return [set(map(tuple, X)) for X in arrays]


@pytest.fixture
def data(tmp_path):
    """A folder with one labelled set whose last column is constant among the normal rows."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(5, 3, (100, 3)), np.repeat([7.0, 8.0], [80, 20])])
    (tmp_path / "outliers").mkdir()
    np.savez(tmp_path / "outliers" / "2_annthyroid.npz", X=X, y=np.arange(100) >= 80)
    (tmp_path / "embedding").mkdir()
    images = rng.integers(0, 255, (120, 28, 28), dtype=np.uint8)
    labels = np.arange(120) % 10
    np.savez(tmp_path / "embedding" / "mnist.npz", X_train=images, y_train=labels)
    splits._mnist.cache_clear()
    yield tmp_path
    splits._mnist.cache_clear()


def make(name, folder, seed=0):
    return next(item for item in splits.SOURCES if item.name == name).make(folder, seed)


def test_outlier_sets_are_halved_and_standardised(data):
    training, (trial,), simulated = make("2_annthyroid", data)
    assert training.shape == (40, 4) and trial.X.shape == (60, 4) and trial.is_anomalous.sum() == 20
    assert not trial.is_anomalous[:40].any() and not simulated
    np.testing.assert_allclose(training[:, :3].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(training[:, :3].std(axis=0), 1)
    assert not training[:, 3].any() and not trial.X[:, 3].any()
    learned, new = rows(training, trial.X)
    assert len(learned | new) == 100  # nothing twice, nothing lost


def test_equal_seeds_make_equal_splits(data):
    for name in ("2_annthyroid", "digits-3", "junk-digits", "mnist-1", "junk-mnist"):
        first, same, other = make(name, data), make(name, data), make(name, data, 1)
        assert (first.X == same.X).all() and not np.array_equal(first.X, other.X)
        for trial, again in zip(first.trials, same.trials, strict=True):
            assert (trial.X == again.X).all() and (trial.is_anomalous == again.is_anomalous).all()


def test_caps_keep_the_classes_ratio(data, monkeypatch):
    monkeypatch.setattr(splits, "TRAINING_ROWS", 25)
    monkeypatch.setattr(splits, "NEW_ROWS", 30)
    training, (trial,), _ = make("2_annthyroid", data)
    assert len(training) == 25 and len(trial.X) == 30 and trial.is_anomalous.sum() == 10
    X, is_anomalous = splits.thin(np.zeros((99, 1)), np.ones((1, 1)), np.random.default_rng(0), 50)
    assert X[is_anomalous].tolist() == [[1.0]] and len(X) == 50  # at least one anomalous row


def test_a_class_is_held_out():
    training, (trial,), _ = make("digits-3", None)
    X, labels = splits._digits(None, 0)
    learned, new, anomalous = rows(training, trial.X, trial.X[trial.is_anomalous])
    assert anomalous == rows(X[labels == 3])[0] and len(anomalous) == trial.is_anomalous.sum()
    assert not learned & new and len(training) == (labels != 3).sum() // 2
    assert training.min() == 0 and training.max() == 1


def test_mnist_is_read_and_capped(data, monkeypatch):
    training, (trial,), _ = make("mnist-1", data)
    assert training.shape == (54, 784) and len(trial.X) == 54 + 12 and trial.X.max() <= 1
    monkeypatch.setattr(splits, "IMAGES", 33)
    assert make("mnist-1", data).trials[0].is_anomalous.sum() == 6


def test_an_object_of_coil_is_held_out(tmp_path):
    (tmp_path / "embedding").mkdir()
    X = np.random.default_rng(0).integers(0, 4080, (60, 16), dtype=np.uint16)
    np.savez(tmp_path / "embedding" / "coil20.npz", X=X, y=np.arange(60) % 20 + 1, scale=4080)
    training, (trial,), _ = make("coil-20", tmp_path)
    assert training.shape == (28, 16) and trial.is_anomalous.sum() == 3 and training.max() <= 1
    assert rows(trial.X[trial.is_anomalous])[0] == rows(X[19::20] / 4080)[0]


def test_nsl_kdd_learns_normal_connections_only(tmp_path):
    (tmp_path / "kdd99").mkdir()
    for name, labels in (("train20", ["normal"] * 6 + ["smurf"] * 3), ("test", ["normal", "pod"])):
        lines = [
            ",".join([str(i), "tcp", "http", "SF", *(str(i + j) for j in range(37)), label, "20"])
            for i, label in enumerate(labels)
        ]
        with gzip.open(tmp_path / "kdd99" / f"nslkdd_{name}.txt.gz", "wt") as file:
            file.write("\n".join(lines) + "\n")
    training, (trial,), _ = make("nsl-kdd", tmp_path)
    assert training.shape == (6, 38) and trial.is_anomalous.tolist() == [False, True]
    np.testing.assert_allclose(training.mean(axis=0), 0, atol=1e-12)


def test_kinds_of_junk_images():
    training, trials, _ = make("junk-digits", None)
    constant, bright, noise, permuted = (trial.X[trial.is_anomalous] for trial in trials)
    assert (constant == constant[:, :1]).all() and 0 <= constant.min() and constant.max() <= 1
    assert len(np.unique(constant[:, 0])) == splits.JUNK_ROWS
    normal = trials[0].X[~trials[0].is_anomalous]
    assert rows(bright / 10)[0] <= {tuple(10 * row / 10) for row in normal[: splits.JUNK_ROWS]}
    assert 0.49 < noise.mean() < 0.51 and not rows(permuted)[0] & rows(normal)[0]
    assert (np.sort(permuted) == np.sort(bright / 10)).all()
    assert not rows(training)[0] & rows(normal)[0]


def minutes(day, n, attacks=()):
    """One day's traffic: the first minute is empty, attacks are by minute."""
    rng = np.random.default_rng(len(day) + n)
    X = rng.integers(1, 50, (n, 14)).astype(float)
    X[0] = 0
    names = [dict(attacks).get(at, "") for at in range(n)]
    return [day] * n, X, names


@pytest.fixture
def traffic(monkeypatch):
    from outsample_lab.traffic.days import Traffic

    attacks = [(3, "pod:150"), (4, "smurf:60;pod:60"), (5, "phf:500"), (6, "pod:100;phf:1")]
    parts = [
        minutes("1998-06-10", 20, attacks), minutes("1998-06-11", 30),
        minutes("1998-06-12", 20, attacks), minutes("1998-06-15", 20, attacks[:2]),
        minutes("1998-06-16", 20), minutes("1998-07-20", 25, attacks),
        minutes("1998-07-24", 25, attacks),
    ]  # fmt: skip
    day, X, names = (np.concatenate([part[at] for part in parts]) for at in range(3))
    n = (names != "").astype(int)
    recorded = Traffic(day, n, day, X, names, n, False)
    monkeypatch.setattr(splits, "load_traffic", lambda folder: recorded)


def test_traffic_is_tried_day_by_day(traffic):
    training, trials, simulated = make("darpa-06-11", None)
    assert training.shape == (29, 14) and not simulated
    np.testing.assert_allclose(training.mean(axis=0), 0, atol=1e-12)
    # Not the day before, not the one with two attacks, not the quiet one, not the flooded one.
    assert [trial.part for trial in trials] == ["1998-06-12", "1998-07-20"]
    assert [len(trial.X) for trial in trials] == [19, 24] and trials[0].is_anomalous.sum() == 4
    assert np.flatnonzero(trials[0].loud).tolist() == [2, 3]
    assert [trial.part for trial in make("darpa-06-16", None).trials] == ["1998-07-20"]


def test_without_files_traffic_is_simulated_and_the_rest_skipped(tmp_path):
    training, trials, simulated = make("darpa-06-11", None)
    assert simulated and len(training) > 100 and trials and trials[0].loud is not None
    with pytest.raises(Unavailable, match="one simulated quiet day"):
        make("darpa-06-16", None)
    with pytest.raises(Unavailable, match=r"no file outliers/2_annthyroid\.npz; name its folder"):
        make("2_annthyroid", None)
    with pytest.raises(Unavailable, match=r"no file .*mnist"):
        make("mnist-0", tmp_path)


# The figures


def test_areas_of_a_case_done_by_hand():
    is_anomalous = np.array([False, True, False, True])
    # Ranked by score: normal, anomalous, anomalous, normal.
    auc, precision = novelty.areas(is_anomalous, np.array([9.0, 5.0, -1.0, 4.0]))
    assert auc == 0.5 and precision == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert novelty.areas(is_anomalous, np.array([0.0, np.inf, 1.0, np.inf])) == (1.0, 1.0)


def test_equal_areas_share_their_rank_and_failures_are_last():
    table = np.array([[0.9, 0.5], [0.9, np.nan], [0.8, 0.6], [0.9, 0.4]])
    assert standings.mean_ranks(table).tolist() == [2.0, 3.0, 2.5, 2.5]


def test_standings_count_only_what_ran():
    def line(name, auc):
        failure = "" if np.isfinite(auc) else "failed"
        return DetectorRow(name, PEER, "", (auc,), (auc,), 1.0, failure)

    tables = [
        [line("a", 0.9), line("b", np.nan), line("c", np.nan)],
        [line("b", 0.8), line("a", 0.7), line("c", np.nan)],
    ]
    results = [SetResult("s", "s", "darpa", rows) for rows in tables]
    skipped = SetResult("t", "t", "darpa", skipped="gone")
    a, b, c = standings.standings([*results, skipped])
    assert {a.rank, b.rank} == {1.5} and np.isnan(c.rank)
    by_name = {line.name: line for line in (a, b)}
    assert by_name["a"].auc == pytest.approx(0.8) and by_name["b"].auc == 0.8
    assert (by_name["b"].n_sets, by_name["b"].total, c.n_sets) == (1, 2, 0)
    assert standings.standings([skipped]) == []


def test_scores_of_a_wrong_shape_or_without_meaning_are_failures():
    for scores, words in ((np.zeros((5, 2)), "shape"), (np.full(5, np.inf), "every row")):
        fitted = types.SimpleNamespace(score=lambda X, scores=scores: scores)
        with pytest.raises(ValueError, match=words):
            novelty._scores(fitted, np.zeros((5, 2)))


def test_progress_and_results_come_one_by_one():
    reports, seen = [], []
    results = novelty.run(
        TINY[:2], (0,), None, listed=LISTED[:2], on_set=seen.append,
        progress=lambda share, task: reports.append((share, task)),
    )  # fmt: skip
    assert seen == results and [result.name for result in results] == ["far", "near"]
    shares = [share for share, _ in reports]
    assert shares == sorted(shares) and reports[-1] == (1.0, "done")
    assert (0.0, "far: reading") in reports


# The detectors


def test_every_detector_finds_what_is_plain():
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(150, 3)), rng.normal(size=(20, 3))
    new[15:] += 12
    for detector in [
        *detectors._sklearn(),
        Detector("", OURS, lambda seed: Distance(mean_distance)),
    ]:
        scores = detector.build(0).fit(X).score(new)
        assert scores[15:].min() > scores[:15].max(), detector.name


def test_pyod_is_imported_by_name(monkeypatch):
    class ECOD:
        def fit(self, X):
            self.n = len(X)

        def decision_function(self, X):
            return X[:, 0] + self.n

    class LUNAR(ECOD):
        def __init__(self, random_state):
            self.seed = random_state

        def decision_function(self, X):
            return np.full(len(X), self.seed)

    for name, model in (("ecod", ECOD), ("lunar", LUNAR)):
        module = types.ModuleType(f"pyod.models.{name}")
        setattr(module, model.__name__, model)
        monkeypatch.setitem(sys.modules, f"pyod.models.{name}", module)
    for name in ("pyod", "pyod.models"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    torch, calls = types.ModuleType("torch"), []
    torch.manual_seed = torch.set_num_threads = calls.append
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(detectors, "find_spec", lambda name: True)
    X = np.arange(6.0).reshape(3, 2)
    plain, network = detectors.detectors(["PyOD ECOD", "PyOD LUNAR"])
    assert plain.build(0).fit(X).score(X).tolist() == [3.0, 5.0, 7.0]
    assert "depend on the batch" in plain.note
    assert network.build(7).fit(X).score(X).tolist() == [7.0] * 3 and calls == [7, 1]


@pytest.mark.parametrize("installed", [(), ("pyod",)])
def test_what_is_missing_says_so(monkeypatch, installed):
    monkeypatch.setattr(detectors, "find_spec", lambda name: name in installed or None)
    words = "torch is not installed" if installed else r"pip install outsample-lab\[bench\]"
    with pytest.raises(ImportError, match=words):
        detectors.detectors(["PyOD LUNAR"])[0].build(0).fit(np.zeros((3, 2)))


def test_ours_is_the_detector_of_the_library(monkeypatch):
    class NoveltyDetector:
        def fit(self, X):
            self.mean = X.mean()

        def abnormality(self, X):
            return abs(X[:, 0] - self.mean)

        def p_values(self, X):
            return 1 / (1 + self.abnormality(X))

    monkeypatch.setattr(outsample, "NoveltyDetector", NoveltyDetector, raising=False)
    X = np.array([[1.0], [3.0]])
    fitted = detectors.detectors()[0].build(0).fit(X)
    assert fitted.score(X).tolist() == [1.0, 1.0] and fitted.p_values(X).tolist() == [0.5, 0.5]


def test_the_picture_shows_failures_and_areas_beyond_its_edge():
    group = AreaGroup("one", ["a", "b", "c"], [0.9, None, 0.1], [[0.2, 0.8], [0.3], []])
    assert area_chart([group], "ours", title="areas")[:4] == b"\x89PNG"
    long = AreaGroup("two", ["a"] * 9, [0.9] * 9, [[0.8]] * 9)
    assert [len(column) for column in _columns([long, group, group])] == [1, 2]
