"""A pickled model contains its points once and gives equal results."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from outsample import (
    DiffusionMaps,
    Extended,
    GeometricHarmonics,
    LaplacianPyramids,
    MultiscaleExtension,
    NoveltyDetector,
    NystroemExtension,
    PCAExtension,
)
from outsample.neighbors.index import NeighborIndex

CONSTANT = {"order": 0, "loss": "squared"}
LOCAL = {
    "tangent": PCAExtension(weighting="tangent", n_neighbors=10, **CONSTANT),
    "brute": PCAExtension(weighting="distance", n_neighbors=10, index="brute", **CONSTANT),
    "local_tangent": PCAExtension(weighting="local_tangent", n_neighbors=10, **CONSTANT),
    "everything in the ball": PCAExtension(weighting="tangent", radius=1e3, **CONSTANT),
    "auto": PCAExtension(),
    "detector": NoveltyDetector(),
    "detector with a map": NoveltyDetector(
        PCAExtension(weighting="tangent", n_neighbors=10, **CONSTANT)
    ),
    "detector with balls": NoveltyDetector(
        PCAExtension(weighting="tangent", radius=4.0, tangent_radius=3.0, **CONSTANT)
    ),
}
ALL_POINTS = {
    "diffusion": PCAExtension(weighting="diffusion"),
    "correlated": PCAExtension(weighting="correlated", n_neighbors=600),
    "nystroem": NystroemExtension(),
    "harmonics": GeometricHarmonics(),
    "pyramids": LaplacianPyramids(),
    "multiscale": MultiscaleExtension(),
    "diffusion maps": DiffusionMaps(n_components=2),
    "extended": Extended(DiffusionMaps(n_components=2), LOCAL["tangent"]),
}


def answers(model, Q):
    """Return all results of a model for queries, as bytes."""
    results = [model.transform(Q)] if hasattr(model, "transform") else []
    if hasattr(model, "place") and getattr(model, "extension", model) is not None:
        results += [*model.place(Q)]
    if isinstance(model, NoveltyDetector):
        results += [model.abnormality(Q), model.p_values(Q)]
        results += [np.array([str(explanation) for explanation in model.explain(Q)])]
    return [np.asarray(part).tobytes() for part in results]


def map_of(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 13))
    return X, X[:, :2] + 0.1 * X[:, 2:4] ** 2, rng.normal(size=(9, 13))


@pytest.mark.parametrize(
    ("model", "n", "most"),
    [
        *(pytest.param(model, 3000, 3, id=name) for name, model in LOCAL.items()),
        *(pytest.param(model, 600, 4, id=name) for name, model in ALL_POINTS.items()),
    ],
)
def test_a_pickle_contains_the_points_once_and_gives_equal_results(model, n, most):
    X, Y, Q = map_of(n)
    alone = isinstance(model, DiffusionMaps | Extended) or model is LOCAL["detector"]
    model = clone(model).fit(X, None if alone else Y)
    kept = pickle.dumps(model)
    print(f"{len(kept) / (X.nbytes + Y.nbytes):.2f} times the points and images")
    assert len(kept) <= most * (X.nbytes + Y.nbytes)
    expected = answers(model, Q)
    assert expected
    assert pickle.dumps(model) == kept  # queries do not change the model
    assert answers(pickle.loads(kept), Q) == expected


@pytest.mark.parametrize("kind", ["kd_tree", "brute", "sparse"])
def test_a_pickled_index_is_rebuilt_from_its_points(kind):
    X, _, Q = map_of(300)
    points, queries = (sparse.csr_matrix(X), sparse.csr_matrix(Q)) if kind == "sparse" else (X, Q)
    index = NeighborIndex(points, "auto" if kind == "sparse" else kind)
    copy = pickle.loads(pickle.dumps(index))
    assert len(pickle.dumps(index)) < 2 * X.nbytes and copy.kind == index.kind
    for actual, expected in zip(copy.nearest(queries, 5), index.nearest(queries, 5), strict=True):
        np.testing.assert_array_equal(actual, expected)
    for actual, expected in zip(
        copy.ball(queries, 4.0, 2), index.ball(queries, 4.0, 2), strict=True
    ):
        np.testing.assert_array_equal(actual, expected)
