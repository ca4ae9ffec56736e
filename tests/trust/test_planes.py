"""Distances from local planes, compared with the reference and known values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import reference
from outsample import PCAExtension
from outsample._compiled.linear_algebra import spectral_shares
from outsample.neighbors.index import NeighborIndex
from outsample.trust.planes import plane_distances, soft_plane_distances

pytestmark = pytest.mark.kernels

seeds = st.integers(0, 10**6)


def cloud(seed, n, D):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D)) * 10 ** rng.uniform(-1, 1, D)
    return X, X[:7] + rng.normal(size=(7, D))


@given(seeds, st.integers(1, 9), st.integers(1, 15), st.integers(1, 9))
def test_plane_distance_is_that_of_the_svd(seed, D, k, t):
    X, Q = cloud(seed, 30, D)
    near = NeighborIndex(X).nearest(Q, k)
    distances = plane_distances(X, Q, near, t)
    rows = near.indices.reshape(len(Q), k)
    expected = [reference.plane_distance(X, x, r, t) for x, r in zip(Q, rows, strict=True)]
    np.testing.assert_allclose(distances, expected, rtol=1e-9, atol=1e-9 * np.abs(Q).max())


@given(seeds, st.integers(1, 9), st.sampled_from([(2, 5, 12), (12, 3), (1,), (3, 3)]))
def test_soft_distance_is_that_of_stacked_least_squares(seed, D, sizes):
    X, Q = cloud(seed, 30, D)
    near = NeighborIndex(X).nearest(Q, max(sizes))
    ridges = (0.3, 0.05, 0.01)[: len(sizes)]
    distances = soft_plane_distances(X, Q, near, sizes, ridges)
    rows = near.indices.reshape(len(Q), -1)
    for at, (k, ridge) in enumerate(zip(sizes, ridges, strict=True)):
        if k == 1:  # no direction at all
            expected = np.linalg.norm(Q - X[rows[:, 0]], axis=1)
        else:
            expected = [
                reference.soft_plane_distance(X, x, r[:k], ridge)
                for x, r in zip(Q, rows, strict=True)
            ]
        np.testing.assert_allclose(distances[:, at], expected, rtol=1e-7)


@given(seeds, st.integers(1, 12))
def test_spectral_shares_are_squared_components(seed, d):
    rng = np.random.default_rng(seed)
    Z, y = rng.normal(size=(d + 3, d)), rng.normal(size=d)
    A, shares = Z.T @ Z, np.empty(d)
    values, vectors = np.linalg.eigh(A)
    spectral_shares(A, y, shares)
    order = np.argsort(np.diag(A))
    np.testing.assert_allclose(np.diag(A)[order], values, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(shares[order], (vectors.T @ y) ** 2 / (y @ y), atol=1e-9)


@pytest.mark.parametrize("D", [3, 40])
def test_height_over_a_plane(D):
    """Queries at known heights above a plane in D dimensions."""
    rng = np.random.default_rng(0)
    frame = np.linalg.qr(rng.normal(size=(D, 3)))[0]
    X = rng.random((60, 2)) @ frame[:, :2].T
    heights = np.array([0.0, 1e-6, 0.3, 5.0])
    Q = (0.3 + 0.4 * rng.random((4, 2))) @ frame[:, :2].T + heights[:, None] * frame[:, 2]
    placed = PCAExtension(n_neighbors=12).fit(X, X[:, :2]).place(Q)
    np.testing.assert_allclose(placed.off_manifold, heights, atol=1e-12)


def test_sparse_points_give_the_same():
    X = sparse.random(60, 300, density=0.05, random_state=0, format="csr")
    Q = sparse.random(5, 300, density=0.05, random_state=1, format="csr")
    near = NeighborIndex(X).nearest(Q, 8)
    dense, queries = X.toarray(), Q.toarray()
    np.testing.assert_allclose(
        plane_distances(X, Q, near, 3), plane_distances(dense, queries, near, 3), rtol=1e-12
    )
    sizes, ridges = (4, 8), (0.1, 0.01)
    np.testing.assert_allclose(
        soft_plane_distances(X, Q, near, sizes, ridges),
        soft_plane_distances(dense, queries, near, sizes, ridges),
        rtol=1e-12,
    )


def test_coincident_neighbours_leave_the_plain_distance():
    X, Q = np.ones((6, 4)), np.array([[1.0, 1.0, 1.0, 3.0], [1.0, 1.0, 1.0, 1.0]])
    near = NeighborIndex(X).nearest(Q, 5)
    np.testing.assert_allclose(plane_distances(X, Q, near, 2), [2, 0])
    np.testing.assert_allclose(soft_plane_distances(X, Q, near, (5,), (0.1,))[:, 0], [2, 0])


def test_collinear_neighbours_span_a_line_only():
    X = np.column_stack([np.arange(8.0), np.zeros(8), np.zeros(8)])
    Q = np.array([[3.0, 1.0, 2.0]])
    near = NeighborIndex(X).nearest(Q, 6)
    np.testing.assert_allclose(plane_distances(X, Q, near, 2), np.sqrt(5))


@pytest.mark.parametrize("size", [1e-150, 1e150])
def test_units_do_not_matter(size):
    X, Q = cloud(0, 40, 5)
    near = NeighborIndex(X).nearest(Q, 12)
    for scaled, expected in (
        (plane_distances(size * X, size * Q, near, 2), plane_distances(X, Q, near, 2)),
        (
            soft_plane_distances(size * X, size * Q, near, (12,), (0.1,)),
            soft_plane_distances(X, Q, near, (12,), (0.1,)),
        ),
    ):
        np.testing.assert_allclose(scaled, size * expected, rtol=1e-9)


def test_isolation_is_the_mean_distance_of_the_neighbours():
    X = np.arange(10.0)[:, None]
    extension = PCAExtension(n_neighbors=3, order=0, loss="squared").fit(X, X)
    np.testing.assert_allclose(extension.place([[4.2]]).isolation, (0.2 + 0.8 + 1.2) / 3)
    ball = PCAExtension(radius=1.0, order=0, loss="squared").fit(X, X)
    np.testing.assert_allclose(ball.place([[4.2], [20.0]]).isolation, [0.5, 11.0])
