"""A Gaussian process with two levels: landmarks, and kriging of the residuals."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from maps import random_map
from outsample import Correlated, PCAExtension
from outsample._compiled import correlated as kernels
from outsample._compiled import gls
from outsample.placers.kriging import COVARIANCE_KINDS
from outsample.placers.landmarks import DAMPING
from outsample.placers.two_levels import TwoLevels

TWO = TwoLevels("matern52", 2.0, 0.0, 0.5, n_landmarks=12, n_neighbors=10)


def smooth_map(n, seed=0):
    """Return points of a curved sheet in five dimensions, and a smooth map of it."""
    u = np.random.default_rng(seed).random((n, 2))
    X = np.column_stack([u, np.sin(3 * u), u.prod(axis=1)])
    bent = np.abs(u - 0.4) ** 2.5  # only twice differentiable
    return X, np.column_stack([np.cos(5 * u[:, 0]) + bent[:, 1], np.sin(4 * u[:, 1]) - bent[:, 0]])


def limit_factored_rows(monkeypatch, max_rows):
    for module in ("selection", "candidates", "all_points_selection"):
        monkeypatch.setattr(f"outsample.placers.{module}.MAX_FACTORED_ROWS", max_rows)


def settings(extension):
    """Return the parameters of a fitted model for the reference."""
    fitted = extension.model_.fitted
    kind, rows, unit = fitted.placer.covariance, fitted.level.landmarks, fitted.level.unit
    return {
        "kind": kind, "unit": unit, "length": fitted.placer.length * fitted.placer.shorter,
        "landmarks": rows, "center": fitted.center / fitted.scale,
        "ridge": reference.landmark_ridge(fitted.X, rows, kind, unit),
    }  # fmt: skip


@pytest.mark.kernels
@pytest.mark.parametrize("kind", ["matern52", "gaussian"])
@given(seed=st.integers(0, 10**6), d=st.integers(1, 3))
def test_sums_over_landmarks(kind, seed, d):
    X, coefficients, queries = random_map(seed, 9, 3, d)
    rows, sums = np.array([1, 4, 7]), np.empty((len(queries), d))
    kernels.predict_landmarks(
        0, len(queries), X, rows, queries, 0.8, COVARIANCE_KINDS[kind], coefficients[:3], sums
    )
    expected = reference.predict_landmarks(X[rows], queries, kind, 0.8, coefficients[:3])
    np.testing.assert_allclose(sums, expected, atol=1e-12)


@pytest.mark.kernels
def test_queries_on_training_points_get_the_mean_of_their_images():
    Y, deviations = np.array([[1.0], [3.0], [9.0]]), np.array([[0.0], [0.0], [1.0], [1.0], [2.0]])
    coordinates = np.array([[7.0], [7.0]])
    indptr, indices = np.array([0, 3, 5]), np.array([0, 1, 2, 2, 1])
    gls.place_coincident(0, 2, Y, indptr, indices, deviations, coordinates)
    np.testing.assert_array_equal(coordinates, [[2.0], [7.0]])


@pytest.mark.kernels
@pytest.mark.parametrize("kind", ["matern52", "gaussian"])
@given(seed=st.integers(0, 10**6))
def test_the_result_equals_the_reference(kind, seed):
    X, Y, queries = random_map(seed, 40, 3, 2)
    two = TwoLevels(kind, 1.0, 0.0, 0.5, n_landmarks=12, n_neighbors=10)
    extension = PCAExtension(weighting=two).fit(X, Y)
    fitted = extension.model_.fitted  # in an order of its own
    expected = reference.two_levels(fitted.X, fitted.Y, queries, **settings(extension), k=10)
    np.testing.assert_allclose(extension.transform(queries), expected, atol=1e-6)


@pytest.mark.kernels
@given(seed=st.integers(0, 10**6))
def test_the_result_of_a_diffusion_equals_the_reference(seed):
    X, Y, queries = random_map(seed, 40, 3, 2)
    two = replace(TWO, covariance="diffusion", nugget=1e-9)
    extension = PCAExtension(weighting=two).fit(X, Y)
    fitted = extension.model_.fitted  # in an order of its own
    level = fitted.level
    expected = reference.diffusion_two_levels(
        fitted.X, fitted.Y, queries, level.unit, landmarks=level.landmarks, length=1.0, k=10,
        damping=DAMPING, center=fitted.center / fitted.scale,
    )  # fmt: skip
    np.testing.assert_allclose(extension.transform(queries), expected, atol=1e-6)


def test_far_from_all_points_a_diffusion_stays_among_the_images():
    X, Y = smooth_map(300)
    X[0] += 40.0  # isolated, but keeps its image
    two = TwoLevels("diffusion", 1.0, 1e-9, 0.5, n_landmarks=60, n_neighbors=20)
    extension = PCAExtension(weighting=two).fit(X, Y)
    np.testing.assert_array_equal(extension.transform(X[:3]), Y[:3])
    placed = extension.transform(X[1:20] + 1e3)
    reach = np.linalg.norm(Y - Y.mean(axis=0), axis=1).max()
    assert (np.linalg.norm(placed - Y.mean(axis=0), axis=1) < 3 * reach).all()


def test_leave_one_out_of_a_diffusion_equals_a_fit_without_the_row():
    """Exact for fixed landmarks, their densities and images, ridge and mean."""
    X, Y, _ = random_map(3, 60, 3, 2)
    two = replace(TWO, covariance="diffusion", nugget=1e-9)
    extension = PCAExtension(weighting=two).fit(X, Y)
    rows, _, left_out = extension.left_out_
    fitted = extension.model_.fitted
    X, Y, level = fitted.X, fitted.Y, fitted.level  # in an order of its own
    Z, images = X[level.landmarks], Y[level.landmarks]
    ridge = reference.diffusion_ridge(X, Z, level.unit, DAMPING)
    for i, placed in zip(extension.distinct_.groups[rows], left_out, strict=True):
        expected = reference.diffusion_on(
            reference.without(X, i), reference.without(Y, i), X[i : i + 1], Z, images, level.unit,
            length=1.0, k=10, ridge=ridge, center=fitted.center / fitted.scale,
        )  # fmt: skip
        np.testing.assert_allclose(placed, expected[0], atol=1e-7)


def test_leave_one_out_equals_a_fit_without_the_row():
    """Exact for fixed landmarks, ridge and mean."""
    X, Y, _ = random_map(3, 60, 3, 2)
    extension = PCAExtension(weighting=TWO).fit(X, Y)
    rows, _, left_out = extension.left_out_
    parameters, fitted = settings(extension), extension.model_.fitted
    X, Y, Z = fitted.X, fitted.Y, fitted.X[parameters.pop("landmarks")]  # in an order of its own
    for i, placed in zip(extension.distinct_.groups[rows], left_out, strict=True):
        # The landmarks do not change when the row is left out.
        points = reference.without(X, i)
        expected = _with_landmarks(points, reference.without(Y, i), X[i : i + 1], Z, **parameters)
        np.testing.assert_allclose(placed, expected[0], atol=1e-8)


def _with_landmarks(X, Y, queries, Z, *, kind, unit, length, ridge, center):
    inner = reference.predict_landmarks(Z, Z, kind, unit, np.eye(len(Z)))
    C = reference.predict_landmarks(Z, X, kind, unit, np.eye(len(Z)))
    coefficients = np.linalg.solve(C.T @ C + ridge * inner, C.T @ (Y - center))
    residuals = Y - center - C @ coefficients
    residual_predictions = [
        reference.correlated(X, residuals, x, "matern52", length, 1e-6, k=10)[0] for x in queries
    ]
    return (
        center
        + reference.predict_landmarks(Z, queries, kind, unit, coefficients)
        + residual_predictions
    )


def test_training_points_keep_their_images_exactly():
    X, Y = smooth_map(200)
    extension = PCAExtension(weighting=TWO).fit(X, Y)
    np.testing.assert_array_equal(extension.transform(X), Y)


def test_landmarks_approximate_the_process_of_all_points(monkeypatch):
    """With half of the points as landmarks, the error is at most 1.2 times the exact one."""
    X, Y = smooth_map(900)
    X, Y, Q, truth = X[:301], Y[:301], X[301:], Y[301:]
    half_landmarks = partial(TwoLevels, n_landmarks=150)
    monkeypatch.setattr("outsample.placers.candidates.TwoLevels", half_landmarks)

    def error():
        extension = PCAExtension(weighting=Correlated("matern52", 8.0, 1e-8), n_neighbors=301)
        return np.linalg.norm(extension.fit(X, Y).transform(Q) - truth, axis=1).mean()

    exact = error()
    limit_factored_rows(monkeypatch, 300)
    assert error() < 1.2 * exact


def test_landmarks_are_selected_for_many_points(monkeypatch):
    X, Y = smooth_map(120)
    limit_factored_rows(monkeypatch, 100)
    extension = PCAExtension(weighting="correlated", n_neighbors=120).fit(X, Y)
    assert isinstance(extension.weighting_, TwoLevels)
    assert extension.weighting_.shorter in (0.25, 0.5, 1.0, 2.0)
    assert "landmarks" in str(extension.selection_[0].placer)
    again = PCAExtension(weighting=extension.weighting_).fit(X, Y)
    np.testing.assert_array_equal(again.transform(X + 0.01), extension.transform(X + 0.01))
    extension = PCAExtension(weighting="diffusion").fit(X, Y)
    assert extension.weighting_.covariance == "diffusion"
    with pytest.raises(ValueError, match="n_neighbors is 120, all training points"):
        PCAExtension(weighting=Correlated("linear"), n_neighbors=120).fit(X, Y)


def test_memory_is_that_of_the_landmarks():
    X, Y = smooth_map(6000)
    extension = PCAExtension(weighting=TWO)
    extension.fit(X[:100], Y[:100])
    tracemalloc.start()
    extension.fit(X, Y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6  # all pairs would be 288 MB


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"covariance": "linear"}, "covariance"),
        ({"length": 0.0}, "length"),
        ({"nugget": -1.0}, "nugget"),
        ({"shorter": np.nan}, "shorter"),
        ({"n_landmarks": 0}, "n_landmarks"),
        ({"n_neighbors": 2.5}, "n_neighbors"),
    ],
)
def test_settings_outside_their_range(changes, word):
    X, Y = smooth_map(20)
    with pytest.raises(ValueError, match=f"weighting.{word}"):
        PCAExtension(weighting=TwoLevels(**changes)).fit(X, Y)
