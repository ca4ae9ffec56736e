"""NeighborLoss: the position at which one additional point increases the t-SNE loss least."""

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
    """Reduce leave-one-out samples, which do not affect the coordinates here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("outsample.placers.selection.FINAL_ROWS", 3)
        yield


@pytest.mark.kernels
@given(seed=st.integers(0, 10**6), k=st.integers(2, 30), perplexity=st.floats(1.5, 20))
def test_shares_have_the_perplexity(seed, k, perplexity):
    distances = np.sort(np.random.default_rng(seed).gamma(3.0, size=k)) + 1e-3
    shares = np.empty(k)
    kernels.affinities(distances, 0, k, perplexity, shares)
    np.testing.assert_allclose(
        shares, reference.perplexity_shares(distances, perplexity), atol=1e-7
    )
    assert shares.sum() == pytest.approx(1)
    if perplexity < k - 1:
        entropy = -(shares * np.log(shares + 1e-300)).sum()
        assert np.exp(entropy) == pytest.approx(perplexity, rel=1e-4)
    assert (np.diff(shares) <= 1e-15).all()  # nearer neighbours have larger shares


@pytest.mark.kernels
def test_shares_of_equal_distances_are_equal():
    for distances in (np.zeros(5), np.full(5, 3.0)):
        shares = np.empty(5)
        kernels.affinities(distances, 0, 5, 2.0, shares)
        np.testing.assert_allclose(shares, 0.2)


@pytest.mark.kernels
@pytest.mark.parametrize("d", [1, 2, 3])
@given(seed=st.integers(0, 10**6))
def test_the_position_minimises_the_loss(d, seed):
    """The loss is lower than at the nearest neighbours, and stationary."""
    X, Y, queries = random_map(seed, 40, 3, d)
    extension = PCAExtension(weighting=NeighborLoss(4.0, 0.7)).fit(X, Y)
    c, k = extension.model_.fitted.unit, 12
    for x, y in zip(queries, extension.transform(queries), strict=True):

        def loss(position, x=x):
            return reference.neighbor_loss(X, Y, x, position, k, 4.0, c)

        lowest = loss(y)
        near = reference.neighbors(X, x, k)[0]
        assert lowest <= min(loss(Y[row]) for row in near) + 1e-9
        # A further descent finds no much lower loss.
        better = optimize.minimize(loss, y, method="Nelder-Mead", options={"maxiter": 60})
        assert better.fun > lowest - 0.02


@pytest.mark.kernels
@given(seed=st.integers(0, 10**6))
def test_leave_one_out_does_not_use_the_row(seed):
    """Leave-one-out is a fit without the row, except for the fixed sum and the unit of the map."""
    X, Y, _ = random_map(seed, 60, 3, 2)
    extension = PCAExtension(weighting=NeighborLoss(4.0, 0.7)).fit(X, Y)
    fitted, model = extension.model_.fitted, extension.model_
    rows = np.arange(20)
    near = model.left_out(rows)
    moved = fitted.Z.copy()
    left_out = fitted.leave_out(rows, near)
    moved[5] += 100.0  # its own image has no influence
    crowd = fitted.crowd.copy()
    crowd -= np.where(
        np.arange(60) == 5, 0.0, 1 / (1 + ((fitted.Z - fitted.Z[5]) ** 2).sum(axis=1))
    )
    crowd += np.where(np.arange(60) == 5, 0.0, 1 / (1 + ((fitted.Z - moved[5]) ** 2).sum(axis=1)))
    crowd[5] += fitted.crowd.sum() - crowd.sum()  # the fixed sum does not change
    other = type(fitted)(
        fitted.placer, fitted.X, fitted.Y, None, moved, fitted.unit, crowd
    ).leave_out(rows, near)
    np.testing.assert_allclose(other[5], left_out[5], atol=1e-9)


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


def test_auto_selects_it_on_a_tsne_map():
    X, Y = tsne_like(700)
    extension = PCAExtension().fit(X[:600], Y[:600])
    placer = extension.model_.fitted.placer
    assert any(isinstance(part, NeighborLoss) for part in getattr(placer, "parts", (placer,)))
    without_it = PCAExtension(loss="absolute").fit(X[:600], Y[:600])
    assert extension.score(X[600:], Y[600:]) > without_it.score(X[600:], Y[600:])
    assert not any(isinstance(trial.placer, NeighborLoss) for trial in without_it.selection_)


def test_it_agrees_with_the_leave_one_out_map_in_the_units_of_tsne():
    X, Y = tsne_like(400)
    plain = NeighborLoss(20.0, 1.0)
    unit = PCAExtension(weighting=plain).fit(X[:350], Y[:350]).model_.fitted.unit
    ours = PCAExtension(weighting=NeighborLoss(20.0, 1 / unit)).fit(X[:350], Y[:350])
    theirs = loo_map(X[:350], Y[:350], 20.0)(X[350:])
    away = np.linalg.norm(ours.transform(X[350:]) - theirs, axis=1)
    assert np.median(away) < 0.05 and (away < 0.5).mean() > 0.8  # other minima


def test_auto_does_not_select_it_on_smooth_maps():
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
