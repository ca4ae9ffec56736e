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
def nearest_fill(start, stop, X, donors, k, means):
    """Replace the missing cells (NaN) of rows of X by the mean of the k nearest donors' cells.

    Donors without the cell do not count, ties are resolved by the order of the donors. Columns
    that no donor with a common cell has are filled from ``means`` (D,).
    """
    distances = np.empty(donors.shape[0])
    for i in range(start, stop):
        if not np.isnan(X[i]).any():
            continue
        mean_squares(X[i], donors, distances)
        order = np.argsort(distances, kind="mergesort")
        for a in range(X.shape[1]):
            if not np.isnan(X[i, a]):
                continue
            total, count = 0.0, 0
            for j in order:
                if count == k or distances[j] == np.inf:
                    break
                if not np.isnan(donors[j, a]):
                    total += donors[j, a]
                    count += 1
            X[i, a] = total / count if count else means[a]
