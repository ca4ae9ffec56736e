"""Conformal p-values, thresholds, and false discovery rate control over a batch."""

from __future__ import annotations

import numpy as np


def p_values(scores: np.ndarray, calibration: np.ndarray) -> np.ndarray:
    """Return p-values (q,) of scores, given m ascending calibration scores.

    ``p = (1 + #{c >= s}) / (m + 1)``: the share of scores at least as high, including the new one,
    from 1 / (m + 1) to 1. If s and the m scores of normal points are exchangeable,
    ``P(p <= a) <= a`` for every a.

    References
    ----------
    V. Vovk, A. Gammerman, G. Shafer, "Algorithmic Learning in a Random World", Springer, 2005.

    Examples
    --------
    >>> p_values(np.array([0.0, 2.5, 9.0]), np.array([1.0, 2.0, 3.0]))
    array([1.  , 0.5 , 0.25])
    """
    m = len(calibration)
    at_least = m - np.searchsorted(calibration, scores, side="left")
    return (1 + at_least) / (m + 1)


def threshold(calibration: np.ndarray, alpha: float) -> float:
    """Return the score above which ``p <= alpha``, given m ascending calibration scores.

    alpha is at most 0.5. Infinity if m is too small for such a p-value, ``m < 1 / alpha - 1``.

    >>> threshold(np.arange(1.0, 100.0), 0.05), threshold(np.arange(3.0), 0.05)
    (95.0, inf)
    """
    m = len(calibration)
    # The same quotients as in `p_values`, so that both round alike.
    allowed = int(np.searchsorted(np.arange(1, m + 2) / (m + 1), alpha, side="right"))
    return float(calibration[m - allowed]) if allowed else np.inf


def benjamini_hochberg(p: np.ndarray, fdr: float) -> np.ndarray:
    """Return a mask (q,) of discoveries whose expected share of normal points is at most ``fdr``.

    With r the largest rank with ``p_(r) <= fdr r / q``, all points with ``p <= p_(r)``.

    References
    ----------
    Y. Benjamini, Y. Hochberg, "Controlling the false discovery rate", J. R. Stat. Soc. B 57
    (1995). For conformal p-values that share calibration points: S. Bates, E. Candes, L. Lei,
    Y. Romano, M. Sesia, "Testing for outliers with conformal p-values", Ann. Stat. 51 (2023).

    Examples
    --------
    >>> benjamini_hochberg(np.array([0.001, 0.8, 0.02, 0.5]), fdr=0.1)
    array([ True, False,  True, False])
    """
    q = len(p)
    ranked = np.sort(p)
    passed = np.flatnonzero(ranked <= fdr * np.arange(1, q + 1) / q * (1 + 1e-12))
    if not len(passed):
        return np.zeros(q, dtype=bool)
    return p <= ranked[passed[-1]]
