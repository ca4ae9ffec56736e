"""Summary of whether the map of a stream is out of date."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from outsample.streaming.drift_tests import RATE, highest_rate
from outsample.streaming.model import StreamModel
from outsample.streaming.writer import Snapshot

# Learned points whose leave-one-out errors are computed, at most.
MAX_LEFT_OUT_ROWS = 200


class Drift(NamedTuple):
    """Whether a map still fits the arrivals; prints as a sentence.

    Attributes
    ----------
    n_seen, n_learned : int
        Number of arrivals, and of those that became neighbours.
    strange_rate : float
        Share of arrivals with ``p <= 0.05`` by the original map alone; NaN without a detector.
    highest_rate : float
        Largest such share that is consistent with the calibration.
    evidence : float
        E_n, 1 at the start; 200 is an alarm.
    alarm_at : int
        Arrival with which the original map became out of date; 0 if it has not.
    n_changes, changed_at : int
        Number of changes detected in the p-values of the current model, and the latest arrival
        with one. Learning adapts, so that a change may pass.
    outside : float
        Share of the latest arrivals that are farther from the original map than any of its points
        is from the others.
    fill_growth : float
        Largest distance of a learned point from the original map, divided by the largest distance
        of an original point from the others.
    loo_error : float
        Mean distance of learned points from where the other points place them now, divided by the
        size of the map; compare with ``loo_error_`` of the extension. NaN if nothing was learned.
    loo_trend : float
        The same of the newer half divided by that of the older half; above 1, it grows.
    reason : str
        Why a new map is needed; empty if it is not.
    """

    n_seen: int
    n_learned: int
    strange_rate: float
    highest_rate: float
    evidence: float
    alarm_at: int
    n_changes: int
    changed_at: int
    outside: float
    fill_growth: float
    loo_error: float
    loo_trend: float
    reason: str

    def __str__(self) -> str:
        if not self.n_seen:
            return "Nothing has arrived yet."
        counts = f"{self.n_seen} arrivals, {self.n_learned} learned"
        if np.isfinite(self.strange_rate):
            counts += (
                f"; {self.strange_rate:.1%} of them unusual for the original map "
                f"(up to {self.highest_rate:.1%} is normal)"
            )
        if self.changed_at:
            counts += f"; last change at arrival {self.changed_at}"
        if self.reason:
            return f"The map is out of date: {self.reason} ({counts})."
        return f"The map fits what arrives ({counts})."


def drift_of(now: Snapshot, originals: np.ndarray | None, size: float) -> Drift:
    """Return the drift of a map of that size, by its original calibration scores."""
    model, memory = now.model, now.memory
    tests, farthest = memory.tests, model.original.quality.error_bars.farthest
    rate, highest, evidence = np.nan, np.nan, 1.0
    if originals is not None:
        highest = highest_rate(len(originals))
        rate = tests.evidence.n_strange / max(tests.evidence.n_seen, 1)
        evidence = float(np.exp(min(tests.evidence.log_evidence(highest), 700.0)))
    loo_error, loo_trend = _left_out_errors(model, size)
    return Drift(
        n_seen=memory.n_seen, n_learned=memory.n_learned, strange_rate=rate, highest_rate=highest,
        evidence=evidence, alarm_at=tests.first_alarm, n_changes=tests.recent.n_alarms,
        changed_at=tests.recent.alarm_at, outside=_outside(now),
        fill_growth=float(memory.gaps.max(initial=0.0)) / (farthest or 1.0),
        loo_error=loo_error, loo_trend=loo_trend, reason=refit_reason(now, originals is not None),
    )  # fmt: skip


def refit_reason(now: Snapshot, has_scores: bool) -> str:
    """Return why a new map is needed, or an empty string."""
    first_alarm, outside = now.memory.tests.first_alarm, _outside(now)
    if first_alarm:
        return f"from arrival {first_alarm} on, unusual points are more frequent than chance allows"
    if not has_scores and len(now.memory.distances) >= 1 / RATE and outside > RATE:
        return f"{outside:.0%} of the latest arrivals are beyond its points"
    return ""


def _outside(now: Snapshot) -> float:
    """Return the share of the latest arrivals beyond the largest distance of original points."""
    farthest, distances = now.model.original.quality.error_bars.farthest, now.memory.distances
    return float((distances > farthest).mean()) if len(distances) else 0.0


def _left_out_errors(model: StreamModel, size: float) -> tuple[float, float]:
    """Return the leave-one-out error of learned points, and that of the newer over older half."""
    n, total = model.n_originals, model.model.search.index.X.shape[0]
    if total == n:
        return np.nan, np.nan
    n_rows = min(total - n, MAX_LEFT_OUT_ROWS)
    rows = np.unique(np.linspace(n, total - 1, n_rows).astype(int))
    errors = model.left_out_errors(rows) / size
    half = len(errors) // 2
    older = float(errors[:half].mean()) if half else 0.0
    return float(errors.mean()), float(errors[half:].mean()) / older if older > 0 else np.nan
