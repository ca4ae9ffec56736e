"""Duplicate rows count as one point and ties are kept, so that row order does not matter."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from outsample import Correlated, Diffusion, NoveltyDetector, PCAExtension
from outsample._compiled import distinct as kernels
from outsample.neighbors.duplicates import find_duplicates, leave_out_duplicates
from outsample.neighbors.index import NeighborIndex
from outsample.neighbors.ties import MAX_EXTRA_TIES, MAX_TIE_FACTOR, tied_sizes, with_ties

PAPER = {"order": 0, "loss": "squared"}
SETTINGS = {
    "auto": {},
    "distance": {"weighting": "distance", "n_neighbors": 5, **PAPER},
    "tangent": {"weighting": "tangent", "n_neighbors": 7, **PAPER},
    "per point": {"weighting": "local_tangent", "n_neighbors": 7, **PAPER},
    "median": {"weighting": "distance", "n_neighbors": 7, "order": 0, "loss": "absolute"},
    "plane": {"weighting": "distance", "order": 1, "loss": "squared"},
    "ball": {"weighting": "distance", "radius": 1.2, **PAPER},
    "correlated": {"weighting": "correlated"},
    "process": {"weighting": Correlated("matern52", 4.0, 1e-4), "n_neighbors": 300},
    "diffusion": {"weighting": Diffusion(1.0, 1e-6)},
}
every_setting = pytest.mark.parametrize("name", SETTINGS)


def binary(seed=0, n=300, q=200):
    rng = np.random.default_rng(seed)
    X, Q = rng.integers(0, 2, (2, n, 8)).astype(float)
    Y = np.column_stack([X[:, 0] + X[:, 1], X[:, 2] * X[:, 3]]) + 0.1 * rng.normal(size=(n, 2))
    return X, Y, Q[:q]


@every_setting
def test_duplicate_points_get_the_mean_of_all_their_images(name):
    """With more duplicates than neighbours all count, not those with the lowest row numbers."""
    rng = np.random.default_rng(0)
    X = np.vstack([np.zeros((40, 2)), rng.normal(size=(260, 2)) + 5])
    Y = np.r_[np.arange(40.0), rng.normal(size=260)][:, None]
    extension = PCAExtension(**SETTINGS[name]).fit(X, Y)
    assert extension.transform([[0.0, 0.0]])[0, 0] == pytest.approx(19.5, abs=1e-9)
    np.testing.assert_array_equal(extension.transform(X[40:60]), Y[40:60])


@every_setting
def test_row_order_does_not_matter(name):
    X, Y, Q = binary()
    order = np.random.default_rng(1).permutation(len(X))
    extension = PCAExtension(**SETTINGS[name]).fit(X, Y)
    other = PCAExtension(**SETTINGS[name]).fit(X[order], Y[order])
    assert extension.model_.fitted.placer == other.model_.fitted.placer
    first, second = extension.place(Q), other.place(Q)
    for part in first._fields:
        size = np.abs(getattr(first, part)).max()
        np.testing.assert_allclose(
            getattr(first, part), getattr(second, part), rtol=1e-7, atol=1e-7 * size, err_msg=part
        )


@pytest.mark.parametrize("calibration", ["leave-one-out", "split"])
def test_row_order_does_not_change_scores(calibration):
    X, _, Q = binary()
    order = np.random.default_rng(1).permutation(len(X))
    detector = NoveltyDetector(calibration=calibration).fit(X)
    other = NoveltyDetector(calibration=calibration).fit(X[order])
    if calibration == "split":  # the half is sampled by row number: use the same half
        half = np.isin(np.arange(len(X)), detector.training_rows_)
        other = NoveltyDetector().fit(X[order][half[order]])
        detector = NoveltyDetector().fit(X[half])
    np.testing.assert_array_equal(detector.p_values(Q), other.p_values(Q))
    np.testing.assert_array_equal(detector.abnormality(Q), other.abnormality(Q))
    np.testing.assert_array_equal(detector.scores_, other.scores_)


def rotated(X):
    """Rotate each row separately, so that equal rows stay bit-identical."""
    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(8, 8)))[0]
    return (X[:, :, None] * turn).sum(axis=1)


@pytest.mark.parametrize("name", ["distance", "tangent", "per point", "median", "correlated"])
def test_ties_survive_a_rotation(name):
    """Tied distances differ in the last bit after a rotation."""
    X, Y, Q = binary()
    plain = PCAExtension(**SETTINGS[name]).fit(X, Y).transform(Q)
    turned = PCAExtension(**SETTINGS[name]).fit(rotated(X), Y).transform(rotated(Q))
    np.testing.assert_allclose(turned, plain, atol=1e-8)


def test_scores_survive_a_rotation():
    X, _, Q = binary()
    plain, turned = NoveltyDetector().fit(X), NoveltyDetector().fit(rotated(X))
    np.testing.assert_allclose(turned.abnormality(rotated(Q)), plain.abnormality(Q), atol=1e-9)


def test_a_duplicate_is_left_out_of_its_group():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 2))
    X[10:15] = X[10]
    Y = rng.normal(size=(30, 2))
    copies = leave_out_duplicates(find_duplicates(X), Y)
    assert copies.share == 5 / 30 and len(copies.points) == 5
    expected = [Y[np.setdiff1d(np.arange(10, 15), row)].mean(axis=0) for row in range(10, 15)]
    images = copies.images[np.lexsort(copies.images.T)]
    np.testing.assert_allclose(images, np.array(expected)[np.lexsort(np.array(expected).T)])


def test_coverage_where_most_rows_have_duplicates():
    """Most new points equal a training point; error bars must account for that."""
    rng = np.random.default_rng(4)
    X = rng.poisson(0.5, (3000, 3)).astype(float)
    Y = X[:, :2] + 0.1 * rng.normal(size=(3000, 2))
    placed = PCAExtension().fit(X[:1500], Y[:1500]).place(X[1500:])
    held = np.linalg.norm(placed.coordinates - Y[1500:], axis=1) <= placed.error_bar
    assert 0.87 <= held.mean() <= 0.93


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_distinct_points(kind):
    rng = np.random.default_rng(5)
    X = rng.integers(0, 3, (200, 3)).astype(float)
    X[0] *= -0.0
    duplicates = find_duplicates(kind(X))
    assert len(duplicates.rows) == len(np.unique(X + 0.0, axis=0))
    np.testing.assert_array_equal(X[duplicates.rows][duplicates.groups], X)
    np.testing.assert_array_equal(duplicates.counts, np.bincount(duplicates.groups))
    order = rng.permutation(200)
    again = find_duplicates(kind(X[order]))
    np.testing.assert_array_equal(X[order][again.rows], X[duplicates.rows])
    images = rng.normal(size=(200, 2))
    means = [images[duplicates.groups == g].mean(axis=0) for g in range(len(duplicates.rows))]
    np.testing.assert_allclose(duplicates.means(images), means)


@pytest.mark.parametrize("n", [2, 3, 8])
@pytest.mark.parametrize("weighting", ["distance", "tangent", "auto"])
def test_equal_rows_have_equal_weights(n, weighting):
    rng = np.random.default_rng(0)
    X, Y = np.full((n, 2), 3.0), rng.normal(size=(n, 2))
    detector = NoveltyDetector(PCAExtension(weighting=weighting)).fit(X, Y)
    extension, Q = detector.extension_, np.array([[3.0, 3.0], [4.0, 3.0], [-5.0, 100.0]])
    expected = np.tile(Y.mean(axis=0), (3, 1))
    np.testing.assert_allclose(extension.transform(Q), expected, atol=1e-12)
    placed = detector.place(Q)
    np.testing.assert_allclose(placed.coordinates, expected, atol=1e-12)
    for model in (extension, detector):
        np.testing.assert_allclose(model.neighbor_weights(Q).toarray(), 1 / n)
        np.testing.assert_array_equal(np.sort(model.kneighbors(Q, n).indices), [np.arange(n)] * 3)
    means_of_others = np.array([np.delete(Y, i, axis=0).mean(axis=0) for i in range(n)])
    largest = np.linalg.norm(means_of_others - Y, axis=1).max()
    assert np.isfinite(placed.error_bar).all() and (placed.error_bar[1:] >= 0.3 * largest).all()


def test_coverage_where_every_row_has_a_duplicate():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(400, 2)), 2, axis=0)
    Y = X + 0.1 * rng.normal(size=X.shape)
    extension = PCAExtension(n_neighbors=5, weighting="distance", order=0, loss="squared").fit(X, Y)
    Q = X[::2]
    placed, truth = extension.place(Q), Q + 0.1 * rng.normal(size=Q.shape)
    held = np.linalg.norm(placed.coordinates - truth, axis=1) <= placed.error_bar
    assert 0.85 <= held.mean() <= 0.97


def test_left_out_rows_and_errors_are_those_of_the_rows_that_were_fitted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))[rng.integers(0, 150, 600)]
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2]) * (1 + 9 * (X[:, :1] > 1.5))
    extension = PCAExtension(n_neighbors=5, weighting="distance", order=0, loss="squared").fit(X, Y)
    rows, _, coordinates = extension.left_out_
    errors = np.linalg.norm(coordinates - Y[rows], axis=1)
    size = np.sqrt(((Y - Y.mean(axis=0)) ** 2).sum(axis=1).mean())
    np.testing.assert_allclose(errors.mean() / size, extension.loo_error_)
    shifted = -extension.score(X, extension.transform(X) + np.array([3.0, 4.0]) * size)
    np.testing.assert_allclose(shifted, 5.0)
    assert extension.selection_[0].error == pytest.approx(extension.loo_error_)


def test_hash_collisions_are_resolved(monkeypatch):
    monkeypatch.setattr(
        "outsample.neighbors.duplicates.row_hashes", lambda start, stop, rows, out: out.fill(7)
    )
    X = np.array([[0.0], [1.0], [0.0], [2.0]])
    duplicates = find_duplicates(X)
    assert sorted(X[duplicates.rows, 0]) == [0, 1, 2] and sorted(duplicates.counts) == [1, 1, 2]
    duplicates = find_duplicates(sparse.csr_matrix(X))
    assert sorted(X[duplicates.rows, 0]) == [0, 1, 2]


@pytest.mark.kernels
def test_the_hash_of_a_row_depends_on_values_and_columns():
    X = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 2.0], [1.0, -0.0, 2.0], [1.0, 0.0, 2.0 + 1e-15]])
    dense, thin = np.empty(4, np.uint64), np.empty(4, np.uint64)
    kernels.row_hashes(0, 4, (X.view(np.uint64),), dense)
    rows = sparse.csr_matrix(X)
    parts = rows.data.view(np.uint64), rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    kernels.row_hashes(0, 4, parts, thin)
    np.testing.assert_array_equal(dense, thin)
    assert dense[0] == dense[2] and len(set(dense.tolist())) == 3


@pytest.mark.parametrize("k", [1, 3, 5, 26, 27])
def test_neighbours_with_ties_are_all_that_are_no_farther(k):
    grid = np.stack(np.meshgrid(*[np.arange(3.0)] * 3), axis=-1).reshape(-1, 3)
    index = NeighborIndex(grid)
    near, reach = with_ties(index, grid, index.nearest(grid, min(k + 1, 27)), k)
    distances = np.linalg.norm(grid[:, None] - grid, axis=2)
    for i in range(27):
        last = np.sort(distances[i])[k - 1]
        expected = np.flatnonzero(distances[i] <= last + 1e-9)
        actual = near.indices[near.indptr[i] : near.indptr[i + 1]]
        assert set(actual) == set(expected)
        beyond = distances[i][distances[i] > last + 1e-9]
        assert reach[i] == pytest.approx(beyond.min() if len(beyond) else np.inf)


def test_the_number_of_ties_is_limited():
    """All points of a simplex have equal distances."""
    simplex = np.eye(300)
    index = NeighborIndex(simplex)
    near, _ = with_ties(index, simplex[:4] / 2, index.nearest(simplex[:4] / 2, 8), 7)
    assert (np.diff(near.indptr) == MAX_TIE_FACTOR * 7 + MAX_EXTRA_TIES).all()
    assert (tied_sizes(near, 7) == np.diff(near.indptr)).all()
    scores = NoveltyDetector().fit(np.eye(60)).scores_
    np.testing.assert_allclose(scores, 0.0, atol=1e-9)


def test_only_distinct_points_are_searched():
    """80,000 rows of small counts have fewer than a thousand distinct points."""
    X = np.random.default_rng(6).poisson(0.3, (80_000, 6)).astype(float)
    detector = NoveltyDetector().fit(X)
    assert detector.model_.index.rows_searched < 5000
    assert len(detector.scores_) == 80_000


@pytest.mark.parametrize("weighting", ["tangent", "local_tangent"])
def test_a_ball_with_all_points_needs_bounded_memory(weighting):
    rng = np.random.default_rng(7)
    X = rng.random((3000, 3))
    tracemalloc.start()
    extension = PCAExtension(radius=5.0, weighting=weighting, **PAPER)
    placed = extension.fit(X, X[:, :2]).place(rng.random((1000, 3)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (placed.n_neighbors == 3000).all() and peak < 300e6
