"""Laplacian pyramids: leave-one-out stop, reference, analytic truth."""

import numpy as np
import pytest
from scipy import sparse

import reference
from outsample import LaplacianPyramids
from outsample.spectral import smoothing
from outsample.spectral.scales import squared_diameter
from outsample.spectral.smoothing import Smoother


def wavy(n, seed=0, D=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    return X, np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 0]]), rng.normal(size=(20, D))


@pytest.mark.kernels
@pytest.mark.parametrize("stop", ["auto", "tolerance"])
def test_pyramid_equals_the_reference(stop):
    X, Y, queries = wavy(60)
    model = LaplacianPyramids(stop=stop, initial_scale=8.0, ratio=2.0, max_levels=5).fit(X, Y)
    values, errors = reference.pyramid(X, Y, queries, model.scales_)
    np.testing.assert_allclose(model.transform(queries), values, rtol=1e-10, atol=1e-12)
    if stop == "auto":
        errors = reference.pyramid_left_out(X, Y, model.scales_)
    # The mean of the map is subtracted before the first level and added at the end.
    size = np.sqrt(((Y - Y.mean(axis=0)) ** 2).sum(axis=1).mean())
    np.testing.assert_allclose(model.errors_, errors / size, rtol=1e-10)
    np.testing.assert_allclose(model.scales_, 8.0 / 2.0 ** np.arange(model.levels_))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("ratio", [2.0, 2**0.5])
def test_the_stop_is_the_minimum_of_brute_force_leave_one_out(seed, ratio):
    X, Y, _ = wavy(80, seed)
    Y = Y + 0.05 * np.random.default_rng(seed).normal(size=Y.shape)
    top = squared_diameter(X)
    model = LaplacianPyramids(initial_scale=top, ratio=ratio).fit(X, Y)
    max_halvings = int(np.log2(top / (np.median(np.sort(reference.pairwise(X, X))[:, 1]) / 8) ** 2))
    errors = reference.pyramid_left_out(
        X,
        Y - Y.mean(axis=0),
        top / ratio ** np.arange(int(max_halvings * np.log(2) / np.log(ratio))),
    )
    assert model.levels_ == np.argmin(errors) + 1
    size = np.sqrt(((Y - Y.mean(axis=0)) ** 2).sum(axis=1).mean())
    np.testing.assert_allclose(model.errors_, errors[: model.levels_] / size, rtol=1e-9)


def test_the_best_candidate_is_selected():
    X, Y, _ = wavy(150)
    model = LaplacianPyramids().fit(X, Y)
    best = model.selection_[0]
    assert best.error == min(candidate.error for candidate in model.selection_)
    assert best.levels == model.levels_ and best.initial_scale == model.scales_[0]
    for candidate in model.selection_[:4]:
        errors = reference.pyramid_left_out(
            X, Y, candidate.initial_scale / candidate.ratio ** np.arange(candidate.levels)
        )
        size = np.sqrt(((Y - Y.mean(axis=0)) ** 2).sum(axis=1).mean())
        assert errors[-1] / size == pytest.approx(candidate.error, rel=1e-9)


def test_tolerance_is_met_and_the_paper_halves():
    X, Y, _ = wavy(200)
    model = LaplacianPyramids(stop="tolerance", tolerance=1e-4).fit(X, Y)
    assert model.errors_[-1] <= 1e-4 < model.errors_[-2]
    np.testing.assert_allclose(model.scales_[:-1] / model.scales_[1:], 2.0)
    np.testing.assert_allclose(model.transform(X), Y, atol=1e-3)
    assert LaplacianPyramids(stop="tolerance", max_levels=2).fit(X, Y).levels_ == 2


@pytest.mark.parametrize("others_only", [True, False])
@pytest.mark.parametrize("kept", [0, 2**24])
def test_neighbours_chunks_and_all_pairs_agree(others_only, kept, monkeypatch):
    monkeypatch.setattr(smoothing, "KERNEL_CHUNK_ENTRIES", 1000)
    monkeypatch.setattr(smoothing, "MAX_STORED_PAIRS", kept)
    X, Y, _ = wavy(300)
    X[7] = X[8]
    for points in (X, sparse.csr_matrix(X)):
        smoother = Smoother(points)
        for scale in (10.0, 0.5, 0.1, 0.02):
            answer = smoother.smooth(Y, scale, others_only=others_only)
            expected = reference.smoothing_weights(X, X, scale, others_only) @ Y
            np.testing.assert_allclose(answer, expected, atol=1e-10)


def test_error_falls_with_n_on_a_circle():
    errors = []
    at = np.random.default_rng(0).uniform(0, 2 * np.pi, 50)
    for n in (30, 60, 240):
        angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
        circle = [np.column_stack([np.cos(a), np.sin(a)]) for a in (angle, at)]
        placed = LaplacianPyramids().fit(circle[0], np.sin(3 * angle)).transform(circle[1])
        errors.append(np.abs(placed[:, 0] - np.sin(3 * at)).mean())
    assert errors[1] < errors[0] / 4 and errors[2] < errors[1] / 4 and errors[2] < 1e-4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stop": "never"}, "stop is 'never'"),
        ({"tolerance": -1.0}, "tolerance is -1.0"),
        ({"initial_scale": 0.0}, "initial_scale is 0.0"),
        ({"ratio": 1.0}, "ratio is 1.0"),
        ({"max_levels": 0}, "max_levels is 0"),
        ({"n_jobs": 0}, "n_jobs is 0"),
    ],
)
def test_bad_parameters_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        LaplacianPyramids(**changes).fit(*wavy(20)[:2])
