"""Gaussian kernels: reference and limits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import reference
from outsample.spectral import affinity


@pytest.fixture
def points():
    rng = np.random.default_rng(0)
    return rng.normal(size=(40, 3)), rng.normal(size=(9, 3)), rng.normal(size=(40, 2))


@pytest.mark.kernels
def test_gaussian_equals_the_reference(points):
    X, Q, _ = points
    G = affinity.gaussian(X, 0.7)
    np.testing.assert_allclose(G, reference.gaussian(X, X, 0.7), rtol=1e-12)
    np.testing.assert_array_equal(G, G.T)
    np.testing.assert_array_equal(np.diag(G), 1)
    G = affinity.gaussian_of(affinity.distances(X, Q), 0.7)
    np.testing.assert_allclose(G, reference.gaussian(Q, X, 0.7), rtol=1e-12)


@pytest.mark.kernels
@pytest.mark.parametrize("normalize", [False, True])
def test_expansion_equals_the_reference(points, normalize):
    X, Q, c = points
    ours = affinity.expansion(X, Q, 0.7, c, normalize=normalize)
    np.testing.assert_allclose(
        ours, reference.expansion(X, Q, 0.7, c, normalize), rtol=1e-11, atol=1e-14
    )
    for i in range(len(Q)):
        single = affinity.expansion(X, Q[i : i + 1], 0.7, c, normalize=normalize)
        np.testing.assert_array_equal(single[0], ours[i])


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
