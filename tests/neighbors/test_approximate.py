"""Approximate search: recall, determinism, and rejected parameters."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from laws.subjects import sparse_stays
from outsample import NoveltyDetector, PCAExtension, load, save
from outsample.files.part_schema import is_a
from outsample.files.scope import SchemaError, Scope
from outsample.neighbors import approximate
from outsample.neighbors.index import EXACT_BACKENDS, NeighborIndex

COLUMNS = {"tree": (14, 3), "codes": (30, 30), "lists": (30, 30), "many columns": (150, 30)}
DISTANCE = {"n_neighbors": 10, "weighting": "distance", "order": 0, "loss": "squared"}


def synthetic_points(D, inner, n=6300):
    rng = np.random.default_rng(0)
    Z = rng.uniform(-1, 1, (n, inner))
    X = np.sin(Z @ rng.normal(size=(inner, D))) + 0.01 * rng.normal(size=(n, D))
    return X[:6000], X[6000:]


@pytest.fixture(scope="module", params=COLUMNS)
def searched(request):
    """Return an index of each kind, with queries."""
    if request.param != "tree":
        pytest.importorskip("faiss")
    X, Q = synthetic_points(*COLUMNS[request.param])
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "lists":
            patch.setattr(approximate, "MAX_SINGLE_LIST_ROWS", 2000)
        index = NeighborIndex(X, "approximate")
        assert index.kind == ("kd_tree" if request.param == "tree" else "codes")
        assert index.width > 0
        yield index, Q


def recall(index, Q, k=15):
    exact = NeighborIndex(index.X, "brute").nearest(Q, k).indices.reshape(-1, k)
    actual = index.nearest(Q, k).indices.reshape(-1, k)
    return (actual[:, :, None] == exact[:, None, :]).any(axis=1).mean()


def test_nearly_all_neighbours_are_found(searched):
    index, Q = searched
    assert 0.99 <= index.recall <= 1
    assert recall(index, Q) >= 0.985


def test_distances_are_exact_and_in_order(searched):
    index, Q = searched
    near = index.nearest(Q, 15)
    expected = np.linalg.norm(Q[:, None] - index.X[near.indices.reshape(-1, 15)], axis=2)
    distances = near.distances.reshape(-1, 15)
    np.testing.assert_allclose(distances, expected, rtol=1e-12)
    assert (np.diff(distances, axis=1) >= 0).all()


def test_a_row_gets_the_same_neighbours_alone_and_in_a_batch(searched):
    index, Q = searched
    batch = index.nearest(Q, 15)
    alone = [index.nearest(row[None], 15) for row in Q]
    np.testing.assert_array_equal(np.concatenate([near.indices for near in alone]), batch.indices)
    np.testing.assert_array_equal(
        np.concatenate([near.distances for near in alone]), batch.distances
    )


def test_a_wider_search_keeps_the_nearest(searched):
    index, Q = searched
    narrow, wide = (index.nearest(Q, k).indices.reshape(-1, k) for k in (5, 12))
    np.testing.assert_array_equal(narrow, wide[:, :5])
    assert index.nearest(Q[:0], 5).indices.size == 0


def test_the_index_does_not_depend_on_threads(searched):
    index, Q = searched
    other = NeighborIndex(index.X, "approximate", n_jobs=2)
    assert (other.width, other.recall) == (index.width, index.recall)
    np.testing.assert_array_equal(other.nearest(Q, 15).indices, index.nearest(Q, 15).indices)


def test_a_copy_builds_the_same_index(searched):
    index, Q = searched
    other = pickle.loads(pickle.dumps(index))
    assert other._built is None
    np.testing.assert_array_equal(other.nearest(Q, 15).indices, index.nearest(Q, 15).indices)


@pytest.mark.parametrize("size", [1e-150, 1e-30, 1e15, 1e30, 1e150])
def test_magnitudes_do_not_matter(size):
    X, Q = synthetic_points(14, 3)
    index = NeighborIndex(X * size, "approximate")
    assert recall(index, Q * size) >= 0.985


def test_neighbours_of_points_off_the_manifold_are_found():
    X, Q = synthetic_points(14, 3)
    index = NeighborIndex(X, "approximate")
    for size in (0.1, 0.5, 2.0):
        assert recall(index, Q + size * np.random.default_rng(0).normal(size=Q.shape)) >= 0.985


def test_far_away_all_points_are_compared():
    X, Q = synthetic_points(14, 3)
    index = NeighborIndex(X, "approximate")
    far = Q[:5] * np.array([1e3, 1e8, 1e15, 1e160, 1e300])[:, None]
    np.testing.assert_array_equal(
        index.nearest(far, 9).indices, NeighborIndex(X).nearest(far, 9).indices
    )


def test_more_neighbours_than_are_proposed():
    X, Q = synthetic_points(14, 3)
    index = NeighborIndex(X, "approximate")
    assert recall(index, Q[:50], 400) >= 0.98
    assert recall(index, Q[:2], len(X)) == 1  # rows that are not reached are scanned


def test_few_points_are_searched_exactly():
    X, _ = synthetic_points(14, 3)
    index = NeighborIndex(X[:1000], "approximate")
    assert index.kind in EXACT_BACKENDS and (index.width, index.recall) == (0, 1.0)


def test_where_no_part_of_a_tree_is_enough_it_is_searched_whole(monkeypatch):
    monkeypatch.setitem(approximate.WIDTHS, "kd_tree", (1,))
    index = NeighborIndex(synthetic_points(14, 3)[0], "approximate")
    assert (index.kind, index.width, index.recall) == ("kd_tree", 0, 1.0)


def test_a_poor_index_gives_a_warning(monkeypatch):
    pytest.importorskip("faiss")
    monkeypatch.setitem(approximate.WIDTHS, "codes", (1,))
    monkeypatch.setattr(approximate, "POOR_RECALL", 1.0)
    with pytest.warns(UserWarning, match="index='auto' finds all"):
        NeighborIndex(synthetic_points(30, 30)[0], "approximate")


def test_positions_are_close_to_those_of_the_exact_search(tmp_path):
    X, Q = synthetic_points(14, 3)
    Y, truth = np.cos(2 * X[:, :2]), np.cos(2 * Q[:, :2])
    exact, approximation = (
        PCAExtension(index=index, **DISTANCE).fit(X, Y) for index in ("auto", "approximate")
    )
    assert exact.recall_ == 1 and 0.99 <= approximation.recall_ <= 1
    errors = [
        np.linalg.norm(extension.transform(Q) - truth, axis=1).mean()
        for extension in (exact, approximation)
    ]
    assert errors[1] <= 1.01 * errors[0]
    rows = approximation.left_out_.rows
    near = approximation.model_.left_out(rows).near
    assert (near.indices.reshape(len(rows), -1) != rows[:, None]).all()
    save(approximation, tmp_path / "model.outsample")
    again = load(tmp_path / "model.outsample")
    assert (again.recall_, again.index_.width) == (
        approximation.recall_,
        approximation.index_.width,
    )
    for extension, other in zip(again.place(Q), approximation.place(Q), strict=True):
        np.testing.assert_array_equal(extension, other)


def test_a_detector_uses_the_index_of_its_extension():
    X, Q = synthetic_points(14, 3)
    detector = NoveltyDetector(PCAExtension(index="approximate")).fit(X)
    assert detector.model_.index.width > 0 and detector.recall_ >= 0.99
    exact = NoveltyDetector().fit(X)
    assert np.abs(detector.p_values(Q) - exact.p_values(Q)).mean() < 0.01
    with pytest.raises(ValueError, match="index is 'annoy'"):
        NoveltyDetector(PCAExtension(index="annoy")).fit(X)


def test_a_detector_places_nearly_as_its_extension_does():
    """A detector requests more neighbours; an approximate search then rarely finds others."""
    X, Q = synthetic_points(14, 3)
    Y, truth = np.cos(2 * X[:, :2]), np.cos(2 * Q[:, :2])
    detector = NoveltyDetector(PCAExtension(index="approximate", **DISTANCE)).fit(X, Y)
    placed, transformed = detector.place(Q), detector.extension_.transform(Q)
    gaps = np.linalg.norm(placed.coordinates - transformed, axis=1)
    assert (gaps > 0).mean() <= 0.02
    assert gaps.max() <= np.linalg.norm(transformed - truth, axis=1).mean()
    np.testing.assert_array_equal(detector.extension_.place(Q).coordinates, transformed)
    np.testing.assert_array_equal(detector.p_values(Q), placed.p_value)


@pytest.mark.parametrize("ball", ["radius", "tangent_radius"])
def test_balls_are_refused(ball):
    with pytest.raises(ValueError, match=r"may miss points of a ball.*index='auto'"):
        PCAExtension(index="approximate", **{ball: 1.0}).fit(np.eye(3), np.eye(3))


def test_sparse_points_are_rejected():
    extension = PCAExtension(index="approximate", order=0)
    with sparse_stays(), pytest.raises((TypeError, ValueError), match=r"[Ss]parse"):
        extension.fit(sparse.csr_matrix(np.eye(3)), np.eye(3))


def test_without_faiss_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ImportError, match=r"outsample\[ann\]"):
        NeighborIndex(synthetic_points(30, 30)[0], "approximate")


@pytest.mark.parametrize(
    ("kind", "width"), [("codes", 0), ("kd_tree", 100), ("brute", 32), ("codes", 10**6)]
)
def test_a_file_cannot_hold_a_width_that_does_not_fit(kind, width):
    with pytest.raises(SchemaError, match="width"):
        is_a(NeighborIndex)(NeighborIndex(np.eye(3), kind, width=width), Scope())


def test_wide_columns_share_a_code_with_narrow_ones():
    """Each column occurs once, then columns of zeros, in groups of similar total variance."""
    variances = np.arange(131.0)[::-1] ** 2
    columns = approximate._group_columns(variances)
    assert sorted(columns) == list(range(len(columns)))
    size = approximate._columns_per_group(131)
    assert len(columns) % size == 0
    widths = np.r_[variances, 0, 0][columns].reshape(-1, size).sum(axis=1)
    assert widths.max() < 1.5 * widths.mean()


def test_scikit_learn_searches_once_before_faiss_is_loaded():
    """Otherwise its searches stay on one thread, because there are two OpenMP runtimes."""
    pytest.importorskip("faiss")
    code = """
import sys
from sklearn.neighbors import NearestNeighbors
from outsample.neighbors import approximate
is_loaded, search = [], NearestNeighbors.kneighbors
NearestNeighbors.kneighbors = lambda *a: is_loaded.append("faiss" in sys.modules) or search(*a)
approximate.load_faiss(), approximate.load_faiss()
print(is_loaded)
"""
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert process.stdout.strip() == "[False]"
