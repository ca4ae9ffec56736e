"""NoveltyDetector: formula, laws, p-values, explanations."""

from __future__ import annotations

import pickle
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA, KernelPCA
from sklearn.metrics import roc_auc_score

import reference
from outsample import (
    Extended,
    NoveltyDetector,
    NystroemExtension,
    PCAExtension,
    StreamingExtension,
)
from outsample.neighbors.duplicates import find_duplicates
from outsample.neighbors.index import NeighborIndex
from outsample.trust.abnormality import training_scores

seeds = st.integers(0, 10**6)
ALPHAS = np.array([0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2])
PAPER = {"weighting": "tangent", "order": 0, "loss": "squared"}
SCORED = ["nearest_distance", "plane_distance", "relative_distance"]


def surface(rng, n, D=5, noise=0.02):
    """Return noisy points of a curved surface in D dimensions, denser on one side."""
    flat = rng.random((n, 2)) ** [2, 1]
    X = np.column_stack([flat, np.sin(3 * flat[:, 0]), flat[:, 1] ** 2, flat.prod(axis=1)])[:, :D]
    return X + noise * rng.normal(size=X.shape), flat


def points(seed, n=60, q=15):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [3, 1, 0.2]
    return X, np.concatenate([X[:3], rng.normal(size=(q - 3, 3)) * [4, 2, 2]])


@given(seeds)
def test_abnormality_is_that_of_the_formula(seed):
    X, Q = points(seed)
    detector = NoveltyDetector().fit(X)
    left_out, scores = reference.abnormality(X, Q)
    np.testing.assert_allclose(detector.scores_, np.sort(left_out), atol=1e-6)
    np.testing.assert_allclose(detector.abnormality(Q), scores, atol=1e-6)


@given(seeds)
def test_batch_single_and_shuffled_agree_to_the_bit(seed):
    X, Q = points(seed)
    detector = NoveltyDetector().fit(X)
    before = pickle.dumps(detector)
    whole = detector.abnormality(Q)
    order = np.random.default_rng(seed).permutation(len(Q))
    np.testing.assert_array_equal(detector.abnormality(Q[order]), whole[order])
    np.testing.assert_array_equal([detector.abnormality(x[None])[0] for x in Q], whole)
    np.testing.assert_array_equal(NoveltyDetector(n_jobs=2).fit(X).abnormality(Q), whole)
    assert pickle.dumps(detector) == before


@given(seeds, st.sampled_from([1e-6, 1.0, 1e6]))
def test_shift_rotation_and_scale_change_nothing(seed, size):
    X, Q = points(seed)
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    shift = rng.normal(size=3)
    moved = NoveltyDetector().fit(size * (X @ turn + shift))
    np.testing.assert_allclose(
        moved.abnormality(size * (Q @ turn + shift)),
        NoveltyDetector().fit(X).abnormality(Q),
        atol=1e-5,
    )


@given(seeds, st.sampled_from(["cloud", "sheet", "heavy tail", "duplicates"]))
def test_abnormality_grows_along_rays_away_from_the_data(seed, kind):
    """Beyond the isolation of the most isolated training point, along any ray from the mean."""
    rng = np.random.default_rng(seed)
    X = {
        "cloud": lambda: rng.normal(size=(200, 3)),
        "sheet": lambda: surface(rng, 200)[0][:, :3],
        "heavy tail": lambda: rng.standard_t(2, size=(200, 3)),
        "duplicates": lambda: np.repeat(rng.normal(size=(10, 3)), 20, axis=0),
    }[kind]()
    detector = NoveltyDetector().fit(X)
    middle = X.mean(axis=0)
    reach = np.linalg.norm(X - middle, axis=1).max()
    direction = rng.normal(size=3)
    direction *= reach / np.linalg.norm(direction)
    ray = middle + np.outer(np.r_[np.linspace(1, 5, 60), 10.0, 100.0, 1e6, 1e12], direction)
    scores = detector.abnormality(ray)
    far = detector.explain(ray[:60])
    beyond = np.array([e.reasons["nearest_distance"].p_value <= 1 / 201 + 1e-12 for e in far])
    beyond = np.r_[beyond, [True] * 4]
    assert beyond[20:].all() or kind == "heavy tail"
    first = np.argmax(beyond)
    assert (np.diff(scores[first:]) > 0).all()
    assert (scores[:first] <= scores[first:].min()).all()


def test_far_points_have_the_highest_scores_and_stay_ranked():
    X = np.random.default_rng(0).normal(size=(300, 4))
    detector = NoveltyDetector().fit(X)
    scores = detector.abnormality(np.outer([10.0, 1e3, 1e30, 1e200], np.ones(4)))
    assert (np.diff(scores) > 0).all() and np.isfinite(scores).all()
    assert scores[0] > detector.scores_[-1]
    np.testing.assert_allclose(detector.p_values([[1e200] * 4]), 1 / 301)


