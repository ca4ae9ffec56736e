"""Neighbour queries: row numbers including duplicates, weights and votes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

from outsample import Blend, Correlated, InverseDistance, NoveltyDetector, PCAExtension
from outsample.placers.local import LocalPlacer
from outsample.trust.votes import means, votes

PLAIN = {"weighting": "distance", "order": 0, "loss": "squared", "n_neighbors": 6}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4))
X[100:] = X[:20]  # duplicates
Y = np.column_stack([X[:, 0] + X[:, 1] ** 2, X[:, 2]]) + 0.1 * RNG.normal(size=(120, 2))
Q = np.vstack([RNG.normal(size=(30, 4)), X[:3]])
NARROW = LocalPlacer(InverseDistance(4.0), 3, order=0, loss="squared", tangent_dim=1)
WIDE = LocalPlacer(InverseDistance(2.0), 10, order=0, loss="squared", tangent_dim=1)
DETECTORS = {
    "extension": PCAExtension(**PLAIN),
    "cosine": PCAExtension(**PLAIN, metric="cosine"),
    "ball": PCAExtension(weighting="distance", order=0, loss="squared", radius=1.0),
    "tangent": PCAExtension(weighting="local_tangent", order=0, loss="squared"),
    "blend": PCAExtension(weighting=Blend((NARROW, WIDE), (0.75, 0.25))),
    "detector": NoveltyDetector(PCAExtension(**PLAIN)),
    "halves": NoveltyDetector(PCAExtension(**PLAIN), calibration="split"),
}


@pytest.mark.parametrize("name", DETECTORS)
def test_neighbours_equal_those_of_scikit_learn(name):
    model = DETECTORS[name].fit(X, Y)
    training_rows = getattr(model, "training_rows_", np.arange(len(X)))
    metric = "cosine" if name == "cosine" else "euclidean"
    expected = NearestNeighbors(metric=metric).fit(X[training_rows]).kneighbors(Q, 7)
    distances, indices = model.kneighbors(Q, 7)
    np.testing.assert_allclose(distances, expected[0], atol=1e-7)
    assert np.isin(indices, training_rows).all()
    away = np.linalg.norm(Q[:, None] - X[indices], axis=2)
    if metric == "euclidean":
        np.testing.assert_allclose(distances, away, atol=1e-12)
    assert all(len(set(row)) == 7 for row in indices.tolist())


def test_every_row_is_a_neighbour_of_few_points():
    model = PCAExtension(**PLAIN).fit(X[:9], Y[:9])
    _, indices = model.kneighbors(Q, 9)
    assert (np.sort(indices, axis=1) == np.arange(9)).all()
    for wrong in (0, 10, 2.5):
        with pytest.raises(ValueError, match=r"n_neighbors is .* from 1 to 9"):
            model.kneighbors(Q, wrong)


@pytest.mark.parametrize("name", DETECTORS)
def test_weights_sum_to_one_and_nearer_rows_weigh_more(name):
    model = DETECTORS[name].fit(X, Y)
    weights = model.neighbor_weights(Q)
    assert weights.shape == (len(Q), len(X)) and weights.data.min() >= 0
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-12)
    if hasattr(model, "training_rows_"):
        assert np.isin(weights.indices, model.training_rows_).all()
    alone = sparse.vstack([model.neighbor_weights(row[None]) for row in Q])
    assert (alone != weights).nnz == 0  # bit for bit
    distances, indices = model.kneighbors(Q, 3)
    is_equal = (X[:, None] == X).all(axis=2).astype(int)
    n_duplicates = is_equal @ np.isin(np.arange(len(X)), weights.indices)
    near = np.take_along_axis(weights.toarray() * n_duplicates, indices, axis=1)
    is_farther = np.diff(distances, axis=1) > 1e-9
    if name != "tangent":
        assert (np.diff(near, axis=1)[is_farther] <= 1e-12).all()


@pytest.mark.parametrize("name", ["extension", "cosine", "ball", "blend"])
def test_weights_place_the_point(name):
    model = DETECTORS[name].fit(X, Y)
    np.testing.assert_allclose(model.neighbor_weights(Q) @ Y, model.transform(Q), atol=1e-9)


def test_a_point_on_a_training_point_has_its_weight_there_shared_by_copies():
    weights = PCAExtension(**PLAIN).fit(X, Y).neighbor_weights(X[[50, 3]]).toarray()
    assert weights[0, 50] == 1 and weights[1, [3, 103]].tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    "weighting",
    ["auto", "correlated", "diffusion", Correlated("gaussian"), lambda r: (r < 1e-3) * 1.0],
)
@pytest.mark.filterwarnings("ignore:The kernel falls:UserWarning")
def test_models_without_weights_use_distance_weights(weighting):
    model = PCAExtension(weighting=weighting, order=0, loss="squared").fit(X, Y)
    far = np.vstack([Q, 1e6 * Q[:1], np.full((1, 4), 1e200)])
    weights = model.neighbor_weights(far)
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-12)


def test_without_a_map_there_are_neighbours_but_no_weights():
    model = NoveltyDetector().fit(X)
    assert model.kneighbors(Q, 4).indices.shape == (len(Q), 4)
    with pytest.raises(ValueError, match="no weights"):
        model.neighbor_weights(Q)


def test_sparse_points_have_the_dense_neighbours():
    thin = np.where(np.abs(X) > 0.7, X, 0.0)
    model = PCAExtension(**PLAIN).fit(sparse.csr_matrix(thin), Y)
    dense = PCAExtension(**PLAIN).fit(thin, Y)
    for left, right in zip(model.kneighbors(Q, 5), dense.kneighbors(Q, 5), strict=True):
        np.testing.assert_allclose(left, right, atol=1e-12)
    np.testing.assert_allclose(
        model.neighbor_weights(Q).toarray(), dense.neighbor_weights(Q).toarray(), atol=1e-12
    )


def test_votes_and_means_agree_with_a_loop():
    shares = sparse.csr_matrix(RNG.dirichlet(np.ones(6), size=40) * (RNG.random((40, 6)) < 0.6))
    codes, values = np.array([0, 1, 2, -1, 1, 0]), np.array([1.0, np.nan, 3.0, -2.0, np.nan, 7.0])
    label, confidence = votes(shares, codes, 3)
    mean, deviation = means(shares, values)
    for i, row in enumerate(shares.toarray()):
        cast = [row[codes == c].sum() for c in range(3)]
        if sum(cast) == 0:
            assert label[i] == -1 and confidence[i] == 0
        else:
            assert label[i] == np.argmax(cast)
            assert confidence[i] == pytest.approx(max(cast) / sum(cast))
        has_value = ~np.isnan(values)
        if row[has_value].sum() == 0:
            assert np.isnan(mean[i]) and np.isnan(deviation[i])
        else:
            expected = np.average(values[has_value], weights=row[has_value])
            assert mean[i] == pytest.approx(expected)
            spread = np.average((values[has_value] - expected) ** 2, weights=row[has_value])
            assert deviation[i] == pytest.approx(np.sqrt(spread), abs=1e-12)
    without_labels = votes(shares, np.full(6, -1), 0)
    assert (without_labels[0] == -1).all() and (without_labels[1] == 0).all()
