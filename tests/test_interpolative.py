"""Randomized interpolative decomposition: its bound, and the rank of Gaussian kernels."""

import numpy as np
import pytest
from scipy.linalg import interpolative as scipy_interpolative

from outsample.kernel.interpolative import interpolative, rank_bound, sampled_columns


def matrix(rng):
    """Random sizes and a random decay of the singular values."""
    m, n = rng.integers(5, 60, size=2)
    k = min(m, n)
    left, right = (np.linalg.qr(rng.normal(size=(size, k)))[0] for size in (m, n))
    return left * 10.0 ** -(rng.uniform(0, 1) * np.arange(k)) @ right.T


def error(A, columns, P):
    return np.linalg.norm(A - A[:, columns] @ P, 2)


@pytest.mark.parametrize("seed", range(100))
def test_the_error_is_within_the_bound_of_algorithm_7_1(seed):
    rng = np.random.default_rng(seed)
    A = matrix(rng)
    m, n = A.shape
    rank = int(rng.integers(1, min(m, n)))
    columns, P = interpolative(A, rank, seed)
    singular = np.linalg.svd(A, compute_uv=False)
    assert error(A, columns, P) <= rank * np.sqrt(m * n) * singular[rank] + 1e-12
    np.testing.assert_array_equal(P[:, columns], np.eye(len(columns)))
    assert len(set(columns)) == len(columns) <= rank


@pytest.mark.parametrize("seed", range(10))
def test_as_good_as_scipy(seed):
    A = matrix(np.random.default_rng(seed))
    rank = max(1, min(A.shape) // 2)
    order, coefficients = scipy_interpolative.interp_decomp(A, rank)
    theirs = scipy_interpolative.reconstruct_matrix_from_id(A[:, order[:rank]], order, coefficients)
    ours = error(A, *interpolative(A, rank, seed))
    assert ours <= 5 * np.linalg.norm(A - theirs, 2) + 1e-12


def test_low_rank_is_found_and_zero_survives():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 30))
    columns, P = interpolative(A, 10)
    assert len(columns) == 3
    np.testing.assert_allclose(A[:, columns] @ P, A, atol=1e-12)
    columns, P = interpolative(np.zeros((4, 5)), 2)
    assert len(columns) == 1 and not (np.zeros((4, 1)) @ P).any()
    with pytest.raises(ValueError, match="rank is 5"):
        interpolative(np.zeros((4, 9)), 5)


def test_the_same_seed_gives_the_same_columns():
    A = matrix(np.random.default_rng(3))
    np.testing.assert_array_equal(interpolative(A, 4, 7)[0], interpolative(A, 4, 7)[0])


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
    assert rank <= 2 * bound  # never far off
    if D == 2 and delta == 1e-1:  # boxes of many wavelengths, a mild delta: what it is made for
        assert rank <= bound


def test_rank_bound_is_capped_and_flat_directions_are_free():
    assert rank_bound(np.ones(800), 1e-9, 1e-3, 123) == 123
    assert rank_bound([1.0, 0.0, 0.0], 0.1, 0.1, 99) == rank_bound([1.0], 0.1, 0.1, 99)


def test_adaptive_rank_follows_the_kernel():
    K = kernel(np.random.default_rng(2).random((300, 1)), 0.001)
    few, many = sampled_columns(K, 1e-1, 300), sampled_columns(K, 1e-8, 300)
    assert len(few) < len(many) < 300
    # A bound that is too low does no harm.
    assert abs(len(sampled_columns(K, 1e-8, 5)) - len(many)) < 5
    B = K[:, many]
    projected = B @ np.linalg.lstsq(B, K, rcond=None)[0]
    assert np.abs(projected - K).max() < 1e-5
    assert len(sampled_columns(np.eye(200), 1e-3, 200)) == 200
