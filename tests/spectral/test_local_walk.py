"""Diffusion maps with variable bandwidth: reference, known eigenfunctions, no spikes."""

from __future__ import annotations

import os
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn import datasets
from sklearn.preprocessing import scale

import reference
from outsample import DiffusionMaps
from outsample.spectral import eigenpairs, local_walk
from outsample.spectral.bridges import bridges, parts_of

DATA = Path(os.environ.get("OUTSAMPLE_DATA") or Path(__file__).parents[3] / "shared" / "data")


def participation(Y):
    """Return the minimum over columns of (sum c^2)^2 / (n sum c^4), which is 1/n for a spike."""
    c = Y - Y.mean(axis=0)
    return ((c**2).sum(axis=0) ** 2 / (len(c) * (c**4).sum(axis=0))).min()


@pytest.mark.parametrize("alpha, t", [(1.0, 1), (0.5, 2), (0.0, 0)])
@pytest.mark.parametrize("columns", [1, 2, 5], ids=["curve", "surface", "solid"])
def test_the_map_equals_the_reference(alpha, t, columns):
    rng = np.random.default_rng(columns)
    X, new = rng.normal(size=(90, columns)), rng.normal(size=(20, columns))
    maps = DiffusionMaps(n_components=3, alpha=alpha, t=t, n_neighbors=15).fit(X)
    own, placed, values = reference.local_diffusion_map(X, new, 15, alpha, t, 3)
    np.testing.assert_allclose(maps.eigenvalues_, values, rtol=1e-9)
    np.testing.assert_allclose(maps.embedding_, own, atol=1e-8)
    inside = np.abs(new).max(axis=1) < 2  # the reference differs far from the data
    np.testing.assert_allclose(maps.transform(new)[inside], placed[inside], atol=1e-8)


def drawn(rng, n, density, draw):
    """Return a sample of a density below 1, by rejection."""
    samples = draw(rng, 20 * n)
    return samples[rng.random(len(samples)) < density(samples)][:n]


def angles(rng, n):
    return rng.uniform(0, 2 * np.pi, n)


def waves(angle):
    return np.column_stack([np.cos(angle), np.sin(angle)])


def shapes(n, is_even):
    """Yield points of a circle, an interval, a sphere and a torus, with eigenfunctions."""
    rng = np.random.default_rng(0)

    def round_density(angle):
        return 1.0 if is_even else (1 + 0.7 * np.cos(angle)) / 1.7

    a, b = drawn(rng, n, round_density, angles), angles(rng, n)
    yield "circle", waves(a), [(slice(0, 2), waves(a)), (slice(2, 4), waves(2 * a))]
    x = drawn(rng, n, lambda x: 1.0 if is_even else (0.3 + x) / 1.3, lambda r, m: r.random(m))
    cosines = [(slice(i, i + 1), np.cos((i + 1) * np.pi * x)[:, None]) for i in range(2)]
    yield "interval", x[:, None], cosines
    P = rng.normal(size=(8 * n, 3))
    P /= np.linalg.norm(P, axis=1, keepdims=True)
    P = P[rng.random(len(P)) < (1.0 if is_even else (1 + 0.7 * P[:, 2]) / 1.7)][:n]
    yield "sphere", P, [(slice(0, 3), P)]
    torus = np.column_stack([waves(a), 0.7 * waves(b)])
    yield "torus", torus, [(slice(0, 2), waves(a)), (slice(2, 4), waves(b))]


@pytest.mark.parametrize("is_even", [True, False], ids=["uniform", "uneven"])
def test_known_eigenfunctions(is_even):
    """Eigenfunctions of the Laplacian for any density, on and off the training points."""
    for name, X, functions in shapes(1500, is_even):
        is_training = np.arange(len(X)) % 10 > 0
        maps = DiffusionMaps(n_components=4).fit(X[is_training])
        for columns, truth in functions:
            basis = np.column_stack([np.ones(is_training.sum()), maps.embedding_[:, columns]])
            turn, *_ = np.linalg.lstsq(basis, truth[is_training], rcond=None)
            new = np.column_stack(
                [np.ones((~is_training).sum()), maps.transform(X[~is_training])[:, columns]]
            )
            for features, expected in ((basis, truth[is_training]), (new, truth[~is_training])):
                left = ((features @ turn - expected) ** 2).mean() / expected.var(axis=0).mean()
                assert left < 0.025, (name, columns, left)


