"""P-values, thresholds and false discoveries, against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outsample.trust.conformal import benjamini_hochberg, p_values, threshold

alphas = st.sampled_from([0.01, 0.05, 0.1, 0.2, 0.5]) | st.floats(1e-9, 0.5)
scores = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=40).map(np.array)


@given(scores, scores)
def test_p_value_counts_the_scores_at_least_as_high(new, calibration):
    expected = [(1 + sum(c >= s for c in calibration)) / (len(calibration) + 1) for s in new]
    np.testing.assert_allclose(p_values(new, np.sort(calibration)), expected)


@given(scores, scores, alphas)
def test_above_the_threshold_means_a_small_p_value(new, calibration, alpha):
    calibration = np.sort(calibration)
    above = new > threshold(calibration, alpha)
    np.testing.assert_array_equal(above, p_values(new, calibration) <= alpha)
    if len(calibration) + 1 < 1 / alpha:  # no p-value is as small as alpha
        assert not above.any()


@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=30).map(np.array), st.floats(0.01, 0.5))
def test_discoveries_by_the_step_up_rule(p, fdr):
    ranked = sorted(p)
    passed = [r for r in range(1, len(p) + 1) if ranked[r - 1] <= fdr * r / len(p)]
    cut = ranked[max(passed) - 1] if passed else -1.0
    np.testing.assert_array_equal(benjamini_hochberg(p, fdr), p <= cut)


def test_the_false_discovery_rate_is_kept():
    """2000 batches of 90 normal and 10 anomalous points; the standard error is about 0.003."""
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(2000):
        calibration = np.sort(rng.normal(size=500))
        new = np.r_[rng.normal(size=90), 3 + rng.normal(size=10)]
        discoveries = benjamini_hochberg(p_values(new, calibration), 0.2)
        shares.append(discoveries[:90].sum() / max(discoveries.sum(), 1))
    assert np.mean(shares) == pytest.approx(0.9 * 0.2, abs=0.01)
