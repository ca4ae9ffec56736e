"""Local polynomials in tangent coordinates: orders 1 and 2."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from maps import random_map
from outsample import InverseDistance, PCAExtension
from outsample._compiled import tangent

WEIGHTINGS = {
    "distance": ("distance", 2.0),
    "power 4": (InverseDistance(4.0), 4.0),
    "tangent": ("tangent", "tangent"),
    "local_tangent": ("local_tangent", "local_tangent"),
}
every_weighting = pytest.mark.parametrize("name", WEIGHTINGS)
# Columns, tangent coordinates and neighbours: t < D <= k; t = D; D > k (the Gram matrix).
SHAPES = {1: [(4, 2, 12), (3, 3, 9), (20, 2, 8)], 2: [(4, 2, 18), (2, 2, 12), (20, 2, 13)]}
CASES = [(order, shape) for order, shapes in SHAPES.items() for shape in shapes]


@pytest.fixture(autouse=True, scope="module")
def quick_fit():
    """Reduce leave-one-out samples, which do not affect the coordinates here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("outsample.placers.selection.FINAL_ROWS", 3)
        yield


def fitted(X, Y, weighting, k, order, t, loss="squared"):
    return PCAExtension(
        weighting=weighting, n_neighbors=k, order=order, loss=loss, tangent_dim=t, curvature=1.5
    ).fit(X, Y)


def expected(problem):
    """Return the reference solution and the relative and absolute tolerance of the kernel.

    The kernel adds a ridge of 1e-11 to normal equations; its effect grows with the square of the
    condition number of the design, and is below 1e-8 of the images up to a condition of 10.
    """
    condition = np.linalg.cond(reference.long_system(*problem)[0])
    allowed = np.abs(problem[0]).max() * max(1e-8, 1e-10 * condition**2)
    return reference.least_squares(*problem)[0], 0, allowed


@pytest.mark.kernels
@every_weighting
@pytest.mark.parametrize(("order", "shape"), CASES)
@given(seed=st.integers(0, 10**6), d=st.integers(1, 3))
def test_the_result_is_the_weighted_fit(name, order, shape, seed, d):
    weighting, reference_weighting = WEIGHTINGS[name]
    D, t, k = shape
    X, Y, queries = random_map(seed, 25, D, d)
    answer = fitted(X, Y, weighting, k, order, t).transform(queries)
    for i, x in enumerate(queries):
        problem = reference.polynomial_problem(
            X, Y, x, reference_weighting, k=k, order=order, t=t, c=1.5
        )
        np.testing.assert_allclose(answer[i], *expected(problem))


@every_weighting
@pytest.mark.parametrize("order", [1, 2])
@given(seed=st.integers(0, 10**6))
def test_absolute_loss_is_minimal(name, order, seed):
    """No polynomial has a sum of Mahalanobis residuals lower by more than 1e-3.

    Reweighting is slow in flat valleys, and stops after 200 steps; measured: at most 2.5e-4.
    """
    weighting, reference_weighting = WEIGHTINGS[name]
    k = 9 if order == 1 else 14
    X, Y, queries = random_map(seed, 25, 4, 2)
    answer = fitted(X, Y, weighting, k, order, 2, "absolute").transform(queries[:2])
    for i, x in enumerate(queries[:2]):
        images, R, taper, design = reference.polynomial_problem(
            X, Y, x, reference_weighting, k=k, order=order, t=2, c=1.5
        )
        lowest = reference.absolute_fit(images, R, taper, design)[1]
        with_value = reference.absolute_fit(images - answer[i], R, taper, design[:, 1:])[1]
        assert with_value <= lowest * (1 + 1e-3)


@pytest.mark.kernels
@every_weighting
def test_an_absolute_plane_ignores_an_outlying_image(name):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (12, 2))
    Y = X @ [[1.0, 2.0], [3.0, 4.0]]
    Y[7] = 1e3
    answer = fitted(X, Y, WEIGHTINGS[name][0], 11, 1, 2, "absolute").transform([[0.1, 0.2]])
    np.testing.assert_allclose(answer, [[0.7, 1.0]], atol=1e-2)


