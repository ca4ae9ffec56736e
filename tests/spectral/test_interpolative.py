"""Randomized interpolative decomposition: its bound, and the rank of Gaussian kernels."""

import numpy as np
import pytest
from scipy.linalg import interpolative as scipy_interpolative

from outsample.spectral.interpolative import rank_bound, sampled_columns


def matrix(rng):
    """Return a matrix of random size with a random decay of singular values."""
    m, n = rng.integers(5, 60, size=2)
    k = min(m, n)
    left, right = (np.linalg.qr(rng.normal(size=(size, k)))[0] for size in (m, n))
    return left * 10.0 ** -(rng.uniform(0, 1) * np.arange(k)) @ right.T


def error(A, columns):
    """Return the norm of the part of a matrix outside the span of these columns."""
    B = A[:, columns]
    return np.linalg.norm(A - B @ np.linalg.lstsq(B, A, rcond=None)[0], 2)


@pytest.mark.parametrize("seed", range(100))
def test_the_error_is_within_the_bound_of_algorithm_7_1(seed):
    rng = np.random.default_rng(seed)
    A = matrix(rng)
    m, n = A.shape
    delta, expected = 10.0 ** -rng.uniform(0.5, 6), int(rng.integers(1, min(m, n)))
    columns = sampled_columns(A, delta, expected, seed)
    rank = len(columns)
    following = np.append(np.linalg.svd(A, compute_uv=False), 0.0)[rank]
    assert error(A, columns) <= rank * np.sqrt(m * n) * following + 1e-12
    assert len(set(columns)) == rank


@pytest.mark.parametrize("seed", range(10))
def test_as_good_as_scipy(seed):
    A = matrix(np.random.default_rng(seed))
    columns = sampled_columns(A, 1e-2, min(A.shape) // 2, seed)
    order, _ = scipy_interpolative.interp_decomp(A, len(columns))
    assert error(A, columns) <= 5 * error(A, order[: len(columns)]) + 1e-12


def test_low_rank_is_found_and_zero_survives():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 30))
    assert len(sampled_columns(A, 1e-10, 10)) == 3
    assert len(sampled_columns(np.zeros((4, 5)), 1e-10, 2)) == 1


def test_the_same_seed_gives_the_same_columns():
    A = matrix(np.random.default_rng(3))
    np.testing.assert_array_equal(*(sampled_columns(A, 1e-2, 4, 7) for _ in range(2)))


def kernel(X, epsilon):
    return np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / epsilon)


@pytest.mark.parametrize("D", [1, 2])
@pytest.mark.parametrize("epsilon", [0.001, 0.01, 0.1, 1.0])
@pytest.mark.parametrize("delta", [1e-1, 1e-3, 1e-6])
def test_rank_bound_with_its_margin_bounds_the_numerical_rank(D, epsilon, delta):
    X = np.random.default_rng(1).random((400, D)) * [1.0, 0.5][:D]
    singular = np.linalg.svd(kernel(X, epsilon), compute_uv=False)
    rank = int((singular > delta * singular[0]).sum())
    bound = rank_bound(np.ptp(X, axis=0), epsilon, delta, len(X))
    assert rank <= 2 * bound  # a factor of two is sufficient
    if D == 2 and delta == 1e-1:  # many wavelengths and a moderate delta
        assert rank <= bound


def test_rank_bound_is_capped_and_flat_directions_are_free():
    assert rank_bound(np.ones(800), 1e-9, 1e-3, 123) == 123
    assert rank_bound([1.0, 0.0, 0.0], 0.1, 0.1, 99) == rank_bound([1.0], 0.1, 0.1, 99)


def test_adaptive_rank_follows_the_kernel():
    K = kernel(np.random.default_rng(2).random((300, 1)), 0.001)
    coarse, fine = sampled_columns(K, 1e-1, 300), sampled_columns(K, 1e-8, 300)
    assert len(coarse) < len(fine) < 300
    # A bound that is too low gives the same rank.
    assert abs(len(sampled_columns(K, 1e-8, 5)) - len(fine)) < 5
    B = K[:, fine]
    projected = B @ np.linalg.lstsq(B, K, rcond=None)[0]
    assert np.abs(projected - K).max() < 1e-5
    assert len(sampled_columns(np.eye(200), 1e-3, 200)) == 200
