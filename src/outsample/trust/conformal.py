"""Conformal p-values, thresholds, and control of false discoveries over a batch."""

from __future__ import annotations

import numpy as np


def p_values(scores: np.ndarray, calibration: np.ndarray) -> np.ndarray:
    """P-values (q,) of scores by m ascending calibration scores, from 1 / (m + 1) to 1.

    ``p = (1 + #{c >= s}) / (m + 1)``: the share of scores at least as strange, the new one counted
    among them. If s and the m scores of normal points are exchangeable, ``P(p <= a) <= a`` for
    every a.

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
    """Score above which ``p <= alpha``, for alpha up to 0.5 and m ascending calibration scores.

    Infinity where m is too small for any such p-value, ``m < 1 / alpha - 1``.

    >>> threshold(np.arange(1.0, 100.0), 0.05), threshold(np.arange(3.0), 0.05)
    (95.0, inf)
    """
    m = len(calibration)
    # Compared as `p_values` are, so that no rounding comes between the two.
    allowed = int(np.searchsorted(np.arange(1, m + 2) / (m + 1), alpha, side="right"))
    return float(calibration[m - allowed]) if allowed else np.inf


def benjamini_hochberg(p: np.ndarray, fdr: float) -> np.ndarray:
    """Pick out points (q,) such that the expected share of normal ones is at most ``fdr``.

    The largest r with ``p_(r) <= fdr r / q`` is taken, and all points with ``p <= p_(r)``.

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
