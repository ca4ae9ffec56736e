"""Missing cells filled from the nearest rows that have them."""

from __future__ import annotations

import numpy as np

from outsample._compiled.compiling import njit


@njit
def mean_squares(row, donors, distances):
    """Write the mean squared difference of a row and each donor over the cells that both have."""
    for i in range(donors.shape[0]):
        total, count = 0.0, 0
        for a in range(row.size):
            difference = row[a] - donors[i, a]
            if not np.isnan(difference):
                total += difference * difference
                count += 1
        distances[i] = total / count if count else np.inf


@njit
def nearest_mean(distances, values, near):
    """Return the mean of the values of the nearest donors that have one, NaN if none has.

    ``near`` (k,) is working space; ties are resolved by the order of the donors.
    """
    count, k = 0, near.size
    for i in range(distances.size):
        is_far = distances[i] == np.inf or (count == k and distances[i] >= distances[near[k - 1]])
        if is_far or np.isnan(values[i]):
            continue
        at = count if count < k else k - 1
        while at > 0 and distances[i] < distances[near[at - 1]]:
            near[at] = near[at - 1]
            at -= 1
        near[at] = i
        count = min(count + 1, k)
    total = 0.0
    for at in range(count):
        total += values[near[at]]
    return total / count if count else np.nan


@njit
def nearest_fill(start, stop, X, donors, k, means):
    """Replace the missing cells (NaN) of rows of X by the mean of the k nearest donors' cells.

    Donors without the cell do not count. Cells that no donor with a common cell has are filled
    from ``means`` (D,).
    """
    distances, near = np.empty(donors.shape[0]), np.empty(k, np.int64)
    for i in range(start, stop):
        missing = np.flatnonzero(np.isnan(X[i]))
        if missing.size:
            mean_squares(X[i], donors, distances)
        for a in missing:
            mean = nearest_mean(distances, donors[:, a], near)
            X[i, a] = means[a] if np.isnan(mean) else mean
