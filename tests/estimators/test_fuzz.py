"""Random inputs to every public estimator: a clear error, or finite and consistent results."""

from __future__ import annotations

import os

import numpy as np
import pytest
from scipy import sparse

import fuzzing

# Cases to draw, four of each model; OUTSAMPLE_FUZZ=20000 is the long run.
CASES = int(os.environ.get("OUTSAMPLE_FUZZ", 4 * len(fuzzing.MODELS)))


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="slow without compiler")
def test_random_inputs_give_results_or_clear_errors(capsys):
    cases = [fuzzing.draw(number) for number in range(CASES)]
    outcomes = [fuzzing.outcome(case) for case in cases]
    faults = [
        f"{case.recipe}\n    {fault}"
        for case, (_, fault) in zip(cases, outcomes, strict=True)
        if fault is not None
    ]
    answered = sum(done for done, _ in outcomes)
    with capsys.disabled():
        print(f"\nfuzz: {CASES} cases, {answered} answered, {len(faults)} failures")
    assert not faults, "\n".join(faults)
    assert answered > 0.8 * CASES  # few cases are rejected


def test_cases_cover_every_model_container_and_type():
    cases = [fuzzing.draw(number) for number in range(300)]
    assert {case.model for case in cases} == set(fuzzing.MODELS)
    kinds = set(fuzzing.CONTAINERS + fuzzing.FORMATS)
    assert {case.X_container for case in cases} == kinds == {case.Q_container for case in cases}
    for field in ("X_type", "Y_type", "Q_type"):
        assert {getattr(case, field) for case in cases} == set(fuzzing.TYPES)
    for field in ("X_size", "Y_size", "Q_size"):
        sizes = np.array([getattr(case, field) for case in cases])
        assert sizes.min() < 1e-300 and sizes.max() > 1e290


def test_the_checks_detect_faults(monkeypatch):
    """The checks report results that are not finite or depend on the batch, and unclear errors."""

    class Faulty:
        def __init__(self, answer):
            self.answer = answer

        def fit(self, X, Y):
            return self

        def transform(self, Q):
            return self.answer(np.asarray(Q, dtype=np.float64))

    def complain(Q):
        raise ValueError("data must be finite")

    case = fuzzing.draw(0)._replace(
        model="faulty", q=3, d=1, images="smooth", X_type="float64", Y_type="float64",
        Q_type="float64", Q_container="array", X_container="array", Q_size=1.0,
    )  # fmt: skip
    for answer, fault in [
        (lambda Q: np.full((len(Q), 1), np.nan), "not finite"),
        (lambda Q: np.full((len(Q), 1), float(len(Q))), "alone"),
        (lambda Q: np.zeros((len(Q), 2)), "shape"),
        (lambda Q: np.zeros((len(Q), 1), dtype=np.float32), "float32"),
        (complain, "data must be finite"),
    ]:
        monkeypatch.setattr(fuzzing.pickle, "dumps", lambda model: b"")
        monkeypatch.setitem(fuzzing.MODELS, "faulty", lambda answer=answer: Faulty(answer))
        assert fault in fuzzing.failure(case)


# Sizes of points, images and queries at which something once overflowed, and a shift of X.
ENDS = {
    "images whose squares overflow": (1.0, 1e155, 1.0, 0.0),
    "images at the end": (1.0, 1e299, 1.0, 0.0),
    "everything at the end": (1e299, 1e299, 1e299, 0.0),
    "images below the normal numbers": (1.0, 1e-322, 1.0, 0.0),
    "points below the normal numbers": (5e-309, 1.0, 5e-309, 0.0),
    "far queries of such points": (1e-310, 1.0, 1.0, 0.0),
    "a spread below the normal numbers": (4e-310, 1.0, 4e-310, 1e-300),
    "queries out of proportion": (3e-302, 1.0, 1e211, 0.0),
    "a lone point's slope": (1e-315, 1e299, 1e-315, 0.0),
}


@pytest.mark.filterwarnings("ignore:The kernel falls into")
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("name", fuzzing.MODELS)
def test_the_ends_of_the_range(name, end):
    x, y, q, shift = ENDS[end]
    rng = np.random.default_rng(0)
    X, Q = rng.normal(size=(30, 3)), rng.normal(size=(4, 3))
    model = fuzzing.MODELS[name]()
    if name == "process":
        model.set_params(n_neighbors=30)
    if fuzzing.takes_images(name):
        model.fit(shift + x * X, y * np.sin(X[:, :2]))
    else:
        model.fit(shift + x * X)
    for field, values in fuzzing.answers(model, shift + q * Q).items():
        assert np.isfinite(values).all(), field


@pytest.mark.parametrize("size", [1e-40, 1e-17, 1.0, 1e17, 1e37, 1e39])
@pytest.mark.parametrize(
    "name", ["pca", "distance", "nystroem", "harmonics", "pyramids", "multiscale", "novelty map"]
)
def test_float32_results_only_for_maps_it_can_represent(name, size):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3)).astype(np.float32)
    Y = size * np.sin(X[:, :2].astype(np.float64))
    model = fuzzing.MODELS[name]().fit(X, Y)
    narrow = np.float32 if 1e-18 < size < 1e18 else np.float64
    results, wide = fuzzing.answers(model, X[:5]), fuzzing.answers(model, X[:5].astype(np.float64))
    for field in {"transform", "coordinates"} & set(results):
        assert results[field].dtype == narrow
        np.testing.assert_allclose(results[field], wide[field], rtol=1e-6, atol=1e-6 * size)


def test_a_map_of_zeros_gives_float32():
    X = np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32)
    assert fuzzing.MODELS["pca"]().fit(X, np.zeros(20)).transform(X).dtype == np.float32


def test_sparse_rows_below_the_normal_numbers_have_a_direction():
    X = 1e-310 * np.random.default_rng(0).normal(size=(20, 2))
    Y = X[:, 0] / 1e-310
    model = fuzzing.MODELS["cosine"]().fit(sparse.csr_matrix(X), Y)
    dense = fuzzing.MODELS["cosine"]().fit(X, Y).transform(X)
    np.testing.assert_allclose(model.transform(sparse.csr_matrix(X)), dense)


@pytest.mark.parametrize("number", [1478, 5434, 11592, 12536, 14034])
def test_cases_found_by_long_runs(number):
    case = fuzzing.draw(number)
    assert fuzzing.failure(case) is None, case.recipe
