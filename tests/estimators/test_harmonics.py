"""Geometric harmonics; the laws they share with the Nyström extension are tested there."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from outsample import GeometricHarmonics


def data(seed, n=50, q=9):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(X @ rng.normal(size=(3, 2))), rng.normal(size=(q, 3))


@given(seed=st.integers(0, 10**6))
def test_harmonics_equal_the_reference(seed):
    X, Y, queries = data(seed)
    ours = GeometricHarmonics(bandwidth=2.0, condition=1e4).fit(X, Y).transform(queries)
    theirs = reference.geometric_harmonics(X, Y, queries, 2.0, 1e4)
    np.testing.assert_allclose(ours, theirs, atol=1e-8)


def test_far_away_is_the_mean():
    X, Y, queries = data(1)
    model = GeometricHarmonics().fit(X, Y)
    np.testing.assert_allclose(
        model.transform(queries * 1e6), np.tile(Y.mean(axis=0), (9, 1)), rtol=1e-12
    )


def test_only_the_projection_is_extended():
    """Of a map orthogonal to the harmonics in use, only the mean is extended."""
    X, Y, queries = data(2)
    model = GeometricHarmonics(bandwidth=20.0, condition=10.0).fit(X, Y)
    values, vectors = np.linalg.eigh(reference.gaussian(X, X, 20.0))
    assert model.n_components_ < 10
    f = vectors[:, :1]
    f = f - f.mean()
    answer = model.fit(X, f).transform(queries)
    kept = vectors[:, values > values[-1] / 10]
    assert np.abs(answer).max() < 10 * np.abs(kept.T @ f).max() + 1e-12


def test_smooth_maps_select_wide_kernels():
    X = np.random.default_rng(3).random((300, 1))
    smooth = GeometricHarmonics().fit(X, np.sin(X))
    oscillating = GeometricHarmonics().fit(X, np.sin(60 * X))
    assert oscillating.bandwidth_ < smooth.bandwidth_


@pytest.mark.parametrize("changes", [{"bandwidth": -1}, {"condition": 0}, {"n_jobs": 0}])
def test_parameters_are_checked(changes):
    X, Y, _ = data(4)
    with pytest.raises(ValueError, match=f"{next(iter(changes))} is"):
        GeometricHarmonics(**changes).fit(X, Y)
