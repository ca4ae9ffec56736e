"""Calibration by the latest scores: every arrival's score comes in, the oldest go.

An arrival's p-value is exact if its score is exchangeable with those it is compared with: so they
are those of the arrivals before it, as they were scored when they arrived. Were only accepted ones
to count, each round would cut the calibration's own tail, and a nominal 1 % would become 18 % after
ten turnovers.

Strange arrivals that follow directly on one another count once: an hour of a flood would else fill
the calibration's tail, and the next flood would look usual. Arrivals that are exchangeable hardly
ever follow so: of the share a that is strange, the share a is left out, and the rate of alarms at
level a settles at a (1 + a) instead of a. A run that does not end is the new usual, and counts.
"""

from __future__ import annotations

import numpy as np

# P-value up to which an arrival is strange here, whatever becomes of it otherwise.
STRANGE = 0.01
# Strange arrivals in a row that count once; those beyond count singly.
LONGEST_RUN = 120


def refreshing(strange: np.ndarray, run: int) -> tuple[np.ndarray, int]:
    """Which arrivals (q,) count, and how many strange ones are in a row at their end.

    ``run`` is how many were in a row before the first of them.

    >>> refreshing(np.array([False, True, True, True, False, True]), 0)
    (array([ True,  True, False, False,  True,  True]), 1)
    """
    at = np.arange(len(strange))
    last_usual = np.maximum.accumulate(np.where(strange, -1 - run, at)) if len(at) else at
    in_a_row = np.where(strange, at - last_usual, 0)
    counts = ~strange | (in_a_row == 1) | (in_a_row > LONGEST_RUN)
    return counts, int(in_a_row[-1]) if len(at) else run


def originals_gone(m: int, n_scored: int, window: int) -> int:
    """How many of m original scores have left: all of them after ``window`` that count."""
    return m * min(n_scored, window) // window


def leaving_order(m: int) -> np.ndarray:
    """Order (m,) in which the original scores leave: whatever they are, the same every time."""
    return np.random.default_rng(0).permutation(m)


def latest(values: np.ndarray, new: np.ndarray, window: int) -> np.ndarray:
    """Return the last ``window`` of values and those that come behind them.

    >>> latest(np.array([1.0, 2.0, 3.0]), np.array([4.0]), 3)
    array([2., 3., 4.])
    """
    return np.concatenate([values, new])[-window:]


def exchanged(calibration: np.ndarray, out: np.ndarray, into: np.ndarray) -> np.ndarray:
    """Ascending scores without some of them, and with others.

    >>> exchanged(np.array([1.0, 2.0, 2.0, 5.0]), np.array([2.0, 1.0]), np.array([9.0, 3.0]))
    array([2., 3., 5., 9.])
    """
    out, into = np.sort(out), np.sort(into)
    at = np.searchsorted(calibration, out)
    at += np.arange(len(out)) - np.searchsorted(out, out)  # of equal scores, one after another
    kept = np.delete(calibration, at)
    return np.insert(kept, np.searchsorted(kept, into), into)


def calibration_of(
    originals: np.ndarray, recent: np.ndarray, n_scored: int, window: int
) -> np.ndarray:
    """Ascending calibration scores after so many that count, the last of them ``recent`` (r,).

    The sorted ``originals`` (m,) leave evenly while the first ``window`` of them come in.
    """
    m = len(originals)
    kept = originals[leaving_order(m)[originals_gone(m, n_scored, window) :]]
    return np.sort(np.concatenate([kept, recent]))
