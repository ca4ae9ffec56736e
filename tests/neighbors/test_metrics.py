"""Cosine distances and sparse points."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from laws.subjects import sparse_stays
from outsample import Correlated, PCAExtension
from outsample.neighbors.index import NeighborIndex

PAPER = {"order": 0, "loss": "squared"}


@pytest.fixture(scope="module")
def counts():
    """Rows like word counts, most entries 0, and a smooth map of them."""
    rng = np.random.default_rng(0)
    X = rng.poisson(0.4, (80, 30)) * rng.random((80, 30))
    X[:, 0] += 0.1
    Y = np.column_stack([np.sin(X[:, :10].sum(axis=1)), X[:, 10:].mean(axis=1)])
    return X[:60], Y[:60], X[60:]


VARIANTS = {
    "distance": {"weighting": "distance", "n_neighbors": 6, **PAPER},
    "tangent": {"weighting": "tangent", "n_neighbors": 6, **PAPER},
    "local": {"weighting": "local_tangent", "n_neighbors": 6, **PAPER},
    "ball": {"weighting": "distance", "radius": 0.9, **PAPER},
    "absolute": {"weighting": "distance", "n_neighbors": 6, "order": 0, "loss": "absolute"},
    "correlated": {"weighting": Correlated("matern52", 4.0, 1e-3), "n_neighbors": 9, **PAPER},
}


@pytest.mark.parametrize("name", [
    "distance", pytest.param("tangent", marks=pytest.mark.kernels), "local",
    pytest.param("ball", marks=pytest.mark.kernels), "absolute", "correlated",
])  # fmt: skip
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_sparse_equals_dense(counts, name, metric):
    X, Y, queries = counts
    extension = PCAExtension(metric=metric, index="brute", **VARIANTS[name])
    dense = extension.fit(X, Y).place(queries)
    with sparse_stays():
        thin = extension.fit(sparse.csr_matrix(X), Y).place(sparse.csr_matrix(queries))
    for field, left, right in zip(dense._fields, dense, thin, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-12, err_msg=field)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_sparse_defaults(counts, metric):
    X, Y, queries = counts
    with sparse_stays():
        extension = PCAExtension(metric=metric).fit(sparse.csr_matrix(X), Y)
    assert extension.order_ == 0
    batch = extension.transform(sparse.csr_array(queries))
    single = np.vstack(
        [extension.transform(sparse.csr_matrix(queries[i : i + 1])) for i in range(9)]
    )
    np.testing.assert_array_equal(single, batch[:9])
    np.testing.assert_array_equal(extension.transform(sparse.coo_matrix(X)), Y)


def test_cosine_ignores_length(counts):
    X, Y, queries = counts
    extension = PCAExtension(metric="cosine", n_neighbors=8, **PAPER).fit(X, Y)
    scale = np.random.default_rng(1).uniform(0.1, 100, (len(queries), 1))
    np.testing.assert_allclose(
        extension.transform(queries * scale), extension.transform(queries), rtol=1e-9
    )


def test_cosine_finds_the_neighbors_of_scikit_learn(counts):
    from sklearn.metrics.pairwise import cosine_distances

    X, Y, queries = counts
    distances = cosine_distances(queries, X)
    radius = float(np.median(np.sort(distances, axis=1)[:, 5]))
    placed = PCAExtension(metric="cosine", radius=radius, **PAPER).fit(X, Y).place(queries)
    np.testing.assert_array_equal(placed.n_neighbors, (distances <= radius).sum(axis=1))


def test_bad_input(counts):
    X, Y, _ = counts
    with sparse_stays(), pytest.raises(ValueError, match="order is 1, but must be 0"):
        PCAExtension(order=1).fit(sparse.csr_matrix(X), Y)
    with pytest.raises(ValueError, match="order is 2, but must be 0"):
        PCAExtension(order=2, metric="cosine").fit(X, Y)
    message = "index is 'kd_tree', but must be one of 'auto', 'brute'"
    with sparse_stays(), pytest.raises(ValueError, match=message):
        PCAExtension(index="kd_tree").fit(sparse.csr_matrix(X), Y)
    bad = sparse.csr_matrix(X)
    bad.data[3] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        PCAExtension().fit(bad, Y)


@pytest.mark.kernels
def test_sparse_search_among_duplicates_and_empty_rows():
    rng = np.random.default_rng(2)
    X = rng.integers(0, 2, (80, 6)) * 1.0
    X[::9] = 0
    thin, dense = NeighborIndex(sparse.csr_matrix(X)), NeighborIndex(X, "brute")
    for queries in (X, X[:2]):
        for left, right in zip(
            thin.nearest(sparse.csr_matrix(queries), 5), dense.nearest(queries, 5), strict=True
        ):
            np.testing.assert_array_equal(left, right)
