"""Boosting of stumps: a sum of step functions, each round one cut of one of them."""

from __future__ import annotations

import numpy as np

from outsample._kernels.compiling import njit


@njit
def boosted_stumps(steps, rest, n_steps, rising, least, rate, function, cut, low, high):
    """Fill in stump by stump; row i is on step ``steps[f, i]``, ``rest`` is what is left to fit.

    The stump that leaves the least squares is taken, of those with ``least`` rows on either side,
    and that do not fall where they must rise. Nothing is filled in when none is left.
    """
    p, s = steps.shape
    counts, sums = np.zeros((p, n_steps)), np.zeros((p, n_steps))
    for f in range(p):
        for i in range(s):
            counts[f, steps[f, i]] += 1.0
    for at in range(len(cut)):
        total = 0.0
        for i in range(s):
            total += rest[i]
        best, best_low, best_high, best_function, best_cut = 0.0, 0.0, 0.0, -1, 0
        for f in range(p):
            for b in range(n_steps):
                sums[f, b] = 0.0
            for i in range(s):
                sums[f, steps[f, i]] += rest[i]
            left, below = 0.0, 0.0
            for b in range(n_steps - 1):
                left += counts[f, b]
                below += sums[f, b]
                if left >= least and s - left >= least:
                    under, over = below / left, (total - below) / (s - left)
                    gain = below * under + (total - below) * over
                    if gain > best and (under <= over or not rising[f]):
                        best, best_low, best_high = gain, rate * under, rate * over
                        best_function, best_cut = f, b
        if best_function < 0:
            break
        function[at], cut[at] = best_function, best_cut
        low[at], high[at] = best_low, best_high
        for i in range(s):
            rest[i] -= best_low if steps[best_function, i] <= best_cut else best_high