@pytest.mark.kernels
@pytest.mark.parametrize("D", [2, 3, 9, 30])
@pytest.mark.parametrize("t", [1, 2, 3])
@pytest.mark.parametrize("k", [10, 25])
def test_tangent_coordinates(D, t, k):
    rng = np.random.default_rng(D)
    X, x = rng.normal(size=(30, D)), rng.normal(size=D)
    rows, distances = reference.neighbors(X, x, k)
    reach = 1.1 * distances[-1]
    T = np.empty((k, min(t, D)))
    tangent.tangent_coordinates(X, x, rows, distances, reach, T)
    truth = reference.tangent_plane(X, rows, distances, x, t, reach) / distances[-1]
    if t < D:  # axes are determined up to their sign
        T, truth = T * np.sign(T[0]), truth * np.sign(truth[0])
    np.testing.assert_allclose(T, truth, atol=1e-12)


@pytest.mark.kernels
@pytest.mark.parametrize("order", [0, 1, 2])
def test_the_terms_of_a_polynomial(order):
    T = np.random.default_rng(0).normal(size=(5, 3))
    design = np.empty((5, tangent.polynomial_terms(order, 3)))
    tangent.fill_design(T, order, design)
    np.testing.assert_array_equal(design, reference.monomials(T, order))


@pytest.mark.kernels
@pytest.mark.parametrize(("k", "order"), [(1, 0), (2, 0), (3, 0), (4, 1), (6, 1), (7, 2)])
def test_few_neighbors_lower_the_order(k, order):
    """With t = 2 a plane has 3 terms and a quadric 6; the neighbours must outnumber them."""
    X, Y, queries = random_map(5, 25, 2, 2)
    answer = fitted(X, Y, "distance", k, 2, 2).transform(queries)
    for i, x in enumerate(queries):
        problem = reference.polynomial_problem(X, Y, x, 2.0, k=k, order=order, t=2)
        assert problem[-1].shape[1] == (1, 3, 6)[order]
        np.testing.assert_allclose(answer[i], *expected(problem))


@pytest.mark.kernels
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("weighting", ["distance", "tangent"])
@pytest.mark.parametrize("t", [1, 2, 3])
def test_points_on_a_line(order, weighting, t):
    """Directions without variance are excluded; along the line the fit is exact."""
    at = np.random.default_rng(1).uniform(-1, 1, 40)
    X = np.outer(at, [1.0, 2.0, 3.0])
    Y = np.column_stack([2 * at + 1, at**order])
    queries = np.outer([-0.4, 0.13, 0.7], [1.0, 2.0, 3.0])
    answer = fitted(X, Y, weighting, 14, order, t).transform(queries)
    truth = np.column_stack([2 * queries[:, 0] + 1, queries[:, 0] ** order])
    np.testing.assert_allclose(answer, truth, atol=1e-8)


@pytest.mark.kernels
@pytest.mark.parametrize("order", [1, 2])
def test_duplicates_among_the_neighbors(order):
    """A duplicate point counts once, with the mean of its images."""
    X, Y, queries = random_map(2, 25, 2, 2)
    doubled, images = np.vstack([X, X]), np.vstack([Y, Y[::-1]])
    answer = fitted(doubled, images, "distance", 21, order, 2).transform(queries)
    for i, x in enumerate(queries):
        means = (Y + Y[::-1]) / 2
        problem = reference.polynomial_problem(X, means, x, 2.0, k=21, order=order, t=2)
        np.testing.assert_allclose(answer[i], *expected(problem))


@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize("weighting", ["distance", "tangent", "local_tangent"])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("D", [2, 7])
@given(seed=st.integers(0, 10**6))
def test_polynomials_are_reproduced(loss, weighting, order, D, seed):
    """In the plane itself, and on a plane in more dimensions."""
    rng = np.random.default_rng(seed)
    flat, at = rng.uniform(-1, 1, (60, 2)), rng.uniform(-0.8, 0.8, (20, 2))
    frame = np.linalg.qr(rng.normal(size=(D, 2)))[0].T
    A = rng.normal(size=(3 if order == 1 else 6, 3))

    def image(points):
        return reference.monomials(points, order) @ A

    extension = fitted(flat @ frame, image(flat), weighting, 14, order, 2, loss)
    np.testing.assert_allclose(extension.transform(at @ frame), image(at), atol=2e-8)


