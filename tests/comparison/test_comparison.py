"""Comparing extensions on a map: fair, complete, and never at the cost of the estimators."""

import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.cross_decomposition import PLSRegression
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import outsample
from outsample import PCAExtension, compare, plots
from outsample.comparison.compare import Comparison, ComparisonRow
from outsample.comparison.holdout import Case, measure, place
from outsample.report.comparison_page import Compared, write_comparison

PLAIN = PCAExtension(weighting="distance", order=0, loss="squared", n_neighbors=5)


class Broken(BaseEstimator):
    def fit(self, X, y):
        raise RuntimeError("no luck\nsecond line")

    def predict(self, X):
        raise AssertionError("never reached")


class Answers(BaseEstimator):
    """Returns a fixed value in a fixed shape."""

    def __init__(self, value=0.0, d=3):
        self.value, self.d = value, d

    def fit(self, X, y):
        self.fitted_ = True
        return self

    def transform(self, X):
        return np.full((len(X), self.d), self.value)


@pytest.fixture(scope="module")
def surface(paraboloid):
    X, Y, _, _ = paraboloid
    return X[:120], Y[:120]


def test_rows_come_sorted_and_agree_with_a_loop_by_hand(surface):
    X, Y = surface
    rows = compare(X, Y, [KNeighborsRegressor(15), PLAIN, LinearRegression()], n_splits=2)
    assert [row.error for row in rows] == sorted(row.error for row in rows)
    random = np.random.RandomState(0)
    size = np.sqrt(((Y - Y.mean(axis=0)) ** 2).sum(axis=1).mean())
    means, all_errors = [], []
    for _ in range(2):
        hidden, known = np.split(random.permutation(120), [24])
        placed = PLAIN.fit(X[known], Y[known]).transform(X[hidden])
        errors = np.linalg.norm(placed - Y[hidden], axis=1) / size
        means.append(errors.mean())
        all_errors.append(errors)
    ours = next(row for row in rows if row.name.startswith("PCAExtension"))
    assert ours.error == pytest.approx(np.mean(means))
    assert ours.spread == pytest.approx(np.std(means))
    assert ours.median == pytest.approx(np.median(all_errors))
    assert ours.quantile_90 == pytest.approx(np.quantile(all_errors, 0.9))
    assert ours.fit_seconds > 0 and ours.place_ms > 0 and ours.failure == ""


def test_the_usual_extensions_are_there_without_asking(surface):
    told = []
    rows = compare(*surface, n_splits=1, on_row=told.append)
    names = {row.name for row in rows}
    assert "PCAExtension()" in names and "15-NN, inverse distance" in names
    assert len(rows) == 4 and sorted(told) == sorted(rows)
    assert not any(row.failure for row in rows)


def test_the_usual_extensions_shrink_with_the_map(surface):
    X, Y = surface
    rows = compare(X[:5], Y[:5], n_splits=1)
    assert not any(row.failure for row in rows), str(rows)


def test_same_seed_same_errors_and_estimators_are_left_alone(surface):
    extension = PCAExtension(weighting="distance", order=0, loss="squared", n_neighbors=7)
    before = dict(vars(extension))
    one, again, other = (compare(*surface, [extension], random_state=s)[0] for s in (1, 1, 2))
    assert one[:5] == again[:5] != other[:5]
    assert vars(extension) == before


def test_names(surface):
    given = {"a": PLAIN, "b": PLAIN}
    assert {row.name for row in compare(*surface, given, n_splits=1)} == {"a", "b"}
    pairs = [("mine", PLAIN), ("mine", PLAIN), PLAIN]
    names = [row.name for row in compare(*surface, pairs, n_splits=1)]
    words = "PCAExtension(loss='squared', n_neighbors=5, order=0, weighting='distance')"
    assert sorted(names) == [words, "mine", "mine (2)"]


def test_a_failure_is_a_row_and_the_rest_goes_on(surface):
    bad = {"broken": Broken(), "nan": Answers(np.nan), "shape": Answers(d=2), "fine": PLAIN}
    rows = compare(*surface, bad, n_splits=1)
    assert rows[0].name == "fine" and [bool(row.failure) for row in rows] == [0, 1, 1, 1]
    failures = {row.name: row.failure for row in rows}
    assert failures["broken"] == "RuntimeError: no luck"
    assert "NaN" in failures["nan"] and "shape (24, 2), not (24, 3)" in failures["shape"]
    assert all(np.isnan(row.error) for row in rows[1:])
    assert str(rows).splitlines()[-3:] == [f"{row.name}: {row.failure}" for row in rows[1:]]


def test_an_error_without_words_is_told_by_its_kind():
    def build():
        raise KeyError

    assert measure("x", build, [Case(*[np.zeros((2, 1))] * 4)], 1.0).failure == "KeyError: "


