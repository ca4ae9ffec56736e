"""Units of points and maps: scaling by powers of two and back."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from outsample.spectral import units
from outsample.spectral.units import MapUnit, PointUnit, exact_mean


def test_scaling_keeps_points_in_range():
    X = np.array([[1e-200, -3e-200]])
    scale = units.unit_scale(X)
    assert 0.5 <= np.abs(X * scale).max() < 1
    assert np.isfinite(units.scaled(np.array([[1e300, -1e300]]), scale)).all()
    assert np.isfinite(units.scaled(sparse.csr_matrix([[1e300, 0.0]]), scale).data).all()
    assert units.unit_scale(np.zeros((2, 2))) == 1


@pytest.mark.parametrize("size", [1e-100, 1.0, 1e100])
def test_units_round_nothing(size):
    X = size * np.random.default_rng(0).normal(size=(20, 3))
    unit = PointUnit.of(X)
    np.testing.assert_array_equal(unit.points(X) / unit.scale, X)
    assert unit.given(unit.square(3.0 * size**2)) == 3.0 * size**2
    for center in (X.mean(axis=0), exact_mean(X)):
        map_unit = MapUnit.of(X, center)
        images = map_unit.images(X)
        assert 0.5 <= np.abs(images).max() < 1
        np.testing.assert_allclose(map_unit.back(images), X, rtol=1e-15, atol=1e-15 * size)


def test_the_exact_mean_of_a_constant_is_the_constant():
    Y = np.full((7, 2), 0.1)
    np.testing.assert_array_equal(exact_mean(Y), [0.1, 0.1])
    np.testing.assert_array_equal(MapUnit.of(Y, exact_mean(Y)).images(Y), 0)
