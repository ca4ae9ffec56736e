"""Least squares with correlated errors: local kriging, and Gaussian processes over all points."""

from __future__ import annotations

import math

import numpy as np

from outsample._compiled.compiling import njit
from outsample._compiled.gls import place_on_coincident
from outsample._compiled.linear_algebra import cholesky_solve
from outsample._compiled.search import distance, row_distance
from outsample._compiled.tangent import fill_design, polynomial_terms, tangent_of

LINEAR, MATERN52, GAUSSIAN, AFFINE = 0, 1, 2, 3
# A pivot this small, relative to its diagonal entry, belongs to a neighbour that adds nothing to
# the nearer ones.
SMALLEST_PIVOT = 1e-13


@njit
def variogram(kind, h):
    """Return half the mean square difference of the map at points h length scales apart."""
    if kind == LINEAR:
        return h
    if kind == AFFINE:
        return min(h, 1e150) ** 2  # the square must not overflow
    if kind == MATERN52:
        s = math.sqrt(5.0) * h
        if s < 1e-2:  # the closed form loses digits
            tail = 1.0 / 24.0 - s * (1.0 / 45.0 - s * (1.0 / 144.0 - s / 630.0))
            return s * s * (1.0 / 6.0 - s * s * tail)
        if s > 1e3:  # the correlation is 0 in double precision, and s * s may overflow
            return 1.0
        return 1.0 - (1.0 + s + s * s / 3.0) * math.exp(-s)
    return -math.expm1(-h * h)


@njit
def factor_covariance(G):
    """Factor ``G = U^T U`` in place (Cholesky); only the upper triangle is read and written.

    A dependent row gets no weight instead of a division by 0. Four rows are subtracted at a time,
    which uses vector registers without reordering sums: results do not depend on the compiler.
    """
    k = G.shape[0]
    for j in range(k):
        diagonal = G[j, j]
        done = j - j % 4
        for a in range(0, done, 4):
            first, second, third, fourth = G[a, j], G[a + 1, j], G[a + 2, j], G[a + 3, j]
            for c in range(j, k):
                G[j, c] = (
                    G[j, c] - first * G[a, c] - second * G[a + 1, c]
                    - third * G[a + 2, c] - fourth * G[a + 3, c]
                )  # fmt: skip
        for a in range(done, j):
            factor = G[a, j]
            for c in range(j, k):
                G[j, c] -= factor * G[a, c]
        G[j, j] = 1e150 if G[j, j] <= SMALLEST_PIVOT * diagonal else math.sqrt(G[j, j])
        for c in range(j + 1, k):
            G[j, c] /= G[j, j]


@njit
def solve_lower(U, B):
    """Solve ``U^T Z = B`` in place for all columns of B."""
    k, m = B.shape
    for i in range(k):
        for a in range(i):
            factor = U[a, i]
            for c in range(m):
                B[i, c] -= factor * B[a, c]
        for c in range(m):
            B[i, c] /= U[i, i]


