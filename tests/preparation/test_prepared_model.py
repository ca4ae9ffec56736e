"""Prepared models: laws, containers, choice of the preparation, calibration by folds, files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA, FastICA, KernelPCA, TruncatedSVD
from sklearn.impute import SimpleImputer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import outsample
from outsample import (
    DiffusionMaps,
    Extended,
    GeometricHarmonics,
    LaplacianPyramids,
    MultiscaleExtension,
    NoveltyDetector,
    NystroemExtension,
    PCAExtension,
    PreparedModel,
    StreamingExtension,
)
from outsample.preparation.folds import needs_folds, with_subspace_distance
from outsample.preparation.table_preparation import TablePreparation
from outsample.preparation.transformers import SubspaceDistance
from outsample.trust.conformal import p_values

LOCAL = PCAExtension(weighting="distance", n_neighbors=6, order=0, loss="squared")
RNG = np.random.default_rng(0)


def mixed_table(n=80, seed=0):
    """Return a table in several units with gaps, and a map of it."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, n)
    mass, size = rng.normal(4000 + 600 * kind, 300), rng.normal(0.2, 0.02, n)
    Y = np.column_stack([mass / 1000 + 3 * kind, 50 * size])
    table = pd.DataFrame({
        "id": np.arange(n), "mass": mass, "size": size, "kind": np.array(["a", "b", "c"])[kind],
        "day": pd.date_range("2024-01-01", periods=n),
    })  # fmt: skip
    table.loc[::9, "mass"] = np.nan
    table.loc[::13, "kind"] = None
    return table, Y


TABLE, MAP = mixed_table()
NEW = mixed_table(12, seed=1)[0].assign(kind=["a", "b", "c", "never seen"] * 3)


def fitted(**options):
    return PreparedModel(NoveltyDetector(LOCAL), **options).fit(TABLE, MAP)


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.fixture(scope="module")
def model():
    return fitted()


def test_a_row_is_placed_alone_as_in_a_batch(model):
    batch = model.place(NEW)
    for at in range(len(NEW)):
        assert same(model.place(NEW.iloc[[at]]), [field[[at]] for field in batch])
    order = RNG.permutation(len(NEW))
    assert same(model.place(NEW.iloc[order]), [field[order] for field in batch])


def test_training_rows_keep_their_coordinates(model):
    np.testing.assert_allclose(model.place(TABLE).coordinates, MAP, atol=1e-12)


def test_units_and_order_of_the_columns_do_not_matter(model):
    grams = TABLE.assign(mass=TABLE["mass"] * 1024)[list(TABLE)[::-1]]
    other = PreparedModel(NoveltyDetector(LOCAL), prepare=TablePreparation()).fit(grams, MAP)
    placed = other.place(NEW.assign(mass=NEW["mass"] * 1024))
    np.testing.assert_allclose(placed.coordinates, model.place(NEW).coordinates)


@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas, dict])
def test_every_library_gives_the_same_answer(model, convert):
    assert same(model.place(convert(NEW)), model.place(NEW))
    other = PreparedModel(NoveltyDetector(LOCAL)).fit(convert(TABLE), MAP)
    assert same(other.place(NEW), model.place(NEW))
    assert other.columns_ == model.columns_


def test_an_unknown_category_is_unusual():
    table, _ = mixed_table(300)
    model = PreparedModel(NoveltyDetector()).fit(table)
    new, _ = mixed_table(100, seed=2)
    assert (model.p_values(new) <= 0.05).mean() < 0.15
    assert (model.p_values(new.assign(kind="never seen")) <= 0.05).mean() > 0.8


def test_missing_cells_do_not_make_rows_unusual():
    """Numbers that depend on one another: the median of a column does not fit the other columns."""
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(800, 2))
    X = factors @ rng.normal(size=(2, 8)) + 0.1 * rng.normal(size=(800, 8))
    gaps = np.where(rng.random((400, 8)) < 0.2, np.nan, X[400:])
    shares = {}
    for fill in ("neighbors", "median"):
        model = PreparedModel(NoveltyDetector(), prepare=TablePreparation(fill=fill)).fit(X[:400])
        shares[fill] = (model.p_values(gaps) <= 0.05).mean()
    assert shares["neighbors"] <= 0.08 and shares["median"] >= 3 * shares["neighbors"]


