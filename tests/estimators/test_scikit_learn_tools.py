"""scikit-learn tools with every extension: searches, pipelines, tables, routing, HTML."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from outsample import (
    DiffusionMaps,
    Extended,
    GeometricHarmonics,
    LaplacianPyramids,
    MultiscaleExtension,
    NoveltyDetector,
    NystroemExtension,
    PCAExtension,
)

polars = pytest.importorskip("polars", reason="polars is not installed")
arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
PLAIN = {"weighting": "distance", "order": 0, "loss": "squared", "n_neighbors": 6}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.column_stack([X[:, 0] + X[:, 1], np.sin(X[:, 2])])
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
TABLES = {"pandas": FRAME, "polars": polars.DataFrame(FRAME), "arrow": arrow.table(FRAME)}
EXTENSIONS = {
    "pca": PCAExtension(**PLAIN),
    "nystroem": NystroemExtension(bandwidth=2.0),
    "harmonics": GeometricHarmonics(bandwidth=2.0),
    "pyramids": LaplacianPyramids(),
    "multiscale": MultiscaleExtension(),
}
MAKERS = {"extended": Extended(PCA(2), PCAExtension(**PLAIN)), "diffusion": DiffusionMaps()}
ALL = EXTENSIONS | MAKERS | {"detector": NoveltyDetector(PCAExtension(**PLAIN))}


@pytest.mark.parametrize("name", EXTENSIONS)
@pytest.mark.filterwarnings("ignore:The kernel falls:UserWarning")
def test_the_score_is_minus_the_mean_error_over_the_size_of_the_map(name):
    extension = EXTENSIONS[name].fit(X[:40], Y[:40])
    errors = np.linalg.norm(extension.transform(X[40:]) - Y[40:], axis=1)
    size = np.sqrt(((Y[:40] - Y[:40].mean(axis=0)) ** 2).sum(axis=1).mean())
    assert extension.score(X[40:], Y[40:]) == pytest.approx(-errors.mean() / size)
    scores = cross_val_score(extension, X, Y, cv=3)
    assert scores.shape == (3,) and (scores <= 0).all()


@pytest.mark.parametrize(
    ("name", "grid"),
    [
        ("pca", {"n_neighbors": [3, 30], "weighting": ["distance", "tangent"]}),
        ("nystroem", {"bandwidth": [1e-3, 2.0]}),
        ("harmonics", {"bandwidth": [1e-3, 2.0]}),
    ],
)
@pytest.mark.filterwarnings("ignore:The kernel falls:UserWarning")
def test_grid_search_finds_the_smallest_error(name, grid):
    search = GridSearchCV(EXTENSIONS[name], grid, cv=3).fit(X, Y)
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])
    first = next(iter(grid))
    assert search.best_params_[first] == {"n_neighbors": 3, "bandwidth": 2.0}[first]
    placed = search.best_estimator_.transform(X)
    np.testing.assert_array_equal(search.transform(X), placed)


def test_grid_search_over_nested_parameters():
    pipeline = make_pipeline(StandardScaler(), PCAExtension(**PLAIN))
    search = GridSearchCV(pipeline, {"pcaextension__n_neighbors": [3, 40]}, cv=3).fit(X, Y)
    assert search.best_params_ == {"pcaextension__n_neighbors": 3}
    extended = Extended(PCA(2), PCAExtension(**PLAIN))
    search = GridSearchCV(extended, {"extension__n_neighbors": [3, 40]}, cv=3)
    assert search.fit(X, PCA(2).fit_transform(X)).best_params_


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_cross_validation_accepts_tables(kind):
    extension = PCAExtension(**PLAIN)
    wanted = cross_val_score(extension, X, Y, cv=3)
    np.testing.assert_array_equal(cross_val_score(extension, TABLES[kind], Y, cv=3), wanted)


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("name", ALL)
@pytest.mark.filterwarnings("ignore:The kernel falls:UserWarning")
def test_table_columns_are_matched_by_name(name, kind):
    model, table = ALL[name].fit(TABLES[kind], Y), TABLES[kind]
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    answer = model.place if name == "detector" else model.transform
    for left, right in zip(answer(table), answer(FRAME), strict=True):
        np.testing.assert_array_equal(left, right)
    with pytest.raises(ValueError, match="same order"):
        answer(table[["b", "a", "c"]] if kind != "arrow" else table.select(["b", "a", "c"]))
    with pytest.raises(ValueError, match=r"unseen at fit time:\n- other"):
        renamed = FRAME.rename(columns={"b": "other"})
        answer(
            {"pandas": renamed, "polars": polars.DataFrame(renamed)}.get(kind, arrow.table(renamed))
        )


def test_images_can_be_tables():
    images = pd.DataFrame(Y, columns=["x", "y"])
    wanted = PCAExtension(**PLAIN).fit(X, Y).transform(X[:5] + 0.1)
    for table in (images, polars.DataFrame(images), arrow.table(images)):
        extension = PCAExtension(**PLAIN).fit(X, table)
        np.testing.assert_array_equal(extension.transform(X[:5] + 0.1), wanted)
        assert extension.score(X, table) == 0


@pytest.mark.parametrize("kind", ["pandas", "polars"])
@pytest.mark.parametrize("name", EXTENSIONS | MAKERS)
@pytest.mark.filterwarnings("ignore:The kernel falls:UserWarning")
def test_set_output_returns_tables(name, kind):
    model = ALL[name].fit(FRAME, Y)
    plain = np.asarray(model.transform(FRAME))
    names = list(model.get_feature_names_out())
    assert len(names) == plain.shape[1]
    out = model.set_output(transform=kind).transform(TABLES["arrow"])
    model.set_output(transform="default")
    assert type(out).__module__.split(".")[0] == kind and list(out.columns) == names
    np.testing.assert_array_equal(out.to_numpy(), plain)


@pytest.mark.parametrize("name", ALL)
def test_there_are_no_sample_weights_to_route(name):
    with config_context(enable_metadata_routing=True):
        routed = ALL[name].get_metadata_routing()
        assert "sample_weight" not in str(routed)
    with pytest.raises(TypeError, match="sample_weight"):
        ALL[name].fit(X, Y, sample_weight=np.ones(len(X)))


def test_searches_work_with_metadata_routing():
    """Not ``Pipeline.score``, which requests sample weights if routing is enabled."""
    extension = PCAExtension(**PLAIN)
    wanted = cross_val_score(extension, X, Y, cv=3)
    with config_context(enable_metadata_routing=True):
        np.testing.assert_array_equal(cross_val_score(extension, X, Y, cv=3), wanted)
        assert GridSearchCV(extension, {"order": [0, 1]}, cv=3).fit(X, Y).best_score_ < 0
        pipeline = make_pipeline(StandardScaler(), extension).fit(X, Y)
        assert pipeline.transform(X).shape == Y.shape


@pytest.mark.parametrize("name", ALL)
@pytest.mark.filterwarnings("ignore:The kernel falls:UserWarning")
def test_the_html_repr_shows_whether_a_model_is_fitted(name):
    model = type(ALL[name])(**ALL[name].get_params(deep=False))
    assert "<span>Not fitted</span>" in model._repr_html_()
    page = model.fit(X, Y)._repr_html_()
    assert "<span>Fitted</span>" in page and type(model).__name__ in page


def test_a_fitted_extension_can_be_frozen():
    extension = PCAExtension(**PLAIN).fit(X, Y)
    before = extension.transform(X + 0.1)
    frozen = make_pipeline(FrozenEstimator(extension)).fit(X[:9], Y[:9] + 5)
    np.testing.assert_array_equal(frozen.transform(X + 0.1), before)
