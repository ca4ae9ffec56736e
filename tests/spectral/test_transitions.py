"""The expansion in transition probabilities: reference, known values, and far points."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from outsample import (
    Correlated,
    Diffusion,
    DiffusionMaps,
    GaussianDistance,
    NystroemExtension,
    PCAExtension,
)
from outsample.placers.leave_one_out import LeftOut, mean_error, typical_error
from outsample.placers.problem import Part
from outsample.points import map_size

seeds = st.integers(0, 10**6)


def random_map(seed, n=40, q=12):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(X @ rng.normal(size=(3, 2))), 1.5 * rng.normal(size=(q, 3))


@given(seed=seeds, length=st.floats(0.3, 1.5))
@pytest.mark.kernels
def test_it_equals_the_reference(seed, length):
    X, Y, queries = random_map(seed)
    answer = PCAExtension(weighting=Diffusion(length, 1e-6)).fit(X, Y).transform(queries)
    expected = reference.diffusion(X, Y, queries, length * reference.typical_unit(X), 1e-6)
    reach = np.linalg.norm(Y - Y.mean(axis=0), axis=1).max()
    inside = np.linalg.norm(expected - Y.mean(axis=0), axis=1) < 2 * reach
    np.testing.assert_allclose(answer[inside], expected[inside], atol=1e-7)


@given(seed=seeds, length=st.floats(0.2, 1.5))
def test_leave_one_out_is_solving_without_the_row(seed, length):
    X, Y, _ = random_map(seed)
    unit = reference.typical_unit(X)
    all_rows = np.arange(40)
    fitted = Diffusion(length, 1e-10).fit(Part(X, Y, unit, None), all_rows)
    expected = Y - reference.diffusion_left_out(X, Y, length * unit, 1e-10)
    residuals = Y - fitted.leave_out(all_rows, None)
    np.testing.assert_allclose(residuals, expected, rtol=1e-5, atol=1e-5)


@given(seed=seeds)
@pytest.mark.kernels
def test_gaussian_distances_equal_the_reference(seed):
    X, Y, queries = random_map(seed)
    extension = PCAExtension(
        weighting=GaussianDistance(0.6), n_neighbors=9, order=0, loss="squared"
    ).fit(X, Y)
    length = 0.6 * reference.typical_unit(X)
    for x, answer in zip(queries, extension.transform(queries), strict=True):
        expected = reference.gaussian_distance_mean(X, Y, x, length, 9)
        np.testing.assert_allclose(answer, expected, rtol=1e-10, atol=1e-12)


def test_waves_on_a_circle():
    angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 300)
    new = np.random.default_rng(1).uniform(0, 2 * np.pi, 100)
    X, queries = (np.column_stack([np.cos(a), np.sin(a)]) for a in (angle, new))
    Y, truth = (np.column_stack([np.cos(3 * a), np.sin(5 * a)]) for a in (angle, new))
    extension = PCAExtension(weighting="diffusion").fit(X, Y)
    assert np.abs(extension.transform(queries) - truth).max() < 1e-5
    assert extension.loo_error_ < 1e-5
    # The result is continuous at training points.
    np.testing.assert_allclose(extension.transform(X + 1e-9), Y, atol=1e-5)


@pytest.mark.parametrize("length", [0.5, 1.0, 2.0, 4.0, 8.0])
def test_far_from_the_data_it_stays_near_the_map(length):
    X, Y, _ = random_map(2, n=200)
    extension = PCAExtension(weighting=Diffusion(length)).fit(X, Y)
    directions = np.random.default_rng(3).normal(size=(100, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    center, diameter = Y.mean(axis=0), 2 * np.linalg.norm(X, axis=1).max()
    reach = np.linalg.norm(Y - center, axis=1).max()
    for far in (0.3, 1, 3, 10, 100):
        placed = extension.transform(far * diameter * directions)
        assert (np.linalg.norm(placed - center, axis=1) <= 2 * reach * (1 + 1e-12)).all()
        if far >= 10:  # here the expansion is a mean of images
            assert ((placed >= Y.min(axis=0) - 1e-12) & (placed <= Y.max(axis=0) + 1e-12)).all()
    beyond = 1e9 * diameter * directions
    nearest = Y[extension.distinct_.rows][extension.index_.nearest(beyond, 1).indices]
    assert np.isclose(extension.transform(beyond), nearest).all(axis=1).mean() > 0.9


def test_one_outlier_does_not_determine_the_selection():
    """The first model is better on all rows but one: in the typical error, not in the mean."""
    Y, rows = np.random.default_rng(0).normal(size=(100, 2)), np.arange(100)
    first, second = np.full((100, 2), 1e-4), np.full((100, 2), 1e-2)
    first[0] = 5.0
    errors = [LeftOut(rows, None, Y + shift) for shift in (first, second)]
    assert mean_error(Y, errors[0]) > 3 * mean_error(Y, errors[1])
    assert 3 * typical_error(first) < typical_error(second)
    plain = (np.sqrt(np.linalg.norm(second, axis=1)).mean()) ** 2 / map_size(Y)
    assert typical_error(second / map_size(Y)) == pytest.approx(plain)


def test_a_diffusion_map_is_extended_as_well_as_by_nystroem():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 2))  # with some isolated points
    Y = DiffusionMaps(n_components=3, bandwidth=1.0).fit_transform(X)
    hidden = np.arange(0, 400, 4)
    training = np.setdiff1d(np.arange(400), hidden)
    extension = PCAExtension().fit(X[training], Y[training])

    def error(method):
        return np.linalg.norm(method.transform(X[hidden]) - Y[hidden], axis=1).mean()

    assert isinstance(extension.weighting_, Diffusion)
    tried = {type(trial.placer.weighting) for trial in extension.selection_}
    assert {Diffusion, Correlated, GaussianDistance} <= tried
    assert error(extension) <= 1.1 * error(NystroemExtension().fit(X[training], Y[training]))


def test_a_larger_ridge_where_the_kernel_is_singular():
    X, Y, queries = random_map(5)
    doubled, images = np.vstack([X, X]), np.vstack([Y, Y])
    answer = PCAExtension(weighting=Diffusion(50.0, 0.0)).fit(doubled, images).transform(queries)
    assert np.isfinite(answer).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weighting": Diffusion(0.0)}, "weighting.length"),
        ({"weighting": Diffusion(1.0, -1.0)}, "weighting.ridge"),
        ({"weighting": GaussianDistance(-1.0)}, "weighting.length"),
        ({"weighting": "diffusion", "n_neighbors": 5}, "uses all training points"),
        ({"weighting": "diffusion", "order": 1}, "uses all training points"),
        ({"weighting": "diffusion", "loss": "absolute"}, "uses all training points"),
        ({"weighting": Diffusion(), "radius": 1.0}, "uses all training points"),
    ],
)
def test_parameters_are_checked(changes, message):
    X, Y, _ = random_map(6)
    with pytest.raises(ValueError, match=message):
        PCAExtension(**changes).fit(X, Y)
