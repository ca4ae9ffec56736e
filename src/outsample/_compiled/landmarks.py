"""Sums over landmarks, a subset of the training points, and queries at training points."""

from __future__ import annotations

from outsample._compiled.compiling import njit
from outsample._compiled.correlated import variogram
from outsample._compiled.gls import place_on_coincident
from outsample._compiled.search import row_distance


@njit
def predict_landmarks(start, stop, X, landmarks, Q, unit, kind, coefficients, values):
    """Write ``sum_j c(|x - x_j|) coefficients_j`` over the landmarks, c the covariance, 1 at 0."""
    d = coefficients.shape[1]
    for i in range(start, stop):
        for a in range(d):
            values[i, a] = 0.0
        for j in range(landmarks.size):
            h = min(row_distance(Q, i, X, landmarks[j]) / unit, 1e150)
            value = 1.0 - variogram(kind, h)
            if value != 0.0:
                for a in range(d):
                    values[i, a] += value * coefficients[j, a]


@njit
def place_coincident(start, stop, Y, indptr, indices, deviations, coordinates):
    """Write the mean image of the training points that coincide with a query, if there are any."""
    for i in range(start, stop):
        place_on_coincident(Y, indices, deviations, indptr[i], indptr[i + 1], coordinates[i])
