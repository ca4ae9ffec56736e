"""The expected error of a placement: reference, units, and coverage by deciles."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import reference
from outsample import Correlated, Extended, NoveltyDetector, PCAExtension
from outsample.trust import error_scale
from outsample.trust.error_bars import calibrated_bars, conformal_quantile, least_shifts
from outsample.trust.error_scale import ErrorScale, boosted_stumps, fitted_scale, lengths_around

NEAR = PCAExtension(weighting="distance", n_neighbors=8, order=0, loss="squared")
SMOOTH = PCAExtension(weighting=Correlated("gaussian", 4.0, 1e-6), n_neighbors=20, order=0,
                      loss="squared")  # fmt: skip


def normal_map(n, seed):
    """Return normal points in 3-D and a smooth map of them."""
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return X, np.column_stack([np.sin(X[:, 0]) + X[:, 1], X[:, 2] ** 2])


@pytest.mark.kernels
@pytest.mark.parametrize("points", ["drawn", "grid"])
@pytest.mark.parametrize("n", [3, 12, 90])
def test_lengths_around_placements(points, n):
    rng = np.random.default_rng(n)
    X, Q = rng.normal(size=(n, 2)), rng.normal(size=(6, 2))
    if points == "grid":
        X, Q = np.unique(np.round(X * 4), axis=0) / 4, np.round(Q * 4) / 4
    Y = rng.normal(size=(len(X), 3))
    extension = clone(NEAR).set_params(n_neighbors=2).fit(X, Y)
    solved = extension.model_.solve(Q)
    lengths = lengths_around(
        extension.model_.quality.Y, solved.near.closest(15), solved.coordinates
    )
    expected = [
        reference.lengths_around(X, Y, x, placed)
        for x, placed in zip(Q, solved.coordinates, strict=True)
    ]
    np.testing.assert_allclose(lengths, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("radius", "k"), [(0.2, 2), (0.2, 20), (2.0, 2), (2.0, 20)])
def test_balls_of_any_size_have_the_same_lengths(radius, k):
    """With a ball the placement differs, but not the neighbours of the error bar."""
    rng = np.random.default_rng(0)
    X, Y, Q = rng.normal(size=(90, 2)), rng.normal(size=(90, 2)), rng.normal(size=(6, 2))
    ball = clone(NEAR).set_params(radius=radius, n_neighbors=k).fit(X, Y)
    solved = ball.model_.solve(Q)
    lengths_of_queries = lengths_around(
        ball.model_.quality.Y, solved.near.closest(15), solved.coordinates
    )
    for x, placed, lengths in zip(Q, solved.coordinates, lengths_of_queries, strict=True):
        np.testing.assert_allclose(lengths, reference.lengths_around(X, Y, x, placed))
    bars = ball.place(Q).error_bar
    np.testing.assert_array_equal([ball.place(x[None]).error_bar[0] for x in Q], bars)


@pytest.mark.kernels
@pytest.mark.parametrize("seed", range(5))
def test_boosting_takes_the_best_cut_every_time(seed, monkeypatch):
    monkeypatch.setattr(error_scale, "MIN_STEP_ROWS", 4)
    monkeypatch.setattr(error_scale, "MAX_BOOSTING_ROUNDS", 25)
    rng = np.random.default_rng(seed)
    steps = rng.integers(0, 6, size=(5, 40))
    target = steps[0] - 0.5 * steps[2] + 0.2 * steps[3] * rng.normal(size=40)
    stumps = boosted_stumps(steps, target)
    path = stumps.path(steps)
    for rounds in (0, 1, 7, 25):
        values = stumps.values(rounds, 6)
        wanted = reference.boosted_steps(steps, target, 6, rounds, 0.1, 4, error_scale.RISING)
        np.testing.assert_allclose(values, wanted, atol=1e-9)
        sums = values[np.arange(5)[:, None], steps].sum(axis=0)
        np.testing.assert_allclose(path[:, rounds], sums, atol=1e-9)
    assert (np.diff(values[error_scale.RISING]) >= -1e-12).all()
    assert np.diff(values[2]).min() < 0  # g3 need not be increasing


def test_the_scale_recovers_known_errors():
    """Half-normal errors whose scale is a product of powers of three lengths."""
    rng = np.random.default_rng(0)
    around = np.exp(rng.uniform(-1.5, 1.5, size=(6000, 5)))
    size = around[:, 0] * around[:, 3] ** 0.5 / around[:, 2]
    errors = size * np.abs(rng.normal(size=6000))
    scale, expected = fitted_scale(around[:2000], np.log(errors[:2000]))
    # The logarithm of a half-normal variable has mean -0.635; the expectation is out of fold.
    assert np.corrcoef(expected, np.log(size[:2000]))[0, 1] > 0.97
    away = scale.log_errors(around[2000:]) - np.log(size[2000:]) + 0.635
    assert np.abs(away.mean()) < 0.05 and away.std() < 0.25
    bars = calibrated_bars(errors[:2000], around[:2000], np.ones(1), 1.0).radii(around[2000:])
    held = errors[2000:] <= bars
    assert held.mean() == pytest.approx(0.9, abs=0.02)
    for by in (*around[2000:].T, bars):
        deciles = [held[part].mean() for part in np.array_split(np.argsort(by), 10)]
        assert min(deciles) >= 0.8


def test_groups_with_larger_errors_get_larger_shifts():
    """The tenth of rows with the largest expectation has a large excess, the others a small one."""
    expected = np.arange(1000.0)
    excess = np.where(expected >= 900, 5.0, 0.0) + np.linspace(0, 1, 1000)
    knots, least = least_shifts(excess, expected, 0.9)
    assert knots[-1] == np.median(expected[900:]) and (np.diff(knots) > 0).all()
    assert least[-1] == conformal_quantile(excess[900:], 0.85) and least[0] < 1
    knots, least = least_shifts(excess, np.zeros(1000), 0.9)  # equal expectations: one knot
    assert knots.tolist() == [0.0] and least[0] == conformal_quantile(excess, 0.85)


def test_steps_are_plain_sums():
    scale = ErrorScale(np.array([[1.0, 2.0]] + [[np.inf, np.inf]] * 4), np.zeros((5, 3)))
    scale.values[0] = 1, 2, 3
    scale.values[1] = 10
    lengths = np.ones((3, 5)) * np.array([[1.0], [1.5], [2.5]])
    assert scale.log_errors(lengths).tolist() == [11, 12, 13]


@pytest.mark.parametrize(("n", "least"), [(400, 0.7), (1500, 0.8)])
def test_bars_cover_every_decile(n, least):
    """Deciles of isolation, density and bar width: ten samples of 1000 new points."""
    coverages = []
    for seed in range(10):
        X, Y = normal_map(n + 1000, seed)
        placed = clone(SMOOTH).fit(X[:n], Y[:n]).place(X[n:])
        is_covered = np.linalg.norm(placed.coordinates - Y[n:], axis=1) <= placed.error_bar
        distances_to_15th = np.sort(np.linalg.norm(X[n:, None] - X[:n], axis=2), axis=1)[:, 14]
        keys = placed.isolation, distances_to_15th, placed.error_bar
        coverages.append([[part.mean() for part in np.array_split(is_covered[np.argsort(by)], 10)]
                      for by in keys])  # fmt: skip
    deciles = np.mean(coverages, axis=0)
    assert 0.88 <= deciles.mean() <= 0.92
    assert deciles.min() >= least


@pytest.mark.parametrize("level", [0.5, 0.8, 0.99])
def test_the_level_is_the_coverage(level):
    coverages = []
    for seed in range(6):
        X, Y = normal_map(1500, seed)
        placed = clone(SMOOTH).set_params(level=level).fit(X[:700], Y[:700]).place(X[700:])
        is_covered = np.linalg.norm(placed.coordinates - Y[700:], axis=1) <= placed.error_bar
        coverages.append(is_covered.mean())
    error = (level * (1 - level) * (1 / 700 + 1 / 800) / 6) ** 0.5
    assert np.mean(coverages) == pytest.approx(level, abs=0.01 + 2 * error)


def test_levels_pass_through_and_are_checked():
    X, Y = normal_map(200, 0)
    wide, narrow = (clone(NEAR).set_params(level=level) for level in (0.99, 0.5))
    at = X[:7] + 0.1
    bars = [extension.fit(X, Y).place(at).error_bar for extension in (narrow, NEAR, wide)]
    assert (bars[0] < bars[1]).all() and (bars[1] < bars[2]).all()
    detector = NoveltyDetector(wide).fit(X, Y)
    np.testing.assert_array_equal(detector.place(at).error_bar, bars[2])

    class Given:
        def fit_transform(self, X, y=None):
            return Y

    extended = Extended(Given(), wide).fit(X)
    np.testing.assert_array_equal(extended.place(at).error_bar, bars[2])
    for bad in (0.0, 0.49, 0.995, 1, "90 %", None, True):
        with pytest.raises(ValueError, match=r"level is .*, but must be a number from 0.5 to 0.99"):
            clone(NEAR).set_params(level=bad).fit(X, Y)


@pytest.mark.parametrize("name", ["near", "smooth"])
def test_units_rotations_and_the_order_of_rows(name):
    extension = {"near": NEAR, "smooth": SMOOTH}[name]
    X, Y = normal_map(500, 3)
    X[30:50] = X[:20]  # duplicates with different images
    Q = np.vstack([normal_map(40, 4)[0], X[:5], [[30.0, 0.0, 0.0]]])
    bars = clone(extension).fit(X, Y).place(Q).error_bar
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    order = np.random.default_rng(1).permutation(500)

    def moved(X, Y, Q):
        return clone(extension).fit(X, Y).place(Q).error_bar

    np.testing.assert_allclose(moved(X[order], Y[order], Q), bars, rtol=1e-12)
    np.testing.assert_allclose(moved(X @ turn, Y, Q @ turn), bars, rtol=1e-6)
    np.testing.assert_allclose(moved(X + 3, Y - 5, Q + 3), bars, rtol=1e-6)
    for c in (2.0**-300, 3.7, 1e100):
        np.testing.assert_allclose(moved(X * c, Y, Q * c), bars, rtol=1e-6)
        np.testing.assert_allclose(moved(X, Y * c, Q), bars * c, rtol=1e-6)
    fitted = clone(extension).fit(X, Y)
    alone = [fitted.place(x[None]).error_bar[0] for x in Q]
    np.testing.assert_array_equal(alone, bars)


@pytest.mark.parametrize("n", [3, 4, 6, 20, 59, 60, 61, 80])
@pytest.mark.parametrize("kind", ["drawn", "whole numbers", "one place", "tiny", "huge"])
def test_bars_are_finite_for_degenerate_data(n, kind):
    rng = np.random.default_rng(n)
    X, Y = rng.normal(size=(n, 2)), rng.normal(size=(n, 2))
    if kind == "whole numbers":
        X = np.round(X)
    if kind == "one place":
        X[:-2] = X[0]
    X, Y = X * {"tiny": 1e-200, "huge": 1e150}.get(kind, 1.0), Y * {"huge": 1e200}.get(kind, 1.0)
    Q = np.vstack([X[:2], X.mean(axis=0), 1e3 * X[-1:]])
    bars = clone(NEAR).set_params(n_neighbors=2).fit(X, Y).place(Q).error_bar
    assert np.isfinite(bars).all() and (bars >= 0).all()


def test_no_bar_among_the_data_is_wider_than_the_largest_error():
    """With two distinct errors, no bar is outside their range."""
    rng = np.random.default_rng(0)
    around = rng.random((300, 5))
    errors = np.where(rng.random(300) < 0.15, 5.0, 1e-9)
    bars = calibrated_bars(errors, around, np.ones(1), 1.0)
    radii = bars.among(rng.random((1000, 5)))
    assert radii.max() <= 5.0 and (radii > 1e-10).all()
