"""Gaussian kernels: twins, limits, bandwidth rules, memory."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import reference
from outsample.kernel import affinity


@pytest.fixture
def points():
    rng = np.random.default_rng(0)
    return rng.normal(size=(40, 3)), rng.normal(size=(9, 3)), rng.normal(size=(40, 2))


@pytest.mark.kernels
def test_gaussian_is_its_twin(points):
    X, Q, _ = points
    G = affinity.gaussian(X, 0.7)
    np.testing.assert_allclose(G, reference.gaussian(X, X, 0.7), rtol=1e-12)
    np.testing.assert_array_equal(G, G.T)
    np.testing.assert_array_equal(np.diag(G), 1)
    np.testing.assert_allclose(
        affinity.cross_gaussian(Q, X, 0.7), reference.gaussian(Q, X, 0.7), rtol=1e-12
    )


@pytest.mark.kernels
@pytest.mark.parametrize("normalize", [False, True])
def test_expansion_is_its_twin(points, normalize):
    X, Q, c = points
    ours = affinity.expansion(X, Q, 0.7, c, normalize=normalize)
    np.testing.assert_allclose(
        ours, reference.expansion(X, Q, 0.7, c, normalize), rtol=1e-11, atol=1e-14
    )
    for i in range(len(Q)):
        one = affinity.expansion(X, Q[i : i + 1], 0.7, c, normalize=normalize)
        np.testing.assert_array_equal(one[0], ours[i])


def test_sparse_points_and_threads_change_nothing(points):
    X, Q, c = points
    Q = np.tile(Q, (30, 1))
    plain = affinity.expansion(X, Q, 0.7, c)
    rows = sparse.csr_matrix(X), sparse.csr_matrix(Q)
    np.testing.assert_allclose(affinity.expansion(*rows, 0.7, c), plain, rtol=1e-12)
    np.testing.assert_array_equal(affinity.expansion(X, Q, 0.7, c, n_jobs=2), plain)


@pytest.mark.kernels
@pytest.mark.parametrize("away", [1e2, 1e6, 1e120])
def test_far_away_the_quotient_is_the_nearest_coefficient(points, away):
    X, _, c = points
    Q = np.array([[away, 0.0, 0.0]])
    near = np.argmax(X[:, 0])
    answer = affinity.expansion(X, Q, 0.1, c, normalize=True)
    assert np.isfinite(answer).all()
    if away < 1e10:
        np.testing.assert_allclose(answer[0], c[near], atol=1e-6)
    np.testing.assert_array_equal(affinity.expansion(X, Q, 0.1, c), 0)


@pytest.mark.kernels
def test_median_nearest():
    X = np.random.default_rng(1).normal(size=(100, 2))
    apart = np.sort(reference.pairwise(X, X), axis=1)
    assert affinity.median_nearest(X, 7) == pytest.approx(np.median(apart[:, 7]))
    assert affinity.median_nearest(X[:3], 7) == pytest.approx(
        np.median(np.sort(reference.pairwise(X[:3], X[:3]), axis=1)[:, 2])
    )
    assert affinity.median_nearest(np.ones((5, 2)), 2) == 1
    mostly = np.zeros((50, 1))
    mostly[-1] = 3
    assert affinity.median_nearest(mostly, 2) == 3


def test_the_slope_rule_finds_the_steepest_bandwidth():
    X = np.random.default_rng(2).normal(size=(300, 2))
    squares = affinity.squared_distance_sample(X)
    found = affinity.slope_bandwidth(squares)
    grid = 2.0 ** np.arange(-16, 8, 0.05)
    sums = np.log([np.exp(-squares / epsilon).sum() for epsilon in grid])
    steepest = grid[np.argmax(np.gradient(sums, np.log(grid)))]
    assert abs(np.log2(found / steepest)) < 0.26
    scaled = affinity.slope_bandwidth(squares * 16)
    assert scaled == pytest.approx(16 * found)
    assert affinity.slope_bandwidth(np.zeros((3, 3))) == 1


def test_memory_is_asked_for_first(monkeypatch):
    monkeypatch.setattr(affinity, "available_memory", lambda: 16e9)
    with pytest.raises(MemoryError, match=r"n = 200,000 points needs 320 GB.*use fewer"):
        affinity.require_memory(200_000, "The kernel", "use fewer.")
    affinity.require_memory(40_000, "The kernel", "use fewer.")
    with pytest.raises(MemoryError):
        affinity.require_memory(40_000, "The kernel", "use fewer.", arrays=2)
    monkeypatch.setattr(affinity, "available_memory", lambda: None)
    affinity.require_memory(10**9, "The kernel", "use fewer.")


def test_available_memory_without_proc(monkeypatch):
    def closed(*args):
        raise OSError

    assert affinity.available_memory() > 1e6
    monkeypatch.setattr("builtins.open", closed)
    assert affinity.available_memory() > 1e6
    monkeypatch.setattr(affinity.os, "sysconf", closed)
    assert affinity.available_memory() is None


def test_scaling_keeps_points_in_range():
    X = np.array([[1e-200, -3e-200]])
    scale = affinity.unit_scale(X)
    assert 0.5 <= np.abs(X * scale).max() < 1
    assert np.isfinite(affinity.scaled(np.array([[1e300, -1e300]]), scale)).all()
    assert np.isfinite(affinity.scaled(sparse.csr_matrix([[1e300, 0.0]]), scale).data).all()
    assert affinity.unit_scale(np.zeros((2, 2))) == 1
