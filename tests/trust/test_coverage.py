"""Coverage of error bars by deciles."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from outsample import PCAExtension
from outsample.comparison.coverage import Coverage, coverage, mean_coverage, measure_coverage
from outsample.comparison.holdout import Case


class FixedPlacement:
    """An extension that places every point at 0, with given bars and isolation."""

    def __init__(self, bars, isolation):
        self.placed = SimpleNamespace(
            coordinates=np.zeros((len(bars), 1)), error_bar=bars, isolation=isolation
        )

    def place(self, X):
        return self.placed


def test_deciles_are_in_order():
    """100 points on a line; the errors of the last 25 are outside their bars."""
    q = np.arange(100.0)
    case = Case(np.linspace(-60, -40, 30)[:, None], None, q[:, None], (q >= 75.0)[:, None] * 9.0)
    result = coverage(FixedPlacement(1.0 + q[::-1] / 100, np.roll(q, 50)), case)
    assert result.share == 0.75 and result.width == pytest.approx(1.495)
    assert result.density.tolist() == [1.0] * 7 + [0.5, 0.0, 0.0]  # density falls with distance
    assert result.bar.tolist() == [0.0, 0.0, 0.5] + [1.0] * 7
    assert result.isolation.tolist() == [1.0, 1.0, 0.5, 0.0, 0.0] + [1.0] * 5
    assert result.lowest == 0.0


def test_few_points_leave_deciles_empty():
    case = Case(np.arange(4.0)[:, None], None, np.zeros((3, 1)), np.zeros((3, 1)))
    result = coverage(FixedPlacement(np.ones(3), np.arange(3.0)), case)
    assert result.share == result.lowest == 1.0 and np.isnan(result.bar).sum() == 7
    half = result._replace(share=0.5, bar=np.full(10, 0.5))
    mean = mean_coverage([result, half])
    assert mean.share == 0.75 and mean.bar[[0, -1]].tolist() == [0.75, 0.5]
    assert np.isnan(mean.density[-1])


def test_over_splits_of_a_map():
    X = np.random.default_rng(0).normal(size=(1200, 2))
    Y = np.sin(2 * X)
    cases = [Case(X[a:b], Y[a:b], X[900:], Y[900:]) for a, b in ((0, 450), (450, 900))]
    plain = {"weighting": "distance", "order": 0, "loss": "squared", "n_neighbors": 5}
    result = measure_coverage(lambda: PCAExtension(**plain), cases)
    parts = [coverage(PCAExtension(**plain).fit(case.X, case.Y), case) for case in cases]
    assert isinstance(result, Coverage) and result.share == np.mean([part.share for part in parts])
    np.testing.assert_allclose(result.bar, np.mean([part.bar for part in parts], axis=0))
    assert 0.85 < result.share < 0.95