def sets():
    """Yield real data sets without labels."""
    yield "iris", datasets.load_iris().data
    yield "wine", scale(datasets.load_wine().data)
    yield "breast cancer", scale(datasets.load_breast_cancer().data)
    yield "digits", datasets.load_digits().data
    yield "swiss roll", datasets.make_swiss_roll(1500, random_state=0)[0]
    yield "blobs", datasets.make_blobs(1500, centers=3, random_state=0)[0]
    for path in sorted((DATA / "outliers").glob("*.npz")):
        with np.load(path, allow_pickle=False) as file:
            X = np.asarray(file["X"][file["y"] == 0], dtype=float)
        yield path.stem, scale(X[np.random.default_rng(0).permutation(len(X))[:1500]])


@pytest.mark.filterwarnings("ignore:The points fall into")
def test_no_coordinate_is_a_spike():
    """The outlier sets are optional; the others are part of scikit-learn."""
    for name, X in sets():
        maps = DiffusionMaps(n_components=5).fit(X)
        assert participation(maps.embedding_) >= 0.05, name


def test_classes_stay_together():
    """10-nearest-neighbour accuracy in the map of the digits: SpectralEmbedding has 0.89."""
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.neighbors import KNeighborsClassifier

    X, labels = datasets.load_digits(return_X_y=True)
    Y = DiffusionMaps(n_components=5).fit_transform(X)
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    assert cross_val_score(KNeighborsClassifier(10), Y, labels, cv=folds).mean() > 0.94


def test_more_neighbors_where_a_coordinate_is_a_spike():
    rng = np.random.default_rng(0)
    # A small cluster next to 1500 points: a coordinate for it would move few points.
    X = np.vstack([rng.normal(size=(1500, 4)), [4, 0, 0, 0] + 0.3 * rng.normal(size=(30, 4))])
    maps = DiffusionMaps(n_components=5).fit(X)
    assert maps.n_neighbors_ in (60, 120)
    assert participation(maps.embedding_) >= 0.05
    assert DiffusionMaps(n_neighbors=30).fit(X).n_neighbors_ == 30


def test_separate_components_are_joined():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 2)) + np.repeat([[0, 0], [1000, 0], [3000, 1000]], 100, axis=0)
    with pytest.warns(UserWarning, match="3 separate parts, connected by bridges"):
        maps = DiffusionMaps().fit(X)
    assert maps.n_parts_ == 3
    spread = [Y.std(axis=0).max() for Y in np.split(maps.embedding_, 3)]
    centers = [Y.mean(axis=0) for Y in np.split(maps.embedding_, 3)]
    min_distance = min(np.linalg.norm(centers[i] - centers[j]) for i, j in ((0, 1), (0, 2), (1, 2)))
    assert min_distance > 5 * max(spread)
    np.testing.assert_array_equal(maps.transform(X), maps.embedding_)
    with pytest.warns(UserWarning, match="3 separate parts"):
        assert DiffusionMaps(n_components="auto").fit(X).n_components_ == 2


def test_bridges_are_the_shortest_edges():
    X = np.concatenate([np.arange(5.0), np.arange(20.0, 23.0), np.arange(30.0, 34.0)])[:, None]
    parts = np.repeat([0, 1, 2], [5, 3, 4])
    pairs = {tuple(sorted(pair)) for pair in bridges(X, parts).tolist()}
    assert pairs == {(7, 8), (4, 5)}
    assert parts_of(np.eye(3)).tolist() == [0, 1, 2]


def test_duplicates_change_the_weight_of_a_point_not_its_bandwidth():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 3))
    often = np.vstack([X, np.repeat(X[:1], 50, axis=0)])
    maps = DiffusionMaps(n_neighbors=20).fit(often)
    assert (maps.embedding_[200:] == maps.embedding_[0]).all()
    assert maps.bandwidth_ == DiffusionMaps(n_neighbors=20).fit(X).bandwidth_
    assert participation(maps.embedding_) > 0.1


