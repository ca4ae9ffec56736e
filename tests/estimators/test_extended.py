"""Extended: any embedding gets a transform and a place."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import load_digits, make_s_curve
from sklearn.decomposition import KernelPCA
from sklearn.manifold import MDS, TSNE, Isomap, LocallyLinearEmbedding, SpectralEmbedding
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from outsample import Extended, NoveltyDetector, PCAExtension


def lle(method):
    return LocallyLinearEmbedding(
        n_neighbors=12, n_components=2, method=method, eigen_solver="dense"
    )


EMBEDDINGS = {
    "t-SNE": TSNE(random_state=0, perplexity=20, max_iter=300),
    "MDS": MDS(random_state=0, n_init=1, max_iter=50, init="random"),
    "Isomap": Isomap(n_neighbors=10),
    "LLE": lle("standard"),
    "LLE modified": lle("modified"),
    "LLE hessian": lle("hessian"),
    "LLE ltsa": lle("ltsa"),
    "spectral": SpectralEmbedding(n_neighbors=10, random_state=0),
    "kernel PCA": KernelPCA(n_components=2, kernel="rbf", gamma=0.3),
}


@pytest.fixture(scope="module")
def curve():
    X, _ = make_s_curve(400, random_state=0)
    return X


@pytest.mark.parametrize("name", EMBEDDINGS)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_every_embedding_of_scikit_learn(name, curve):
    """A shifted point stays close to its position; a training point keeps its coordinates."""
    embedding = clone(EMBEDDINGS[name])
    extended = Extended(embedding)
    Y = extended.fit_transform(curve)
    np.testing.assert_array_equal(extended.transform(curve), Y)
    size = np.sqrt(((Y - Y.mean(axis=0)) ** 2).sum(axis=1).mean())
    moved = extended.place(curve[::10] + 1e-3)
    assert np.linalg.norm(moved.coordinates - Y[::10], axis=1).max() < 0.1 * size
    assert np.isfinite(moved.bound).all()
    assert not hasattr(embedding, "embedding_")  # the user's object is not fitted


def test_in_the_bench_extra():
    umap = pytest.importorskip("umap", reason="needs the extra 'bench'")
    opentsne = pytest.importorskip("openTSNE.sklearn", reason="needs the extra 'bench'")
    X = load_digits().data[:300]
    for embedding in (umap.UMAP(random_state=0), opentsne.TSNE(random_state=0)):
        extended = Extended(embedding).fit(X[:250])
        assert extended.transform(X[250:]).shape == (50, 2)


def test_pipeline_clone_names_and_pandas(curve):
    frame = pd.DataFrame(curve, columns=["a", "b", "c"])
    pipeline = make_pipeline(StandardScaler(), Extended(Isomap())).set_output(transform="pandas")
    Y = pipeline.fit_transform(frame)
    assert list(Y.columns) == ["extended0", "extended1"]
    np.testing.assert_allclose(pipeline.transform(frame), Y)
    assert list(pipeline.get_feature_names_out()) == ["extended0", "extended1"]
    again = clone(pipeline).fit(frame)
    pd.testing.assert_frame_equal(again.transform(frame), pipeline.transform(frame))
    with pytest.raises(ValueError, match="feature names"):
        pipeline.transform(frame.rename(columns={"a": "z"}))


def test_nested_parameters_can_be_set():
    extended = Extended(Isomap(n_neighbors=7), PCAExtension(n_neighbors=3))
    assert extended.get_params()["embedding__n_neighbors"] == 7
    extended.set_params(extension__n_neighbors=4)
    assert extended.extension.n_neighbors == 4


def test_any_regressor_like_extension(curve):
    class Nearest(KNeighborsRegressor):
        def transform(self, X):
            return self.predict(X)

    extended = Extended(Isomap(), Nearest(1)).fit(curve)
    np.testing.assert_array_equal(extended.transform(curve), extended.extension_._y)
    assert not hasattr(extended, "place")
    with pytest.raises(AttributeError) as raised:
        extended.place(curve)
    assert "Nearest has no place; use transform" in str(raised.value.__cause__)


def test_supervised_embedding_gets_the_labels(curve):
    class Labelled(BaseEstimator):
        def fit_transform(self, X, y=None):
            self.seen = y
            return X[:, :2]

    labels = np.arange(len(curve))
    assert Extended(Labelled()).fit(curve, labels).embedding_.seen is labels


def test_bad_embeddings(curve):
    with pytest.raises(TypeError, match="estimator with fit_transform"):
        Extended("t-SNE").fit(curve)

    class Broken(BaseEstimator):
        def fit_transform(self, X, y=None):
            return np.full((len(X), 2), np.nan)

    message = r"Broken.fit_transform returned an array of shape \(400, 2\)"
    with pytest.raises(ValueError, match=message):
        Extended(Broken()).fit(curve)


class Bare:
    """An embedding that is not a scikit-learn estimator: no parameters, no tags."""

    def fit_transform(self, X):
        return X[:, :2] * 2


class Keywords(BaseEstimator):
    def fit_transform(self, X, **kwargs):
        assert not kwargs
        return X[:, :2] * 2


class Spread(BaseEstimator):
    def fit_transform(self, *args):
        self.seen = args[1:]
        return args[0][:, :2] * 2


@pytest.mark.parametrize("embedding", [Bare(), Keywords()])
def test_embeddings_without_a_y(embedding, curve):
    for y in (None, np.arange(len(curve))):
        extended = clone(Extended(embedding)).fit(curve, y)
        np.testing.assert_array_equal(extended.transform(curve), curve[:, :2] * 2)
        assert extended.place(curve[:3]).coordinates.shape == (3, 2)
    assert "Extended" in repr(extended) and extended.embedding_ is not embedding
    pipeline = make_pipeline(StandardScaler(), Extended(embedding)).fit(curve)
    assert pipeline.transform(curve).shape == (400, 2)
    detector = NoveltyDetector(Extended(embedding)).fit(curve)
    assert detector.place(curve[:3]).p_value.shape == (3,)


def test_embeddings_with_varargs_get_the_labels_if_any(curve):
    assert Extended(Spread()).fit(curve).embedding_.seen == ()
    assert Extended(Spread()).fit(curve, "labels").embedding_.seen == ("labels",)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_a_regressor_predicts(curve, kind):
    X = curve.astype(kind)
    extended = Extended(KernelPCA(2), KNeighborsRegressor(1)).fit(X)
    Y = extended.fit_transform(X)
    np.testing.assert_array_equal(extended.transform(X), Y)
    assert extended.transform(X).dtype == kind and not hasattr(extended, "place")
    one_column = Extended(KernelPCA(1), SVR()).fit(X)
    assert one_column.transform(X[:5]).shape == (5, 1)
    two_columns = Extended(KernelPCA(2), PLSRegression(2)).fit(X)  # predict is used
    assert two_columns.transform(X[:5]).shape == (5, 2)


def test_objects_without_the_required_methods_are_rejected(curve):
    with pytest.raises(TypeError, match="must have fit, and transform or predict"):
        Extended(KernelPCA(2), 3).fit(curve)
    with pytest.raises(TypeError, match="must be an estimator with fit_transform"):
        Extended(KernelPCA).fit(curve)


def test_score_is_minus_the_error_over_the_size_of_the_map(curve):
    extended = Extended(KernelPCA(2))
    Y = extended.fit_transform(curve)
    assert extended.score(curve, Y) == 0.0
    size = np.sqrt(((Y - Y.mean(axis=0)) ** 2).sum(axis=1).mean())
    assert extended.score(curve, Y + np.array([3.0, 4.0])) == pytest.approx(-5 / size)
    with pytest.raises(ValueError, match="y has 1 columns, but the map has 2"):
        extended.score(curve, Y[:, :1])
    for labels in (None, np.arange(400), np.full((400, 1), "a")):
        assert np.isnan(extended.score(curve, labels))
    scores = cross_val_score(Extended(Bare()), curve, curve[:, :2] * 2, cv=3)
    assert (scores < 0).all() and (scores > -0.2).all()
