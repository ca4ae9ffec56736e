"""Error bars cover 90 % of new points and grow away from the data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.manifold import Isomap

from outsample import Correlated, PCAExtension
from outsample.trust.error_bars import LEVEL, calibrated_bars, conformal_quantile

PAPER = {"order": 0, "loss": "squared"}
MODELS = {
    "tangent": PCAExtension(weighting="tangent", n_neighbors=10, **PAPER),
    "plane": PCAExtension(weighting="distance", n_neighbors=12, order=1, loss="squared"),
    "median": PCAExtension(weighting="distance", n_neighbors=7, order=0, loss="absolute"),
    "correlated": PCAExtension(weighting=Correlated("linear", 1.0, 0.0), n_neighbors=15, **PAPER),
}
MAPS = {
    "smooth": lambda X: np.column_stack([np.sin(4 * X[:, 0]), X[:, 1] ** 2]),
    "torn": lambda X: X + np.where(X[:, :1] > 0.5, [10.0, 0.0], [0.0, 0.0]),
}


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60), st.floats(0.01, 0.99))
def test_the_quantile_is_the_ranked_score(scores, level):
    rank = min(int(np.ceil((len(scores) + 1) * level)), len(scores))
    assert conformal_quantile(np.array(scores), level) == sorted(scores)[rank - 1]


def test_the_quantile_covers_a_new_score_with_its_level():
    """Over 4000 draws of 19 scores and a new one; the standard error is 0.0047."""
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(4000, 20))
    covered = [draw[-1] <= conformal_quantile(draw[:-1], 0.9) for draw in draws]
    assert np.mean(covered) == pytest.approx(0.9, abs=3 * 0.0047)


def coverage(extension, X, Y, X_new, Y_new):
    placed = extension.fit(X, Y).place(X_new)
    return (np.linalg.norm(placed.coordinates - Y_new, axis=1) <= placed.error_bar).mean()


def assert_covers(coverages, n_calibration, n_new):
    """Mean coverage is 0.88 to 0.92, up to two standard errors.

    One split has the variance ``0.9 * 0.1 * (1 / n_calibration + 1 / n_new)``: the calibration is
    a sample as well.
    """
    split_error = (LEVEL * (1 - LEVEL) * (1 / n_calibration + 1 / n_new)) ** 0.5
    error = split_error / len(coverages) ** 0.5
    assert error < 0.01  # otherwise the test has little power
    assert 0.88 - 2 * error <= np.mean(coverages) <= 0.92 + 2 * error


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", MAPS)
def test_coverage_on_new_points(name, kind):
    coverages = []
    for seed in range(8):  # fresh points every time
        X = np.random.default_rng(seed).random((1200, 2))
        Y = MAPS[kind](X)
        coverages.append(coverage(MODELS[name], X[:600], Y[:600], X[600:], Y[600:]))
    assert_covers(coverages, 600, 600)


@pytest.fixture(scope="module")
def digits():
    X = load_digits().data[:900]
    return X, Isomap(n_neighbors=10).fit_transform(X)


@pytest.mark.parametrize("name", MODELS)
def test_coverage_on_digits(digits, name):
    """Isomap of 900 digits, seven splits; they share rows, so the error is slightly larger."""
    X, Y = digits
    coverages = []
    for seed in range(7):
        rows = np.random.default_rng(seed).permutation(900)
        train, test = rows[:500], rows[500:]
        coverages.append(coverage(MODELS[name], X[train], Y[train], X[test], Y[test]))
    assert_covers(coverages, 500, 400)


def test_coverage_of_the_selected_model(digits):
    """The same rows select the model and calibrate it; coverage is still in range."""
    X, Y = digits
    coverages = []
    for seed in range(7):
        rows = np.random.default_rng(seed).permutation(900)
        train, test = rows[:500], rows[500:]
        extension = PCAExtension(weighting="distance", order=0)
        coverages.append(coverage(extension, X[train], Y[train], X[test], Y[test]))
    assert_covers(coverages, 500, 400)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", MAPS)
@given(seed=st.integers(0, 10**6))
def test_bars_grow_along_a_ray_away_from_the_data(name, kind, seed):
    rng = np.random.default_rng(seed)
    X = rng.random((200, 2))
    direction = rng.normal(size=2)
    ray = 0.5 + np.outer(
        np.r_[np.linspace(2, 40, 30), 1e3, 1e6], direction / np.linalg.norm(direction)
    )
    bars = MODELS[name].fit(X, MAPS[kind](X)).place(ray).error_bar
    assert (np.diff(bars) > 0).all()
    assert bars[-1] > 1e3 * bars[0]


def test_the_radius_in_its_parts():
    """With few rows the scale is the spread; beyond the data the bar grows with distance."""
    errors, around = np.arange(1.0, 51.0), np.tile([2.0, 3.0, 4.0, 1.0, 1.0], (50, 1))
    bars = calibrated_bars(errors, around, np.full(50, 3.0), 1.0)
    assert bars[4:] == (50.0, 46 / 1.1, 0.1, 3.0, 2.0, 50.0)
    queries = np.tile(around[0], (4, 1))
    queries[:, 0] = 2.0, 3.0, 4.0, 5.0
    expected = [46, (50 * (50 + 3)) ** 0.5, 50 + 6, 50 + 9]
    np.testing.assert_allclose(bars.radii(queries), expected)
    assert np.isfinite(bars.radii(np.full((1, 5), 1e308))).all()


def test_a_constant_map_has_no_error():
    X = np.random.default_rng(0).random((50, 2))
    placed = MODELS["tangent"].fit(X, np.ones((50, 2))).place(X + 0.01)
    np.testing.assert_array_equal(placed.error_bar, 0)
