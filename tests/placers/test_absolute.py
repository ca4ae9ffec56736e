"""Absolute loss: the weighted geometric median of the neighbours' images."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from maps import between, random_map, torn
from outsample import InverseDistance, PCAExtension

WEIGHTINGS = {
    "distance": ("distance", 2.0),
    "power 4": (InverseDistance(4.0), 4.0),
    "power 12": (InverseDistance(12.0), 12.0),
    "tangent": ("tangent", "tangent"),
    "local_tangent": ("local_tangent", "local_tangent"),
}
every_weighting = pytest.mark.parametrize("name", WEIGHTINGS)


@pytest.fixture(autouse=True, scope="module")
def quick_fit():
    """Reduce leave-one-out samples, which do not affect the coordinates here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("outsample.placers.selection.FINAL_ROWS", 3)
        yield


def absolute(weighting, k):
    return PCAExtension(
        weighting=weighting, n_neighbors=k, order=0, loss="absolute", curvature=1.5, tangent_dim=1
    )


def reference_problem(X, Y, x, weighting, k):
    """Return images of the neighbours and roots of their weights, with a largest weight near 1."""
    indices, distances = reference.neighbors(X, x, k)
    R = reference.roots(reference.settings_blocks(X, Y, indices, distances, x, weighting, 1.5))
    return Y[indices], R / np.abs(R).max()


@pytest.mark.kernels
@every_weighting
@given(seed=st.integers(0, 10**6), d=st.integers(1, 9), k=st.integers(1, 12))
def test_the_result_is_the_geometric_median(name, seed, d, k):
    weighting, reference_weighting = WEIGHTINGS[name]
    X, Y, queries = random_map(seed, 25, 3, d)
    answer = absolute(weighting, k).fit(X, Y).transform(queries)
    for i, x in enumerate(queries):
        images, R = reference_problem(X, Y, x, reference_weighting, k)
        median = reference.geometric_median(images, R)
        np.testing.assert_allclose(answer[i], median, rtol=1e-8, atol=1e-8)


@pytest.mark.kernels
@every_weighting
def test_duplicate_images(name):
    weighting, reference_weighting = WEIGHTINGS[name]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    Y = rng.normal(size=(5, 2))[rng.integers(0, 5, 30)]  # five positions with many points each
    queries = rng.normal(size=(20, 3))
    answer = absolute(weighting, 9).fit(X, Y).transform(queries)
    for i, x in enumerate(queries):
        images, R = reference_problem(X, Y, x, reference_weighting, 9)
        ones = np.ones((9, 1))
        lowest = min(
            reference.absolute_objective(images, R, ones[:, 0], ones, m[None])
            for m in [*images, reference.absolute_fit(images, R, ones[:, 0], ones)[0][0]]
        )
        objective = reference.absolute_objective(images, R, ones[:, 0], ones, answer[i][None])
        assert objective <= lowest * (1 + 1e-9)


@pytest.mark.kernels
def test_images_on_a_line_and_all_equal():
    X = np.arange(8.0)[:, None]
    line = np.outer([0.0, 1, 2, 3, 40, 50, 60, 70], [3.0, 4.0])
    answer = absolute(lambda r: np.ones_like(r), 7).fit(X, line).transform([[3.4]])[0]
    np.testing.assert_allclose(answer, line[3], atol=1e-12)  # the middle one of rows 0 to 6
    np.testing.assert_array_equal(
        absolute("distance", 5).fit(X, np.ones((8, 2))).transform([[2.3]]), [[1.0, 1.0]]
    )


@given(seed=st.integers(0, 10**6))
def test_at_a_discontinuity_a_median_is_on_one_side_and_a_mean_between(seed):
    X, Y = torn(seed)
    rng = np.random.default_rng(seed)
    queries = np.column_stack([rng.uniform(0.49, 0.51, 50), rng.random(50)])
    steep = InverseDistance(4.0)
    median = absolute(steep, 9).fit(X, Y).transform(queries)
    mean = PCAExtension(weighting=steep, n_neighbors=9, order=0, loss="squared").fit(X, Y)
    assert between(mean.transform(queries)).mean() > 0.5
    assert between(median).mean() < 0.2
    assert between(median).sum() < between(mean.transform(queries)).sum()


@pytest.mark.parametrize("name", ["distance", "power 4", "power 12"])
@given(seed=st.integers(0, 10**6))
def test_one_outlying_image_has_bounded_influence(name, seed):
    """Moving one of nine images far away moves the mean but not the median.

    Tangent weights are excluded: their covariance includes the outlying image.
    """
    rng = np.random.default_rng(seed)
    angles = np.linspace(0, 2 * np.pi, 9, endpoint=False)
    X = np.column_stack([np.cos(angles), np.sin(angles)])  # at about equal distances from the query
    X = X * (1 + 0.01 * rng.random((9, 1)))
    Y = rng.normal(size=(9, 2))
    for far in (1e2, 1e4, 1e8):
        with_outlier = Y.copy()
        with_outlier[4] = far
        median = absolute(WEIGHTINGS[name][0], 9).fit(X, with_outlier)
        assert np.linalg.norm(median.transform([[0.0, 0.0]])) < 10 * np.linalg.norm(Y, axis=1).max()
        mean = median.set_params(loss="squared").fit(X, with_outlier)
        assert np.linalg.norm(mean.transform([[0.0, 0.0]])) > 0.05 * far


@given(seed=st.integers(0, 10**6), d=st.integers(1, 4))
def test_the_median_of_one_or_two_neighbors(seed, d):
    X, Y, queries = random_map(seed, 25, 3, d)
    for k in (1, 2):  # with two neighbours the nearer one is the median
        answer = absolute("distance", k).fit(X, Y).transform(queries)
        nearest = [reference.neighbors(X, x, 1)[0][0] for x in queries]
        np.testing.assert_array_equal(answer, Y[nearest])
