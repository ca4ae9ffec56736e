"""Calibration by the latest scores: each arrival's score is added, the oldest scores are removed.

An arrival's p-value is exact if its score is exchangeable with the calibration scores: these are
the scores of the arrivals before it, at the time they arrived. If only accepted arrivals counted,
each turnover would cut the tail of the calibration, and a nominal 1 % would become 18 % after ten
turnovers.

A run of consecutive unusual arrivals counts once. Otherwise an hour of a flood would fill the tail
of the calibration, and the next flood would look usual. Exchangeable arrivals hardly form runs: of
the share a of unusual arrivals, the share a is left out, and the alarm rate at level a becomes
a (1 + a) instead of a. A run that does not end is the new usual state, and counts.
"""

from __future__ import annotations

import numpy as np

# P-value up to which an arrival is unusual here, independent of other thresholds.
RUN_P_VALUE = 0.01
# Consecutive unusual arrivals that count once; later ones of the run count singly.
MAX_RUN = 120


def refreshing(is_unusual: np.ndarray, run: int) -> tuple[np.ndarray, int]:
    """Return which arrivals (q,) count, and the length of the run of unusual ones at their end.

    ``run`` is the length of the run before the first of them.

    >>> refreshing(np.array([False, True, True, True, False, True]), 0)
    (array([ True,  True, False, False,  True,  True]), 1)
    """
    at = np.arange(len(is_unusual))
    last_usual = np.maximum.accumulate(np.where(is_unusual, -1 - run, at)) if len(at) else at
    run_lengths = np.where(is_unusual, at - last_usual, 0)
    counts = ~is_unusual | (run_lengths == 1) | (run_lengths > MAX_RUN)
    return counts, int(run_lengths[-1]) if len(at) else run


def originals_gone(m: int, n_scored: int, window: int) -> int:
    """Return how many of m original scores are removed: all after ``window`` counted arrivals."""
    return m * min(n_scored, window) // window


def leaving_order(m: int) -> np.ndarray:
    """Return the order (m,) in which original scores are removed: random, but always the same."""
    return np.random.default_rng(0).permutation(m)


def latest(values: np.ndarray, new: np.ndarray, window: int) -> np.ndarray:
    """Return the last ``window`` of the values followed by new ones.

    >>> latest(np.array([1.0, 2.0, 3.0]), np.array([4.0]), 3)
    array([2., 3., 4.])
    """
    return np.concatenate([values, new])[-window:]


def exchanged(calibration: np.ndarray, removed: np.ndarray, added: np.ndarray) -> np.ndarray:
    """Return ascending scores after scores are removed and others are added.

    >>> exchanged(np.array([1.0, 2.0, 2.0, 5.0]), np.array([2.0, 1.0]), np.array([9.0, 3.0]))
    array([2., 3., 5., 9.])
    """
    removed, added = np.sort(removed), np.sort(added)
    at = np.searchsorted(calibration, removed)
    at += np.arange(len(removed)) - np.searchsorted(removed, removed)  # equal scores in turn
    kept = np.delete(calibration, at)
    return np.insert(kept, np.searchsorted(kept, added), added)


def calibration_of(
    originals: np.ndarray, recent: np.ndarray, n_scored: int, window: int
) -> np.ndarray:
    """Return ascending calibration scores after ``n_scored`` counted arrivals.

    ``recent`` (r,) are the latest of their scores. The sorted ``originals`` (m,) are removed evenly
    while the first ``window`` arrivals are added.
    """
    m = len(originals)
    kept = originals[leaving_order(m)[originals_gone(m, n_scored, window) :]]
    return np.sort(np.concatenate([kept, recent]))
