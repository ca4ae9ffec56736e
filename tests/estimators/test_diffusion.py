"""Diffusion maps: known spectra, order, determinism, extension."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import iv, ive, spherical_in

import reference
from outsample import DiffusionMaps


def circle(angle):
    return np.column_stack([np.cos(angle), np.sin(angle)])


def sphere(n, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def test_the_spectrum_of_a_circle():
    """Of ``exp(-(2 - 2 cos) / eps)``: modified Bessel functions; small eps: ``k^2 eps / 4``."""
    X = circle(np.linspace(0, 2 * np.pi, 200, endpoint=False) + 0.1)
    for epsilon in (1.0, 0.1):
        maps = DiffusionMaps(n_components=6, bandwidth=epsilon).fit(X)
        orders = np.array([1, 1, 2, 2, 3, 3])
        expected = ive(orders, 2 / epsilon) / ive(0, 2 / epsilon)
        np.testing.assert_allclose(maps.eigenvalues_, expected, rtol=1e-9)
    maps = DiffusionMaps(n_components=6, bandwidth=0.02).fit(X)
    np.testing.assert_allclose(-np.log(maps.eigenvalues_), orders**2 * 0.02 / 4, rtol=0.03)
    np.testing.assert_allclose(np.linalg.norm(maps.embedding_[:, :2], axis=1).std(), 0, atol=1e-9)


def test_the_spectrum_of_a_sphere():
    """Multiplicities 3 and 5, eigenvalues of modified spherical Bessel functions."""
    maps = DiffusionMaps(n_components=8, bandwidth=0.3).fit(sphere(3000))
    expected = spherical_in([1] * 3 + [2] * 5, 2 / 0.3) / spherical_in(0, 2 / 0.3)
    np.testing.assert_allclose(maps.eigenvalues_, expected, rtol=0.04)
    laplacian = -np.log(maps.eigenvalues_)
    assert laplacian[:3].max() < 0.5 * laplacian[3:].min()
    assert np.ptp(laplacian[3:]) < 0.2 * laplacian[3:].mean()


@pytest.mark.parametrize("alpha, t", [(0.0, 1), (0.5, 2), (1.0, 0), (1.0, 0.5)])
def test_the_map_equals_the_reference(alpha, t):
    X = np.random.default_rng(0).normal(size=(50, 3)) * [3, 2, 1]
    maps = DiffusionMaps(n_components=3, bandwidth=4.0, alpha=alpha, t=t).fit(X)
    embedding, values = reference.diffusion_map(X, 4.0, alpha, t, 3)
    np.testing.assert_allclose(maps.eigenvalues_, values, rtol=1e-9)
    np.testing.assert_allclose(maps.embedding_, embedding, atol=1e-8)


def test_density_does_not_matter_with_alpha_1():
    rng = np.random.default_rng(1)
    X = circle(2 * np.pi * rng.beta(2, 2, 1500))
    maps = {a: DiffusionMaps(bandwidth=0.1, alpha=a).fit(X) for a in (0.0, 1.0)}
    round_ = {a: np.linalg.norm(m.transform(circle(np.arange(7))) / m.eigenvalues_, axis=1)
              for a, m in maps.items()}  # fmt: skip
    assert round_[1.0].std() / round_[1.0].mean() < 0.2 < round_[0.0].std() / round_[0.0].mean()


@pytest.mark.parametrize("n_neighbors", [None, 12])
def test_training_points_keep_their_coordinates(n_neighbors):
    X = sphere(600, seed=2)
    for bandwidth in ("auto", 0.05):
        maps = DiffusionMaps(n_components=4, n_neighbors=n_neighbors, t=2, bandwidth=bandwidth)
        embedding = maps.fit_transform(X)
        np.testing.assert_array_equal(embedding, maps.embedding_)
        np.testing.assert_allclose(maps.transform(X), embedding, atol=1e-8)
        # The formula itself reproduces them, except where the last neighbour changes.
        differences = np.abs(maps.transform(X + 1e-9) - embedding).max(axis=1)
        assert np.quantile(differences, 0.6) < 1e-6 and differences.max() < 0.3
    assert maps.n_neighbors_ == n_neighbors


def test_ties_at_the_last_neighbor():
    grid = np.stack(np.meshgrid(np.arange(20.0), np.arange(15.0)), -1).reshape(-1, 2)
    for points in (grid, np.repeat(grid[:40], 3, axis=0)):
        maps = DiffusionMaps(n_neighbors=3).fit(points)
        np.testing.assert_allclose(maps.transform(points), maps.embedding_, atol=1e-8)


@pytest.mark.parametrize("n_neighbors", [None, 15])
def test_the_order_of_the_rows_does_not_matter(n_neighbors):
    X = np.random.default_rng(3).normal(size=(500, 3)) * [3, 2, 1]
    order = np.random.default_rng(4).permutation(len(X))
    maps = DiffusionMaps(n_components=3, n_neighbors=n_neighbors)
    embedding = maps.fit_transform(X)
    np.testing.assert_array_equal(embedding, maps.fit_transform(X))
    np.testing.assert_allclose(maps.fit_transform(X[order]), embedding[order], atol=1e-8)
    largest = np.argmax(np.abs(embedding), axis=0)
    assert (embedding[largest, range(3)] > 0).all()


def test_a_sparse_kernel_approximates_the_dense_one(monkeypatch):
    X = sphere(800, seed=5) * [1.0, 1.5, 2.0]
    dense = DiffusionMaps(n_components=2, bandwidth=0.05).fit(X)
    monkeypatch.setattr("outsample.spectral.fixed_walk.ALL_PAIRS_ROWS", 500)
    monkeypatch.setattr("outsample.spectral.fixed_walk.SPARSE_NEIGHBORS", 200)
    thin = DiffusionMaps(n_components=2, bandwidth=0.05).fit(X)
    assert thin.n_neighbors_ == 200
    np.testing.assert_allclose(thin.eigenvalues_, dense.eigenvalues_, rtol=1e-3)
    np.testing.assert_allclose(thin.embedding_, dense.embedding_, atol=0.02)


@pytest.mark.parametrize("n_neighbors", [None, 5])
def test_separate_components_give_a_warning(n_neighbors):
    X = np.random.default_rng(6).random((60, 2))
    X[30:] += 100
    with pytest.warns(UserWarning, match="2 separate parts, and the leading") as caught:
        maps = DiffusionMaps(n_neighbors=n_neighbors, bandwidth=0.1).fit(X)
    assert caught[0].filename == __file__
    assert np.isfinite(maps.transform(X)).all()


def test_coordinates_without_an_eigenvalue_are_0():
    maps = DiffusionMaps(n_components=3, t=0).fit(np.ones((9, 2)))
    np.testing.assert_array_equal(maps.eigenvalues_, 0)
    np.testing.assert_array_equal(maps.embedding_, 0)
    np.testing.assert_array_equal(maps.transform([[5.0, 1e300]]), 0)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"n_components": 0}, "n_components is 0"),
        ({"n_components": "all"}, "n_components is 'all', but must be 'auto'"),
        ({"n_components": 20}, "20 points have at most 19"),
        ({"bandwidth": -1.0}, "bandwidth is -1.0"),
        ({"bandwidth": "wide"}, "bandwidth is 'wide', but must be 'auto'"),
        ({"alpha": 2.0}, "alpha is 2.0"),
        ({"t": -1}, "t is -1"),
        ({"n_neighbors": 20}, "n_neighbors is 20"),
        ({"n_jobs": 0}, "n_jobs is 0"),
    ],
)
def test_parameters_are_checked(changes, message):
    with pytest.raises(ValueError, match=message):
        DiffusionMaps(**changes).fit(np.random.default_rng(0).random((20, 2)))


def test_eigenfunctions_of_the_circle_are_extended_off_the_samples():
    angle = np.linspace(0, 2 * np.pi, 100, endpoint=False)
    maps = DiffusionMaps(n_components=4, bandwidth=0.3, t=0).fit(circle(angle))
    new = np.linspace(0.01, 6, 37)
    for pair, order in (([0, 1], 1), ([2, 3], 2)):
        waves = np.column_stack([np.cos(order * angle), np.sin(order * angle)])
        turn = np.linalg.lstsq(waves, maps.embedding_[:, pair], rcond=None)[0]
        expected = np.column_stack([np.cos(order * new), np.sin(order * new)]) @ turn
        np.testing.assert_allclose(maps.transform(circle(new))[:, pair], expected, atol=1e-8)
    assert iv(1, 2 / 0.3) / iv(0, 2 / 0.3) == pytest.approx(maps.eigenvalues_[0])


@pytest.mark.filterwarnings("ignore:The points fall into")
@pytest.mark.parametrize(
    "parameters",
    [{"n_components": 2}, {"n_components": 3}, {"n_components": 2, "n_neighbors": 10}],
    ids=str,
)
def test_heavy_tails_get_the_requested_number_of_columns(parameters):
    """Eigenvalues cluster at 1, and LAPACK's partial solver returns too few of them."""
    for seed in range(300):
        X = np.exp(3 * np.random.default_rng(seed).normal(size=(100, 3)))
        maps = DiffusionMaps(**parameters).fit(X)
        shape = (100, parameters["n_components"])
        assert maps.embedding_.shape == maps.transform(X).shape == shape, seed
        assert np.isfinite(maps.embedding_).all(), seed
        assert len(maps.eigenvalues_) == parameters["n_components"], seed
