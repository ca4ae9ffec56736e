"""The Nyström extension, and the laws it shares with geometric harmonics and diffusion maps."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

import reference
from outsample import DiffusionMaps, GeometricHarmonics, NystroemExtension

EXTENSIONS = {
    "nystroem": NystroemExtension(),
    "nystroem few": NystroemExtension(n_components=12),
    "harmonics": GeometricHarmonics(),
}
MODELS = {
    **EXTENSIONS,
    "diffusion": DiffusionMaps(),
    "diffusion sparse": DiffusionMaps(n_neighbors=8),
}
every_extension = pytest.mark.parametrize("name", EXTENSIONS)
every_model = pytest.mark.parametrize("name", MODELS)
seeds = st.integers(0, 10**6)


def data(seed, n=60, D=3, d=2, q=9):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    Y = np.sin(X @ rng.normal(size=(D, d))) + 0.2 * X[:, :1]
    return X, Y, rng.normal(size=(q, D))


def fitted(name, X, Y):
    return clone(MODELS[name]).fit(X, Y)


@every_model
@given(seed=seeds)
def test_batch_is_single_is_shuffled(name, seed):
    X, Y, queries = data(seed, q=23)
    model = fitted(name, X, Y)
    before = pickle.dumps(model)
    whole = model.transform(queries)
    order = np.random.default_rng(seed).permutation(len(queries))
    np.testing.assert_array_equal(model.transform(queries[order]), whole[order])
    for i in range(len(queries)):
        np.testing.assert_array_equal(model.transform(queries[i : i + 1]), whole[i : i + 1])
    assert pickle.dumps(model) == before


@every_model
def test_threads_and_sparse_points_change_nothing(name):
    X, Y, queries = data(1, n=200, q=300)
    whole = fitted(name, X, Y).transform(queries)
    threads = clone(MODELS[name]).set_params(n_jobs=2).fit(X, Y)
    np.testing.assert_array_equal(threads.transform(queries), whole)
    thin = fitted(name, sparse.csr_matrix(X), Y).transform(sparse.csr_matrix(queries))
    np.testing.assert_allclose(thin, whole, atol=1e-6)


@every_extension
@given(seed=seeds)
def test_moving_points_or_map_moves_the_result(name, seed):
    X, Y, queries = data(seed)
    rng = np.random.default_rng(seed)
    turn, shift = np.linalg.qr(rng.normal(size=(3, 3)))[0], rng.normal(size=3)
    plain = fitted(name, X, Y).transform(queries)
    moved = fitted(name, X @ turn + shift, Y).transform(queries @ turn + shift)
    np.testing.assert_allclose(moved, plain, atol=1e-6)
    turn, shift = np.linalg.qr(rng.normal(size=(2, 2)))[0], rng.normal(size=2)
    moved = fitted(name, X, Y @ turn + shift).transform(queries)
    np.testing.assert_allclose(moved, plain @ turn + shift, atol=1e-6)


@every_extension
@pytest.mark.parametrize("scale_x", [1e-160, 0.3, 1e160])
@pytest.mark.parametrize("scale_y", [1e-100, 1.0, 1e100])
def test_units_do_not_matter(name, scale_x, scale_y):
    X, Y, queries = data(3)
    plain = fitted(name, X, Y).transform(queries)
    other = fitted(name, X * scale_x, Y * scale_y).transform(queries * scale_x)
    np.testing.assert_allclose(other / scale_y, plain, atol=1e-6)


@every_extension
def test_a_constant_map_is_reproduced(name):
    X, _, queries = data(4)
    Y = np.tile([3.0, -0.1], (len(X), 1))
    answer = fitted(name, X, Y).transform(np.vstack([queries, 1e9 * queries]))
    np.testing.assert_allclose(answer, np.tile([3.0, -0.1], (18, 1)), rtol=1e-14)


@every_model
@pytest.mark.parametrize(
    "kind", ["duplicates", "all equal", "collinear", "constant columns", "mixed scales", "two"]
)
@pytest.mark.filterwarnings("ignore:The kernel falls")
def test_finite_in_finite_out(name, kind):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(30, 3))
    if kind == "duplicates":
        X = X[rng.integers(0, 4, 30)]
    elif kind == "all equal":
        X = np.ones((30, 3))
    elif kind == "collinear":
        X = np.outer(np.arange(30.0), [1.0, 2.0, 3.0])
    elif kind == "constant columns":
        X[:, 1:] = 5.0
    elif kind == "mixed scales":
        X[:10] *= 1e-160
        X[20:] *= 1e160
    elif kind == "two":
        X = X[: 9 if name == "diffusion sparse" else 3]
    Y = rng.normal(size=(len(X), 4))
    far = np.array([[1e160, 0.0, 0.0], [1e-160, 0.0, 0.0], [-1e300, 1e300, 1e300]])
    queries = np.vstack([X, X + 1e-9, rng.normal(size=(9, 3)), far])
    assert np.isfinite(fitted(name, X, Y).transform(queries)).all()


@every_model
def test_float32(name):
    X, Y, queries = (a.astype(np.float32) for a in data(6))
    model = fitted(name, X, Y)
    narrow, wide = model.transform(queries), model.transform(queries.astype(np.float64))
    assert (narrow.dtype, wide.dtype) == (np.float32, np.float64)
    np.testing.assert_allclose(narrow, wide, rtol=1e-5, atol=1e-5)


@every_model
def test_bad_input_is_named(name):
    X, Y, queries = data(7)
    model = fitted(name, X, Y)
    with pytest.raises(ValueError, match="has 2 features"):
        model.transform(queries[:, :2])
    queries[2, 1] = np.nan
    with pytest.raises(ValueError, match="row 2, column 1"):
        model.transform(queries)
    with pytest.raises(ValueError, match="row 2, column 1"):
        clone(model).fit(queries, Y[:9])


@every_extension
def test_too_many_points_are_refused_first(name, monkeypatch):
    monkeypatch.setattr("outsample.spectral.memory_check.available_memory", lambda: 50_000.0)
    X, Y, _ = data(8)
    with pytest.raises(MemoryError, match=r"n = 60 points .* use PCAExtension"):
        fitted(name, X, Y)


@every_extension
def test_waves_on_a_circle_are_extended_off_the_samples(name):
    """cos(k x) are the eigenfunctions; sums of low frequencies are extended exactly."""
    angle = np.linspace(0, 2 * np.pi, 120, endpoint=False)
    new = np.linspace(0.013, 6.2, 50)

    def circle(a):
        return np.column_stack([np.cos(a), np.sin(a)])

    def waves(a):
        return np.column_stack([np.cos(a) - 0.3 * np.sin(4 * a), 2 + np.cos(3 * a)])

    answer = fitted(name, circle(angle), waves(angle)).transform(circle(new))
    np.testing.assert_allclose(answer, waves(new), atol=1e-5)


@given(seed=seeds)
def test_nystroem_equals_the_reference(seed):
    X, Y, queries = data(seed, n=40)
    ours = NystroemExtension(bandwidth=0.5, condition=1e12, alpha=0.7).fit(X, Y).transform(queries)
    np.testing.assert_allclose(ours, reference.nystroem(X, Y, queries, 0.5, 0.7), atol=1e-7)


@pytest.mark.parametrize("alpha, t", [(1.0, 1), (0.5, 2)])
def test_a_diffusion_map_is_extended_as_by_its_own_transform(alpha, t):
    X, _, queries = data(9, n=300)
    maps = DiffusionMaps(n_components=3, bandwidth=0.5, alpha=alpha, t=t).fit(X)
    for count in ("auto", 4):
        own = NystroemExtension(bandwidth=maps.bandwidth_, alpha=alpha, n_components=count)
        answer = own.fit(X, maps.embedding_).transform(queries)
        np.testing.assert_allclose(answer, maps.transform(queries), atol=1e-7)
    assert own.n_components_ == 4
    np.testing.assert_allclose(own.eigenvalues_[1:], maps.eigenvalues_, rtol=1e-9)


@pytest.mark.parametrize("extension", [NystroemExtension, GeometricHarmonics])
def test_the_condition_cuts_components(extension):
    X, Y, _ = data(10)
    wide = extension(bandwidth=50.0, condition=1e10).fit(X, Y)
    narrow = extension(bandwidth=50.0, condition=1e3).fit(X, Y)
    assert narrow.n_components_ < wide.n_components_ < len(X)
    assert narrow.condition_ < 1e3 < wide.condition_ < 1e10
    assert narrow.eigenvalues_.shape == (narrow.n_components_,)
    assert narrow.condition_ == narrow.eigenvalues_[0] / narrow.eigenvalues_[-1]
    assert narrow.selection_ == [] and narrow.bandwidth_ == 50.0


@every_extension
def test_the_chosen_bandwidth_is_good(name):
    X, Y, _ = data(11, n=500)
    X, queries, Y, true = X[:300], X[300:], Y[:300], Y[300:]
    model = fitted(name, X, Y)
    assert model.bandwidth_ == model.selection_[0].bandwidth
    assert model.selection_[0].error == min(error for _, error in model.selection_)

    def error(bandwidth):
        other = clone(model).set_params(bandwidth=bandwidth).fit(X, Y)
        return np.linalg.norm(other.transform(queries) - true, axis=1).mean()

    errors = [error(bandwidth) for bandwidth, _ in model.selection_]
    assert errors[0] < 2 * min(errors)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"bandwidth": 0.0}, "bandwidth is 0.0"),
        ({"bandwidth": "wide"}, "bandwidth is 'wide'"),
        ({"n_components": 0}, "n_components is 0"),
        ({"condition": 0.5}, "condition is 0.5"),
        ({"alpha": -1.0}, "alpha is -1.0"),
        ({"n_jobs": 0}, "n_jobs is 0"),
    ],
)
def test_parameters_are_checked(changes, message):
    X, Y, _ = data(12)
    with pytest.raises(ValueError, match=message):
        NystroemExtension(**changes).fit(X, Y)