def test_auto_components():
    X = waves(np.linspace(0, 2 * np.pi, 400, endpoint=False))
    maps = DiffusionMaps(n_components="auto").fit(X)
    assert maps.n_components_ == maps.embedding_.shape[1] == len(maps.eigenvalues_) == 2
    assert len(maps.spectrum_) == 11
    np.testing.assert_array_equal(maps.spectrum_[:2], maps.eigenvalues_)
    assert DiffusionMaps(n_components="auto").fit(X[:2]).n_components_ == 1


def test_fewer_points_than_coordinates():
    X = np.repeat([[0.0], [1.0], [3.0]], 4, axis=0)
    maps = DiffusionMaps(n_components=5).fit(X)
    assert maps.embedding_.shape == (12, 5)
    np.testing.assert_array_equal(maps.embedding_[:, 2:], 0)
    assert np.isfinite(maps.transform([[2.0], [1e300]])).all()


@pytest.mark.parametrize("shape", ["circle", "swiss roll"])
def test_the_block_solver_agrees_with_the_dense_solver(shape, monkeypatch):
    """Lanczos does not converge on elongated data."""
    X = waves(np.random.default_rng(0).uniform(0, 2 * np.pi, 2500))
    if shape == "swiss roll":
        X = datasets.make_swiss_roll(2500, random_state=0)[0]
    monkeypatch.setattr(eigenpairs, "MAX_LANCZOS_PRODUCTS", 1)
    exact = DiffusionMaps(n_components=4).fit(X)
    monkeypatch.setattr(eigenpairs, "MAX_DENSE_ROWS", 2000)
    blocks = DiffusionMaps(n_components=4).fit(X)
    np.testing.assert_allclose(1 - blocks.eigenvalues_, 1 - exact.eigenvalues_, rtol=1e-6)
    basis = np.linalg.qr(blocks.embedding_)[0]
    left = exact.embedding_ - basis @ (basis.T @ exact.embedding_)
    assert np.abs(left).max() < 1e-3


def test_the_block_solver_without_factors(monkeypatch):
    def fails(*args, **kwargs):
        raise RuntimeError("Factor is exactly singular")

    X = np.random.default_rng(0).normal(size=(1100, 3))
    exact = DiffusionMaps(n_components=2).fit(X).eigenvalues_
    monkeypatch.setattr(eigenpairs, "MAX_LANCZOS_PRODUCTS", 1)
    monkeypatch.setattr(eigenpairs, "MAX_DENSE_ROWS", 1000)
    monkeypatch.setattr(eigenpairs, "spilu", fails)
    np.testing.assert_allclose(DiffusionMaps(n_components=2).fit(X).eigenvalues_, exact, rtol=1e-6)


def test_an_extension_visits_few_rows_and_equals_the_full_sum(monkeypatch):
    """Outliers with long bandwidths, a grid with ties, bandwidths over many orders."""
    rng = np.random.default_rng(0)
    grid = np.stack(np.meshgrid(*[np.arange(12.0)] * 2), axis=-1).reshape(-1, 2)
    X = np.concatenate([
        grid, rng.normal(size=(400, 2)), 0.001 * rng.normal(size=(300, 2)) + 30.0,
        60 * rng.normal(size=(60, 2)),
    ])  # fmt: skip
    Q = np.concatenate([grid[::3] + 0.5, grid[:5], rng.normal(size=(40, 2)) * 20, X[-3:] + 0.1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # separate parts
        maps = DiffusionMaps(n_components=3, n_neighbors=8).fit(X)
    expected = maps.transform(Q)
    before = pickle.dumps(maps)
    monkeypatch.setattr(local_walk, "MAX_SCANNED_ROWS", 50)
    monkeypatch.setattr(local_walk, "WALK_CHUNK_ROWS", 7)
    np.testing.assert_array_equal(maps.transform(Q), expected)
    assert pickle.dumps(maps) == before
    walk, new = maps.walk_, rng.normal(size=(50, 2)) * 20
    near = walk.index.nearest(new, walk.k + 2)
    _, starts, stops = walk._candidates(new, near, np.zeros(50, dtype=bool))
    assert (stops - starts).mean() < 0.1 * len(X)
