"""Multiscale extension: reference, analytic truth, and laws shared with the pyramids."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

import reference
from outsample import LaplacianPyramids, MultiscaleExtension
from outsample.spectral import memory_check, multiscale_cascade

MODELS = {
    "pyramid": LaplacianPyramids(),
    "plain pyramid": LaplacianPyramids(stop="tolerance"),
    "multiscale": MultiscaleExtension(),
    "plain multiscale": MultiscaleExtension(stop="tolerance"),
}
every_model = pytest.mark.parametrize("name", MODELS)


def fitted(name, X, Y, **changes):
    return clone(MODELS[name]).set_params(**changes).fit(X, Y)


def data(seed, n=60, D=3, d=2, q=9):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    Y = np.sin(X @ rng.normal(size=(D, d))) + 0.2 * X[:, :1]
    return X, Y, rng.normal(size=(q, D))


@pytest.mark.kernels
def test_multiscale_equals_the_reference():
    X, Y, queries = data(0)
    model = MultiscaleExtension(tolerance=1e-2).fit(X, Y)
    cut = multiscale_cascade.PIVOT_TOLERANCE * model.delta
    values, left = reference.multiscale(X, Y, queries, model.scales_, model.sampled_, cut)
    np.testing.assert_allclose(model.transform(queries), values, rtol=1e-8, atol=1e-9)
    size = np.linalg.norm(Y - Y.mean(axis=0))
    np.testing.assert_allclose(model.errors_[-1], np.linalg.norm(left) / size, rtol=1e-6)


@pytest.mark.parametrize("tolerance", [1e-1, 1e-3, 1e-8])
def test_the_training_error_is_below_the_tolerance(tolerance):
    X, Y, _ = data(1, n=150)
    model = MultiscaleExtension(stop="tolerance", tolerance=tolerance).fit(X, Y)
    assert model.errors_[-1] <= tolerance
    assert (model.errors_[:-1] > tolerance).all() and (np.diff(model.errors_) <= 1e-12).all()
    np.testing.assert_allclose(model.scales_[:-1] / model.scales_[1:], 2.0)
    error = np.linalg.norm(model.transform(X) - Y) / np.linalg.norm(Y - Y.mean(axis=0))
    assert error <= tolerance * (1 + 1e-6)


def spiky_maps():
    """Yield maps in which one or two points are far from all others."""
    from sklearn.datasets import load_breast_cancer, load_digits, make_swiss_roll
    from sklearn.manifold import LocallyLinearEmbedding
    from sklearn.preprocessing import scale

    cancer = scale(load_breast_cancer().data)
    ltsa = LocallyLinearEmbedding(n_neighbors=12, method="ltsa", eigen_solver="dense")
    yield "LTSA", cancer, ltsa.fit_transform(cancer)
    points = cancer, load_digits().data[:500], make_swiss_roll(400, random_state=0)[0]
    for X in points:
        yield "spikes", X, np.eye(len(X))[:, [3, len(X) // 2]]


@pytest.mark.filterwarnings("ignore")
def test_never_worse_than_the_mean_of_the_map():
    for name, X, Y in spiky_maps():
        order = np.random.default_rng(0).permutation(len(X))
        hidden, training = np.split(order, [len(X) // 5])
        mean = np.linalg.norm(Y[training].mean(axis=0) - Y[hidden], axis=1).mean()
        errors = {}
        for stop in ("auto", "tolerance"):
            model = MultiscaleExtension(stop=stop).fit(X[training], Y[training])
            errors[stop] = np.linalg.norm(model.transform(X[hidden]) - Y[hidden], axis=1).mean()
        assert errors["auto"] <= mean * (1 + 1e-9) < errors["tolerance"], name


def test_cross_validation_does_not_change_smooth_maps():
    X, Y, queries = data(1, n=150)
    ours, plain = (MultiscaleExtension(stop=stop).fit(X, Y) for stop in ("auto", "tolerance"))
    np.testing.assert_array_equal(ours.transform(queries), plain.transform(queries))


def test_parameters_have_an_effect():
    X, Y, _ = data(1, n=150)
    assert len(MultiscaleExtension(max_scales=2).fit(X, Y).scales_) == 2
    assert MultiscaleExtension(initial_scale=5.0).fit(X, Y).scales_[0] == pytest.approx(5.0)
    coarse, fine = (MultiscaleExtension(delta=d, max_scales=1).fit(X, Y) for d in (1e-1, 1e-6))
    assert len(coarse.sampled_[0]) < len(fine.sampled_[0])


def test_error_falls_with_n_on_a_circle():
    errors = []
    at = np.random.default_rng(0).uniform(0, 2 * np.pi, 50)
    for n in (8, 16, 80):
        angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
        circle = [np.column_stack([np.cos(a), np.sin(a)]) for a in (angle, at)]
        model = MultiscaleExtension(tolerance=1e-6).fit(circle[0], np.sin(3 * angle))
        errors.append(np.abs(model.transform(circle[1])[:, 0] - np.sin(3 * at)).mean())
    assert errors[1] < errors[0] / 100 and errors[2] < 1e-5


def test_too_many_points_are_refused_before_memory_runs_out(monkeypatch):
    monkeypatch.setattr(memory_check, "available_memory", lambda: 1e5)
    with pytest.raises(MemoryError, match="n = 150 points"):
        MultiscaleExtension().fit(*data(1, n=150)[:2])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tolerance": -1.0}, "tolerance is -1.0"),
        ({"initial_scale": "big"}, "initial_scale is 'big'"),
        ({"stop": "never"}, "stop is 'never'"),
        ({"delta": 0.0}, "delta is 0.0"),
        ({"max_scales": 0}, "max_scales is 0"),
        ({"random_state": "seed"}, "random_state is 'seed'"),
    ],
)
def test_bad_parameters_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        MultiscaleExtension(**changes).fit(*data(1)[:2])


@every_model
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_batch_is_single_and_a_query_changes_nothing(name, n_jobs):
    X, Y, queries = data(2, q=150)
    model = fitted(name, X, Y, n_jobs=n_jobs)
    before = pickle.dumps(model)
    whole = model.transform(queries)
    assert pickle.dumps(model) == before
    for i in range(0, 150, 7):
        np.testing.assert_array_equal(model.transform(queries[i : i + 1]), whole[i : i + 1])
    np.testing.assert_array_equal(model.transform(queries[::-1]), whole[::-1])
    np.testing.assert_array_equal(fitted(name, X, Y).transform(queries), whole)


@every_model
@pytest.mark.parametrize("seed", range(3))
def test_moving_points_and_map(name, seed):
    X, Y, queries = data(seed)
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    plain = fitted(name, X, Y).transform(queries)
    moved = fitted(name, X @ turn + 2.0, Y).transform(queries @ turn + 2.0)
    np.testing.assert_allclose(moved, plain, atol=1e-6)
    turn = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    moved = fitted(name, X, Y @ turn - 3.0).transform(queries)
    np.testing.assert_allclose(moved, plain @ turn - 3.0, atol=1e-6)


@every_model
@pytest.mark.parametrize("scale_x", [1e-160, 0.3, 1e5, 1e160])
@pytest.mark.parametrize("scale_y", [1e-100, 1e100])
def test_units_do_not_matter(name, scale_x, scale_y):
    X, Y, queries = data(3)
    plain = fitted(name, X, Y).transform(queries)
    other = fitted(name, X * scale_x, Y * scale_y).transform(queries * scale_x)
    np.testing.assert_allclose(other / scale_y, plain, rtol=1e-6, atol=1e-8)


@every_model
def test_a_constant_is_reproduced_and_float32_stays(name):
    X, Y, queries = data(4)
    constant = np.tile([0.1, -7.3], (len(X), 1))
    answer = fitted(name, X, constant).transform(queries)
    np.testing.assert_array_equal(answer, constant[: len(queries)])
    narrow = fitted(name, X.astype(np.float32), Y).transform(queries.astype(np.float32))
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, fitted(name, X, Y).transform(queries), atol=1e-3)


KINDS = {
    "plain": lambda X: X,
    "duplicates": lambda X: X[np.arange(30) % 4],
    "all equal": lambda X: np.ones_like(X),
    "collinear": lambda X: np.outer(np.arange(30.0), [1.0, 2.0, 3.0]),
    "constant columns": lambda X: X * [1.0, 0.0, 0.0] + 5.0,
    "one column": lambda X: X[:, :1],
    "near duplicates": lambda X: np.vstack([X[:15], X[:15] + 1e-14]),
    "mixed scales": lambda X: X * np.repeat([1e-160, 1.0, 1e160], 10)[:, None],
    "two points": lambda X: X[:2],
    "three points": lambda X: X[:3],
}


@every_model
@pytest.mark.parametrize("kind", KINDS)
def test_finite_in_finite_out(name, kind):
    rng = np.random.default_rng(5)
    X = KINDS[kind](rng.normal(size=(30, 3)))
    Y = rng.normal(size=(len(X), 5))
    far = np.array([[1e160], [1e-160], [-1e300]]) * np.ones(X.shape[1])
    model = fitted(name, X, Y)
    answer = model.transform(np.vstack([X, X + 1e-9, rng.normal(size=(5, X.shape[1])), far]))
    assert np.isfinite(answer).all() and np.isfinite(model.errors_).all()
