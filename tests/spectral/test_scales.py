"""Typical distances and the slope rule."""

from __future__ import annotations

import numpy as np
import pytest

import reference
from outsample.spectral import scales


@pytest.mark.kernels
def test_median_nearest():
    X = np.random.default_rng(1).normal(size=(100, 2))
    sorted_distances = np.sort(reference.pairwise(X, X), axis=1)
    assert scales.median_nearest(X, 7) == pytest.approx(np.median(sorted_distances[:, 7]))
    assert scales.median_nearest(X[:3], 7) == pytest.approx(
        np.median(np.sort(reference.pairwise(X[:3], X[:3]), axis=1)[:, 2])
    )
    assert scales.median_nearest(np.ones((5, 2)), 2) == 1
    mostly = np.zeros((50, 1))
    mostly[-1] = 3
    assert scales.median_nearest(mostly, 2) == 3
