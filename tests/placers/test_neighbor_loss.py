"""Placing where one more point adds least to the loss of t-SNE."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

import reference
from maps import random_map
from outsample import PCAExtension
from outsample._compiled import neighbor_loss as kernels
from outsample.placers.neighbor_loss import NeighborLoss
from outsample_lab.accuracy.loo_map import loo_map


@pytest.fixture(autouse=True, scope="module")
def quick_fit():
    """Spend no time on leave-one-out, on which the coordinates do not depend here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("outsample.placers.selection.FINAL_ROWS", 3)
        yield


@pytest.mark.kernels
@given(seed=st.integers(0, 10**6), k=st.integers(2, 30), perplexity=st.floats(1.5, 20))
def test_shares_have_the_perplexity(seed, k, perplexity):
    distances = np.sort(np.random.default_rng(seed).gamma(3.0, size=k)) + 1e-3
    found = np.empty(k)
    kernels.affinities(distances, 0, k, perplexity, found)
    np.testing.assert_allclose(found, reference.perplexity_shares(distances, perplexity), atol=1e-7)
    assert found.sum() == pytest.approx(1)
    if perplexity < k - 1:
        entropy = -(found * np.log(found + 1e-300)).sum()
        assert np.exp(entropy) == pytest.approx(perplexity, rel=1e-4)
    assert (np.diff(found) <= 1e-15).all()  # the nearer, the more


@pytest.mark.kernels
def test_shares_of_equal_distances_are_alike():
    for distances in (np.zeros(5), np.full(5, 3.0)):
        found = np.empty(5)
        kernels.affinities(distances, 0, 5, 2.0, found)
        np.testing.assert_allclose(found, 0.2)


@pytest.mark.kernels
@pytest.mark.parametrize("d", [1, 2, 3])
@given(seed=st.integers(0, 10**6))
def test_the_place_has_the_least_loss(d, seed):
    """Lower than at the nearest neighbours, and stationary."""
    X, Y, queries = random_map(seed, 40, 3, d)
    extension = PCAExtension(weighting=NeighborLoss(4.0, 0.7)).fit(X, Y)
    c, k = extension.model_.fitted.unit, 12
    for x, y in zip(queries, extension.transform(queries), strict=True):

        def loss(place, x=x):
            return reference.neighbor_loss(X, Y, x, place, k, 4.0, c)

        least = loss(y)
        near = reference.neighbors(X, x, k)[0]
        assert least <= min(loss(Y[row]) for row in near) + 1e-9
        # A descent from there finds nothing that is much better.
        better = optimize.minimize(loss, y, method="Nelder-Mead", options={"maxiter": 60})
        assert better.fun > least - 0.02


@pytest.mark.kernels
@given(seed=st.integers(0, 10**6))
def test_a_row_left_out_is_not_seen(seed):
    """Leave-one-out is a fit without the row, but for the frozen sum and the unit of the map."""
    X, Y, _ = random_map(seed, 60, 3, 2)
    extension = PCAExtension(weighting=NeighborLoss(4.0, 0.7)).fit(X, Y)
    fitted, model = extension.model_.fitted, extension.model_
    rows = np.arange(20)
    near = model.left_out(rows)
    moved = fitted.Z.copy()
    found = fitted.leave_out(rows, near)
    moved[5] += 100.0  # the own image says nothing
    crowd = fitted.crowd.copy()
    crowd -= np.where(
        np.arange(60) == 5, 0.0, 1 / (1 + ((fitted.Z - fitted.Z[5]) ** 2).sum(axis=1))
    )
    crowd += np.where(np.arange(60) == 5, 0.0, 1 / (1 + ((fitted.Z - moved[5]) ** 2).sum(axis=1)))
    crowd[5] += fitted.crowd.sum() - crowd.sum()  # the frozen sum stays
    other = type(fitted)(
        fitted.placer, fitted.X, fitted.Y, None, moved, fitted.unit, crowd
    ).leave_out(rows, near)
    np.testing.assert_allclose(other[5], found[5], atol=1e-9)


@pytest.mark.kernels
def test_a_training_point_keeps_its_image_and_far_points_stay_on_the_map():
    X, Y, _ = random_map(3, 80, 3, 2)
    extension = PCAExtension(weighting=NeighborLoss(5.0)).fit(X, Y)
    np.testing.assert_array_equal(extension.transform(X), Y)
    far = extension.transform(np.array([[1e200, 0.0, 0.0], [0.0, -1e9, 5.0]]))
    assert (np.abs(far) < 3 * np.abs(Y).max()).all()


def tsne_like(n):
    from sklearn.datasets import load_digits
    from sklearn.manifold import TSNE

    X = load_digits().data[:n]
    return X, TSNE(random_state=0, max_iter=500).fit_transform(X).astype(float)


def test_auto_takes_it_on_a_map_by_tsne():
    X, Y = tsne_like(700)
    extension = PCAExtension().fit(X[:600], Y[:600])
    placer = extension.model_.fitted.placer
    assert any(isinstance(part, NeighborLoss) for part in getattr(placer, "parts", (placer,)))
    others = PCAExtension(loss="absolute").fit(X[:600], Y[:600])
    assert extension.score(X[600:], Y[600:]) > others.score(X[600:], Y[600:])
    assert not any(isinstance(trial.placer, NeighborLoss) for trial in others.selection_)


def test_it_agrees_with_the_leave_one_out_map_in_the_units_of_tsne():
    X, Y = tsne_like(400)
    plain = NeighborLoss(20.0, 1.0)
    unit = PCAExtension(weighting=plain).fit(X[:350], Y[:350]).model_.fitted.unit
    ours = PCAExtension(weighting=NeighborLoss(20.0, 1 / unit)).fit(X[:350], Y[:350])
    theirs = loo_map(X[:350], Y[:350], 20.0)(X[350:])
    away = np.linalg.norm(ours.transform(X[350:]) - theirs, axis=1)
    assert np.median(away) < 0.05 and (away < 0.5).mean() > 0.8  # some start in another valley


def test_auto_does_not_take_it_elsewhere():
    rng = np.random.default_rng(0)
    X = rng.random((400, 3))
    extension = PCAExtension().fit(X, np.sin(3 * X[:, :2]))
    assert "NeighborLoss" not in str(extension.model_.fitted.placer)
    tried = [trial for trial in extension.selection_ if trial.placer == NeighborLoss()]
    assert len(tried) == 1 and tried[0].n_rows <= 150


def test_parameters_outside_their_range():
    X, Y, _ = random_map(0, 30, 3, 2)
    for wrong in (NeighborLoss(0.0), NeighborLoss(5.0, -1.0)):
        with pytest.raises(ValueError, match="weighting"):
            PCAExtension(weighting=wrong).fit(X, Y)
    with pytest.raises(ValueError, match="settings of its own"):
        PCAExtension(weighting=NeighborLoss(), loss="absolute").fit(X, Y)
