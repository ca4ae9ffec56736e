"""Gradient boosting of decision stumps: each round adds one cut of one step function."""

from __future__ import annotations

import numpy as np

from outsample._compiled.compiling import njit


@njit
def boosted_stumps(steps, residuals, n_steps, rising, min_rows, rate, function, cut, low, high):
    """Write one stump per round; row i is on step ``steps[f, i]`` of function f.

    Each round takes the stump that leaves the smallest sum of squared residuals, which are updated.
    A stump has at least ``min_rows`` rows on either side, and does not fall if ``rising[f]``. The
    last entries stay unchanged if no stump lowers the sum.
    """
    p, s = steps.shape
    counts, sums = np.zeros((p, n_steps)), np.zeros((p, n_steps))
    for f in range(p):
        for i in range(s):
            counts[f, steps[f, i]] += 1.0
    for round_idx in range(len(cut)):
        total = 0.0
        for i in range(s):
            total += residuals[i]
        best, best_low, best_high, best_function, best_cut = 0.0, 0.0, 0.0, -1, 0
        for f in range(p):
            for b in range(n_steps):
                sums[f, b] = 0.0
            for i in range(s):
                sums[f, steps[f, i]] += residuals[i]
            left_count, left_sum = 0.0, 0.0
            for b in range(n_steps - 1):
                left_count += counts[f, b]
                left_sum += sums[f, b]
                if left_count >= min_rows and s - left_count >= min_rows:
                    low_mean = left_sum / left_count
                    high_mean = (total - left_sum) / (s - left_count)
                    gain = left_sum * low_mean + (total - left_sum) * high_mean
                    if gain > best and (low_mean <= high_mean or not rising[f]):
                        best, best_low, best_high = gain, rate * low_mean, rate * high_mean
                        best_function, best_cut = f, b
        if best_function < 0:
            break
        function[round_idx], cut[round_idx] = best_function, best_cut
        low[round_idx], high[round_idx] = best_low, best_high
        for i in range(s):
            residuals[i] -= best_low if steps[best_function, i] <= best_cut else best_high
