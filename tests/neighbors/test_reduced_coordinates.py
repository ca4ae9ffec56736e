"""Points with many columns: distances by products, and neighbourhoods in fewer coordinates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from outsample import PCAExtension
from outsample.neighbors.index import NeighborIndex
from outsample.neighbors.reduced_coordinates import reduce_columns
from outsample.placers import problem
from outsample.spectral import affinity


@pytest.mark.kernels
@pytest.mark.parametrize("scale", [1.0, 2.0**-600, 2.0**600])
def test_distances_by_products_are_accurate_for_near_pairs(monkeypatch, scale):
    monkeypatch.setattr(affinity, "PRODUCT_CHUNK_ROWS", 16)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, affinity.PRODUCT_COLUMNS)) + 30.0
    X[1], X[40] = X[0] + 1e-9 * X[2], X[3] + 0.3
    distances = affinity.distances(X * scale)
    expected = cdist(X, X) * scale
    np.testing.assert_allclose(distances, expected, rtol=1e-12)
    assert (distances == distances.T).all() and (np.diag(distances) == 0).all()
    np.testing.assert_array_equal(affinity.distances(X * scale, n_jobs=2), distances)


@pytest.mark.parametrize("rank", [2, 300])
def test_neighbourhoods_keep_their_distances(rank):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, rank)) @ rng.normal(size=(rank, 300))
    near = NeighborIndex(X).nearest(X[:7] + 0.01, 12)
    reduced = reduce_columns(cdist(X, X), X[:, :2], near)
    for i, rows in enumerate(near.indices.reshape(7, 12)):
        Z = reduced.X[i * 12 : (i + 1) * 12]
        np.testing.assert_allclose(cdist(Z, Z), cdist(X[rows], X[rows]), rtol=1e-9, atol=1e-9)
        lengths = near.distances[i * 12 : (i + 1) * 12]
        np.testing.assert_allclose(np.linalg.norm(Z - reduced.Q[i], axis=1), lengths, rtol=1e-6)
        np.testing.assert_array_equal(reduced.Y[i * 12 : (i + 1) * 12], X[rows, :2])


def test_many_columns_change_neither_the_selection_nor_the_errors(monkeypatch):
    rng = np.random.default_rng(0)
    L = rng.random((200, 2))
    X = np.sin(L @ rng.normal(size=(2, 300))) + 0.01 * rng.normal(size=(200, 300))
    reduced = PCAExtension().fit(X, L)
    monkeypatch.setattr(problem, "MAX_KEPT_DISTANCES_ROWS", 0)
    plain = PCAExtension().fit(X, L)
    first, second = ([trial.placer for trial in fit.selection_[:9]] for fit in (reduced, plain))
    assert first == second
    errors = [{trial.placer: trial.error for trial in fit.selection_} for fit in (reduced, plain)]
    for placer in errors[0].keys() & errors[1].keys():
        assert errors[0][placer] == pytest.approx(errors[1][placer], rel=1e-5)
    Q = X[:9] + 0.01
    np.testing.assert_allclose(reduced.transform(Q), plain.transform(Q), rtol=1e-6)
