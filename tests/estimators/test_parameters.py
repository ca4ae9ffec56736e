"""Parameters as NumPy scalars and generators, and the score of parameter searches."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, cross_val_score

from outsample import (
    DiffusionMaps,
    Extended,
    GeometricHarmonics,
    LaplacianPyramids,
    MultiscaleExtension,
    NoveltyDetector,
    NystroemExtension,
    PCAExtension,
    compare,
)

RNG = np.random.default_rng(0)
X, Q = RNG.random((60, 3)), RNG.random((7, 3))
Y = np.column_stack([X[:, 0] ** 2, X[:, 1]])
PAPER = {"weighting": "tangent", "order": 0, "loss": "squared"}
ESTIMATORS = {
    "tangent": PCAExtension(
        n_neighbors=12, curvature=0.1, tangent_radius=0.2, lipschitz=2.1, index="brute", **PAPER
    ),
    "polynomial": PCAExtension(
        n_neighbors=20, weighting="distance", order=2, loss="squared", tangent_dim=2
    ),
    "ball": PCAExtension(radius=0.1, metric="cosine", n_jobs=2, **PAPER),
    "nystroem": NystroemExtension(bandwidth=0.1, n_components=4, condition=1e7, alpha=0.3),
    "nystroem, auto": NystroemExtension(condition=1.1e7),
    "harmonics": GeometricHarmonics(bandwidth=0.1, condition=1.1e7),
    "pyramids": LaplacianPyramids(initial_scale=0.7, ratio=1.1, max_levels=60),
    "tolerance": LaplacianPyramids(stop="tolerance", tolerance=0.01, max_levels=9),
    "multiscale": MultiscaleExtension(initial_scale=0.7, delta=0.01, max_scales=7, random_state=3),
    "diffusion maps": DiffusionMaps(bandwidth=0.1, alpha=0.3, t=0.7, n_neighbors=7),
    "detector": NoveltyDetector(calibration="split", alpha=0.07, random_state=5, n_jobs=1),
}
EXTENSIONS = {
    "local": PCAExtension(n_neighbors=5, **PAPER),
    "nystroem": NystroemExtension(bandwidth=0.1),
    "harmonics": GeometricHarmonics(bandwidth=0.1),
    "pyramids": LaplacianPyramids(),
    "multiscale": MultiscaleExtension(),
}


def of_numpy(value, floating, whole):
    for kind, scalar in ((str, np.str_), (int, whole), (float, floating)):
        if isinstance(value, kind):
            return scalar(value)
    return value


def answers(estimator):
    estimator.fit(X, Y)
    return estimator.transform(Q) if hasattr(estimator, "transform") else estimator.p_values(Q)


@pytest.mark.parametrize(
    ("floating", "whole"), [(np.float64, np.int64), (np.float32, np.int8), (np.float16, np.uint8)]
)
@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.filterwarnings("ignore:The kernel falls:UserWarning")
def test_numpy_scalars_are_valid_parameters(name, floating, whole):
    """The result is bit-identical to that of the Python number."""
    parameters = {
        key: value if isinstance(value, bool) else of_numpy(value, floating, whole)
        for key, value in ESTIMATORS[name].get_params(deep=False).items()
        if not (floating is np.float16 and key == "condition")  # beyond its range
    }
    python = {k: v.item() if isinstance(v, np.generic) else v for k, v in parameters.items()}
    wanted = answers(clone(ESTIMATORS[name]).set_params(**python))
    np.testing.assert_array_equal(answers(clone(ESTIMATORS[name]).set_params(**parameters)), wanted)


@pytest.mark.parametrize("bad", [True, np.True_, 1.0, "1", np.str_("one")])
def test_values_equal_to_a_choice_but_of_another_type_are_rejected(bad):
    with pytest.raises(ValueError, match="order is"):
        PCAExtension(order=bad).fit(X, Y)


def test_searches_need_no_scorer():
    search = GridSearchCV(
        PCAExtension(weighting="distance", loss="squared", n_neighbors=10),
        {"order": np.arange(2)},
        error_score="raise",
    ).fit(X, Y)
    assert search.best_params_ == {"order": 1} and search.best_score_ < 0


@pytest.mark.parametrize("name", EXTENSIONS)
def test_score_is_minus_the_error_over_the_size_of_the_map(name):
    extension = EXTENSIONS[name].fit(X[:50], Y[:50])
    centered = Y[:50] - Y[:50].mean(axis=0)
    size = np.sqrt((centered**2).sum(axis=1).mean())
    errors = np.linalg.norm(extension.transform(X[50:]) - Y[50:], axis=1)
    assert extension.score(X[50:], Y[50:]) == pytest.approx(-errors.mean() / size)
    assert extension.score(X[50:51], Y[50:51]) == pytest.approx(-errors[0] / size)
    scores = cross_val_score(extension, X, Y, cv=3, error_score="raise")
    assert scores.shape == (3,) and (scores < 0).all()
    one_column = extension.fit(X, Y[:, 0])
    assert one_column.score(X, Y[:, 0].tolist()) == one_column.score(X, Y[:, :1])


def test_score_rejects_images_of_the_wrong_shape():
    extension = EXTENSIONS["local"].fit(X, Y)
    with pytest.raises(ValueError, match="y has 3 columns, but the map has 2"):
        extension.score(X, X)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        extension.score(X, Y[:9])
    with pytest.raises(ValueError, match="bad entry of y: row 0, column 1"):
        extension.score(X[:1], [[0.0, np.nan]])


@pytest.mark.parametrize("kind", [np.random.RandomState, np.random.default_rng])
def test_generators_are_random_states(kind):
    detector = NoveltyDetector(calibration="split")
    rows = [detector.set_params(random_state=kind(s)).fit(X).training_rows_ for s in (1, 1, 2)]
    np.testing.assert_array_equal(rows[0], rows[1])
    assert (rows[0] != rows[2]).any()
    multiscale = MultiscaleExtension()
    first, second = (
        multiscale.set_params(random_state=kind(1)).fit(X, Y).transform(Q) for _ in "ab"
    )
    np.testing.assert_array_equal(first, second)
    plain = [EXTENSIONS["local"]]
    first, second = (compare(X, Y, plain, random_state=kind(1))[0].error for _ in "ab")
    assert first == second


def test_random_state_none_gives_new_samples():
    detector = NoveltyDetector(calibration="split", random_state=None)
    assert (detector.fit(X).training_rows_ != detector.fit(X).training_rows_).any()
    assert np.isfinite(MultiscaleExtension(random_state=None).fit(X, Y).transform(Q)).all()
    assert compare(X, Y, [EXTENSIONS["local"]], random_state=None)[0].error > 0


@pytest.mark.parametrize("bad", [-1, 1.5, "0", True, 2**32])
def test_other_random_states_are_rejected(bad):
    for estimator in (NoveltyDetector(random_state=bad), MultiscaleExtension(random_state=bad)):
        with pytest.raises(ValueError, match="random_state is"):
            estimator.fit(X, Y)


def detector_of(m, alpha):
    return NoveltyDetector(alpha=alpha).fit(X[:m])


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.1, 0.25, 0.7 - 0.4, 1 / 3, 0.5])
@pytest.mark.parametrize("m", [2, 3, 9, 18, 19, 20, 60])
def test_predict_is_minus_one_exactly_where_p_is_at_most_alpha(m, alpha):
    detector = detector_of(m, alpha)
    queries = np.vstack([X, 1 + 10 * RNG.random((30, 3)), [[1e200, 0, 0]]])
    is_anomalous = detector.p_values(queries) <= alpha
    np.testing.assert_array_equal(detector.predict(queries) == -1, is_anomalous)
    assert is_anomalous.any() == ((m + 1) * alpha >= 1)
    decision = detector.decision_function(queries)
    np.testing.assert_array_equal(decision < 0, is_anomalous)
    np.testing.assert_allclose(decision, detector.score_samples(queries) - detector.offset_)
    assert np.isfinite(decision).all()
    order = np.argsort(decision)
    assert (np.diff(detector.abnormality(queries)[order]) <= 1e-9).all()


LABELS = [
    np.arange(60) % 2,
    (np.arange(60) % 2).tolist(),
    np.where(np.arange(60) % 2, "normal", "odd"),
    np.where(np.arange(60) % 2, "normal", "odd")[:, None],
    np.where(np.arange(60) % 2, "normal", "odd").astype(object)[:, None],
    np.full(60, None),
]


@pytest.mark.parametrize("y", LABELS)
def test_a_detector_ignores_class_labels(y):
    for detector in (NoveltyDetector(), NoveltyDetector(PCAExtension(n_neighbors=3, **PAPER))):
        wanted = clone(detector).fit(X).abnormality(Q)
        np.testing.assert_array_equal(detector.fit(X, y).abnormality(Q), wanted)
        assert detector.extension_ is None
        with pytest.raises(ValueError, match=r"pass the images, shape \(n, d\), to fit"):
            detector.place(Q)
    detector = NoveltyDetector(Extended(PCA(2))).fit(X, y)
    assert detector.place(Q).coordinates.shape == (7, 2)


def test_a_single_column_is_a_map_with_one_coordinate():
    detector = NoveltyDetector(PCAExtension(n_neighbors=3, **PAPER)).fit(X, Y[:, :1])
    assert detector.place(Q).coordinates.shape == (7, 1)
    with pytest.raises(ValueError, match="bad entry of y: row 3, column 0"):
        detector.fit(X, np.where(np.arange(60) == 3, np.nan, 0.0)[:, None])
