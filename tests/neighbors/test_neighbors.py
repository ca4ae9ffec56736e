"""Search: the same neighbours with every index, batch size and scale."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from outsample._compiled import search
from outsample.neighbors import kd_tree
from outsample.neighbors.brute_force import BruteForce, RowScan
from outsample.neighbors.growing_index import GrowingBackend
from outsample.neighbors.index import EXACT_BACKENDS, NeighborIndex


def assert_equal_neighbors(actual, expected):
    for left, right in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_indexes_agree_far_from_the_origin(offset):
    """A matrix product alone would lose every digit here."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4)) + offset
    queries = np.vstack([rng.normal(size=(50, 4)) + offset, X[:20], rng.normal(size=(5, 4)) * 1e12])
    tree, brute = NeighborIndex(X, "kd_tree"), NeighborIndex(X, "brute")
    assert_equal_neighbors(tree.nearest(queries, 11), brute.nearest(queries, 11))
    assert_equal_neighbors(tree.ball(queries, 0.8, 2), brute.ball(queries, 0.8, 2))


@pytest.mark.parametrize("kind", EXACT_BACKENDS)
@pytest.mark.kernels
def test_single_equals_batch_among_duplicates(kind):
    X = np.random.default_rng(1).integers(0, 3, (200, 3)).astype(float)
    index = NeighborIndex(X, kind, n_jobs=2)
    batch = index.nearest(X, 7)
    for i in range(0, 200, 17):
        single = index.nearest(X[i : i + 1], 7)
        np.testing.assert_array_equal(single.indices, batch.indices[7 * i : 7 * i + 7])
        np.testing.assert_array_equal(single.distances, batch.distances[7 * i : 7 * i + 7])


@pytest.mark.parametrize("kind", EXACT_BACKENDS)
@pytest.mark.kernels
@pytest.mark.parametrize("scale", [1e-200, 1e-160, 1e160, 1e290])
def test_any_scale(kind, scale):
    rng = np.random.default_rng(2)
    X, queries = rng.normal(size=(60, 3)), rng.normal(size=(10, 3))
    plain = NeighborIndex(X, kind).nearest(queries, 5)
    scaled = NeighborIndex(X * scale, kind).nearest(queries * scale, 5)
    np.testing.assert_array_equal(plain.indices, scaled.indices)
    np.testing.assert_allclose(scaled.distances / scale, plain.distances, rtol=1e-13)


N = 120
HARD = {
    "spread": lambda rng: rng.normal(size=(N, 5)),
    "grid": lambda rng: rng.integers(0, 4, (N, 3)).astype(float),
    "one place": lambda rng: np.ones((N, 2)),
    "two scales": lambda rng: rng.normal(size=(N, 2)) * 10.0 ** rng.integers(-170, 1, (N, 1)),
    "tiny": lambda rng: rng.normal(size=(N, 3)) * 1e-165,
    "huge": lambda rng: rng.uniform(-1, 1, (N, 3)) * 3e299,
    "a line": lambda rng: np.sort(rng.random((N, 1)), axis=0),
}


@pytest.mark.parametrize("name", HARD)
@pytest.mark.kernels
def test_a_tree_finds_what_a_full_scan_finds(name, monkeypatch):
    """Bit for bit, through many small leaves, for queries among the points and far from all."""
    monkeypatch.setattr(kd_tree, "LEAF_ROWS", 5)
    rng = np.random.default_rng(8)
    X = np.ascontiguousarray(HARD[name](rng))
    size = np.abs(X).max()
    far = np.minimum([1e-3 * size, size, 3 * size, size**0.5 * 1e120], 1e300)
    away = far[:, None] * rng.uniform(-1, 1, (4, X.shape[1]))
    queries = np.vstack([X[::17], X[:9] * (1 + 1e-9), away])
    index = NeighborIndex(X, "kd_tree")
    for k in (1, 6, 40, N):
        indices = np.empty((len(queries), k), dtype=np.int64)
        distances = np.empty((len(queries), k))
        search.scan_nearest(0, len(queries), X, len(X), queries, indices, distances)
        near = index.nearest(queries, k)
        np.testing.assert_array_equal(near.indices.reshape(indices.shape), indices)
        np.testing.assert_array_equal(near.distances.reshape(distances.shape), distances)
        for radius in (distances[0, -1], distances[-1, 0], 0.0):
            inside = np.empty(len(queries), dtype=np.int64)
            search.scan_ball_counts(0, len(queries), X, len(X), queries, radius, inside)
            np.testing.assert_array_equal(index.ball_sizes(queries, radius), inside)


