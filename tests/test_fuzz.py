"""Random inputs to every public estimator: a clear refusal, or finite answers that agree."""

from __future__ import annotations

import os

import numpy as np
import pytest

import fuzzing

# Cases to draw; OUTSAMPLE_FUZZ=20000 is the long run.
CASES = int(os.environ.get("OUTSAMPLE_FUZZ", "300"))


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="slow without compiler")
def test_random_inputs_are_answered_or_refused(capsys):
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
    assert answered > 0.8 * CASES  # refusals are few


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


def test_a_fault_is_seen(monkeypatch):
    """The oracle itself: what is not finite, not the same alone, or refused without a reason."""

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
