r"""Is the map out of date? Tests of arrivals one after another, which may be looked at for ever.

A share of low p-values against a fixed calibration has no valid false-alarm rate: the calibration
itself may be unlucky, and who looks often enough sees anything. With m calibration scores and
``k = floor(a (m + 1))``, the true rate of ``p <= a`` given the calibration is Beta(k, m + 1 - k);
``a+``, its 1 - delta quantile, allows for bad luck. Against every rate up to ``a+``,

``E_n = integral over q in [a+, 1] of (q / a+)^S ((1 - q) / (1 - a+))^(n - S) dq / (1 - a+)``

is a mean of likelihood ratios, S of n arrivals having ``p <= a``: a supermartingale from 1, which
ever reaches ``1 / alpha`` with probability alpha at most. So with alarm at ``E_n >= 1 / alpha``,
P(ever a false alarm) <= alpha + delta, for split calibration; leave-one-out scores are nearly so.

E_n forgets nothing, and a change after a long quiet time takes it long to see. Beside it runs an
e-detector (Shin, Ramdas, Rinaldo), ``SR_n = (SR_{n-1} + 1) e_n``: the mean over a few rates q of
such sums with ``e_n`` the likelihood ratio of q against ``a+``, started anew after an alarm; false
alarms are ``MEAN_RUN`` arrivals apart on average, or more.

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

# a: an arrival with such a p-value counts as strange.
RATE = 0.05
# Probability of an alarm for ever, by chance and by an unlucky calibration: 1 % together.
ALPHA, DELTA = 0.005, 0.005
# Arrivals between false alarms of an e-detector, on average, and the rates that it bets on, in
# units of a+.
MEAN_RUN = 1e6
BETS = np.array([1.5, 2.0, 3.0, 5.0])


class RateTest(NamedTuple):
    """E_n: how many arrivals (n), how many strange ones (S), and where it first alarmed, or 0."""

    n_seen: int = 0
    n_strange: int = 0
    alarm_at: int = 0

    def log_evidence(self, highest: float) -> float:
        """Logarithm of E_n."""
        return float(log_evidence(np.array(self.n_seen), np.array(self.n_strange), highest))

    def after(self, strange: np.ndarray, highest: float) -> RateTest:
        """Return the test after arrivals (q,), strange or not."""
        n = self.n_seen + np.arange(1, len(strange) + 1)
        counts = self.n_strange + np.cumsum(strange)
        alarm_at = self.alarm_at
        if not alarm_at:
            above = np.flatnonzero(counts > highest * n)  # elsewhere no ratio exceeds 1, nor E_n
            found = log_evidence(n[above], counts[above], highest) >= -np.log(ALPHA)
            alarm_at = int(n[above[found][0]]) if found.any() else 0
        return RateTest(int(n[-1]), int(counts[-1]), alarm_at)


class RunTest(NamedTuple):
    """SR_n of each bet, arrivals so far, how often it alarmed, and where last, or 0."""

    sums: tuple[float, ...] = (0.0,) * len(BETS)
    n_seen: int = 0
    n_alarms: int = 0
    alarm_at: int = 0

    def after(self, strange: np.ndarray, highest: float) -> RunTest:
        """Return the test after arrivals (q,), strange or not."""
        rates = np.minimum(BETS * highest, (1 + highest) / 2)
        ratios = ((1 - rates) / (1 - highest)).tolist(), (rates / highest).tolist()
        sums, n, n_alarms, alarm_at = self
        for is_strange in strange.tolist():
            n += 1
            pairs = zip(sums, ratios[is_strange], strict=True)
            sums = tuple((total + 1) * ratio for total, ratio in pairs)
            if sum(sums) >= MEAN_RUN * len(BETS):
                sums, n_alarms, alarm_at = RunTest().sums, n_alarms + 1, n
        return RunTest(sums, n, n_alarms, alarm_at)


@lru_cache(maxsize=64)
def highest_rate(m: int) -> float:
    """Return ``a+``: the rate of p-values up to a by m calibration scores, but for bad luck.

    >>> round(highest_rate(2000), 4)
    0.0634
    """
    k = max(int(np.floor(RATE * (m + 1))), 1)
    return float(special.betaincinv(k, m + 1 - k, 1 - DELTA)) if m >= k else 1 - 1e-9


def log_evidence(n: np.ndarray, strange: np.ndarray, highest: float) -> np.ndarray:
    """Logarithm of E_n (q,) after n arrivals (q,), so many of them strange, against ``a+``.

    >>> log_evidence(np.array([0, 500, 500]), np.array([0, 25, 60]), 0.06).round(1)
    array([-0. , -4.8,  9.3])
    """
    hits, misses = strange + 1.0, n - strange + 1.0
    with np.errstate(divide="ignore"):  # a tail below every double: no evidence at all
        tail = np.log(special.betaincc(hits, misses, highest))
    at_most = strange * np.log(highest) + misses * np.log1p(-highest)
    return special.betaln(hits, misses) + tail - at_most


class DriftTests(NamedTuple):
    """What has been seen of arrivals: by the original map, and as it has learned since.

    ``evidence`` and ``original`` look at p-values by the original points and their scores alone,
    ``recent`` at those given out.
    """

    evidence: RateTest = RateTest()
    original: RunTest = RunTest()
    recent: RunTest = RunTest()

    def after(
        self, original: np.ndarray, given: np.ndarray, m: int, m_given: int
    ) -> DriftTests:
        """Return the tests after arrivals with p-values (q,), by m and ``m_given`` scores."""
        strange, highest = original <= RATE, highest_rate(m)
        return DriftTests(
            self.evidence.after(strange, highest),
            self.original.after(strange, highest),
            self.recent.after(given <= RATE, highest_rate(m_given)),
        )


class Drift(NamedTuple):
    """Whether a map still fits what arrives; prints as a sentence.

    Attributes
    ----------
    n_seen, n_learned : int
        Arrivals, and those of them that became neighbours.
    strange_rate : float
        Share of arrivals with ``p <= 0.05`` by the original map alone; NaN without a detector.
    highest_rate : float
        The largest such share that the calibration allows for.
    evidence : float
        E_n, 1 at the start; 200 is an alarm.
    alarm_at : int
        Arrival with which the original map became out of date; 0 if it has not.
    n_changes, changed_at : int
        How often, and with which arrival last, the p-values given out said that something changes;
        learning follows, so that this may pass.
    outside : float
        Share of the latest arrivals farther from the original map than any of its points is from
        the others.
    fill_growth : float
        Largest distance of a learned point from the original map, over the largest among these.
    loo_error : float
        Distance of learned points from where the others would place them now, over the size of the
        map; compare with ``loo_error_`` of the extension. NaN if nothing was learned.
    loo_trend : float
        The same of the newer half over the older half; above 1, it grows.
    reason : str
        Why the map should be made anew; empty if it need not be.
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
        told = f"{self.n_seen} arrivals, {self.n_learned} learned"
        if np.isfinite(self.strange_rate):
            told += (
                f"; {self.strange_rate:.1%} of them strange to the original map "
                f"(up to {self.highest_rate:.1%} is normal)"
            )
        if self.changed_at:
            told += f"; last change at arrival {self.changed_at}"
        if self.reason:
            return f"The map is out of date: {self.reason} ({told})."
        return f"The map fits what arrives ({told})."


def refit_reason(tests: DriftTests, outside: float, has_scores: bool, n_recent: int) -> str:
    """Why a map should be made anew; empty if it need not be."""
    first = [at for at in (tests.evidence.alarm_at, tests.original.alarm_at) if at]
    if first:
        return f"from arrival {min(first)} on, strange points are more frequent than chance allows"
    if not has_scores and n_recent >= 1 / RATE and outside > RATE:
        return f"{outside:.0%} of the latest arrivals are beyond its points"
    return ""
