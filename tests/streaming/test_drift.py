"""Is the map out of date? False alarms, delays, calibrations that follow, refitting."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.decomposition import PCA

from outsample import NoveltyDetector, OnlineDiscoveries, PCAExtension, StreamingExtension
from outsample.streaming import discoveries
from outsample.streaming.drift_tests import (
    ALPHA,
    BETS,
    DELTA,
    MEAN_RUN,
    RATE,
    RateTest,
    RunTest,
    highest_rate,
    log_evidence,
)
from outsample.trust import calibration_window, conformal

WAY = {"weighting": "distance", "n_neighbors": 7, "order": 0, "loss": "squared"}


@pytest.mark.parametrize(("n", "strange"), [(0, 0), (1, 1), (40, 9), (300, 12), (900, 80)])
def test_evidence_is_the_integral(n, strange):
    highest = highest_rate(2000)

    def ratio(q):
        return (q / highest) ** strange * ((1 - q) / (1 - highest)) ** (n - strange)

    found = integrate.quad(ratio, highest, 1, points=[0.1, 0.2, 0.4], limit=200)[0] / (1 - highest)
    told = np.exp(log_evidence(np.array(n), np.array(strange), highest))
    np.testing.assert_allclose(told, found, rtol=1e-6)
    assert np.isfinite(log_evidence(np.array(10**6), np.array(4 * 10**5), highest))
    assert log_evidence(np.array(10**6), np.array(10), highest) < 0


def test_the_highest_rate_is_a_quantile_of_the_true_one():
    """Given the calibration, the rate of p <= a is Beta: tried on uniform scores."""
    rng, m = np.random.default_rng(0), 399
    drawn = np.sort(rng.random((4000, m)), axis=1)
    k = int(RATE * (m + 1))
    rates = 1 - drawn[:, m - k]  # p <= a exactly above this score
    p = conformal.p_values(np.array([drawn[0, m - k] + 1e-9]), drawn[0])
    assert p[0] <= RATE < conformal.p_values(np.array([drawn[0, m - k] - 1e-9]), drawn[0])[0]
    assert stats.kstest(rates, stats.beta(k, m + 1 - k).cdf).pvalue > 0.01
    assert abs((rates > highest_rate(m)).mean() - DELTA) < 0.004
    assert 0 < highest_rate(1) <= 1


def alarms(rng, n, m, repetitions):
    """Which of so many detectors ever alarm, each with a calibration of its own."""
    k = int(RATE * (m + 1))
    ever = np.zeros(repetitions, dtype=bool)
    for at in range(repetitions):
        rate = rng.beta(k, m + 1 - k)
        test = RateTest().after(rng.random(n) < rate, highest_rate(m))
        ever[at] = test.alarm_at > 0
    return ever


@pytest.mark.parametrize("m", [200, 2000])
def test_exchangeable_arrivals_raise_no_alarm(m):
    assert alarms(np.random.default_rng(m), 20_000, m, 100).mean() <= ALPHA + DELTA + 0.02


@pytest.mark.long
@pytest.mark.parametrize("m", [200, 2000, 20_000])
def test_hundred_thousand_arrivals_raise_no_alarm(m):
    """At most 1 % of the detectors, each asked after every one of 100,000 arrivals."""
    assert alarms(np.random.default_rng(m), 100_000, m, 1000).mean() <= ALPHA + DELTA


def test_a_doubled_rate_is_found_within_two_thousand_arrivals():
    rng, highest = np.random.default_rng(0), highest_rate(2000)
    delays = []
    for _ in range(50):
        test = RateTest().after(rng.random(5000) < 2 * RATE, highest)
        delays.append(test.alarm_at or 5000)
    assert np.median(delays) < 1000
    assert np.quantile(delays, 0.9) < 2000


def test_a_change_after_a_long_quiet_time_is_found_by_the_run():
    rng, highest = np.random.default_rng(0), highest_rate(2000)
    delays, false = [], 0
    for _ in range(10):
        quiet = RunTest().after(rng.random(20_000) < RATE, highest)
        false += quiet.n_alarms
        late = quiet.after(rng.random(3000) < 2 * RATE, highest)
        assert late.n_alarms > quiet.n_alarms  # and again, as long as it goes on
        delays.append(_first_alarm(quiet, rng, highest))
    assert false == 0
    assert np.median(delays) < 2000


def _first_alarm(test, rng, highest):
    before = test.n_alarms
    for at in range(1, 5000):
        test = test.after(np.array([rng.random() < 2 * RATE]), highest)
        if test.n_alarms > before:
            return at
    return 5000


def test_runs_between_false_alarms_are_long_enough(monkeypatch):
    """The mean run is at least what is asked for: tried where it is short."""
    monkeypatch.setattr("outsample.streaming.drift_tests.MEAN_RUN", 200.0)
    rng = np.random.default_rng(0)
    test = RunTest().after(rng.random(60_000) < 0.06, 0.06)
    assert 60_000 / max(test.n_alarms, 1) >= 200
    assert test.n_alarms > 5
    assert len(BETS) == len(test.sums) and MEAN_RUN >= 1e5


def test_parts_of_the_arrivals_are_tested_as_all_of_them():
    strange = np.random.default_rng(0).random(700) < 0.15
    for test in (RateTest(), RunTest()):
        whole, parts = test.after(strange, 0.06), test
        for some in np.array_split(strange, 9):
            parts = parts.after(some, 0.06)
        assert parts == whole


# Calibration by what arrives.


def turned_over(accepted_only, turnovers=20, window=1000, level=0.01, seed=0):
    """Share of p <= level, by turnover, of arrivals that are all alike."""
    rng = np.random.default_rng(seed)
    calibration = np.sort(rng.normal(size=window))
    latest, rates = rng.permutation(calibration), []
    for _ in range(turnovers):
        low = []
        for _ in range(20):
            new = rng.normal(size=window // 20)
            p = conformal.p_values(new, calibration)
            low.append(p <= level)
            if accepted_only:
                new = new[p > level]
            out, latest = latest[: len(new)], calibration_window.latest(latest, new, window)
            calibration = calibration_window.exchanged(calibration, out, new)
        rates.append(np.concatenate(low).mean())
    np.testing.assert_array_equal(calibration, np.sort(latest))
    return np.array(rates)


def test_only_accepted_arrivals_in_the_calibration_would_ruin_it():
    every = np.mean([turned_over(False, seed=seed) for seed in range(5)], axis=0)
    some = np.mean([turned_over(True, seed=seed) for seed in range(5)], axis=0)
    assert 0.007 < every[10:].mean() < 0.013
    assert some[9] > 0.1
    assert some[19] > 0.2


def test_scores_come_in_and_leave_as_they_should():
    """Whatever the parts in which they come, the calibration is that of the latest scores."""
    rng = np.random.default_rng(0)
    for m, window in ((300, 40), (30, 100), (50, 50)):
        originals, arrivals = np.sort(rng.normal(size=m)), rng.integers(0, 9, size=260) / 4.0
        kept, seen, calibration = np.empty(0), 0, originals
        for part in np.array_split(arrivals, 23):
            before, seen = seen, seen + len(part)
            gone = slice(*(calibration_window.originals_gone(m, n, window) for n in (before, seen)))
            out = originals[calibration_window.leaving_order(m)[gone]]
            more = max(len(kept) + len(part) - window, 0)
            calibration = calibration_window.exchanged(calibration, np.r_[out, kept[:more]], part)
            kept = calibration_window.latest(kept, part, window)
            expected = calibration_window.calibration_of(originals, kept, seen, window)
            np.testing.assert_array_equal(calibration, expected)
        assert len(calibration) == window


def plane(rng, n, shift=0.0):
    X = rng.normal(size=(n, 3)) + np.array([shift, 0.0, 0.0])
    return X, X[:, :2]


def streamed(seed=0, n=500, window=400, **options):
    rng = np.random.default_rng(seed)
    detector = NoveltyDetector(PCAExtension(**WAY), calibration="split").fit(*plane(rng, n))
    return StreamingExtension(detector, window=window, **options), rng


@pytest.mark.parametrize("options", [{"guard": 0.01, "delay": 0}, {"guard": 0.01}, {}])
def test_false_alarms_stay_at_their_level_over_ten_turnovers(options):
    stream, rng = streamed(**options)
    p = [stream.learn(plane(rng, 20)[0]).placement.p_value for _ in range(200)]
    late = np.concatenate(p[100:])
    assert abs((late <= 0.05).mean() - 0.05) < 0.02
    assert abs((late <= 0.01).mean() - 0.01) < 0.01
    assert stream.drift_.n_changes == 0
    assert not stream.needs_refit_
    assert str(stream.drift_).startswith("The map fits what arrives (4000 arrivals")
    assert stream.drift_.outside < 0.05


def test_a_shift_is_reported_and_learned():
    stream, rng = streamed(guard=0.01)
    for _ in range(20):
        stream.learn(plane(rng, 20)[0])
    assert not stream.needs_refit_
    first = stream.learn(plane(rng, 40, 2.5)[0]).placement.p_value
    for _ in range(60):
        stream.learn(plane(rng, 20, 2.5)[0])
    late = np.concatenate(
        [stream.learn(plane(rng, 20, 2.5)[0]).placement.p_value for _ in range(20)]
    )
    assert (first <= 0.05).mean() > 0.2
    assert (late <= 0.05).mean() < 0.12
    told = stream.drift_
    assert stream.needs_refit_ and told.reason
    assert 400 < told.alarm_at < 1200
    assert 400 < told.changed_at
    assert told.strange_rate > told.highest_rate
    assert told.outside > 0.02 and told.fill_growth > 1
    assert np.isfinite(told.loo_error) and np.isfinite(told.loo_trend)
    assert str(told).startswith("The map is out of date: from arrival ")


# A new map.


def test_refitting_makes_a_map_that_looks_like_the_old_one():
    rng = np.random.default_rng(0)
    detector = NoveltyDetector(PCAExtension(**WAY)).fit(*plane(rng, 300))
    stream = StreamingExtension(detector, guard=0.0, window=200)
    stream.learn(plane(rng, 150, 1.0)[0])
    X = stream._core.model_.search.index.X
    old = stream._core.model_.quality.Y

    class Turned(PCA):
        """A map that comes out turned, mirrored, scaled and shifted."""

        def fit_transform(self, X, y=None):
            return (X[:, :2] @ [[0.0, -3.0], [-3.0, 0.0]]) + 7.0

    fresh = stream.refit(Turned())
    assert fresh is not stream and fresh.n_seen_ == 0
    assert (fresh.window, fresh.guard) == (200, 0.0)
    np.testing.assert_allclose(fresh.place(X).coordinates, old, atol=1e-9)
    assert len(fresh.extension.training_rows_) == 450
    assert stream.n_seen_ == 150
    with pytest.raises(TypeError, match="fit_transform"):
        stream.refit(3)
    with pytest.raises(ValueError, match="as many columns"):
        stream.refit(PCA(1))
    alone = StreamingExtension(detector.extension_).refit(PCA(2))
    assert isinstance(alone.extension, PCAExtension)


# Discoveries in a stream.


def test_false_discoveries_are_under_control_and_true_ones_are_found():
    rng, shares, found = np.random.default_rng(0), [], []
    for _ in range(25):
        strange = rng.random(500) < 0.05
        p = np.where(strange, rng.random(500) * 1e-5, rng.random(500))
        picked = OnlineDiscoveries(fdr=0.1).test(p)
        shares.append((picked & ~strange).sum() / max(picked.sum(), 1))
        found.append((picked & strange).sum() / strange.sum())
    assert np.mean(shares) <= 0.1
    assert np.mean(found) > 0.8
    none = [OnlineDiscoveries(fdr=0.1).test(rng.random(500)).any() for _ in range(60)]
    assert np.mean(none) <= 0.16


def test_levels_are_those_of_the_formula_and_bad_ones_are_refused():
    online = OnlineDiscoveries(fdr=0.2)
    picked = np.concatenate([online.test([p]) for p in (0.9, 1e-9, 1e-9, 0.5)])
    np.testing.assert_array_equal(picked, [False, True, True, False])
    again = OnlineDiscoveries(fdr=0.2)
    np.testing.assert_array_equal(again.test([0.9, 1e-9, 1e-9, 0.5]), picked)
    assert again.discovered_at_ == online.discovered_at_ == [2, 3]

    def share(t):
        return 0.079 * np.log(max(t, 2)) / (t * np.exp(np.sqrt(np.log(t))))

    expected = 0.1 * share(4) + (0.2 - 0.1) * share(4 - 2) + 0.2 * share(4 - 3)
    np.testing.assert_allclose(again.level(), expected)
    for bad in (0, -1, 1, 1.0, 2, "a"):
        with pytest.raises((TypeError, ValueError), match="fdr"):
            OnlineDiscoveries(fdr=bad)
    for bad in ([0.5, np.nan], [2.0], [[0.1, 0.2]]):
        with pytest.raises(ValueError, match="p_values"):
            OnlineDiscoveries().test(bad)


def lord_level(t, discovered_at, fdr):
    """Level of LORD++ by its formula."""

    def share(age):
        return 0.079 * np.log(np.maximum(age, 2)) / (age * np.exp(np.sqrt(np.log(age))))

    earned = fdr * share(t - np.array([at for at in discovered_at if at < t], dtype=float))
    earned[1:] *= 2
    return fdr / 2 * share(t) + earned.sum() / 2


def test_levels_of_old_discoveries_are_just_below_the_formula():
    """And they fall with age, all of them: the guarantee needs no more."""
    rng, online = np.random.default_rng(0), OnlineDiscoveries(fdr=0.1)
    for _ in range(40):
        online.test(np.where(rng.random(100) < 0.1, 0.0, 1.0))
        expected = lord_level(online.n_tested_, online.discovered_at_, 0.1)
        assert 0.996 * expected <= online.level() <= expected * (1 + 1e-12)
    coefficients, factors = discoveries._exponentials()
    assert (coefficients > 0).all() and (factors < 1).all()
    ages = np.unique(np.geomspace(65, 1e12, 5000).round())
    shares = np.exp(np.log(factors) * (ages[:, None] - 65)) @ coefficients
    ratios = shares / [discoveries._share(age) for age in ages]
    assert 0.997 < ratios.min() and ratios.max() < 1.0001
    recent_total = sum(discoveries._share(age) for age in range(1, 65))
    assert recent_total + (coefficients / (1 - factors)).sum() <= 1


def test_a_level_is_a_number_before_and_after_a_discovery():
    online = OnlineDiscoveries(fdr=0.1)
    np.testing.assert_allclose(online.level(), lord_level(1, [], 0.1))
    assert online.test([0.0]).all()
    np.testing.assert_allclose(online.level(), lord_level(1, [], 0.1))


def test_a_p_value_costs_the_same_after_many_discoveries(monkeypatch):
    """Shares are taken of recent discoveries alone."""
    online, share, sizes = OnlineDiscoveries(fdr=0.1), discoveries._share, []
    assert online.test(np.zeros(1000)).all()
    monkeypatch.setattr(discoveries, "_share", lambda t: sizes.append(np.size(t)) or share(t))
    assert online.level() > 0 and sum(sizes) < 70
    assert len(online.discovered_at_) == 1000
