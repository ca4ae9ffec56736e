"""Plain NumPy twins of the kernels, written from the formulas and as slow as they look."""

from __future__ import annotations

import numpy as np


def neighbors(X, x, k=None, radius=None, at_least=1):
    """Indices and distances, nearest first, ties by index (Eq. 4.1 with ``radius``)."""
    distances = np.array([np.linalg.norm(x - row) for row in X])
    order = np.lexsort([np.arange(len(X)), distances])
    if radius is not None:
        k = max(int((distances <= radius).sum()), at_least)
    return order[:k], distances[order[:k]]


def covariance(Y, indices, eps1):
    """Eq. 4.4, centred."""
    Z = Y[indices] - Y[indices].mean(axis=0)
    if not Z.any():  # one point, or coinciding images
        return np.zeros((Y.shape[1], Y.shape[1]))
    return Z.T @ Z / len(indices) / eps1**2


def error_covariances(weighting, Y, indices, distances, C, c, tangent_dim=None):
    """The d x d blocks of the covariance of Eq. 2.6's errors, one a neighbour: w_j^-1.

    ``C`` is one covariance, or one a neighbour.
    """
    d = Y.shape[1]
    blocks = []
    for j, r in enumerate(distances):
        if weighting == "distance":  # Eq. 4.3
            blocks.append(r**2 * np.eye(d))
        elif weighting == "tangent":  # Eq. 4.5
            blocks.append(r**2 * C + (r / c) ** 4 * np.eye(d))
        elif weighting == "local_tangent":  # Eq. 4.5, Table 7.1 row 3
            blocks.append(r**2 * C[j] + (r / c) ** 4 * np.eye(d))
        elif weighting == "split_tangent":  # Section 4.2, unnumbered
            vectors = np.linalg.eigh(C)[1][:, ::-1]
            variances = np.r_[np.full(tangent_dim, r**2), np.full(d - tangent_dim, (r / c) ** 4)]
            blocks.append(vectors @ np.diag(variances) @ vectors.T)
    return blocks


def literal_gls(Y, indices, blocks):
    """Eq. 2.8 with the full kd x d matrix J and kd x kd matrix W, and Eq. 2.9 in both readings."""
    k, d = len(indices), Y.shape[1]
    J = np.vstack([np.eye(d)] * k)
    W = np.zeros((k * d, k * d))
    for j, block in enumerate(blocks):
        W[j * d : (j + 1) * d, j * d : (j + 1) * d] = block
    Psi = Y[indices].ravel()
    W_inverse = np.linalg.inv(W)
    psi = np.linalg.solve(J.T @ W_inverse @ J, J.T @ W_inverse @ Psi)
    error = Psi - J @ psi
    return psi, error @ W_inverse @ error, error @ W @ error


def place(X, Y, x, weighting, *, k=None, radius=None, eps1=None, c=1.0, tangent_dim=None):
    """The whole of Algorithm 3.1 for one point."""
    d = Y.shape[1]
    at_least = d if k is None else k
    indices, distances = neighbors(X, x, k, radius, at_least)
    C = None
    if weighting in ("tangent", "split_tangent"):
        C = _covariance_around(X, Y, x, k, radius, eps1, at_least)
    if weighting == "local_tangent":
        C = [_covariance_around(X, Y, X[j], k, radius, eps1, at_least) for j in indices]
    blocks = error_covariances(weighting, Y, indices, distances, C, c, tangent_dim)
    return literal_gls(Y, indices, blocks)


def _covariance_around(X, Y, x, k, radius, eps1, at_least):
    if eps1 is None:
        indices, distances = neighbors(X, x, k, radius, at_least)
        eps1 = radius or 0.0
    else:
        indices, distances = neighbors(X, x, radius=eps1, at_least=Y.shape[1] + 1)
    return covariance(Y, indices, max(eps1, distances[-1]))


def certificate(X, Y, x, psi, K, k):
    """min_j (|psi - psi_j| + K r_j) over the k nearest."""
    indices, distances = neighbors(X, x, k)
    return min(np.linalg.norm(psi - Y[j]) + K * r for j, r in zip(indices, distances, strict=True))


def lipschitz(X, Y, k):
    """Largest |psi_i - psi_j| / |x_i - x_j| over the k nearest of every row."""
    largest = 0.0
    for i in range(len(X)):
        for j, r in zip(*neighbors(X, X[i], k), strict=True):
            if r > 0:
                largest = max(largest, np.linalg.norm(Y[i] - Y[j]) / r)
    return largest
