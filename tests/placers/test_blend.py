"""Blends: weights that minimise the error, selection, and placement."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse

from laws.subjects import sparse_stays
from outsample import Correlated, Diffusion, InverseDistance, NoveltyDetector, PCAExtension
from outsample.placers.blend import Blend
from outsample.placers.kriging import GaussianProcess
from outsample.placers.local import LocalPlacer
from outsample.placers.stacking import MIN_BLEND_ROWS

NEAR = LocalPlacer(InverseDistance(4.0), 4, 0, "squared", 1)
WIDE = LocalPlacer(Correlated("linear", 1.0, 0.0), 12, 1, "squared", 2)
MEDIAN = LocalPlacer(InverseDistance(8.0), 7, 0, "absolute", 1)


def rough(seed, n=300):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(2 * X @ rng.normal(size=(3, 2))) + 0.3 * rng.normal(size=(n, 2))


@pytest.mark.parametrize("other", [MEDIAN, Diffusion(1.0), GaussianProcess(Correlated())], ids=str)
def test_a_blend_is_the_mean_of_its_parts(other):
    X, Y = rough(0, 120)
    Q = np.random.default_rng(1).normal(size=(9, 3))
    blend = Blend((WIDE, NEAR, other), (0.5, 0.375, 0.125))
    extension = PCAExtension(weighting=blend).fit(X, Y)
    singles = [PCAExtension(weighting=Blend((part,), (1.0,))).fit(X, Y) for part in blend.parts]
    expected = np.tensordot(blend.shares, [single.transform(Q) for single in singles], 1)
    np.testing.assert_allclose(extension.transform(Q), expected, atol=1e-13)
    np.testing.assert_array_equal(extension.transform(X), Y)
    np.testing.assert_array_equal(extension.place(Q).coordinates, extension.transform(Q))
    left_out = [single.left_out_.coordinates for single in singles]
    np.testing.assert_allclose(
        extension.left_out_.coordinates, np.tensordot(blend.shares, left_out, 1), atol=1e-13
    )
    names = {"n_neighbors": 12, "order": 1, "loss": "squared", "tangent_dim": 2}
    assert {name: getattr(extension, f"{name}_") for name in names} == names
    assert extension.weighting_ == blend and extension.selection_ == []
    np.testing.assert_array_equal(extension.model_.fitted.placer.shares, blend.shares)


def test_a_blend_of_one_part_equals_that_part():
    X, Y = rough(1, 80)
    Q = X + 0.05
    single = PCAExtension(
        weighting=WIDE.weighting, n_neighbors=12, order=1, loss="squared", tangent_dim=2
    ).fit(X, Y)
    blend = PCAExtension(weighting=Blend((WIDE,), (1.0,))).fit(X, Y)
    for actual, expected in zip(blend.place(Q), single.place(Q), strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_all_parts_share_one_search():
    X, Y = rough(2)
    extension = PCAExtension(weighting=Blend((NEAR, WIDE, MEDIAN), (0.5, 0.25, 0.25))).fit(X, Y)
    for place in (extension.transform, extension.place):
        before = extension.index_.rows_searched
        place(X[:7] + 0.01)
        assert extension.index_.rows_searched == before + 7


def test_auto_blends_where_the_error_is_lower():
    X, Y = rough(3)
    extension = PCAExtension().fit(X, Y)
    blend, first = extension.weighting_, extension.selection_[0]
    assert isinstance(blend, Blend) and first.placer == blend and first.n_rows == len(X)
    assert first.error == pytest.approx(extension.loo_error_, rel=1e-9)
    assert first.error < min(trial.error for trial in extension.selection_[1:])
    tried = {trial.placer for trial in extension.selection_[1:]}
    assert tried.issuperset(blend.parts) and 2 <= len(blend.parts) <= 3
    again = PCAExtension(weighting=blend).fit(X, Y)
    Q = X[:20] + 0.1
    for actual, expected in zip(again.place(Q), extension.place(Q), strict=True):
        np.testing.assert_array_equal(actual, expected)
    copy = pickle.loads(pickle.dumps(extension))
    np.testing.assert_array_equal(copy.transform(Q), extension.transform(Q))


def test_a_blend_is_better_than_its_heaviest_part_on_new_points():
    gains = []
    for seed in range(6):
        X, Y = rough(seed, 1300)
        extension = PCAExtension().fit(X[:300], Y[:300])
        if not isinstance(extension.weighting_, Blend):
            continue
        single = PCAExtension(weighting=Blend(extension.weighting_.parts[:1], (1.0,)))
        single.fit(X[:300], Y[:300])
        gains.append(single.score(X[300:], Y[300:]) / extension.score(X[300:], Y[300:]))
    assert len(gains) >= 4 and np.mean(gains) > 1.01 and min(gains) > 0.99


def test_a_fixed_weighting_is_not_blended():
    X, Y = rough(3)
    for weighting in ("distance", "correlated", InverseDistance(4.0)):
        assert not isinstance(PCAExtension(weighting=weighting).fit(X, Y).weighting_, Blend)
    for name, value in {"order": 1, "loss": "absolute", "n_neighbors": 9}.items():
        extension = PCAExtension(**{name: value}).fit(X, Y)
        assert getattr(extension, f"{name}_") == value
        parts = getattr(extension.weighting_, "parts", ())
        assert all(getattr(part, name) == value for part in parts)


def test_few_points_are_not_blended():
    X, Y = rough(4, MIN_BLEND_ROWS - 1)
    assert not isinstance(PCAExtension().fit(X, Y).weighting_, Blend)


def test_the_text_of_a_blend():
    words = str(Blend((WIDE, Diffusion(2.0)), (0.75, 0.25)))
    assert words == (
        "0.75 x (Correlated(covariance='linear', length=1.0, nugget=0.0), 12 neighbours, order 1, "
        "squared loss) + 0.25 x (Diffusion(length=2.0, ridge=1e-09), all points)"
    )


def test_a_detector_accepts_a_blend():
    X, Y = rough(5)
    detector = NoveltyDetector(PCAExtension(weighting=Blend((NEAR, WIDE), (0.5, 0.5)))).fit(X, Y)
    far, usual = detector.abnormality(np.r_[X[:1] + 40, X[:1] + 0.01])
    assert far > usual


@pytest.mark.parametrize(
    ("blend", "settings", "words"),
    [
        (Blend((NEAR,), (0.5,)), {}, "of sum 1"),
        (Blend((NEAR, WIDE), (1.0,)), {}, "each of the 2 parts"),
        (Blend((NEAR, WIDE), (1.0, 0.0)), {}, "above 0"),
        (Blend((LocalPlacer(InverseDistance(-1.0), 3, 0, "squared", 1),), (1.0,)), {}, "power"),
        (Blend((NEAR,), (1.0,)), {"order": 0}, "settings of its own"),
        (Blend((NEAR,), (1.0,)), {"radius": 1.0}, "settings of its own"),
        (Blend((WIDE,), (1.0,)), {"metric": "cosine"}, "order 1 or 2"),
    ],
)
def test_invalid_blends_are_rejected(blend, settings, words):
    X, Y = rough(6, 40)
    with pytest.raises(ValueError, match=words):
        PCAExtension(weighting=blend, **settings).fit(X, Y)


def test_sparse_points_need_local_constants():
    X, Y = rough(7, 60)
    points = sparse.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
    dense = PCAExtension(weighting=Blend((NEAR, MEDIAN), (0.5, 0.5))).fit(points.toarray(), Y)
    thin = PCAExtension(weighting=Blend((NEAR, MEDIAN), (0.5, 0.5))).fit(points, Y)
    np.testing.assert_allclose(thin.transform(points[:9]), dense.transform(points[:9].toarray()))
    for part, words in ((WIDE, "order 1 or 2"), (Diffusion(1.0), "all-points part")):
        with sparse_stays(), pytest.raises(ValueError, match=words):
            PCAExtension(weighting=Blend((part,), (1.0,))).fit(points, Y)
