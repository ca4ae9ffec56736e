"""The laws of every extension, on generated inputs."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from outsample import Correlated, Diffusion, GaussianDistance, PCAExtension

PAPER = {"order": 0, "loss": "squared"}


def polynomial(order, k, loss, weighting="distance", tangent_dim="auto"):
    return PCAExtension(
        weighting=weighting, n_neighbors=k, order=order, loss=loss, tangent_dim=tangent_dim
    )


def correlated(covariance, nugget=1e-6, n_neighbors=12, order=0, loss="squared", tangent_dim=2):
    return PCAExtension(
        weighting=Correlated(covariance, 2.0, nugget), n_neighbors=n_neighbors, order=order,
        loss=loss, tangent_dim=tangent_dim,
    )  # fmt: skip


VARIANTS = {
    "defaults": PCAExtension(),
    "distance": PCAExtension(weighting="distance", n_neighbors=7, **PAPER),
    "tangent": PCAExtension(weighting="tangent", n_neighbors=7, **PAPER),
    "local_tangent": PCAExtension(weighting="local_tangent", n_neighbors=7, **PAPER),
    "split_tangent": PCAExtension(weighting="split_tangent", n_neighbors=7, **PAPER),
    "ball": PCAExtension(weighting="tangent", radius=0.6, tangent_radius=0.4, **PAPER),
    "ball_local": PCAExtension(weighting="local_tangent", radius=0.6, **PAPER),
    "function": PCAExtension(weighting=lambda r: r**-3.0, n_neighbors=5, **PAPER),
    "brute": PCAExtension(weighting="tangent", n_neighbors=7, index="brute", **PAPER),
    "order 1": polynomial(1, 9, "squared", tangent_dim=2),
    "order 2": polynomial(2, 20, "squared", tangent_dim=3),
    "order 1 tangent": polynomial(1, 9, "squared", weighting="tangent", tangent_dim=2),
    "order 1 absolute": polynomial(1, 9, "absolute", tangent_dim=2),
    "absolute": polynomial(0, 7, "absolute"),
    "absolute tangent": polynomial(0, 7, "absolute", weighting="tangent"),
    "linear": correlated("linear", nugget=0.0),
    "matern52": correlated("matern52"),
    "gaussian": correlated("gaussian"),
    "correlated absolute": correlated("linear", nugget=0.0, loss="absolute"),
    "correlated order 1": correlated("matern52", order=1, tangent_dim=2),
    "gaussian distance": PCAExtension(weighting=GaussianDistance(0.5), n_neighbors=7, **PAPER),
    "gaussian median": polynomial(0, 7, "absolute", weighting=GaussianDistance(0.5)),
    "gaussian order 1": polynomial(1, 9, "squared", weighting=GaussianDistance(1.0), tangent_dim=2),
    "process": correlated("matern52", n_neighbors=60),  # all of `data`
    "diffusion": PCAExtension(weighting=Diffusion(1.0)),
}
LENGTHS = ["radius", "tangent_radius"]

every_variant = pytest.mark.parametrize("name", VARIANTS)
seeds = st.integers(0, 10**6)


def variant(name, **changes):
    return clone(VARIANTS[name]).set_params(**changes)


def data(seed, n=60, D=3, d=2, q=9):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    Y = np.sin(X @ rng.normal(size=(D, d))) + 0.2 * X[:, :1]
    return X, Y, rng.normal(size=(q, D))


def assert_same(one, other):
    for field, left, right in zip(one._fields, one, other, strict=True):
        assert left.dtype == right.dtype, field
        np.testing.assert_array_equal(left, right, err_msg=field)


@every_variant
@given(seed=seeds)
def test_batch_is_single_is_shuffled(name, seed):
    X, Y, queries = data(seed, q=23)
    extension = variant(name).fit(X, Y)
    whole = extension.place(queries)
    np.testing.assert_array_equal(extension.transform(queries), whole.coordinates)
    order = np.random.default_rng(seed).permutation(len(queries))
    shuffled = extension.place(queries[order])
    assert_same(type(whole)(*(field[order] for field in whole)), shuffled)
    for i in range(len(queries)):
        single = extension.place(queries[i : i + 1])
        assert_same(type(whole)(*(field[i : i + 1] for field in whole)), single)


@every_variant
def test_chunks_and_threads_change_nothing(name, monkeypatch):
    X, Y, queries = data(1, n=300, q=500)
    extension = variant(name).fit(X, Y)
    whole = extension.place(queries)
    monkeypatch.setattr("outsample.placers.map_model.CHUNK_ROWS", 33)
    assert_same(whole, extension.place(queries))
    assert_same(whole, variant(name, n_jobs=2).fit(X, Y).place(queries))
    assert_same(whole, variant(name, n_jobs=-1).fit(X, Y).place(queries))


@every_variant
@given(seed=seeds)
def test_training_points_keep_their_coordinates(name, seed):
    X, Y, _ = data(seed)
    placed = variant(name).fit(X, Y).place(X)
    np.testing.assert_array_equal(placed.coordinates, Y)
    assert np.isfinite(placed.residual).all()
    np.testing.assert_array_equal(placed.bound, 0)


@every_variant
@given(seed=seeds)
def test_a_query_changes_nothing(name, seed):
    X, Y, queries = data(seed)
    extension = variant(name).fit(X, Y)
    if callable(extension.weighting):  # a lambda cannot be pickled
        extension.place(queries)
        return
    before = pickle.dumps(extension)
    extension.place(queries)
    extension.transform(queries)
    assert pickle.dumps(extension) == before


@every_variant
@given(seed=seeds)
def test_a_constant_map_is_reproduced(name, seed):
    X, _, queries = data(seed)
    Y = np.tile(np.random.default_rng(seed).normal(size=3), (len(X), 1))
    placed = variant(name).fit(X, Y).place(queries)
    np.testing.assert_array_equal(placed.coordinates, Y[: len(queries)])
    np.testing.assert_array_equal(placed.residual, 0)
    np.testing.assert_array_equal(placed.dispersion, 0)


def rotation(rng, size):
    return np.linalg.qr(rng.normal(size=(size, size)))[0]


@every_variant
@given(seed=seeds)
def test_moving_the_points_leaves_the_map_alone(name, seed):
    X, Y, queries = data(seed)
    rng = np.random.default_rng(seed)
    turn, shift = rotation(rng, X.shape[1]), rng.normal(size=X.shape[1])
    plain = variant(name).fit(X, Y).transform(queries)
    moved = variant(name).fit(X @ turn + shift, Y).transform(queries @ turn + shift)
    np.testing.assert_allclose(moved, plain, atol=1e-8)


@every_variant
@given(seed=seeds)
def test_moving_the_map_moves_the_answer(name, seed):
    X, Y, queries = data(seed)
    rng = np.random.default_rng(seed)
    turn, shift = rotation(rng, Y.shape[1]), rng.normal(size=Y.shape[1])
    plain = variant(name).fit(X, Y).transform(queries)
    moved = variant(name).fit(X, Y @ turn + shift).transform(queries)
    np.testing.assert_allclose(moved, plain @ turn + shift, atol=1e-8)


@every_variant
@pytest.mark.parametrize("scale_x", [1e-160, 0.3, 1.0, 1e5, 1e160])
@pytest.mark.parametrize("scale_y", [1e-100, 1.0, 1e100])
def test_units_do_not_matter(name, scale_x, scale_y):
    if name == "function" and scale_x in (1e-160, 1e160):
        pytest.skip("the function r^-3 itself overflows at such distances")
    X, Y, queries = data(3)
    lengths = VARIANTS[name].get_params()
    scaled = {key: lengths[key] * scale_x for key in LENGTHS if lengths[key] is not None}
    plain = variant(name).fit(X, Y).place(queries)
    other = variant(name, **scaled).fit(X * scale_x, Y * scale_y).place(queries * scale_x)
    np.testing.assert_allclose(
        other.coordinates / scale_y, plain.coordinates, rtol=1e-8, atol=1e-10
    )
    for field in (other.residual, other.dispersion, other.bound):
        assert np.isfinite(field).all()


@every_variant
@given(seed=seeds)
def test_float32(name, seed):
    X, Y, queries = data(seed)
    X, Y, queries = (a.astype(np.float32) for a in (X, Y, queries))
    extension = variant(name).fit(X, Y)
    narrow = extension.place(queries)
    wide = extension.place(queries.astype(np.float64))
    assert narrow.coordinates.dtype == np.float32
    assert extension.transform(queries).dtype == np.float32
    np.testing.assert_allclose(narrow.coordinates, wide.coordinates, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(extension.transform(X), Y)


def degenerate(kind, rng):
    X = rng.normal(size=(30, 3))
    if kind == "duplicates":
        X = X[rng.integers(0, 4, 30)]
    elif kind == "all equal":
        X = np.ones((30, 3))
    elif kind == "collinear":
        X = np.outer(np.arange(30.0), [1.0, 2.0, 3.0])
    elif kind == "constant columns":
        X[:, 1:] = 5.0
    elif kind == "near duplicates":
        X[15:] = X[:15] + 1e-14
    elif kind == "mixed scales":
        X[:10] *= 1e-160
        X[20:] *= 1e160
    return X


KINDS = [
    "duplicates", "all equal", "collinear", "constant columns", "near duplicates", "mixed scales"
]  # fmt: skip


@every_variant
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("images", ["spread", "few", "equal", "on a line"])
def test_finite_in_finite_out(name, kind, images):
    rng = np.random.default_rng(5)
    X = degenerate(kind, rng)
    Y = {
        "spread": rng.normal(size=(30, 5)),  # k <= d in places
        "few": np.eye(5)[rng.integers(0, 3, 30)],
        "equal": np.ones((30, 5)),
        "on a line": np.outer(rng.normal(size=30), np.ones(5)),
    }[images]
    far = np.array([[1e160, 0.0, 0.0], [1e-160, 0.0, 0.0], [-1e300, 1e300, 1e300]])
    queries = np.vstack([X, X + 1e-160, X + 1e-9, X * (1 + 1e-15), rng.normal(size=(9, 3)), far])
    changes = {"n_neighbors": len(X)} if name == "process" else {}
    placed = variant(name, **changes).fit(X, Y).place(queries)
    for field, values in zip(placed._fields, placed, strict=True):
        assert np.isfinite(values).all(), field
    assert (placed.residual >= 0).all() and (placed.dispersion >= 0).all()


@every_variant
def test_coinciding_points_give_the_mean_of_their_images(name):
    X, Y, _ = data(8)
    X[3] = X[17] = X[42]
    expected = Y[[3, 17, 42]].mean(axis=0)
    placed = variant(name).fit(X, Y).place(X[[3]])
    np.testing.assert_allclose(placed.coordinates[0], expected, rtol=1e-14)
    assert np.isfinite(placed.residual).all()


@pytest.mark.parametrize("name", ["distance", "tangent", "local_tangent", "split_tangent"])
def test_the_residual_tends_to_its_value_on_a_training_point(name):
    X, Y, _ = data(9)
    extension = variant(name).fit(X, Y)
    at = extension.place(X[:1])
    near = extension.place(X[:1] + 1e-9)
    np.testing.assert_allclose(near.residual, at.residual, rtol=1e-5)
    np.testing.assert_allclose(near.coordinates, at.coordinates, atol=1e-9)


@every_variant
@pytest.mark.parametrize("n", [2, 3, 5])
def test_very_few_training_points(name, n):
    X, Y, queries = data(11)
    changes = {} if VARIANTS[name].n_neighbors == "auto" else {"n_neighbors": min(n, 3)}
    placed = variant(name, **changes).fit(X[:n], Y[:n]).place(queries)
    assert all(np.isfinite(field).all() for field in placed)


@pytest.mark.parametrize("name", ["distance", "tangent", "local_tangent", "split_tangent"])
@given(seed=seeds)
def test_the_nearer_of_two_weighs_more(name, seed):
    """With two neighbours the answer is nearer, in every tangent direction, to the nearer's."""
    rng = np.random.default_rng(seed)
    X = np.array([[0.0], [1.0]])
    Y = rng.normal(size=(2, 2))
    at = rng.uniform(0.01, 0.49)
    answer = variant(name, n_neighbors=2).fit(X, Y).transform([[at]])[0]
    assert np.linalg.norm(answer - Y[0]) < np.linalg.norm(answer - Y[1])


@pytest.mark.parametrize("name", ["distance", "function"])
@given(seed=seeds)
def test_isotropic_answers_are_in_the_bounding_box(name, seed):
    X, Y, queries = data(seed)
    extension = variant(name, n_neighbors=6).fit(X, Y)
    near = extension.index_.nearest(queries, 6).indices.reshape(-1, 6)
    answer = extension.transform(queries)
    assert (answer >= Y[near].min(axis=1) - 1e-12).all()
    assert (answer <= Y[near].max(axis=1) + 1e-12).all()


@given(seed=seeds)
def test_indexes_agree_bit_for_bit(seed):
    X, Y, queries = data(seed, n=200, D=12, q=40)
    tree = PCAExtension(weighting="tangent", n_neighbors=9, index="kd_tree", **PAPER).fit(X, Y)
    brute = PCAExtension(weighting="tangent", n_neighbors=9, index="brute", **PAPER).fit(X, Y)
    assert_same(tree.place(queries), brute.place(queries))
    assert_same(tree.place(X), brute.place(X))
