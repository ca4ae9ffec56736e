"""Discoveries in a stream of p-values, with the rate of false ones under control at every time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from outsample._validation import check_number

# gamma_j ~ log(max(j, 2)) / (j exp(sqrt(log j))), of sum one over all j; the constant is one over
# the sum to 10^8 and the integral beyond it.
SPENT = 0.079


class OnlineDiscoveries:
    r"""Pick out arrivals that do not belong, with the false discovery rate under control for ever.

    LORD++: arrival t is a discovery if its p-value is at most ``a_t``, a level that is spent as
    arrivals pass and earned again with every discovery,

    ``a_t = w g(t) + (fdr - w) g(t - t_1) + fdr sum_{j > 1} g(t - t_j)``,

    with t_j the times of discoveries, ``w = fdr / 2`` and g falling, of sum one. Among discoveries
    up to any time, the expected share of false ones is at most ``fdr``, for p-values that are
    valid given the past; conformal ones that share a calibration are so approximately.

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
        self.fdr = float(fdr)
        self.n_tested_ = 0
        self.discovered_at_: list[int] = []

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
            self.n_tested_ += 1
            found.append(bool(p <= self.level()))
            if found[-1]:
                self.discovered_at_.append(self.n_tested_)
        return np.array(found, dtype=bool)

    def level(self) -> float:
        """Level of the arrival that is being tested."""
        half, since = self.fdr / 2, self.n_tested_ - np.array(self.discovered_at_, dtype=float)
        earned = self.fdr * _share(since)
        earned[:1] -= half * _share(since[:1])
        return float(half * _share(np.array([self.n_tested_]))[0] + earned.sum())


def _share(t: np.ndarray) -> np.ndarray:
    """g(t): what is spent at a time after earning; falls, of sum one."""
    return SPENT * np.log(np.maximum(t, 2)) / (t * np.exp(np.sqrt(np.log(t))))
