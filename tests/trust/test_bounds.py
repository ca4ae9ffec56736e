"""Certificates and bounds are never below the true error where they are guaranteed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outsample import PCAExtension
from outsample.trust.bounds import a_priori_bound

PAPER = {"order": 0, "loss": "squared"}
WEIGHTINGS = ["distance", "tangent", "local_tangent", "split_tangent"]

# Maps of the plane with a known Lipschitz constant.
MAPS = {
    "rotation": (lambda x: x @ np.array([[0.6, -0.8], [0.8, 0.6]]), 1.0),
    "stretch": (lambda x: x * [3.0, 0.5], 3.0),
    "sphere": (
        lambda x: np.column_stack(
            [np.sin(x[:, 0]) * np.cos(x[:, 1]), np.sin(x[:, 0]) * np.sin(x[:, 1]), np.cos(x[:, 0])]
        ),
        1.0,
    ),
    "waves": (lambda x: np.sin(5 * x), 5.0),
    "folds": (lambda x: np.abs(x - 0.3), 1.0),
    "constant": (lambda x: 0 * x + 7.0, 0.0),
}


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("weighting", WEIGHTINGS)
@given(seed=st.integers(0, 10**6), spread=st.sampled_from([0.01, 1.0, 30.0]))
def test_the_certificate_is_never_below_the_error(name, weighting, seed, spread):
    function, K = MAPS[name]
    rng = np.random.default_rng(seed)
    X = rng.random((50, 2))
    queries = np.vstack([rng.normal(size=(20, 2)) * spread, X[:5], X[:5] + 1e-12])
    extension = PCAExtension(weighting=weighting, lipschitz=K, n_neighbors=8, **PAPER)
    extension.fit(X, function(X))
    for points in (queries, queries.astype(np.float32)):
        placed = extension.place(points)
        error = np.linalg.norm(placed.coordinates - function(points.astype(np.float64)), axis=1)
        assert (placed.bound >= error).all()


@pytest.mark.parametrize("weighting", ["distance", "tangent", "split_tangent"])
@given(seed=st.integers(0, 10**6), name=st.sampled_from(sorted(MAPS)))
def test_the_a_priori_bound_holds_inside_the_ball(weighting, seed, name):
    function, K = MAPS[name]
    rng = np.random.default_rng(seed)
    X = rng.random((80, 2))
    Y = function(X)
    queries = rng.random((30, 2))
    placed = PCAExtension(weighting=weighting, radius=0.3, **PAPER).fit(X, Y).place(queries)
    inside = placed.n_neighbors >= Y.shape[1]
    error = np.linalg.norm(placed.coordinates - function(queries), axis=1)[inside]
    assert (error <= a_priori_bound(weighting, K, 0.3, Y.shape[1]) * (1 + 1e-12)).all()


def test_no_a_priori_bound_is_claimed_for_tangents_of_each_point():
    assert a_priori_bound("local_tangent", 1.0, 0.1, 2) == np.inf


def test_tangent_weights_can_leave_the_convex_hull():
    """The step "known to be in convex hull" of Theorem 5.3's proof does not hold."""
    X = np.array([[0.5], [1.5], [0.3]])
    Y = np.array([[1.0, 0.7], [-0.5, -0.2], [-0.3, -0.5]])
    extension = PCAExtension(weighting="tangent", n_neighbors=3, curvature=2.0, **PAPER)
    position = extension.fit(X, Y).transform([[0.0]])[0]
    barycentric = np.linalg.solve(np.vstack([Y.T, np.ones(3)]), np.r_[position, 1.0])
    assert barycentric.min() < -0.01
    axes = np.linalg.eigh(np.cov(Y.T))[1]  # but it is in the box of the eigenbasis
    assert ((Y @ axes).min(axis=0) <= position @ axes).all()
    assert ((Y @ axes).max(axis=0) >= position @ axes).all()


def test_the_estimated_constant():
    X = np.linspace(0, 1, 200)[:, None]
    assert PCAExtension(**PAPER).fit(X, 3 * X).lipschitz_ == pytest.approx(3.0)
    assert PCAExtension(n_neighbors=1, **PAPER).fit(X, 3 * X).lipschitz_ == pytest.approx(3.0)
    assert PCAExtension(radius=1e-6, **PAPER).fit(X, 3 * X).lipschitz_ == pytest.approx(3.0)
    assert PCAExtension(lipschitz=9, **PAPER).fit(X, 3 * X).lipschitz_ == 9.0
    torn = np.where(X < 0.5, X, X + 10)  # steep at the discontinuity
    assert PCAExtension(**PAPER).fit(X, torn).lipschitz_ > 1000