def test_the_preparation_is_chosen_on_the_map():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)) * [1, 1, 1, 5]
    raw = PreparedModel(LOCAL).fit(X, X[:, [0, 3]])  # the fourth column matters five times as much
    chosen = [trial for trial in raw.selection_ if trial.is_chosen]
    assert len(chosen) == 1 and "standard" != chosen[0].preparation
    assert chosen[0].standard_errors >= 2
    fixed = cross_val_score(PreparedModel(LOCAL, prepare=StandardScaler()), X, X[:, [0, 3]])
    free = cross_val_score(PreparedModel(LOCAL), X, X[:, [0, 3]])
    assert free.mean() > 0.6 * fixed.mean()  # scores are minus the errors
    assert "5-NN error" in str(raw.selection_)


def test_the_default_stays_where_nothing_is_better():
    X = np.random.default_rng(0).normal(size=(200, 3))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = PreparedModel(LOCAL).fit(X, X)
    assert [trial.preparation for trial in model.selection_ if trial.is_chosen] == ["standard"]
    np.testing.assert_allclose(model.preparation_.transform(X), X, atol=1e-12)


@pytest.mark.parametrize(
    "estimator",
    [
        LOCAL, NystroemExtension(), GeometricHarmonics(), LaplacianPyramids(),
        MultiscaleExtension(), NoveltyDetector(LOCAL), NoveltyDetector(calibration="split"),
        Extended(KernelPCA(2), LOCAL), DiffusionMaps(n_components=2),
        StreamingExtension(NoveltyDetector(LOCAL), window=30),
    ],
    ids=lambda estimator: type(estimator).__name__,
)  # fmt: skip
@pytest.mark.parametrize(
    "prepare",
    [
        "auto",
        make_column_transformer(
            (make_pipeline(SimpleImputer(), StandardScaler(), PCA(1)), ["mass", "size"]),
            (OneHotEncoder(handle_unknown="ignore"), ["kind"]),
        ),
    ],
    ids=["auto", "PCA"],
)
@pytest.mark.filterwarnings("ignore:The kernel falls:UserWarning")
def test_every_estimator_is_prepared_and_saved(estimator, prepare, tmp_path):
    model = PreparedModel(estimator, prepare=prepare, folds=3).fit(TABLE, MAP)
    outsample.save(model, tmp_path / "m.outsample", columns={"id": TABLE["id"]})
    again = outsample.load(tmp_path / "m.outsample")
    answered = 0
    for method in ("transform", "p_values", "decision_function", "place", "learn"):
        assert hasattr(again, method) == hasattr(model, method)
        if hasattr(model, method):
            answered += 1
            result, other = getattr(model, method)(NEW), getattr(again, method)(NEW)
            for a, b in zip(result, other, strict=True):  # rows, or the fields of a record
                np.testing.assert_equal(a, b)
    assert answered and again.columns_ == model.columns_
    assert again.selection_ == model.selection_


def test_names_and_output_containers(model):
    named = PreparedModel(LOCAL).fit(TABLE, MAP).set_output(transform="pandas")
    placed = named.transform(NEW.set_index("id"))
    assert list(placed.columns) == list(named.get_feature_names_out())
    assert list(placed.index) == list(NEW["id"])
    assert not hasattr(model, "transform") and not hasattr(named, "p_values")
    preparation = model.preparation_
    assert len(preparation.get_feature_names_out()) == len(preparation.sources_)
    assert list(model.feature_names_in_) == list(TABLE)


def test_columns_that_the_preparation_lacks_are_named(tmp_path):
    model = PreparedModel(LOCAL, prepare=make_pipeline(SimpleImputer(), PCA(2)))
    model.fit(TABLE[["mass", "size"]], MAP)
    shuffled = NEW[["size", "id", "mass"]]
    np.testing.assert_array_equal(model.transform(shuffled), model.transform(NEW[["mass", "size"]]))
    with pytest.raises(ValueError, match=r"lacks the column\(s\) 'size'"):
        model.transform(NEW[["mass"]])
    assert model.columns_[0].treatment == "by Pipeline"
    foreign = PreparedModel(LOCAL, prepare=FastICA(2, random_state=0), folds=2)
    foreign.fit(RNG.normal(size=(80, 3)), MAP)
    with pytest.raises(TypeError, match="transformer FastICA, which a model file cannot contain"):
        outsample.save(foreign, tmp_path / "m.outsample")


def test_parameters_are_checked():
    with pytest.raises(TypeError, match="prepare is 'standard', but must be 'auto'"):
        PreparedModel(LOCAL, prepare="standard").fit(TABLE, MAP)
    with pytest.raises(ValueError, match="folds is 1, but must be"):
        PreparedModel(LOCAL, folds=1).fit(TABLE, MAP)