def test_a_regressor_with_a_transform_predicts(surface):
    X, Y = surface
    both = PLSRegression(2).fit(X, Y)
    assert place(both, X, 3).shape == (120, 3)
    scaled = make_pipeline(StandardScaler(), KNeighborsRegressor(5))
    assert compare(X, Y, [scaled, make_pipeline(StandardScaler(), PLAIN)])[1].failure == ""


def test_maps_of_one_column_and_lists_of_numbers(surface):
    X, Y = surface
    rows = compare(X.tolist(), Y[:, 0].tolist(), [LinearRegression(), PLAIN], n_splits=1)
    assert rows[0].name == "LinearRegression()" and rows[0].error < 1e-9
    assert place(LinearRegression().fit(X, Y[:, 0]), X, 1).shape == (120, 1)


def test_sparse_points_are_as_good_as_dense_ones(surface):
    X, Y = surface
    extensions = [KNeighborsRegressor(5), PLAIN]
    dense, thin = (compare(points, Y, extensions) for points in (X, sparse.csr_array(X)))
    assert [row.name for row in dense] == [row.name for row in thin]
    assert [row.error for row in thin] == pytest.approx([row.error for row in dense])


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"X": np.full((9, 2), np.nan)}, ValueError, "NaN"),
        ({"Y": np.zeros((8, 2))}, ValueError, "inconsistent numbers of samples"),
        ({"X": np.zeros((4, 2)), "Y": np.zeros((4, 2))}, ValueError, "needs at least 5"),
        ({"extensions": []}, ValueError, "empty"),
        ({"extensions": [PCAExtension]}, TypeError, r"is a class; write PCAExtension\(\)"),
        ({"extensions": [3]}, TypeError, r"3 cannot extend a map: it needs fit"),
        ({"extensions": {"x": object()}}, TypeError, "cannot extend a map"),
        ({"extensions": 3}, TypeError, "must be a list or a dict"),
        ({"extensions": "knn"}, TypeError, "must be a list or a dict"),
        ({"extensions": PLAIN}, TypeError, "must be a list"),
        ({"n_splits": 0}, ValueError, "n_splits is 0"),
        ({"test_size": 1.0}, ValueError, "test_size is 1.0"),
        ({"random_state": "x"}, ValueError, "cannot be used to seed"),
    ],
)
def test_bad_input_is_refused_in_words(change, kind, words):
    good = {"X": np.arange(18.0).reshape(9, 2), "Y": np.arange(18.0).reshape(9, 2)}
    with pytest.raises(kind, match=words):
        compare(**good | {"extensions": [PLAIN]} | change)


def test_a_comparison_is_a_sequence_a_table_and_a_frame(surface):
    pandas = pytest.importorskip("pandas")
    rows = compare(*surface, {"knn": KNeighborsRegressor(5), "bad": Broken()}, n_splits=1)
    assert len(rows) == 2 and rows[0].name == "knn" and rows[-1].name == "bad"
    assert isinstance(rows[:1], Comparison) and rows[:1] == Comparison([rows[0]])
    assert rows[:1] != "knn" and repr(rows) == str(rows)
    assert str(rows).splitlines()[2].split() == ["bad", *"------"]
    for frame in (
        pandas.DataFrame(rows),
        pandas.DataFrame(rows.to_records()),
    ):
        assert list(frame.columns) == list(ComparisonRow._fields)
        assert frame["name"].tolist() == ["knn", "bad"]


def test_it_is_a_public_name():
    assert "compare" in outsample.__all__ and outsample.compare is compare


def test_the_picture(surface):
    pytest.importorskip("matplotlib")
    rows = compare(*surface, {"knn": KNeighborsRegressor(5), "bad": Broken()}, n_splits=1)
    data = plots.comparison(rows, title="a title")
    assert data == plots.comparison(rows, title="a title") and b"<svg" in data
    assert plots.comparison([rows[1]]).startswith(b"<?xml")  # nothing to draw is no fault


def test_files(surface, tmp_path, monkeypatch):
    compared = Compared(120, 2, 3, 1, 0)
    rows = compare(*surface, {"knn": KNeighborsRegressor(5), "bad": Broken()}, n_splits=1)
    paths = write_comparison(tmp_path / "new", rows, compared)
    assert [path.name for path in paths] == ["compare.json", "compare.csv", "compare.html"]
    told = json.loads(paths[0].read_text())
    assert told["rows"][0]["error"] == rows[0].error and told["rows"][1]["error"] is None
    assert paths[1].read_text().startswith("name,error,")
    html = paths[2].read_text()
    assert "bad failed. RuntimeError: no luck." in html and html.count("<img ") == 1
    monkeypatch.setattr("outsample.plots.canvas.find_spec", lambda name: None)
    html = write_comparison(tmp_path, rows[1:], compared)[2].read_text()
    assert "<img" not in html and "the best" not in html