@njit
def solve_correlated(
    start, stop, X, Q, Y, indptr, indices, distances, units, deviations, kept, kind, length, nugget,
    order, tangent_dim, coordinates,
):  # fmt: skip
    """Solve Eq. 2.3 with the full covariance of the neighbours' errors and a polynomial drift.

    The error of neighbour i is the change of the map from it to the query, so that errors i and j
    have covariance ``g(r_i) + g(r_j) - g(r_ij)``, g the variogram, plus the nugget for i = j.
    Neighbours with ``kept`` False are ignored.
    """
    d = Y.shape[1]
    for i in range(start, stop):
        first, last = indptr[i], indptr[i + 1]
        out = coordinates[i]
        if place_on_coincident(Y, indices, deviations, first, last, out):
            continue
        k = 0
        for j in range(first, last):
            k += kept[j]
        rows = np.empty(k, dtype=np.int64)
        from_query = np.empty(k)
        lengths = np.empty(k)
        unit = length * units[i]
        position = 0
        for j in range(first, last):
            if kept[j]:
                rows[position] = indices[j]
                lengths[position] = distances[j]
                from_query[position] = variogram(kind, distances[j] / unit)
                position += 1
        if from_query[0] == 0.0:  # the distance is 0 relative to the unit
            for a in range(d):
                out[a] = Y[rows[0], a]
            continue
        G = np.empty((k, k))
        for a in range(k):
            for b in range(a):
                between = row_distance(X, rows[a], X, rows[b])
                G[b, a] = from_query[a] + from_query[b] - variogram(kind, between / unit)
            G[a, a] = 2.0 * from_query[a] + nugget
        t = tangent_dim
        degree = order
        while degree > 0 and k <= polynomial_terms(degree, t):
            degree -= 1
        T = np.empty((k, t if degree > 0 else 0))
        if degree > 0:
            tangent_of(X, Q, i, rows, lengths, np.inf, T)
        p = polynomial_terms(degree, t)
        columns = np.empty((k, p + d))
        fill_design(T, degree, columns)
        for a in range(k):
            for b in range(d):
                columns[a, p + b] = Y[rows[a], b] - Y[rows[0], b]
        factor_covariance(G)
        solve_lower(G, columns)
        while True:
            total = np.zeros((p, p))
            for a in range(k):
                for u in range(p):
                    for v in range(u + 1):
                        total[u, v] += columns[a, u] * columns[a, v]
            # Only the constant's coefficient is needed: row 0 of the inverse times the right side.
            first_row = np.zeros(p)
            first_row[0] = 1.0
            if p == 1 or cholesky_solve(total, first_row):
                break
            p = 1
        if p == 1:
            first_row[0] = 1.0 / total[0, 0]
        for b in range(d):
            value = 0.0
            for a in range(k):
                for u in range(p):
                    value += first_row[u] * columns[a, u] * columns[a, columns.shape[1] - d + b]
            out[b] = Y[rows[0], b] + value


@njit
def median(values):
    """Return the median of a few values; NumPy's takes numba longer to compile."""
    ordered = np.empty(values.size)
    for i in range(values.size):
        position = i
        while position > 0 and ordered[position - 1] > values[i]:
            ordered[position] = ordered[position - 1]
            position -= 1
        ordered[position] = values[i]
    half = values.size // 2
    if values.size % 2 == 1:
        return ordered[half]
    return (ordered[half - 1] + ordered[half]) / 2


@njit
def agree_with_consensus(start, stop, Y, indptr, indices, consensus, closest, tolerance, kept):
    """Mark the neighbours whose images are near the consensus in ``kept``.

    Near means within ``tolerance`` times the median distance of the ``closest`` nearest images.
    """
    for i in range(start, stop):
        first, last = indptr[i], indptr[i + 1]
        count = min(closest, last - first)
        lengths = np.empty(last - first)
        for j in range(first, last):
            lengths[j - first] = distance(Y[indices[j]], consensus[i])
        limit = tolerance * median(lengths[:count])
        best = 0
        for j in range(last - first):
            kept[first + j] = lengths[j] <= limit
            if lengths[j] < lengths[best]:
                best = j
        kept[first + best] = True


@njit
def predict_global(start, stop, X, n, Q, Y, unit, kind, mean, coefficients, coordinates):
    """Write ``mean - sum_j g(|x - x_j|) c_j`` over all training points, g the variogram.

    The coefficients c sum to 0, so the variogram replaces the covariance, and only its differences
    count, which are exact far from the data. A query equal to training points gets the mean of
    their images.
    """
    d = coefficients.shape[1]
    for i in range(start, stop):
        for a in range(d):
            coordinates[i, a] = mean[a]
        anchor = -1
        count = 0
        level = 0.0
        for j in range(n):
            r = row_distance(Q, i, X, j)
            if r == 0.0:
                if count == 0:
                    anchor = j
                    coordinates[i] = 0.0
                for a in range(d):
                    coordinates[i, a] += Y[j, a] - Y[anchor, a]
                count += 1
            elif count == 0:
                value = variogram(kind, min(r / unit, 1e150))
                if j == 0:
                    level = value
                value -= level
                for a in range(d):
                    coordinates[i, a] -= value * coefficients[j, a]
        if count > 0:
            for a in range(d):
                coordinates[i, a] = Y[anchor, a] + coordinates[i, a] / count


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
