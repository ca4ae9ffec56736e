"""Sums over a few of the training points, the landmarks, and images of queries that are known."""

from __future__ import annotations

from outsample._kernels.compiling import njit
from outsample._kernels.correlated import variogram
from outsample._kernels.gls import place_on_coincident
from outsample._kernels.search import row_distance


@njit
def predict_landmarks(start, stop, X, landmarks, Q, unit, kind, coefficients, values):
    """``sum_j c(|x - x_j|) coefficients_j`` over the landmarks, c the covariance, 1 at 0."""
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
def place_known(start, stop, Y, indptr, indices, sigma, coordinates):
    """Put queries that coincide with training points at the mean of their images."""
    for i in range(start, stop):
        place_on_coincident(Y, indices, sigma, indptr[i], indptr[i + 1], coordinates[i])
