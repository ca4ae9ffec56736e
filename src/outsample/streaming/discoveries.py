"""Discoveries in a stream of p-values, with the rate of false ones under control at every time."""

from __future__ import annotations

from collections import deque
from functools import cache
from math import exp, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outsample._validation import check_number

# gamma_j ~ log(max(j, 2)) / (j exp(sqrt(log j))), of sum one over all j; the constant is one over
# the sum to 10^8 and the integral beyond it.
SPENT = 0.079
# Shares of discoveries up to this age are summed one by one.
RECENT_AGE = 64
# Beyond, g is a sum of exponentials, at most 0.3 % lower up to the last age, and lower after it.
LAST_AGE = 1e12


class OnlineDiscoveries:
    r"""Pick out arrivals that do not belong, with the false discovery rate under control for ever.

    LORD++: arrival t is a discovery if its p-value is at most ``a_t``, a level that is spent as
    arrivals pass and earned again with every discovery,

    ``a_t = w g(t) + (fdr - w) g(t - t_1) + fdr sum_{j > 1} g(t - t_j)``,

    with t_j the times of discoveries, ``w = fdr / 2`` and g falling, of sum at most one. Among
    discoveries up to any time, the expected share of false ones is at most ``fdr``, for p-values
    that are valid given the past; conformal ones that share a calibration are so approximately.

    A p-value takes the same time however many discoveries there were: beyond an age of 64 arrivals
    g is a sum of exponentials, whose sum over all discoveries follows from the one before. Any
    falling g of sum at most one has the guarantee; this one is at most 0.3 % below that of the
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
        """Test arrivals, one after another.

        Parameters
        ----------
        p_values : array-like of shape (q,)
            Their p-values, in the order in which they came.

        Returns
        -------
        ndarray of bool of shape (q,)
            Whether each is a discovery.
        """
        values, found = np.asarray(p_values, dtype=np.float64), []
        if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
            raise ValueError("p_values must be a row of numbers from 0 to 1.")
        for p in values:
            self._next_arrival()
            found.append(bool(p <= self.level()))
            if found[-1]:
                self.discovered_at_.append(self.n_tested_)
                self._recent.append(self.n_tested_)
        return np.array(found, dtype=bool)

    def level(self) -> float:
        """Return the level of the last arrival that was tested; before any, that of the first."""
        t, half = max(self.n_tested_, 1), self.fdr / 2
        shares = sum(_share(t - at) for at in self._recent if at < t)
        earned = self.fdr * (shares + float(self._old_shares.sum()))
        if self.discovered_at_ and self.discovered_at_[0] < t:
            earned -= half * _share(t - self.discovered_at_[0])
        return half * _share(t) + earned

    def _next_arrival(self) -> None:
        """Go on by one arrival: shares of old discoveries fall, one more may be old."""
        coefficients, factors = _exponentials()
        self.n_tested_ += 1
        self._old_shares *= factors
        if self._recent and self.n_tested_ - self._recent[0] > RECENT_AGE:
            self._recent.popleft()
            self._old_shares += coefficients


def _share(t: float) -> float:
    """g(t): what is spent at a time after earning; falls, of sum one."""
    return SPENT * log(max(t, 2)) / (t * exp(sqrt(log(t))))


@cache
def _exponentials() -> tuple[np.ndarray, np.ndarray]:
    """Coefficients c and factors f with ``sum_i c_i f_i^(t - 65)`` just below g(t) for t > 64."""
    since = np.unique(np.geomspace(1, LAST_AGE, 1000).round()) - 1
    rates = np.exp(np.arange(1 - np.log(RECENT_AGE), -1 - np.log(LAST_AGE), -1.0))
    shares = np.array([_share(t) for t in since + RECENT_AGE + 1])
    terms = np.exp(-since[:, None] * rates) / shares[:, None]
    units = terms.max(axis=0)
    coefficients = np.linalg.lstsq(terms / units, np.ones(len(terms)))[0] / units
    return coefficients / (terms @ coefficients).max(), np.exp(-rates)
