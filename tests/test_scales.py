"""Typical distances and the slope rule."""

from __future__ import annotations

import numpy as np
import pytest

import reference
from outsample.kernel import scales


@pytest.mark.kernels
def test_median_nearest():
    X = np.random.default_rng(1).normal(size=(100, 2))
    apart = np.sort(reference.pairwise(X, X), axis=1)
    assert scales.median_nearest(X, 7) == pytest.approx(np.median(apart[:, 7]))
    assert scales.median_nearest(X[:3], 7) == pytest.approx(
        np.median(np.sort(reference.pairwise(X[:3], X[:3]), axis=1)[:, 2])
    )
    assert scales.median_nearest(np.ones((5, 2)), 2) == 1
    mostly = np.zeros((50, 1))
    mostly[-1] = 3
    assert scales.median_nearest(mostly, 2) == 3


def test_the_slope_rule_finds_the_steepest_bandwidth():
    X = np.random.default_rng(2).normal(size=(300, 2))
    squares = scales.squared_distance_sample(X)
    found = scales.slope_bandwidth(squares)
    grid = 2.0 ** np.arange(-16, 8, 0.05)
    sums = np.log([np.exp(-squares / epsilon).sum() for epsilon in grid])
    steepest = grid[np.argmax(np.gradient(sums, np.log(grid)))]
    assert abs(np.log2(found / steepest)) < 0.26
    scaled = scales.slope_bandwidth(squares * 16)
    assert scaled == pytest.approx(16 * found)
    assert scales.slope_bandwidth(np.zeros((3, 3))) == 1