def test_sparse_matrices_and_float32_stay_what_they_are():
    X = sparse.random(60, 150, 0.1, random_state=0, format="csr")
    Y = np.asarray(X[:, :2].todense())
    placed = PreparedModel(LOCAL).fit(X, Y).transform(X)
    np.testing.assert_array_equal(placed, clone(LOCAL).fit(X, Y).transform(X))
    dense = RNG.normal(size=(50, 3)).astype(np.float32)
    model = PreparedModel(LOCAL).fit(dense, dense)
    assert model.transform(dense).dtype == np.float32
    np.testing.assert_allclose(
        model.transform(dense), model.transform(dense.astype(float)), rtol=1e-4, atol=1e-5
    )


# Trust when the preparation is fitted to the training rows.


def test_which_preparations_need_folds():
    assert not needs_folds(None) and not needs_folds(TablePreparation())
    assert not needs_folds(make_pipeline(SimpleImputer(), StandardScaler()))
    assert needs_folds(make_union(StandardScaler(), make_pipeline(TruncatedSVD())))
    assert needs_folds(make_column_transformer((FastICA(), [0])))


def test_the_distance_off_the_subspace_is_a_column():
    X = RNG.normal(size=(60, 6))
    prepare = make_pipeline(StandardScaler(), PCA(2))
    model = PreparedModel(NoveltyDetector(), prepare=prepare, folds=3).fit(X)
    Z = StandardScaler().fit_transform(X)
    scores = PCA(2).fit_transform(Z)
    prepared = model.preparation_.transform(X)
    np.testing.assert_allclose(prepared[:, :2], scores, atol=1e-10)
    expected = np.sqrt((Z**2).sum(axis=1) - (scores**2).sum(axis=1))
    np.testing.assert_allclose(prepared[:, 2], expected)
    assert with_subspace_distance(StandardScaler()).__class__ is StandardScaler
    sparse_rows = sparse.random(30, 20, 0.3, random_state=0, format="csr")
    svd = SubspaceDistance(TruncatedSVD(2, random_state=0)).fit(sparse_rows)
    dense = svd.transform(sparse_rows.toarray())
    np.testing.assert_allclose(svd.transform(sparse_rows), dense, atol=1e-10)
    assert svd.get_feature_names_out()[-1] == "off_subspace"


def test_folds_keep_p_values_and_bars_valid():
    """Rows in many columns, of which PCA keeps the directions that the training rows have most."""
    rng = np.random.default_rng(0)
    loadings = rng.normal(size=(5, 60))

    def rows(n):
        factors = rng.normal(size=(n, 5))
        return factors @ loadings + 2 * rng.normal(size=(n, 60)), factors[:, :2]

    (X, Y), (fresh, truth) = rows(200), rows(600)
    prepare = PCA(30, random_state=0)
    model = PreparedModel(NoveltyDetector(LOCAL), prepare=prepare).fit(X, Y)
    placed = model.place(fresh)
    plain = PCA(30, random_state=0).fit(X)
    uncalibrated = NoveltyDetector(clone(LOCAL)).fit(plain.transform(X), Y)
    before = uncalibrated.place(plain.transform(fresh))
    share, share_before = (placed.p_value <= 0.05).mean(), (before.p_value <= 0.05).mean()
    assert 0.02 <= share <= 0.09 and abs(share - 0.05) < abs(share_before - 0.05)
    covered = np.linalg.norm(placed.coordinates - truth, axis=1) <= placed.error_bar
    assert covered.mean() >= 0.87
    assert len(model.estimator_.scores_) == 200


def test_split_keeps_the_calibration_rows_out_of_the_preparation():
    X = RNG.normal(size=(61, 8))
    detector = NoveltyDetector(calibration="split", random_state=3)
    model = PreparedModel(detector, prepare=PCA(3, random_state=0)).fit(X)
    rows = model.estimator_.training_rows_
    np.testing.assert_array_equal(rows, detector.fitted_rows(61))
    projection = SubspaceDistance(PCA(3, random_state=0)).fit(X[rows])
    twin = NoveltyDetector().fit(projection.transform(X[rows]))
    calibration = np.sort(twin.abnormality(projection.transform(np.delete(X, rows, axis=0))))
    queries = RNG.normal(size=(9, 8))
    expected = p_values(twin.abnormality(projection.transform(queries)), calibration)
    np.testing.assert_allclose(model.p_values(queries), expected)
