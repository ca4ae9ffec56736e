"""Correlated errors: local and global Gaussian-process extension."""

from __future__ import annotations

from dataclasses import astuple, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from maps import between, random_map, torn
from outsample import Correlated, PCAExtension
from outsample._compiled import correlated as kernels
from outsample.placers.kriging import COVARIANCE_KINDS, GaussianProcess
from outsample.placers.local import LocalPlacer
from outsample.placers.problem import Part, Problem

pytestmark = pytest.mark.kernels

# The nugget keeps the condition number of the covariance low enough for eight digits.
COVARIANCES = [
    Correlated("linear", 1.0, 0.0),
    Correlated("linear", 2.0, 0.1),
    Correlated("matern52", 2.0, 1e-4),
    Correlated("gaussian", 1.0, 1e-4),
]
LOCAL = [*COVARIANCES, Correlated("affine", 1.0, 1e-2)]
every_covariance = pytest.mark.parametrize("covariance", LOCAL, ids=lambda c: c.covariance)
GLOBAL = [replace(covariance, nugget=max(covariance.nugget, 1e-4)) for covariance in COVARIANCES]
every_global = pytest.mark.parametrize("covariance", GLOBAL, ids=lambda c: c.covariance)


@pytest.fixture(autouse=True, scope="module")
def quick_fit():
    """Reduce leave-one-out samples, which do not affect the coordinates here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("outsample.placers.selection.FINAL_ROWS", 3)
        yield


def fitted(X, Y, covariance, k, order=0, t=1, loss="squared"):
    return PCAExtension(
        weighting=covariance, n_neighbors=k, order=order, loss=loss, tangent_dim=t
    ).fit(X, Y)


@every_covariance
@pytest.mark.parametrize(("D", "t", "order"), [(3, 1, 0), (3, 3, 1), (4, 2, 1), (25, 2, 1)])
@given(seed=st.integers(0, 10**6), k=st.integers(1, 20), d=st.integers(1, 3))
def test_the_result_is_the_literal_gls(covariance, D, t, order, seed, k, d):
    X, Y, queries = random_map(seed, 25, D, d)
    answer = fitted(X, Y, covariance, k, order, t).transform(queries)
    for i, x in enumerate(queries):
        expected, condition = reference.correlated(
            X, Y, x, *astuple(covariance), k=k, order=order, t=t
        )
        size = max(np.abs(Y).max(), np.abs(expected).max())
        allowed = max(1e-8, 1e-14 * condition)  # only near a training point
        np.testing.assert_allclose(answer[i], expected, rtol=0, atol=size * allowed)


@every_covariance
@given(seed=st.integers(0, 10**6), k=st.integers(2, 20))
def test_neighbors_that_disagree_are_dropped(covariance, seed, k):
    X, Y, queries = random_map(seed, 25, 3, 2)
    Y[::3] += 5.0  # torn
    answer = fitted(X, Y, covariance, k, loss="absolute").transform(queries)
    for i, x in enumerate(queries):
        kept = reference.agreeing(X, Y, x, k)
        expected, _ = reference.correlated(X, Y, x, *astuple(covariance), k=k, kept=kept)
        np.testing.assert_allclose(answer[i], expected, atol=1e-8)


@given(seed=st.integers(0, 10**6), k=st.integers(2, 14))
def test_affine_weights_are_those_of_locally_linear_embedding(seed, k):
    """Roweis and Saul: minimise |x - sum w_j x_j|^2 + ridge |w|^2 subject to sum w = 1."""
    X, Y, queries = random_map(seed, 25, 3, 2)
    answer = fitted(X, Y, Correlated("affine", 1.0, 0.02), k).transform(queries)
    for i, x in enumerate(queries):
        near, distances = reference.neighbors(X, x, k)
        ridge = 0.02 * distances[-1] ** 2 / 2
        gram = (X[near] - x) @ (X[near] - x).T + ridge * np.eye(k)
        weights = np.linalg.solve(gram, np.ones(k))
        np.testing.assert_allclose(answer[i], weights @ Y[near] / weights.sum(), atol=1e-8)
    plane = X @ np.arange(6.0).reshape(3, 2)
    sharp = fitted(X, plane, Correlated("affine", 1.0, 1e-12), 14).transform(queries)
    np.testing.assert_allclose(sharp, queries @ np.arange(6.0).reshape(3, 2), atol=1e-6)


def test_affine_covariance_is_never_an_all_points_model():
    X, Y, queries = random_map(0, 25, 3, 2)
    extension = fitted(X, Y, Correlated("affine", 1.0, 1e-2), 25)
    assert extension.model_.fitted.placer.n_neighbors == 25
    assert np.isfinite(extension.transform(1e200 * queries)).all()


def test_consensus_avoids_positions_between_clusters():
    X, Y = torn(0, 300)
    queries = np.column_stack([np.linspace(0.48, 0.52, 60), np.linspace(0.1, 0.9, 60)])
    linear = Correlated("linear", 1.0, 0.0)
    consensus = between(fitted(X, Y, linear, 15, loss="absolute").transform(queries))
    without_consensus = between(fitted(X, Y, linear, 15).transform(queries))
    assert consensus.mean() < 0.35 < 0.7 < without_consensus.mean()


@pytest.mark.parametrize("k", [2, 3, 4, 5, 8])
def test_few_neighbors_lower_the_order_of_the_drift(k):
    X, Y, queries = random_map(5, 25, 3, 2)
    answer = fitted(X, Y, COVARIANCES[0], k, 2, 1).transform(queries)
    for i, x in enumerate(queries):
        expected, _ = reference.correlated(X, Y, x, *astuple(COVARIANCES[0]), k=k, order=2, t=1)
        np.testing.assert_allclose(answer[i], expected, atol=1e-8)


@pytest.mark.parametrize("order", [0, 1])
def test_points_on_a_line(order):
    """On a line the linear variogram interpolates between the two points around the query."""
    X = np.outer(np.arange(30.0), [1.0, 2.0])
    Y = np.random.default_rng(0).normal(size=(30, 2))
    answer = fitted(X, Y, COVARIANCES[0], 10, 0).transform([[7.25, 14.5]])[0]
    np.testing.assert_allclose(answer, 0.75 * Y[7] + 0.25 * Y[8], atol=1e-10)
    drift = fitted(X, X[:, :1], COVARIANCES[0], 10, order, 2).transform([[7.25, 14.5]])[0]
    np.testing.assert_allclose(drift, [7.25], atol=1e-8)


@every_covariance
def test_duplicates_count_once(covariance):
    """Two adjacent neighbours count as one; the paper's weights count both."""
    X, Y, queries = random_map(3, 12, 3, 2)
    covariance = replace(covariance, nugget=0.0)
    once = fitted(X, Y, covariance, 11).transform(queries)
    doubled = fitted(np.vstack([X, X]), np.vstack([Y, Y]), covariance, 11).transform(queries)
    np.testing.assert_allclose(doubled, once, rtol=1e-12)
    # Nearly equal points are two points and still count once.
    near_duplicates = np.vstack([X, X + 1e-9])
    for x in queries:
        distances = reference.neighbors(X, x, 12)[1]
        # The same length scale, although the 15th neighbour differs.
        length = covariance.length * distances[10] / distances.repeat(2)[14]
        twice = fitted(near_duplicates, np.vstack([Y, Y]), replace(covariance, length=length), 22)
        single = fitted(X, Y, covariance, 11).transform([x])
        np.testing.assert_allclose(twice.transform([x]), single, atol=1e-5)