@pytest.mark.parametrize(("order", "k"), [(0, 12), (1, 12), (2, 18)])
def test_the_error_falls_with_the_power_order_plus_one(order, k):
    """On a curved surface, where the tangent plane is only an estimate."""

    def surface(u):
        return np.column_stack([u, np.sin(2 * u[:, 0]) * np.cos(u[:, 1]), 0.5 * u[:, 1] ** 2])

    def image(u):
        return np.column_stack([np.exp(u[:, 0]), np.sin(3 * u[:, 0] + u[:, 1])])

    rng = np.random.default_rng(0)
    at = rng.uniform(-0.7, 0.7, (300, 2))
    spacings, errors = [], []
    for side in (16, 32, 64, 128):
        axis = np.linspace(-1, 1, side)
        grid = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
        grid = grid + rng.uniform(-0.3, 0.3, grid.shape) * (axis[1] - axis[0])
        extension = fitted(surface(grid), image(grid), "distance", k, order, 2)
        errors.append(np.linalg.norm(extension.transform(surface(at)) - image(at), axis=1).mean())
        spacings.append(axis[1] - axis[0])
    slope = np.polyfit(np.log(spacings), np.log(errors), 1)[0]
    assert slope > order + 1 - 0.15


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("D", [2, 5])
def test_the_result_is_continuous_when_neighbors_change(order, D):
    """Along a line with small steps, a quarter of the step gives less than 0.3 of the jumps."""
    rng = np.random.default_rng(3)
    flat = rng.uniform(-1, 1, (150, 2))
    frame = np.linalg.qr(rng.normal(size=(D, 2)))[0].T
    Y = np.sin(3 * flat) + rng.normal(size=(150, 2))  # rough, so that every neighbour matters
    extension = fitted(flat @ frame, Y, "distance", 16, order, 2)
    jumps = []
    for steps in (4000, 16000):
        walk = np.linspace([-0.5, -0.31], [0.5, 0.37], steps)
        changed = extension.index_.nearest(walk @ frame, 16).indices.reshape(steps, 16)
        assert (np.sort(changed, axis=1)[1:] != np.sort(changed, axis=1)[:-1]).any(axis=1).sum() > 9
        jumps.append(np.abs(np.diff(extension.transform(walk @ frame), axis=0)).max())
    assert jumps[1] < 0.3 * jumps[0]


@pytest.mark.parametrize("order", [1, 2])
def test_the_result_is_continuous_on_a_curved_surface(order):
    """The frame of the tangent plane is tapered as well."""
    rng = np.random.default_rng(4)

    def surface(flat):
        return np.column_stack([flat, np.sin(2 * flat[:, 0]) * np.cos(flat[:, 1])])

    flat = rng.uniform(-1, 1, (300, 2))
    extension = fitted(surface(flat), np.sin(3 * flat), "distance", 24, order, 2)
    jumps = []
    for steps in (4000, 16000):
        walk = surface(np.linspace([-0.5, -0.31], [0.5, 0.37], steps))
        jumps.append(np.abs(np.diff(extension.transform(walk), axis=0)).max())
    assert jumps[1] < 0.3 * jumps[0]


def test_one_outlying_image_has_bounded_influence_on_an_absolute_plane():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (15, 2))
    Y = X @ [[1.0, 2.0], [3.0, 4.0]]
    Y[7] = 1e6
    plane = fitted(X, Y, InverseDistance(0.1), 15, 1, 2, "absolute").transform([[0.0, 0.0]])
    squared = fitted(X, Y, InverseDistance(0.1), 15, 1, 2).transform([[0.0, 0.0]])
    assert np.abs(plane).max() < 1.0 < 1e3 < np.abs(squared).max()