@pytest.mark.parametrize("kind", EXACT_BACKENDS)
@pytest.mark.kernels
def test_balls(kind):
    rng = np.random.default_rng(3)
    X, queries = rng.normal(size=(80, 2)), rng.normal(size=(30, 2)) * 2
    balls = NeighborIndex(X, kind).ball(queries, 0.5, at_least=3)
    for i, x in enumerate(queries):
        distances = np.linalg.norm(X - x, axis=1)
        inside = int((distances <= 0.5).sum())
        row = balls.indices[balls.indptr[i] : balls.indptr[i + 1]]
        assert balls.inside[i] == inside
        np.testing.assert_array_equal(row, np.argsort(distances)[: max(inside, 3)])


def test_the_trial_selects_an_index_and_the_result_is_the_same():
    rng = np.random.default_rng(4)
    X, queries = rng.normal(size=(3000, 40)), rng.normal(size=(30, 40))
    auto = NeighborIndex(X)
    assert auto.kind == "brute"  # distances are similar in 40 dimensions
    curve = np.outer(rng.uniform(size=3000), np.arange(40.0))
    assert NeighborIndex(np.sin(curve)).kind == "kd_tree"
    assert_equal_neighbors(
        auto.nearest(queries, 8), NeighborIndex(X, "kd_tree").nearest(queries, 8)
    )
    assert NeighborIndex(X[:, :3]).kind == "kd_tree"


def test_large_batches_go_in_chunks(monkeypatch):
    rng = np.random.default_rng(5)
    X, queries = rng.normal(size=(400, 3)), rng.normal(size=(700, 3))
    whole = NeighborIndex(X).nearest(queries, 6)
    monkeypatch.setattr("outsample.neighbors.index.CHUNK_NEIGHBORS", 1)
    assert_equal_neighbors(whole, NeighborIndex(X).nearest(queries, 6))


def test_no_queries():
    near = NeighborIndex(np.ones((3, 2))).nearest(np.empty((0, 2)), 2)
    assert len(near.indices) == 0 and len(near.indptr) == 1


@pytest.mark.parametrize("kind", EXACT_BACKENDS)
def test_rows_searched_are_counted_but_not_kept(kind):
    X = np.random.default_rng(6).normal(size=(50, 3))
    index = NeighborIndex(X, kind)
    before = pickle.dumps(index)
    assert index.rows_searched == 0
    index.nearest(X, 4)
    assert index.rows_searched == 50
    index.ball(X[:7], 0.5, at_least=2)
    assert index.rows_searched == 57
    assert pickle.dumps(index) == before and pickle.loads(before).rows_searched == 0


def test_every_backend_implements_the_protocol():
    """Each returns indices and distances of one shape, and the sizes of balls."""
    X = np.random.default_rng(6).normal(size=(300, 2))
    base = NeighborIndex(X[:200], "kd_tree")
    expected = RowScan(X).nearest(X[:20], 5)
    sizes = RowScan(X).ball_sizes(X[:20], 0.5)
    for backend in (kd_tree.KdTree(X), BruteForce(X), GrowingBackend(base, X, None)):
        for part, exact in zip(backend.nearest(X[:20], 5), expected, strict=True):
            np.testing.assert_array_equal(part, exact)
        np.testing.assert_array_equal(backend.ball_sizes(X[:20], 0.5), sizes)