@every_global
@given(seed=st.integers(0, 10**6))
def test_a_process_is_bordered_kriging(covariance, seed):
    X, Y, queries = random_map(seed, 30, 3, 2)
    extension = fitted(X, Y, covariance, 30)
    assert extension.model_.fitted.placer.n_neighbors is None
    unit = covariance.length * reference.typical_unit(X)
    expected = reference.kriging(X, Y, queries, covariance.covariance, unit, covariance.nugget)
    np.testing.assert_allclose(extension.transform(queries), expected, rtol=0, atol=1e-8)


@every_global
@given(seed=st.integers(0, 10**6))
def test_a_process_is_the_local_solve_with_all_points(covariance, seed):
    X, Y, queries = random_map(seed, 30, 3, 2)
    extension = fitted(X, Y, covariance, 30)
    answer, unit = extension.transform(queries), extension.model_.fitted.unit
    for i in range(len(queries)):
        # The local length scale depends on the query, the global one on the training set.
        length = unit / reference.neighbors(X, queries[i], 30)[1][14]
        local = LocalPlacer(replace(covariance, length=length), 30, 0, "squared", 1)
        search = extension.model_.search
        problem = Problem(search, extension.model_.quality.Y, None, None)
        placed = local.fit(problem, np.arange(3)).place(queries, search.around(queries, 30))
        np.testing.assert_allclose(answer[i], placed[i], atol=1e-6)


@every_global
@given(seed=st.integers(0, 10**6))
def test_leave_one_out_of_a_process_is_brute_force(covariance, seed):
    X, Y, _ = random_map(seed, 25, 3, 2)
    unit = reference.typical_unit(X)
    all_rows = np.arange(25)
    process = GaussianProcess(covariance).fit(Part(X, Y, unit, None), all_rows)
    residuals = Y - process.leave_out(all_rows, None)

    def fit(points, images):
        return lambda x: reference.kriging(
            points, images, x, covariance.covariance, unit * covariance.length, covariance.nugget
        )

    expected = Y - reference.leave_one_out(X, Y, fit)
    np.testing.assert_allclose(residuals, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kind", COVARIANCE_KINDS)
def test_the_variogram(kind):
    h = np.r_[0.0, np.logspace(-2, 2, 50)]
    values = [kernels.variogram(COVARIANCE_KINDS[kind], value) for value in h]
    np.testing.assert_allclose(values, reference.VARIOGRAMS[kind](h), rtol=1e-11)
    tiny = np.logspace(-9, -2, 30)
    slopes = {"linear": tiny, "matern52": 5 * tiny**2 / 6}
    expected = slopes.get(kind, tiny**2)
    values = [kernels.variogram(COVARIANCE_KINDS[kind], value) for value in tiny]
    np.testing.assert_allclose(values, expected, rtol=1e-3)  # where the closed form cancels
    far = {"linear": 1e200, "affine": 1e300}.get(kind, 1.0)
    assert kernels.variogram(COVARIANCE_KINDS[kind], 1e200) == pytest.approx(far, rel=1e-15)


@every_global
def test_a_process_far_from_the_data_tends_to_a_constant(covariance):
    X, Y, _ = random_map(4, 30, 3, 2)
    way = np.ones(3) / 3**0.5
    answer = fitted(X, Y, covariance, 30).transform(np.outer([1e4, 1e8, 1e12, 1e300], way))
    assert np.abs(answer).max() < 100 * np.abs(Y).max()
    if covariance.covariance != "linear":
        np.testing.assert_allclose(answer, np.tile(answer[0], (4, 1)), rtol=1e-12)
