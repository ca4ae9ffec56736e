r"""Sequential tests of whether a map is out of date, valid at every time.

A share of low p-values against a fixed calibration has no valid false-alarm rate: the calibration
itself may be unfavourable, and repeated looks inflate the error. With m calibration scores and
``k = floor(a (m + 1))``, the true rate of ``p <= a`` given the calibration is Beta(k, m + 1 - k);
``a+``, its 1 - delta quantile, accounts for the calibration. Against every rate up to ``a+``,

``E_n = integral over q in [a+, 1] of (q / a+)^S ((1 - q) / (1 - a+))^(n - S) dq / (1 - a+)``

is a mean of likelihood ratios, where S of n arrivals have ``p <= a``: a supermartingale that starts
at 1 and reaches ``1 / alpha`` with probability at most alpha. If the alarm is at
``E_n >= 1 / alpha``, P(any false alarm) <= alpha + delta for split calibration, and approximately
for leave-one-out.

E_n uses all arrivals, and reacts slowly to a change after a long quiet time. An e-detector (Shin,
Ramdas, Rinaldo) runs in parallel, ``SR_n = (SR_{n-1} + 1) e_n``: the mean over several rates q of
such sums, with ``e_n`` the likelihood ratio of q against ``a+``, restarted after an alarm. The mean
number of arrivals between false alarms is at least ``MEAN_RUN``.

References
----------
J. Shin, A. Ramdas, A. Rinaldo, "E-detectors: a nonparametric framework for sequential change
detection", New England J. Stat. Data Sci. 2 (2024). V. Vovk, "Conditional validity of inductive
conformal predictors", Mach. Learn. 92 (2013), for the Beta distribution.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import special

# a: an arrival with a p-value of at most this counts as unusual.
RATE = 0.05
# Probability of any false alarm, by chance and by an unfavourable calibration: 1 % together.
ALPHA, DELTA = 0.005, 0.005
# Mean arrivals between false alarms of an e-detector, and the rates q of its likelihood ratios, in
# units of a+.
MEAN_RUN = 1e6
BETS = np.array([1.5, 2.0, 3.0, 5.0])


class RateTest(NamedTuple):
    """E_n: the arrivals n, the unusual ones S, and the arrival of the first alarm, or 0."""

    n_seen: int = 0
    n_strange: int = 0
    alarm_at: int = 0

    def log_evidence(self, highest: float) -> float:
        """Return the logarithm of E_n."""
        return float(log_evidence(np.array(self.n_seen), np.array(self.n_strange), highest))

    def after(self, is_unusual: np.ndarray, highest: float) -> RateTest:
        """Return the test after arrivals (q,)."""
        n = self.n_seen + np.arange(1, len(is_unusual) + 1)
        counts = self.n_strange + np.cumsum(is_unusual)
        alarm_at = self.alarm_at
        if not alarm_at:
            above = np.flatnonzero(counts > highest * n)  # otherwise E_n is at most 1
            is_alarm = log_evidence(n[above], counts[above], highest) >= -np.log(ALPHA)
            alarm_at = int(n[above[is_alarm][0]]) if is_alarm.any() else 0
        return RateTest(int(n[-1]), int(counts[-1]), alarm_at)


class RunTest(NamedTuple):
    """SR_n of each rate, the arrivals, the number of alarms, and the latest alarm, or 0."""

    sums: tuple[float, ...] = (0.0,) * len(BETS)
    n_seen: int = 0
    n_alarms: int = 0
    alarm_at: int = 0

    def after(self, is_unusual: np.ndarray, highest: float) -> RunTest:
        """Return the test after arrivals (q,)."""
        rates = np.minimum(BETS * highest, (1 + highest) / 2)
        ratios = ((1 - rates) / (1 - highest)).tolist(), (rates / highest).tolist()
        sums, n, n_alarms, alarm_at = self
        for unusual in is_unusual.tolist():
            n += 1
            pairs = zip(sums, ratios[unusual], strict=True)
            sums = tuple((total + 1) * ratio for total, ratio in pairs)
            if sum(sums) >= MEAN_RUN * len(BETS):
                sums, n_alarms, alarm_at = RunTest().sums, n_alarms + 1, n
        return RunTest(sums, n, n_alarms, alarm_at)


@lru_cache(maxsize=64)
def highest_rate(m: int) -> float:
    """Return ``a+``, the 1 - delta quantile of the rate of ``p <= a`` with m calibration scores.

    >>> round(highest_rate(2000), 4)
    0.0634
    """
    k = max(int(np.floor(RATE * (m + 1))), 1)
    return float(special.betaincinv(k, m + 1 - k, 1 - DELTA)) if m >= k else 1 - 1e-9


def log_evidence(n: np.ndarray, n_unusual: np.ndarray, highest: float) -> np.ndarray:
    """Return the logarithm of E_n (q,) after n arrivals (q,), ``n_unusual`` (q,) of them unusual.

    >>> log_evidence(np.array([0, 500, 500]), np.array([0, 25, 60]), 0.06).round(1)
    array([-0. , -4.8,  9.3])
    """
    hits, misses = n_unusual + 1.0, n - n_unusual + 1.0
    with np.errstate(divide="ignore"):  # the tail underflows: no evidence
        tail = np.log(special.betaincc(hits, misses, highest))
    at_most = n_unusual * np.log(highest) + misses * np.log1p(-highest)
    return special.betaln(hits, misses) + tail - at_most


class DriftTests(NamedTuple):
    """States of the tests of arrivals.

    ``evidence`` and ``original`` use p-values by the original points and their scores alone,
    ``recent`` uses the p-values of the current model.
    """

    evidence: RateTest = RateTest()
    original: RunTest = RunTest()
    recent: RunTest = RunTest()

    @property
    def first_alarm(self) -> int:
        """Return the arrival with which the original map became out of date, or 0."""
        alarms = (test.alarm_at for test in (self.evidence, self.original) if test.alarm_at)
        return min(alarms, default=0)

    def after(
        self, p_original: np.ndarray, p_current: np.ndarray, m: int, m_current: int
    ) -> DriftTests:
        """Return the tests after arrivals with p-values (q,) by m and ``m_current`` scores."""
        is_unusual, highest = p_original <= RATE, highest_rate(m)
        return DriftTests(
            self.evidence.after(is_unusual, highest),
            self.original.after(is_unusual, highest),
            self.recent.after(p_current <= RATE, highest_rate(m_current)),
        )
