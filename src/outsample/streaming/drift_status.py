"""What a stream says of its own age."""

from __future__ import annotations

import numpy as np

from outsample.streaming.drift_tests import Drift, highest_rate, refit_reason
from outsample.streaming.model import StreamModel
from outsample.streaming.writer import Snapshot

# Learned points whose leave-one-out errors are looked at.
LEFT_OUT_ROWS = 200


def drift_of(now: Snapshot, originals: np.ndarray | None, size: float) -> Drift:
    """Whether a map of that size still fits what arrives, by the calibration it was fitted with."""
    model, memory = now.model, now.memory
    tests, farthest = memory.tests, model.original.quality.error_bars.farthest
    rate, highest, evidence = np.nan, np.nan, 1.0
    if originals is not None:
        highest = highest_rate(len(originals))
        rate = tests.evidence.n_strange / max(tests.evidence.n_seen, 1)
        evidence = float(np.exp(min(tests.evidence.log_evidence(highest), 700.0)))
    alarms = [at for at in (tests.evidence.alarm_at, tests.original.alarm_at) if at]
    return Drift(
        memory.n_seen,
        memory.n_learned,
        rate,
        highest,
        evidence,
        min(alarms, default=0),
        tests.recent.n_alarms,
        tests.recent.alarm_at,
        _outside(now),
        float(memory.gaps.max(initial=0.0)) / (farthest or 1.0),
        *_left_out(model, size),
        reason_of(now, originals is not None),
    )


def reason_of(now: Snapshot, has_scores: bool) -> str:
    """Why the map is out of date, or nothing: the part of `drift_of` that costs little."""
    outside = _outside(now)
    return refit_reason(now.memory.tests, outside, has_scores, len(now.memory.distances))


def _outside(now: Snapshot) -> float:
    """Share of the latest arrivals farther from the map than its points are from one another."""
    farthest, distances = now.model.original.quality.error_bars.farthest, now.memory.distances
    return float((distances > farthest).mean()) if len(distances) else 0.0


def _left_out(model: StreamModel, size: float) -> tuple[float, float]:
    """Leave-one-out error of learned points, and that of the newer over that of the older half."""
    n, total = model.n_originals, model.model.search.index.X.shape[0]
    if total == n:
        return np.nan, np.nan
    rows = np.unique(np.linspace(n, total - 1, min(total - n, LEFT_OUT_ROWS)).astype(int))
    errors = model.left_out_errors(rows) / size
    half = len(errors) // 2
    older = float(errors[:half].mean()) if half else 0.0
    return float(errors.mean()), float(errors[half:].mean()) / older if older > 0 else np.nan
