"""Online control of the false discovery rate in a stream of p-values."""

from __future__ import annotations

from collections import deque
from functools import cache
from math import exp, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outsample._validation import check_number

# Normalises gamma_j ~ log(max(j, 2)) / (j exp(sqrt(log j))) to sum 1: the inverse of the sum to
# 10^8 plus the integral beyond.
SHARE_FACTOR = 0.079
# The shares of discoveries up to this age are summed one by one.
RECENT_AGE = 64
# Beyond it, g is a sum of exponentials, at most 0.3 % lower up to this age, and lower afterwards.
MAX_FITTED_AGE = 1e12


class OnlineDiscoveries:
    r"""Detect abnormal arrivals with a controlled false discovery rate at all times.

    LORD++: arrival t is a discovery if its p-value is at most ``a_t``, a level that decreases with
    every arrival and increases with every discovery,

    ``a_t = w g(t) + (fdr - w) g(t - t_1) + fdr sum_{j > 1} g(t - t_j)``,

    with t_j the times of discoveries, ``w = fdr / 2`` and g decreasing, with sum at most 1. Among
    the discoveries up to any time, the expected share of false ones is at most ``fdr``, for
    p-values that are valid given the past; conformal p-values that share a calibration are
    approximately so.

    The time per p-value does not depend on the number of discoveries: beyond an age of 64 arrivals
    g is a sum of exponentials, whose sum over all discoveries is updated recursively. The guarantee
    holds for any decreasing g with sum at most 1; this one is at most 0.3 % below that of the
    references, up to an age of 10^12 arrivals.

    Parameters
    ----------
    fdr : float, default=0.1
        False discovery rate, above 0 and below 1.

    References
    ----------
    A. Ramdas, F. Yang, M. Wainwright, M. Jordan, "Online control of the false discovery rate with
    decaying memory", NeurIPS 2017; A. Javanmard, A. Montanari, "Online rules for control of false
    discovery rate and false discovery exceedance", Ann. Stat. 46 (2018).

    Examples
    --------
    >>> online = OnlineDiscoveries(fdr=0.1)
    >>> online.test([0.5, 1e-6, 0.0001, 0.7])
    array([False,  True,  True, False])
    >>> online.n_tested_, online.discovered_at_
    (4, [2, 3])
    """

    def __init__(self, fdr: float = 0.1) -> None:
        check_number("fdr", fdr, 0, 1, open_below=True)
        if fdr == 1:
            raise ValueError("fdr is 1, but must be below 1: all arrivals would be discoveries.")
        self.fdr = float(fdr)
        self.n_tested_ = 0
        self.discovered_at_: list[int] = []
        self._recent: deque[int] = deque()
        self._old_shares = np.zeros(len(_exponentials()[0]))

    def test(self, p_values: Any) -> NDArray[np.bool_]:
        """Test arrivals in order.

        Parameters
        ----------
        p_values : array-like of shape (q,)
            Their p-values, in the order of arrival.

        Returns
        -------
        ndarray of bool of shape (q,)
            Which of them are discoveries.
        """
        values, is_discovery = np.asarray(p_values, dtype=np.float64), []
        if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
            raise ValueError("p_values must be a 1-D array of numbers from 0 to 1.")
        for p in values:
            self._next_arrival()
            is_discovery.append(bool(p <= self.level()))
            if is_discovery[-1]:
                self.discovered_at_.append(self.n_tested_)
                self._recent.append(self.n_tested_)
        return np.array(is_discovery, dtype=bool)

    def level(self) -> float:
        """Return the level of the latest tested arrival; of the first, if none was tested."""
        t, half = max(self.n_tested_, 1), self.fdr / 2
        shares = sum(_share(t - at) for at in self._recent if at < t)
        earned = self.fdr * (shares + float(self._old_shares.sum()))
        if self.discovered_at_ and self.discovered_at_[0] < t:
            earned -= half * _share(t - self.discovered_at_[0])
        return half * _share(t) + earned

    def _next_arrival(self) -> None:
        """Advance by one arrival: shares of old discoveries decrease, another may become old."""
        coefficients, factors = _exponentials()
        self.n_tested_ += 1
        self._old_shares *= factors
        if self._recent and self.n_tested_ - self._recent[0] > RECENT_AGE:
            self._recent.popleft()
            self._old_shares += coefficients


def _share(t: float) -> float:
    """Return g(t), the share of a discovery's level that is spent t arrivals later."""
    return SHARE_FACTOR * log(max(t, 2)) / (t * exp(sqrt(log(t))))


@cache
def _exponentials() -> tuple[np.ndarray, np.ndarray]:
    """Return c and f such that ``sum_i c_i f_i^(t - 65)`` is just below g(t) for t > 64."""
    since = np.unique(np.geomspace(1, MAX_FITTED_AGE, 1000).round()) - 1
    rates = np.exp(np.arange(1 - np.log(RECENT_AGE), -1 - np.log(MAX_FITTED_AGE), -1.0))
    shares = np.array([_share(t) for t in since + RECENT_AGE + 1])
    terms = np.exp(-since[:, None] * rates) / shares[:, None]
    units = terms.max(axis=0)
    coefficients = np.linalg.lstsq(terms / units, np.ones(len(terms)))[0] / units
    return coefficients / (terms @ coefficients).max(), np.exp(-rates)
