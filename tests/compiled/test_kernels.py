"""Kernels compared with NumPy references; run a second time without JIT, for coverage."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from maps import random_map
from outsample import PCAExtension
from outsample._compiled import correlated, distinct, frames, linear_algebra, search
from outsample._compiled import tree as trees
from outsample._compiled import tree_building as building
from outsample.neighbors.index import NeighborIndex
from outsample.neighbors.kd_tree import KdTree

pytestmark = pytest.mark.kernels

WEIGHTINGS = ["distance", "tangent", "local_tangent", "split_tangent"]


def settings_of(weighting, d):
    return {"tangent_dim": max(1, d - 1)} if weighting == "split_tangent" else {}


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@given(seed=st.integers(0, 10**6), d=st.integers(1, 5), D=st.integers(1, 6), k=st.integers(1, 12))
def test_nearest_placement_is_the_literal_gls(weighting, seed, d, D, k):
    X, Y, queries = random_map(seed, 25, D, d)
    extra = settings_of(weighting, d)
    extension = PCAExtension(
        n_neighbors=k, weighting=weighting, order=0, loss="squared", curvature=1.5, **extra
    )
    placed = extension.fit(X, Y).place(queries)
    for i, x in enumerate(queries):
        psi, residual, dispersion = reference.place(X, Y, x, weighting, k=k, c=1.5, **extra)
        np.testing.assert_allclose(placed.coordinates[i], psi, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(placed.residual[i], residual, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(placed.dispersion[i], dispersion, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("tangent_radius", [None, 0.7, 1.8])
@given(seed=st.integers(0, 10**6), d=st.integers(1, 4))
def test_ball_placement_is_the_literal_gls(weighting, tangent_radius, seed, d):
    X, Y, queries = random_map(seed, 25, 3, d)
    extra = settings_of(weighting, d)
    extension = PCAExtension(
        radius=1.2, tangent_radius=tangent_radius, weighting=weighting, order=0, loss="squared",
        curvature=0.8, **extra,
    )  # fmt: skip
    placed = extension.fit(X, Y).place(queries)
    for i, x in enumerate(queries):
        inside = int((np.linalg.norm(X - x, axis=1) <= 1.2).sum())
        assert placed.n_neighbors[i] == inside
        psi, residual, dispersion = reference.place(
            X, Y, x, weighting, radius=1.2, eps1=tangent_radius, c=0.8, **extra
        )
        np.testing.assert_allclose(placed.coordinates[i], psi, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(placed.residual[i], residual, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(placed.dispersion[i], dispersion, rtol=1e-9, atol=1e-12)


@given(seed=st.integers(0, 10**6), k=st.integers(1, 10))
def test_certificates_and_lipschitz(seed, k):
    X, Y, queries = random_map(seed, 20, 3, 2)
    extension = PCAExtension(n_neighbors=k, order=0, loss="squared").fit(X, Y)
    assert extension.lipschitz_ == pytest.approx(reference.lipschitz(X, Y, 11), rel=1e-12)
    placed = extension.place(queries)
    for i, x in enumerate(queries):
        expected = reference.certificate(X, Y, x, placed.coordinates[i], extension.lipschitz_, k)
        assert placed.bound[i] == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("kind", ["kd_tree", "brute"])
@given(seed=st.integers(0, 10**6), k=st.integers(1, 12), D=st.integers(1, 9))
def test_neighbors(kind, seed, k, D):
    X, _, _ = random_map(seed, 30, D, 1)
    queries = np.random.default_rng(seed + 1).normal(size=(7, D))
    near = NeighborIndex(X, kind).nearest(queries, k)
    for i, x in enumerate(queries):
        indices, distances = reference.neighbors(X, x, k)
        row = slice(near.indptr[i], near.indptr[i + 1])
        np.testing.assert_array_equal(near.indices[row], indices)
        np.testing.assert_allclose(near.distances[row], distances, rtol=1e-14)


@pytest.mark.parametrize("kind", ["kd_tree", "brute"])
def test_ties_go_to_the_lower_index(kind):
    grid = np.stack(np.meshgrid(np.arange(6.0), np.arange(6.0)), -1).reshape(-1, 2)
    grid = np.vstack([grid, grid])  # every point twice
    index = NeighborIndex(grid, kind)
    for k in (1, 3, 5, 9, 20):
        near = index.nearest(grid, k)
        for i, x in enumerate(grid):
            expected = reference.neighbors(grid, x, k)[0]
            np.testing.assert_array_equal(near.indices[i * k : i * k + k], expected)


@given(seed=st.integers(0, 10**6), k=st.integers(1, 10), c=st.integers(10, 20))
def test_nearest_candidates(seed, k, c):
    rng = np.random.default_rng(seed)
    X, Q = rng.integers(0, 3, (30, 2)).astype(float), rng.integers(0, 3, (5, 2)).astype(float)
    candidates = np.array([rng.permutation(30)[:c] for _ in Q])
    nearest, nearest_distances = np.empty((5, k), dtype=np.int64), np.empty((5, k))
    search.nearest_candidates(0, 5, X, Q, candidates, nearest, nearest_distances)
    for i, x in enumerate(Q):
        among = np.sort(candidates[i])
        indices, distances = reference.neighbors(X[among], x, k)
        np.testing.assert_array_equal(nearest[i], among[indices])
        np.testing.assert_allclose(nearest_distances[i], distances, rtol=1e-14)


@given(seed=st.integers(0, 10**6), share=st.sampled_from([0.0, 0.3, 1.0]))
def test_a_share_of_a_tree_finds_true_distances_in_any_order(seed, share):
    rng = np.random.default_rng(seed)
    X, Q = rng.normal(size=(300, 2)), rng.normal(size=(70, 2))
    tree, k = KdTree(X), 4
    answers = []
    for order in (np.arange(70), rng.permutation(70)):
        indices, distances = np.empty((70, k), dtype=np.int64), np.empty((70, k))
        trees.nearest_in_tree(0, 70, X, *tree.arrays, 1.0, Q, share, order, indices, distances)
        answers.append((indices, distances))
    np.testing.assert_array_equal(answers[0][0], answers[1][0])
    np.testing.assert_allclose(
        distances, np.linalg.norm(Q[:, None] - X[indices], axis=2), rtol=1e-14
    )
    exact = np.array([reference.neighbors(X, x, k)[1] for x in Q])
    assert (distances >= exact * (1 - 1e-14)).all()
    if share == 1:
        np.testing.assert_allclose(distances, exact, rtol=1e-14)


@given(seed=st.integers(0, 10**6), D=st.integers(1, 9))
def test_squares_of_boxes_and_of_leaves(seed, D):
    rng = np.random.default_rng(seed)
    ends, leaf, x = rng.normal(size=(2, D, trees.FAN)), rng.normal(size=(D, 24)), rng.normal(size=D)
    fan, box_squares, squares = np.sort(ends, axis=0), np.empty(trees.FAN), np.empty(24)
    trees.fan_squares(fan, x, box_squares)
    expected = [reference.box_square(fan[:, :, j], x) for j in range(trees.FAN)]
    np.testing.assert_allclose(box_squares, expected, rtol=1e-14)
    assert trees.box_square(fan[:, :, 0], x) == pytest.approx(expected[0], rel=1e-14)
    trees.leaf_squares(leaf, x, squares)
    np.testing.assert_allclose(squares, ((leaf.T - x) ** 2).sum(axis=1), rtol=1e-14)


@pytest.mark.parametrize("n", [1, 64, 65, 200, 900, 1100, 5000, 17_000])
def test_trees_of_any_depth_equal_a_full_scan(n):
    rng = np.random.default_rng(n)
    X, Q = rng.normal(size=(n, 3)), rng.normal(size=(20, 3)) * 2
    near, k = NeighborIndex(X, "kd_tree").nearest(Q, min(n, 7)), min(n, 7)
    indices, distances = np.empty((20, k), dtype=np.int64), np.empty((20, k))
    search.scan_nearest(0, 20, X, n, Q, indices, distances)
    np.testing.assert_array_equal(near.indices, indices.ravel())
    np.testing.assert_array_equal(near.distances, distances.ravel())


@given(seed=st.integers(0, 10**6), n=st.integers(2, 3000), kinds=st.sampled_from([2, 40, 10**9]))
def test_values_are_partitioned_at_a_rank(seed, n, kinds):
    rng = np.random.default_rng(seed)
    original, middle = rng.integers(0, kinds, n + 4).astype(float), 2 + int(rng.integers(1, n))
    values, rows = original.copy(), np.arange(n + 4)
    building.partition_at_middle(values, rows, 2, n + 2, middle)
    np.testing.assert_array_equal(original[rows], values)
    np.testing.assert_array_equal(np.sort(rows[2:-2]), np.arange(2, n + 2))
    assert values[2:middle].max() <= values[middle:-2].min()


@given(seed=st.integers(0, 10**6), n=st.integers(70, 3000))
def test_rows_in_reach(seed, n):
    rng = np.random.default_rng(seed)
    X, Q, reach = rng.normal(size=(n, 2)), rng.normal(size=(5, 2)), rng.random(5)
    tree, counts = KdTree(X), np.empty(5, dtype=np.int64)
    walked = tree.starts, tree.fans, len(tree.leaves), Q, reach, counts
    trees.rows_in_reach(0, 5, *walked)
    for x, radius, count in zip(Q, reach, counts, strict=True):
        leaves = np.split(X[tree.rows], tree.starts[1:-1])
        boxes = [np.array([leaf.min(axis=0), leaf.max(axis=0)]) for leaf in leaves]
        near = [reference.box_square(box, x) <= radius**2 for box in boxes]
        assert count == np.diff(tree.starts)[near].sum()


@pytest.mark.parametrize("n", [3, 64, 900, 5000])
def test_a_tree_does_not_depend_on_threads(n):
    """Leaves have equal sizes up to one row, contain every row once, whatever n_jobs is."""
    X = np.random.default_rng(n).normal(size=(n, 5))
    tree, sizes = KdTree(X), np.diff(KdTree(X).starts)
    assert sizes.max() - sizes.min() <= 1
    np.testing.assert_array_equal(np.sort(tree.rows), np.arange(n))
    np.testing.assert_array_equal(tree.box, [X.min(axis=0), X.max(axis=0)])
    for n_jobs in (2, 3, 8):
        for part, other in zip(tree.arrays, KdTree(X, n_jobs).arrays, strict=True):
            np.testing.assert_array_equal(part, other)


def test_home_leaves():
    X = np.random.default_rng(0).normal(size=(300, 2))
    tree, homes = KdTree(X), np.empty(300, dtype=np.int64)
    trees.home_leaves(0, 300, tree.fans, len(tree.leaves), 1.0, X, homes)
    leaf = np.searchsorted(tree.starts, np.arange(300), side="right") - 1
    np.testing.assert_array_equal(homes[tree.rows], leaf)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1.0, 1e160, 1e299])
def test_distance_at_any_scale(scale):
    a, b = np.array([3.0, 0, 1, 2, 5]) * scale, np.array([0.0, 4, 1, 2, 5]) * scale
    assert search.distance(a, b) == pytest.approx(5 * scale, rel=1e-15)
    assert search.distance(a, a) == 0.0


@given(seed=st.integers(0, 10**6), d=st.integers(1, 8))
def test_symmetric_eigen(seed, d):
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(d, rng.integers(1, d + 2)))  # often singular
    A = half @ half.T
    work, vectors = A.copy(), np.empty((d, d))
    linear_algebra.symmetric_eigen(work, vectors)
    values = np.diag(work)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(A)[::-1], atol=1e-13 * A.max())
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(d), atol=1e-13)
    np.testing.assert_allclose(vectors @ np.diag(values) @ vectors.T, A, atol=1e-12 * A.max())


def test_cholesky_solve():
    A = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
    b = np.array([1.0, 2.0, 3.0])
    solution = b.copy()
    assert linear_algebra.cholesky_solve(A.copy(), solution)
    np.testing.assert_allclose(A @ solution, b, rtol=1e-13)
    assert not linear_algebra.cholesky_solve(np.zeros((2, 2)), np.ones(2))


def test_no_kernel_may_reorder_sums():
    """With fastmath, results can differ from one compilation to the next."""
    for file in Path(search.__file__).parent.glob("*.py"):
        assert "fastmath" not in file.read_text(), file.name


@given(seed=st.integers(0, 10**6), k=st.integers(1, 19))
def test_factor_of_a_covariance(seed, k):
    half = np.random.default_rng(seed).normal(size=(k, k + 2))
    A, sides = half @ half.T, half.copy()
    factor = A.copy()
    correlated.factor_covariance(factor)
    upper = np.triu(factor)
    np.testing.assert_allclose(upper.T @ upper, A, atol=1e-13 * A.max())
    correlated.solve_lower(factor, sides)
    np.testing.assert_allclose(upper.T @ sides, half, atol=1e-9 * np.abs(half).max())


@given(seed=st.integers(0, 10**6), d=st.integers(2, 30), k=st.integers(1, 29))
def test_frames_of_few_images_in_many_dimensions(seed, d, k):
    rng = np.random.default_rng(seed)
    k = min(k, d - 1)
    rank = rng.integers(1, k + 1)
    Y = rng.normal(size=(k, rank)) @ rng.normal(size=(rank, d))
    axes, spread = np.empty((1, d, d)), np.empty((1, d))
    indptr, indices = np.array([0, k]), np.arange(k)
    frames.image_frames(0, 1, Y, indptr, indices, np.ones(1), axes, spread)
    centred = Y - Y.mean(axis=0)
    np.testing.assert_allclose(axes[0].T @ axes[0], np.eye(d), atol=1e-13)
    assert (np.diff(spread[0]) <= 1e-7 * spread[0, 0]).all()
    covariance = axes[0] * spread[0] ** 2 @ axes[0].T
    np.testing.assert_allclose(
        covariance, centred.T @ centred / k, atol=1e-12 * (1 + np.abs(Y).max())
    )


@given(seed=st.integers(0, 10**6), D=st.integers(1, 9))
def test_ordered_sums(seed, D):
    """Rows are added in order: bit-identical to a plain loop."""
    rng = np.random.default_rng(seed)
    X, rows, sums = rng.normal(size=(50, D)), rng.permutation(50)[:30], np.empty(D)
    distinct.ordered_sums(X, rows, sums)
    np.testing.assert_array_equal(sums, sum(X[rows], start=np.zeros(D)))
