"""Containers of points and images: dense, sparse, pandas, masked arrays."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numba import njit
from numba.core.errors import TypingError
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.utils import get_tags

from laws.subjects import sparse_stays
from outsample import (
    Diffusion,
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
from outsample._compiled.search import row_distance
from outsample.points import kernel_rows

PLAIN = {"weighting": "distance", "order": 0, "loss": "squared", "n_neighbors": 4}
SVD = TruncatedSVD(2, random_state=0)
ESTIMATORS = {
    "auto": PCAExtension(),
    "distance": PCAExtension(**PLAIN),
    "cosine": PCAExtension(**PLAIN, metric="cosine"),
    "correlated": PCAExtension(weighting="correlated", order=0, loss="squared", n_neighbors=6),
    "all points": PCAExtension(weighting="correlated", order=0, loss="squared", n_neighbors=60),
    "nystroem": NystroemExtension(),
    "harmonics": GeometricHarmonics(),
    "pyramids": LaplacianPyramids(),
    "multiscale": MultiscaleExtension(),
    "diffusion maps": DiffusionMaps(),
    "diffusion maps, thin": DiffusionMaps(n_neighbors=5),
    "extended": Extended(SVD),
    "extended nystroem": Extended(SVD, NystroemExtension()),
    "detector": NoveltyDetector(),
    "detector, map": NoveltyDetector(PCAExtension(**PLAIN)),
    "detector, embedding": NoveltyDetector(Extended(SVD), calibration="split"),
}
FORMATS = [
    sparse.csr_matrix, sparse.csr_array, sparse.csc_array, sparse.coo_matrix, sparse.coo_array,
    sparse.bsr_matrix, sparse.lil_matrix, sparse.dok_array, sparse.dia_matrix,
]  # fmt: skip


def rows(n, seed):
    rng = np.random.default_rng(seed)
    return rng.poisson(0.8, (n, 6)) * rng.random((n, 6))


X, Q = rows(60, 0), rows(9, 1)
Y = np.column_stack([X[:, :2].sum(axis=1), X[:, 2:].sum(axis=1)])
Q[0], Q[1] = X[0], 0.0


def answers(fitted, Q):
    """Return all results of a fitted estimator for points."""
    results = []
    for name in ("transform", "place", "abnormality", "p_values", "decision_function", "predict"):
        if hasattr(fitted, name) and (name != "place" or has_map(fitted)):
            answer = getattr(fitted, name)(Q)
            results += list(answer) if isinstance(answer, tuple) else [answer]
    return results


def has_map(fitted):
    return not isinstance(fitted, NoveltyDetector) or fitted.extension_ is not None


@pytest.mark.parametrize("fitted_on", [np.asarray, sparse.csr_array, "sparse, many columns"])
@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.filterwarnings("ignore:The kernel falls:UserWarning")
def test_dense_and_sparse_queries_give_the_same_result(name, fitted_on):
    if isinstance(fitted_on, str):
        with sparse_stays():
            fitted = ESTIMATORS[name].fit(sparse.csr_array(X), Y)
    else:
        fitted = ESTIMATORS[name].fit(fitted_on(X), Y)
    wanted = answers(fitted, Q)
    for kind in FORMATS:
        for left, right in zip(wanted, answers(fitted, kind(Q)), strict=True):
            np.testing.assert_array_equal(left, right, err_msg=kind.__name__)
    for part in (Q[3:4], sparse.coo_array(Q[3:4])):
        for left, right in zip(wanted, answers(fitted, part), strict=True):
            np.testing.assert_array_equal(left[3:4], right)
    single = answers(fitted, sparse.csr_matrix(Q.astype(np.float32)))
    for left, right in zip(answers(fitted, Q.astype(np.float32)), single, strict=True):
        assert left.dtype == right.dtype
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if "embedding" not in name])
@pytest.mark.filterwarnings("ignore:The kernel falls:UserWarning")
def test_sparse_and_dense_images_give_the_same_result(name):
    wanted = answers(ESTIMATORS[name].fit(X, Y), Q)
    for left, right in zip(
        wanted, answers(ESTIMATORS[name].fit(X, sparse.csr_matrix(Y)), Q), strict=True
    ):
        np.testing.assert_array_equal(left, right)


def test_compare_accepts_sparse_images():
    extension = {"plain": PCAExtension(**PLAIN)}
    for points in (X, sparse.coo_array(X)):
        dense, thin = (compare(points, images, extension)[0] for images in (Y, sparse.csc_array(Y)))
        assert dense.error == thin.error and not thin.failure


def test_no_kernel_is_compiled_for_a_mixed_pair():
    kernel = njit(lambda A, B: row_distance(A, 0, B, 0))
    thin = kernel_rows(sparse.csr_matrix(X))
    assert kernel(X, X) == kernel(thin, thin) == 0.0
    for pair in ((X, thin), (thin, X)):
        with pytest.raises(TypingError):
            kernel(*pair)


@pytest.mark.parametrize(
    ("parameters", "takes"),
    [
        ({}, True),
        ({"metric": "cosine"}, True),
        ({"index": "brute"}, True),
        ({"weighting": "correlated", "n_neighbors": 6}, True),
        ({"weighting": "diffusion"}, False),
        ({"weighting": Diffusion(1.0)}, False),
        ({"order": 1}, False),
        ({"index": "kd_tree"}, False),
    ],
)
def test_which_parameters_support_sparse_points(parameters, takes):
    extension, many = PCAExtension(**parameters), sparse.csr_array(np.tile(X, 17))
    for estimator in (extension, Extended(SVD, extension), NoveltyDetector(extension)):
        assert get_tags(estimator).input_tags.sparse
        estimator.fit(sparse.csr_array(X), Y)
        if takes:
            estimator.fit(many, Y)
        else:
            with pytest.raises(ValueError, match=r"sparse X|needs dense X"):
                estimator.fit(many, Y)


def test_rows_of_zeros_have_the_same_distance_from_every_direction():
    """Cosine: the origin, at distance 1/2 from all directions and 0 from other rows of zeros."""
    points = np.vstack([X[X.any(axis=1)], np.zeros((2, 6))])
    images = np.arange(2.0 * len(points)).reshape(-1, 2)
    for kind in (np.asarray, lambda A: sparse.csr_array(np.tile(A, 17))):
        extension = PCAExtension(metric="cosine", **PLAIN).fit(kind(points), images)
        placed = extension.place(kind(np.zeros((1, 6))))
        np.testing.assert_array_equal(placed.coordinates[0], images[-2:].mean(axis=0))
        ball = PCAExtension(metric="cosine", radius=0.6, weighting="distance", order=0).fit(
            kind(points), images
        )
        assert ball.place(kind(np.zeros((1, 6)))).n_neighbors[0] == len(ball.distinct_.rows)


def test_the_first_bad_entry_of_sparse_points_is_reported():
    bad = sparse.lil_matrix(X)
    bad[7, 3] = bad[40, 1] = np.nan
    with pytest.raises(ValueError, match=r"row 7, column 3 \(2 such entries\)"):
        PCAExtension(**PLAIN).fit(bad, Y)
    images = sparse.lil_matrix(Y)
    images[7, 1] = np.inf
    with pytest.raises(ValueError, match=r"bad entry of y: row 7, column 1"):
        PCAExtension(**PLAIN).fit(X, images)


@pytest.mark.parametrize("kind", ["Float64", "Int64", "boolean", "object", "string"])
def test_missing_values_of_pandas_are_reported_with_their_position(kind):
    frame = pd.DataFrame(X.round(), columns=list("abcdef"))
    frame["b"] = (frame["b"] > 0 if kind == "boolean" else frame["b"]).astype(kind)
    frame.loc[4, "b"] = pd.NA
    good = pd.DataFrame(X, columns=list("abcdef"))
    extension = PCAExtension(**PLAIN)
    tries = {
        "X": [
            lambda: extension.fit(frame, Y),
            lambda: extension.fit(good, Y).transform(frame),
            lambda: NoveltyDetector().fit(frame),
            lambda: DiffusionMaps().fit(frame),
            lambda: Extended(SVD).fit(frame),
            lambda: Extended(SVD).fit(good).place(frame),
            lambda: compare(frame, Y),
        ],
        "y": [lambda: extension.fit(X, frame), lambda: extension.fit(X, X).score(X, frame)],
    }
    for name, calls in tries.items():
        for call in calls:
            with pytest.raises(ValueError, match=f"bad entry of {name}: row 4, column 1"):
                call()
    with pytest.raises(ValueError, match="bad entry of y: row 4"):
        extension.fit(X, frame["b"])


def test_a_wrong_type_raises_a_type_error():
    with pytest.raises(TypeError, match="dict"):
        PCAExtension(**PLAIN).fit(np.full((9, 2), {}, dtype=object), np.ones(9))


def test_masked_entries_are_rejected_by_name():
    masked = np.ma.masked_array(X, mask=X > 2)
    images = np.ma.masked_array(Y, mask=Y > 2)
    extension = PCAExtension(**PLAIN)
    words = r"Input {} is a masked array \(numpy.ma\), \d+ entries"
    for call in (
        lambda: extension.fit(masked, Y),
        lambda: extension.fit(X, Y).transform(masked),
        lambda: extension.fit(X, Y).place(masked),
        lambda: NystroemExtension().fit(masked, Y),
        lambda: DiffusionMaps().fit(masked),
        lambda: Extended(SVD).fit(masked),
        lambda: Extended(SVD).fit(X).transform(masked),
        lambda: NoveltyDetector().fit(masked),
        lambda: NoveltyDetector().fit(X).p_values(masked),
        lambda: compare(masked, Y),
    ):
        with pytest.raises(ValueError, match=words.format("X")):
            call()
    for call in (
        lambda: extension.fit(X, images),
        lambda: extension.fit(X, Y).score(X, images),
        lambda: NoveltyDetector().fit(X, images),
        lambda: compare(X, images),
    ):
        with pytest.raises(ValueError, match=words.format("y")):
            call()
    unmasked = np.ma.masked_array(X, mask=np.zeros(X.shape, dtype=bool))
    np.testing.assert_array_equal(
        extension.fit(unmasked, Y).transform(Q), extension.fit(X, Y).transform(Q)
    )
