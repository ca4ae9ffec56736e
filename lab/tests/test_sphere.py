"""The sphere: shapes, known points, and properties stated in the paper."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outsample_lab import sphere as datasets

angle = st.floats(0.0, np.pi)


@given(st.lists(st.tuples(angle, angle), min_size=1, max_size=20))
def test_images_have_norm_one_and_lie_on_the_half_sphere(angles):
    images = datasets.sphere_map(angles)
    assert images.shape == (len(angles), 3)
    np.testing.assert_allclose(np.linalg.norm(images, axis=1), 1.0)
    assert images[:, 1].min() >= 0.0


def test_known_images():
    half = np.pi / 2
    images = datasets.sphere_map([[0, 0], [half, 0], [half, half], [np.pi, 1.0]])
    expected = [[0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, -1]]
    np.testing.assert_allclose(images, expected, atol=1e-15)


@pytest.mark.parametrize("angles", [[0.0, 1.0], [[0.0, 1.0, 2.0]]])
def test_angles_of_another_shape_are_rejected(angles):
    with pytest.raises(ValueError, match=r"shape \(q, 2\)"):
        datasets.sphere_map(angles)


@pytest.mark.parametrize("n_per_axis", [2, 7, 30])
def test_sphere_is_a_grid_with_the_stated_step(n_per_axis):
    data = datasets.sphere(n_per_axis)
    assert data.X.shape == (n_per_axis**2, 2)
    np.testing.assert_array_equal(data.Y, datasets.sphere_map(data.X))
    axis = np.unique(data.X[:, 0])
    np.testing.assert_allclose(np.diff(axis), data.step)
    assert (axis[0], axis[-1]) == (0.0, np.pi)


def test_a_grid_needs_two_points_on_an_axis():
    with pytest.raises(ValueError, match="at least 2, got 1"):
        datasets.sphere(1)


def test_random_angles_follow_the_seed_and_stay_in_the_square():
    first, again, other = (datasets.random_angles(50, seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert first.shape == (50, 2)
    assert first.min() >= 0.0 and first.max() <= np.pi