def test_an_empty_ball_has_the_highest_score():
    rng = np.random.default_rng(0)
    X, flat = surface(rng, 300)
    extension = PCAExtension(radius=0.3, **PAPER)
    detector = NoveltyDetector(extension).fit(X, flat)
    rays = X.mean(axis=0) + np.outer(np.linspace(0, 30, 400), np.ones(5))
    placed = detector.place(np.concatenate([X, rays]))
    empty = placed.n_neighbors == 0
    assert empty.any() and not empty.all()
    assert placed.abnormality[empty].min() > placed.abnormality[~empty].max()
    assert np.isfinite(placed.abnormality).all()


def test_repeated_rows_give_finite_scores():
    """Half of the rows are equal; a local outlier factor has infinite scores here."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(200, 2)), np.zeros((200, 2))])
    detector = NoveltyDetector().fit(X)
    inside, outside = rng.normal(size=(200, 2)), 8 + rng.normal(size=(50, 2))
    scores = detector.abnormality(np.concatenate([inside, outside]))
    assert np.isfinite(scores).all() and np.isfinite(detector.scores_).all()
    assert roc_auc_score(np.repeat([0, 1], [200, 50]), scores) > 0.99
    assert (detector.predict(np.zeros((3, 2))) == 1).all()


@pytest.mark.parametrize(
    "X", [np.ones((5, 2)), np.zeros((5, 2)), np.array([[0.0], [1.0]]), 1e300 * np.eye(4)]
)
def test_degenerate_training_sets_give_finite_scores(X):
    detector = NoveltyDetector().fit(X)
    scores = detector.abnormality(np.concatenate([X, X + 1]))
    assert np.isfinite(scores).all() and np.isfinite(detector.scores_).all()


def test_constant_columns_change_little():
    X, Q = points(0)
    wide = NoveltyDetector().fit(np.column_stack([X, np.ones(60), np.zeros(60)]))
    scores = wide.abnormality(np.column_stack([Q, np.ones(15), np.zeros(15)]))
    np.testing.assert_allclose(scores, NoveltyDetector().fit(X).abnormality(Q), atol=1e-9)


@pytest.mark.parametrize("n_repeats", [40, pytest.param(200, marks=pytest.mark.long)])
def test_split_p_values_are_valid(capsys, n_repeats):
    """P(p <= a) <= a over repetitions, each with new training and test points."""
    hits = np.zeros((n_repeats, len(ALPHAS)))
    for seed in range(n_repeats):
        rng = np.random.default_rng(seed)
        X = surface(rng, 3200, D=3)[0]
        detector = NoveltyDetector(calibration="split", random_state=seed).fit(X[:3000])
        hits[seed] = (detector.p_values(X[3000:])[:, None] <= ALPHAS).mean(axis=0)
    shares, errors = hits.mean(axis=0), hits.std(axis=0) / np.sqrt(n_repeats)
    with capsys.disabled():
        print("\n   a      P(p <= a)   standard error")
        for row in zip(ALPHAS, shares, errors, strict=True):
            print("{:7.3f}   {:.5f}     {:.5f}".format(*row))
    assert (shares <= ALPHAS + 3 * errors).all()
    assert (shares >= 0.9 * np.floor(ALPHAS * 1501) / 1501 - 3 * errors).all()


def test_leave_one_out_p_values_are_nearly_valid():
    shares = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = surface(rng, 1000)[0]
        p = NoveltyDetector().fit(X[:500]).p_values(X[500:])
        shares.append((p[:, None] <= [0.01, 0.05, 0.1]).mean(axis=0))
    np.testing.assert_allclose(np.mean(shares, axis=0), [0.01, 0.05, 0.1], rtol=0.35)


@pytest.mark.parametrize("calibration", ["leave-one-out", "split"])
def test_predict_is_the_p_value_against_alpha(calibration):
    X, Q = points(0, n=400, q=200)
    detector = NoveltyDetector(calibration=calibration, alpha=0.1).fit(X)
    np.testing.assert_array_equal(detector.predict(Q) == -1, detector.p_values(Q) <= 0.1)
    np.testing.assert_array_equal(
        detector.decision_function(Q), -detector.abnormality(Q) - detector.offset_
    )


def test_discoveries_find_the_anomalous_rows():
    rng = np.random.default_rng(0)
    X = surface(rng, 2000)[0]
    batch = np.concatenate([surface(rng, 190)[0], 3 + rng.random((10, 5))])
    discoveries = NoveltyDetector().fit(X).discoveries(batch, fdr=0.1)
    assert discoveries[190:].all() and discoveries[:190].sum() <= 3


def test_place_returns_coordinates_and_scores():
    rng = np.random.default_rng(0)
    X, flat = surface(rng, 300)
    detector = NoveltyDetector(PCAExtension(n_neighbors=10, **PAPER)).fit(X, flat)
    placed = detector.place(X[:5] + 0.01)
    plain = PCAExtension(n_neighbors=10, **PAPER).fit(X, flat).place(X[:5] + 0.01)
    for name in plain._fields:
        np.testing.assert_array_equal(getattr(placed, name), getattr(plain, name))
    np.testing.assert_array_equal(placed.abnormality, detector.abnormality(X[:5] + 0.01))
    np.testing.assert_array_equal(placed.p_value, detector.p_values(X[:5] + 0.01))


def test_named_columns_and_single_precision_are_kept():
    X, flat = surface(np.random.default_rng(0), 100)
    frame = pd.DataFrame(X, columns=list("abcde"))
    detector = NoveltyDetector(PCAExtension(n_neighbors=5, **PAPER)).fit(frame, flat)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        placed = detector.place(frame[:3])
        detector.explain(frame[:1])
    np.testing.assert_array_equal(placed.abnormality, detector.abnormality(frame[:3]))
    assert detector.place(frame[:3].astype(np.float32)).coordinates.dtype == np.float32
    with pytest.raises(ValueError, match="feature names"):
        detector.abnormality(frame[:3].rename(columns={"a": "z"}))


def test_a_map_does_not_change_the_scores():
    X, flat = surface(np.random.default_rng(0), 200)
    with_map, without = NoveltyDetector().fit(X, flat), NoveltyDetector().fit(X)
    np.testing.assert_array_equal(with_map.scores_, without.scores_)


def test_explanations_contain_the_reason_and_the_neighbours():
    X = np.column_stack([np.linspace(0, 1, 200), np.zeros(200), np.zeros(200)])
    detector = NoveltyDetector(PCAExtension(n_neighbors=5, **PAPER)).fit(X, X[:, :1])
    off_plane, far = detector.explain([[0.5, 0.004, 0.0], [50.0, 0.0, 0.0]])
    assert off_plane.main_reason == "plane_distance" and far.main_reason == "nearest_distance"
    assert list(off_plane.reasons) == [*SCORED, "residual", "dispersion"]
    assert off_plane.neighbors[0] in (99, 100) and far.neighbors[0] == 199
    assert far.distances[0] == 49.0
    value, typical, p = off_plane.reasons["plane_distance"]
    distances = detector.model_.training.distances.plane_distance
    assert p == (1 + (distances >= value).sum()) / 201 and typical == np.median(distances)
    text = str(far)
    assert "nearest_distance" in text and "row 199 at 49" in text and "p = 0.00498" in text


def test_explanations_of_a_split_use_row_numbers_of_x():
    X = np.arange(100.0)[:, None]
    detector = NoveltyDetector(calibration="split").fit(X)
    explanation = detector.explain([[30.2]])[0]
    assert list(explanation.reasons) == SCORED
    np.testing.assert_allclose(np.abs(X[explanation.neighbors, 0] - 30.2), explanation.distances)


def test_extended_computes_its_own_map():
    X = load_digits().data[:200]
    detector = NoveltyDetector(Extended(PCA(2))).fit(X)
    assert detector.place(X[:3]).coordinates.shape == (3, 2)
    assert len(detector.explain(X[:1])[0].reasons) == 5


def test_cosine_distance_is_that_of_the_extension():
    rng = np.random.default_rng(0)
    X = rng.random((100, 4)) + 0.1
    detector = NoveltyDetector(PCAExtension(metric="cosine")).fit(X)
    np.testing.assert_allclose(detector.abnormality(7 * X), detector.abnormality(X), atol=1e-6)


@pytest.mark.parametrize("calibration", ["leave-one-out", "split"])
@pytest.mark.parametrize("n_copies", [1, 3])
def test_fit_predict_leaves_each_training_row_out(calibration, n_copies):
    """A share alpha of the rows is abnormal: those with the smallest p-values."""
    X = np.repeat(np.random.default_rng(0).normal(size=(301, 3)), n_copies, axis=0)
    detector = NoveltyDetector(calibration=calibration, alpha=0.05)
    labels = detector.fit_predict(X)
    assert labels.shape == (len(X),) and set(labels) == {-1, 1}
    assert 0.03 <= (labels == -1).mean() <= 0.07
    if calibration == "leave-one-out" and n_copies == 1:
        assert (labels == -1).sum() == 15
        rows = np.flatnonzero(labels == -1)
        for row in rows[:3]:
            alone = NoveltyDetector(alpha=0.06).fit(np.delete(X, row, axis=0))
            assert alone.predict(X[[row]]) == -1
        frame = pd.DataFrame(X, columns=["a", "b", "c"])
        np.testing.assert_array_equal(detector.fit_predict(frame), labels)


@pytest.mark.parametrize("calibration", ["leave-one-out", "split"])
@pytest.mark.parametrize("radius", [None, 0.3, 0.7, 1.5])
@pytest.mark.parametrize("spread", [0.05, 3.0])
def test_a_row_of_zeros_has_the_smallest_p_value(calibration, radius, spread):
    rng = np.random.default_rng(0)
    X, zero = 1.0 + spread * rng.normal(size=(200, 4)), np.zeros((1, 4))
    extension = PCAExtension(metric="cosine", radius=radius, weighting="distance", order=0)
    for y in (None, X[:, :2]):
        detector = NoveltyDetector(extension, calibration=calibration).fit(X, y)
        assert detector.p_values(zero)[0] == 1 / (len(detector.scores_) + 1)
        assert detector.predict(zero)[0] == -1
        assert detector.abnormality(zero)[0] > detector.abnormality(-X).max()
        detector.explain(zero)
    assert detector.place(zero).p_value[0] == detector.p_values(zero)[0]
    stream = StreamingExtension(detector, window=20, guard=0.0)
    stream.learn(X[:30] + 0.01)
    assert stream.place(zero).p_value[0] <= 1 / 20
    with_zeros = NoveltyDetector(extension, calibration=calibration).fit(
        np.vstack([X] + 60 * [zero])
    )
    assert with_zeros.p_values(zero)[0] > 0.1


def test_sparse_and_dense_agree():
    X = sparse.random(80, 100, density=0.1, random_state=0, format="csr")
    Q = sparse.random(9, 100, density=0.1, random_state=1, format="csr")
    np.testing.assert_allclose(
        NoveltyDetector().fit(X).abnormality(Q),
        NoveltyDetector().fit(X.toarray()).abnormality(Q.toarray()),
        rtol=1e-9,
    )


def test_junk_among_digits_is_found():
    X = load_digits().data / 16
    rng = np.random.default_rng(0)
    detector = NoveltyDetector().fit(X[::2])
    junk = {
        "constant": np.repeat(rng.random((200, 1)), 64, axis=1),
        "times ten": 10 * X[1:401:2],
        "noise": rng.random((200, 64)),
        "permuted": rng.permuted(X[1:401:2], axis=1),
    }
    for name, images in junk.items():
        scores = detector.abnormality(np.concatenate([X[1::2], images]))
        labels = np.repeat([0, 1], [len(X[1::2]), len(images)])
        assert roc_auc_score(labels, scores) >= 0.999, name


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"calibration": "jackknife"}, "calibration is 'jackknife'"),
        ({"alpha": 0.0}, "alpha is 0.0"),
        ({"alpha": 2}, "alpha is 2"),
        ({"random_state": -1}, "random_state is -1"),
        ({"n_jobs": 0}, "n_jobs is 0"),
    ],
)
def test_bad_parameters_are_named(parameters, words):
    with pytest.raises(ValueError, match=words):
        NoveltyDetector(**parameters).fit(np.eye(5))


def test_bad_input_is_named():
    X, _ = points(0)
    with pytest.raises(TypeError, match="must be a PCAExtension, an Extended or None"):
        NoveltyDetector(NystroemExtension()).fit(X)
    with pytest.raises(ValueError, match="minimum of 4 is required"):
        NoveltyDetector(calibration="split").fit(X[:3])
    detector = NoveltyDetector().fit(X)
    with pytest.raises(ValueError, match="row 1, column 2"):
        detector.abnormality([[0, 0, 0], [0, 0, np.nan]])
    with pytest.raises(ValueError, match="2 features"):
        detector.p_values(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="no map to place points into"):
        detector.place(X)
    with pytest.raises(ValueError, match="fdr is 3"):
        detector.discoveries(X, fdr=3)


def test_an_extension_without_place_raises_an_attribute_error():
    X = load_digits().data[:100]
    detector = NoveltyDetector(Extended(KernelPCA(2), NystroemExtension())).fit(X)
    with pytest.raises(AttributeError) as raised:
        detector.place(X[:2])
    assert "NystroemExtension has no place" in str(raised.value.__cause__)
    assert list(detector.explain(X[:1])[0].reasons) == SCORED


def test_scores_of_training_points_need_little_memory():
    """Ten of forty neighbours are kept per point."""
    X = np.random.default_rng(0).normal(size=(40_000, 2))
    index, distinct = NeighborIndex(X), find_duplicates(X)
    training_scores(index, distinct)
    tracemalloc.start()
    try:
        training_scores(index, distinct)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 27e6  # 37e6 with forty
