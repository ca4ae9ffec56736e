"""NumPy references of the kernels, written from the formulas without regard to speed."""

from __future__ import annotations

import numpy as np
from scipy import interpolate, optimize


def neighbors(X, x, k=None, radius=None, at_least=1):
    """Return indices and distances, nearest first, ties by index (Eq. 4.1 with ``radius``)."""
    distances = np.array([np.linalg.norm(x - row) for row in X])
    order = np.lexsort([np.arange(len(X)), distances])
    if radius is not None:
        k = max(int((distances <= radius).sum()), at_least)
    return order[:k], distances[order[:k]]


def box_square(box, x):
    """Return the squared distance of a point from a box (2, D)."""
    return float(((np.clip(x, box[0], box[1]) - x) ** 2).sum())


def covariance(Y, indices, eps1):
    """Eq. 4.4, centred."""
    Z = Y[indices] - Y[indices].mean(axis=0)
    if not Z.any():  # one point, or equal images
        return np.zeros((Y.shape[1], Y.shape[1]))
    return Z.T @ Z / len(indices) / eps1**2


def error_covariances(weighting, Y, indices, distances, C, c, tangent_dim=None):
    """Return the d x d blocks w_j^-1 of the covariance of the errors of Eq. 2.6, one per neighbour.

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
    """Return the result of Algorithm 3.1 for one point."""
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


def settings_blocks(X, Y, indices, distances, x, weighting, c):
    """Blocks w_j^-1 of a weighting by name, or of ``r^-p`` by its power."""
    if not isinstance(weighting, str):
        return [r**weighting * np.eye(Y.shape[1]) for r in distances]
    C, k = None, len(indices)
    if weighting == "tangent":
        C = _covariance_around(X, Y, x, k, None, None, k)
    if weighting == "local_tangent":
        C = [_covariance_around(X, Y, X[j], k, None, None, k) for j in indices]
    return error_covariances(weighting, Y, indices, distances, C, c)


def roots(blocks):
    """Matrices R_j with ``R_j' R_j = w_j``: the length of ``R_j e`` is the Mahalanobis norm."""
    return np.array([np.linalg.inv(np.linalg.cholesky(block)) for block in blocks])


def absolute_objective(images, R, taper, design, coefficients):
    """``sum_j taper_j sqrt(e_j' w_j e_j)``, ``e_j`` the residual of the polynomial."""
    errors = images - design @ coefficients
    return float(taper @ np.linalg.norm(np.einsum("jab,jb->ja", R, errors), axis=1))


def long_system(images, R, weights, design):
    """Matrix (k d, p d) and right side whose residual squares are ``weights_j e_j' w_j e_j``."""
    k, p = design.shape
    d = images.shape[1]
    scaled = np.sqrt(weights)[:, None, None] * R
    A = np.einsum("ju,jab->jaub", design, scaled).reshape(k * d, p * d)
    return A, np.einsum("jab,jb->ja", scaled, images).ravel()


def least_squares(images, R, weights, design):
    """Coefficients (p, d) that minimise ``sum_j weights_j e_j' w_j e_j``."""
    A, b = long_system(images, R, weights, design)
    return np.linalg.lstsq(A, b, rcond=None)[0].reshape(-1, images.shape[1])


def absolute_fit(images, R, taper, design, rounds=300):
    """Minimise `absolute_objective`, by long reweighting with a vanishing floor.

    Returns the coefficients and the objective.
    """
    best, least = None, np.inf
    weights = taper.copy()
    for i in range(rounds):
        coefficients = least_squares(images, R, weights, design)
        errors = images - design @ coefficients
        lengths = np.linalg.norm(np.einsum("jab,jb->ja", R, errors), axis=1)
        objective = float(taper @ lengths)
        if objective < least * (1 - 1e-15):
            best, least = coefficients, objective
        weights = taper / np.maximum(lengths, max(1e-9, 0.1 * 0.9**i) * lengths.max() + 1e-300)
    return best, least


def geometric_median(images, R):
    """Minimise ``sum_j |R_j (y_j - m)|`` by Newton's method; each image is also tried.

    At one of the images the condition is that the pull of the others is at most 1 in its dual
    norm; elsewhere the gradient vanishes, to which Newton's method converges.
    """

    def objective(m):
        return np.linalg.norm(np.einsum("jab,jb->ja", R, images - m), axis=1).sum()

    m = images[np.argmin([objective(y) for y in images])]
    start = objective(m)
    pull, curvature = np.zeros(m.size), np.zeros((m.size, m.size))
    same = (images == m).all(axis=1)
    for y, root in zip(images[~same], R[~same], strict=True):
        pull += root.T @ root @ (y - m) / np.linalg.norm(root @ (y - m))
    if np.linalg.norm(np.linalg.solve(R[same][0].T, pull)) <= 1:  # one image there, or isotropic
        return m
    step = np.linalg.solve(R[same][0].T @ R[same][0], pull)
    for _ in range(60):  # leave the image downhill
        if objective(m + step) < start:
            break
        step /= 2
    m = m + step
    for _ in range(200):
        pull[:], curvature[:] = 0, 0
        for y, root in zip(images, R, strict=True):
            e = root @ (y - m)
            u = e / np.linalg.norm(e)
            pull += root.T @ u
            curvature += root.T @ (np.eye(m.size) - np.outer(u, u)) @ root / np.linalg.norm(e)
        if m.size == 1:  # piecewise linear: the median is one of the images
            raise AssertionError("a median on the line is one of the images")
        step = np.linalg.solve(curvature, pull)
        while objective(m + step) > objective(m) * (1 + 1e-14):  # up to rounding
            step /= 2
        m = m + step
        if np.linalg.norm(step) <= 1e-14 * np.abs(images).max():
            break
    return m


def monomials(T, order):
    """Monomials of degree at most ``order``, the constant first."""
    columns = [np.ones(len(T))]
    if order >= 1:
        columns += list(T.T)
    if order >= 2:
        columns += [T[:, a] * T[:, b] for a in range(T.shape[1]) for b in range(a + 1)]
    return np.column_stack(columns)


def tangent_plane(X, indices, distances, x, t, reach=np.inf):
    """Coordinates of the neighbours from x, in the plane of t principal directions.

    Those of the nearest 16 of them, or of 2 t, tapered to the next one or to ``reach``.
    """
    if t >= X.shape[1]:
        return X[indices] - x
    m = max(16, 2 * t)
    edge = distances[m] if m < len(indices) else reach
    taper = (1 - (distances[:m] / edge) ** 2) ** 2
    close = X[indices[:m]]
    centered = close - np.average(close, axis=0, weights=taper)
    axes = np.linalg.svd(np.sqrt(taper)[:, None] * centered, full_matrices=False)[2][:t]
    return (X[indices] - x) @ axes.T


def polynomial_problem(X, Y, x, weighting, *, k, order, t, c=1.0):
    """Images, roots of the weights, taper and design of a local polynomial fit around x."""
    indices, distances = neighbors(X, x, k)
    reach = neighbors(X, x, k + 1)[1][-1] if k < len(X) else np.inf
    taper = (1 - (distances / reach) ** 2) ** 2
    while order > 0 and (taper > 0).sum() <= monomials(np.zeros((1, t)), order).size:
        order -= 1
    R = roots(settings_blocks(X, Y, indices, distances, x, weighting, c))
    T = tangent_plane(X, indices, distances, x, t, reach) / distances[-1]
    return Y[indices], R, taper, monomials(T, order)


def local_polynomial(X, Y, x, weighting, **settings):
    """Value at x of the tapered, weighted polynomial fit of its k neighbours."""
    return least_squares(*polynomial_problem(X, Y, x, weighting, **settings))[0]


VARIOGRAMS = {
    "linear": lambda h: h,
    "matern52": lambda h: 1 - (1 + 5**0.5 * h + 5 * h**2 / 3) * np.exp(-(5**0.5) * h),
    "gaussian": lambda h: 1 - np.exp(-(h**2)),
    "affine": lambda h: h**2,
}


def pairwise(A, B):
    return np.linalg.norm(A[:, None] - B, axis=2)


def correlated(X, Y, x, kind, length, nugget, *, k, order=0, t=1, kept=None, unit=None):
    """Eq. 2.3 and 2.8 with the full covariance of the neighbours' errors, and its condition."""
    indices, distances = neighbors(X, x, k)
    if unit is None:
        unit = length * distances[min(15, k) - 1]
    if kept is not None:
        indices, distances = indices[kept], distances[kept]
    g = VARIOGRAMS[kind]
    near = g(distances / unit)
    G = near[:, None] + near - g(pairwise(X[indices], X[indices]) / unit)
    G += nugget * np.eye(len(indices))
    while order > 0 and len(indices) <= monomials(np.zeros((1, t)), order).size:
        order -= 1
    J = monomials(tangent_plane(X, indices, distances, x, t) / distances[-1], order)
    left = np.linalg.solve(G, J).T
    return np.linalg.solve(left @ J, left @ Y[indices])[0], np.linalg.cond(G)


def agreeing(X, Y, x, k, closest=8, tolerance=1.5, power=16):
    """Return a mask of neighbours within 1.5 median distances of the median of 8 images."""
    indices, distances = neighbors(X, x, k)
    nearest = indices[:closest]
    # Relative distances, because only ratios of the weights matter.
    R = (distances[0] / distances[:closest])[:, None, None] ** (power / 2) * np.eye(Y.shape[1])
    away = np.linalg.norm(Y[indices] - geometric_median(Y[nearest], R), axis=1)
    kept = away <= tolerance * np.median(away[:closest])
    kept[np.argmin(away)] = True
    return kept


def kriging(X, Y, queries, kind, unit, nugget):
    """Gaussian process with unknown constant mean: the bordered system in the variogram."""
    g, n = VARIOGRAMS[kind], len(X)
    system = np.ones((n + 1, n + 1))
    system[:n, :n] = -g(pairwise(X, X) / unit) + nugget * np.eye(n)
    system[n, n] = 0
    solved = np.linalg.solve(system, np.vstack([Y, np.zeros(Y.shape[1])]))
    sides = np.column_stack([-g(pairwise(queries, X) / unit), np.ones(len(queries))])
    return sides @ solved


def predict_landmarks(Z, queries, kind, unit, coefficients):
    """Sum over landmarks of covariances times coefficients."""
    return (1 - VARIOGRAMS[kind](pairwise(queries, Z) / unit)) @ coefficients


def two_levels(X, Y, queries, kind, unit, length, *, landmarks, ridge, center, k):
    """Ridge regression on covariances with landmarks, and kriging of its residuals."""
    Z, images = X[landmarks], Y - center
    inner = predict_landmarks(Z, Z, kind, unit, np.eye(len(Z)))
    C = predict_landmarks(Z, X, kind, unit, np.eye(len(Z)))
    coefficients = np.linalg.solve(C.T @ C + ridge * inner, C.T @ images)
    residuals = images - C @ coefficients
    residual_predictions = [
        correlated(X, residuals, x, "matern52", length, 1e-6, k=k)[0] for x in queries
    ]
    return (
        center
        + predict_landmarks(Z, queries, kind, unit, coefficients)
        + np.array(residual_predictions)
    )


def landmark_ridge(X, landmarks, kind, unit):
    """Return the share of the variance of the points that landmarks do not explain."""
    Z = X[landmarks]
    inner = predict_landmarks(Z, Z, kind, unit, np.eye(len(Z)))
    C = predict_landmarks(Z, X, kind, unit, np.eye(len(Z)))
    return 1 - np.trace(C @ np.linalg.solve(inner, C.T)) / len(X)


def diffusion_functions(X, Z, unit):
    """Transition probabilities (n, m) of points to landmarks; trust (n, 1); bound (m, m)."""
    inner = gaussian(Z, Z, unit**2)
    w = 1 / inner.sum(axis=1)
    g = gaussian(X, Z, unit**2) * w
    s = np.minimum(np.log(np.maximum(g.sum(axis=1), 0.01) / 0.01) / np.log(10), 1)
    return g / g.sum(axis=1)[:, None], (s * s * (3 - 2 * s))[:, None], inner * w * w[:, None]


def diffusion_ridge(X, Z, unit, damping):
    """Share of the mean square of the functions, made independent by the bound."""
    p, t, bound = diffusion_functions(X, Z, unit)
    roots = np.sqrt(bound.sum(axis=1))
    inner = bound / roots / roots[:, None] + 1e-9 * np.eye(len(Z))
    C = t * p / roots
    return damping * np.trace(C @ np.linalg.solve(inner, C.T)) / len(Z)


def diffusion_on(X, Y, queries, Z, images, unit, *, length, k, ridge, center, reach=np.inf):
    """Ridge regression on transition probabilities, and kriging of its residuals."""
    p, t, bound = diffusion_functions(X, Z, unit)
    at, trust, _ = diffusion_functions(queries, Z, unit)
    bound = bound + 1e-9 * np.diag(bound.sum(axis=1))
    targets, images = Y - center - (1 - t) * (p @ (images - center)), images - center
    c = np.linalg.solve((t * p).T @ (t * p) + ridge * bound, (t * p).T @ targets)
    residuals = targets - t * p @ c
    residual_predictions = [
        correlated(X, residuals, x, "matern52", length, 1e-6, k=k)[0] for x in queries
    ]
    smooth = at @ images + trust * (at @ (c - images))
    far = np.linalg.norm(smooth, axis=1) / reach
    smooth = smooth * np.where(far > 2, 2 / np.maximum(far, 1e-300), 1)[:, None]
    return center + smooth + np.array(residual_predictions)


def diffusion_two_levels(X, Y, queries, unit, *, landmarks, length, k, damping, center):
    """A diffusion to landmarks among the points, and kriging of its residuals."""
    ridge = diffusion_ridge(X, X[landmarks], unit, damping)
    return diffusion_on(
        X, Y, queries, X[landmarks], Y[landmarks], unit, length=length, k=k, ridge=ridge,
        center=center, reach=np.linalg.norm(Y - center, axis=1).max(),
    )  # fmt: skip


def typical_unit(X):
    """Median distance of the rows to their 15th other row."""
    return float(np.median(np.sort(pairwise(X, X), axis=1)[:, min(15, len(X) - 1)]))


def without(rows, i):
    return np.delete(rows, i, axis=0)


def leave_one_out(X, Y, fit, step=1):
    """Place every ``step``-th row by a model fitted to the others; ``fit`` returns a function."""
    rows = range(0, len(X), step)
    return np.vstack([fit(without(X, i), without(Y, i))(X[i : i + 1]) for i in rows])


def gaussian(A, B, epsilon):
    """Eq. 7.3 between all rows of A and B."""
    return np.exp(-(pairwise(A, B) ** 2) / epsilon)


def expansion(X, Q, epsilon, coefficients, normalize=False):
    G = gaussian(Q, X, epsilon)
    return (G / G.sum(axis=1, keepdims=True) if normalize else G) @ coefficients


def density_weights(X, epsilon, alpha):
    return gaussian(X, X, epsilon).sum(axis=1) ** -alpha


def markov_mean(X, Q, epsilon, weights, coefficients):
    G = gaussian(Q, X, epsilon) * weights
    return G @ coefficients / G.sum(axis=1, keepdims=True)


def transitions(X, Q, epsilon, alpha):
    """Transition probabilities from Q to X of the diffusion on X."""
    return markov_mean(X, Q, epsilon, density_weights(X, epsilon, alpha), np.eye(len(X)))


def diffusion_map(X, epsilon, alpha, t, m):
    """Coordinates and eigenvalues by the unsymmetric transition matrix itself."""
    P = transitions(X, X, epsilon, alpha)
    values, vectors = np.linalg.eig(P)
    order = np.argsort(-values.real)[: m + 1]
    values, vectors = values.real[order], vectors.real[:, order]
    w = density_weights(X, epsilon, alpha)
    degrees = (w[:, None] * gaussian(X, X, epsilon) * w).sum(axis=1)
    vectors /= np.sqrt((degrees / degrees.sum()) @ vectors**2)
    vectors *= np.sign(vectors[np.argmax(np.abs(vectors), axis=0), np.arange(m + 1)])
    return vectors[:, 1:] * values[1:] ** t, values[1:]


def local_walk(X, Q, k, alpha):
    """Transition probabilities (q, n) and clock (q,) with a length at every point.

    Lengths are distances to the k-th other training point, of a query to the (k + 1)-th.
    """

    def lengths(A):
        return np.sort(pairwise(A, X), axis=1)[:, k]

    own = lengths(X)
    typical = np.median(own)
    near = np.sort(pairwise(X, X), axis=1)[:, 1:k]
    d = 1 / np.mean(np.log(own[:, None] / near).sum(axis=1) / (k - 2))
    most, share, low = 4 ** (1 / max(d, 1)), np.clip(5 - 2 * d, 0, 1), np.clip(d, 1, 2)

    def kernel(A):
        r, h = pairwise(A, X), np.maximum.outer(lengths(A), own)
        return np.exp(-2 * r**2 / h**2) * (r <= h)

    def clock(A):
        return np.clip(lengths(A) / typical, 1 / most, most) ** (2 * share)

    rho = np.clip(own / typical, 1 / most, most)
    w = kernel(X).sum(axis=1) ** -alpha * rho ** (share * (alpha * low - low / 2 - 1))
    degrees = (w[:, None] * kernel(X) * w).sum(axis=1)
    G = kernel(Q) * w
    mean_clock = (degrees @ clock(X)) / degrees.sum()
    return G / G.sum(axis=1, keepdims=True), clock(Q) / mean_clock, degrees


def local_diffusion_map(X, Q, k, alpha, t, m):
    """Coordinates of points and queries, and ``1 - mu`` of ``(1 - P) f = mu clock f``."""
    P, clock, degrees = local_walk(X, X, k, alpha)
    rates, vectors = np.linalg.eig((np.eye(len(X)) - P) / clock[:, None])
    order = np.argsort(rates.real)[1 : m + 1]
    rates, vectors = rates.real[order], vectors.real[:, order]
    mass = degrees * clock
    vectors /= np.sqrt((mass / mass.sum()) @ vectors**2)
    vectors *= np.sign(vectors[np.argmax(np.abs(vectors), axis=0), np.arange(m)])
    P, clock, _ = local_walk(X, Q, k, alpha)
    new = P @ vectors / (1 - clock[:, None] * rates)
    return vectors * (1 - rates) ** t, new * (1 - rates) ** t, 1 - rates


def nystroem(X, Y, Q, epsilon, alpha):
    """Extension in all eigenfunctions of the diffusion: interpolation, if nothing is truncated."""
    return transitions(X, Q, epsilon, alpha) @ np.linalg.solve(transitions(X, X, epsilon, alpha), Y)


def gaussian_distance_mean(X, Y, x, length, k):
    """Mean of the nearest images with weights ``r^-2 exp(-r^2 / length^2)``."""
    indices, r = neighbors(X, x, k)
    weights = r**-2.0 * np.exp((r[0] ** 2 - r**2) / length**2)
    return weights @ Y[indices] / weights.sum()


def trust(density):
    """1 above 0.1, 0 below 0.01, a smooth step of the logarithm between."""
    share = np.clip(np.log10(np.maximum(density, 1e-300)) + 2, 0, 1)
    return share**2 * (3 - 2 * share)


def diffusion(X, Y, Q, length, ridge):
    """Expansion in transition probabilities; far from the data, a mean of the images."""
    weights = density_weights(X, length**2, 1.0)
    P = transitions(X, X, length**2, 1.0)
    degrees = weights * (gaussian(X, X, length**2) @ weights)
    S = np.sqrt(degrees)[:, None] * P / np.sqrt(degrees)
    roots, f = np.sqrt(degrees)[:, None], Y - Y.mean(axis=0)
    coefficients = np.linalg.solve(S + ridge * np.eye(len(X)), roots * f) / roots
    p, density = transitions(X, Q, length**2, 1.0), gaussian(Q, X, length**2) @ weights
    return p @ Y + trust(density)[:, None] * (p @ (coefficients - f))


def diffusion_left_out(X, Y, length, ridge):
    """Place each row by the others, with the densities and degrees of all rows."""
    weights = density_weights(X, length**2, 1.0)
    G = gaussian(X, X, length**2)
    roots = np.sqrt(weights * (G @ weights))
    S = weights[:, None] * G * weights / np.outer(roots, roots)
    places = []
    for i in range(len(X)):
        other_rows = without(np.arange(len(X)), i)
        near = np.linalg.solve(
            S[np.ix_(other_rows, other_rows)] + ridge * np.eye(len(other_rows)), S[other_rows, i]
        )
        near = near * roots[other_rows]
        share = G[i, other_rows] * weights[other_rows]
        mean = share @ Y[other_rows] / share.sum()
        places.append(mean + trust(share.sum()) * (near @ Y[other_rows] / near.sum() - mean))
    return np.array(places)


def geometric_harmonics(X, Y, Q, epsilon, condition):
    """Projection on the eigenvectors of the kernel that pass, each extended by Eq. 7.1."""
    values, vectors = np.linalg.eigh(gaussian(X, X, epsilon))
    mean, extended = Y.mean(axis=0), 0
    for value, phi in zip(values, vectors.T, strict=True):
        if value > values[-1] / condition:
            extended = extended + np.outer(gaussian(Q, X, epsilon) @ phi / value, phi @ (Y - mean))
    return mean + extended


def smoothing_weights(X, Q, sigma, others_only=False):
    """Eq. 7.4's kernel, normalised at the query; optionally without its own point."""
    weights = np.exp(-(pairwise(Q, X) ** 2) / sigma)
    if others_only:
        np.fill_diagonal(weights, 0.0)
    return weights / weights.sum(axis=1, keepdims=True)


def pyramid(X, Y, queries, scales):
    """Eq. 7.4-7.6: values at the queries and the error after each level."""
    residual, values, errors = Y, 0.0, []
    for sigma in scales:
        values = values + smoothing_weights(X, queries, sigma) @ residual
        residual = residual - smoothing_weights(X, X, sigma) @ residual
        errors.append(np.sqrt((residual**2).sum(axis=1).mean()))
    return values, np.array(errors)


def pyramid_left_out(X, Y, scales):
    """Leave-one-out errors by levels as Fernandez et al. define them, row by row."""
    residual, errors = Y, []
    for sigma in scales:
        smooth = np.empty(Y.shape)
        for i in range(len(X)):
            weights = np.exp(-(pairwise(X[i : i + 1], without(X, i)) ** 2) / sigma)
            smooth[i] = (weights @ without(residual, i) / weights.sum())[0]
        residual = residual - smooth
        errors.append(np.sqrt((residual**2).sum(axis=1).mean()))
    return np.array(errors)


def multiscale(X, Y, queries, scales, sampled, cut):
    """Algorithms 7.2 and 7.3 on given sampled rows."""
    center = Y.mean(axis=0)
    residual, values = Y - center, np.tile(center, (len(queries), 1))
    for epsilon, rows in zip(scales, sampled, strict=True):
        B = np.exp(-(pairwise(X, X[rows]) ** 2) / epsilon)
        coefficients = np.linalg.pinv(B, rcond=cut) @ residual
        residual = residual - B @ coefficients
        values = values + np.exp(-(pairwise(queries, X[rows]) ** 2) / epsilon) @ coefficients
    return values, residual


def plane_distance(X, x, rows, t):
    """Distance of x from the plane of the t leading principal directions of some rows."""
    cloud = X[rows] - X[rows].mean(axis=0)
    away = x - X[rows].mean(axis=0)
    _, spread, axes = np.linalg.svd(cloud, full_matrices=False)
    kept = axes[:t][spread[:t] ** 2 > 1e-13 * spread[0] ** 2]
    return np.linalg.norm(away - kept.T @ (kept @ away))


def soft_plane_distance(X, x, rows, ridge):
    """Root of the least ``|x - m - Z'w|^2 + penalty |w|^2``, as stacked least squares."""
    Z, away = X[rows] - X[rows].mean(axis=0), x - X[rows].mean(axis=0)
    products = Z @ Z.T
    penalty = ridge * (products**2).sum() / np.trace(products)
    A = np.vstack([Z.T, np.sqrt(penalty) * np.eye(len(rows))])
    b = np.concatenate([away, np.zeros(len(rows))])
    return np.linalg.norm(b - A @ np.linalg.lstsq(A, b, rcond=None)[0])


def novelty_lengths(X, x):
    """Isolation, soft distance and width of x among X, and its ten nearest rows."""
    distances = np.linalg.norm(X - x, axis=1)
    order = np.argsort(distances, kind="stable")
    soft = [
        soft_plane_distance(X, x, order[: min(k, len(X))], ridge)
        for k, ridge in ((10, 0.1), (20, 0.03), (40, 0.01))
    ]
    return distances[order[:2]].mean(), np.prod(soft) ** (1 / 3), distances[order[39]], order[:10]


def abnormality(X, queries):
    """Return the scores of training points left out, and of queries, for more than 40 points."""
    other_rows = [np.delete(np.arange(len(X)), i) for i in range(len(X))]
    left_out = [novelty_lengths(X[rows], X[i]) for i, rows in enumerate(other_rows)]
    isolation = np.array([lengths[0] for lengths in left_out])
    unit = np.median(isolation)

    def log(length):
        return np.log(max(length / unit, 1e-3))

    widths = np.array([log(lengths[2]) for lengths in left_out])

    def compared(alone, soft, width, close):
        mean = (log(alone) + log(soft)) / 2
        return mean - 0.3 * log(width), mean - widths[close].mean()

    calibration = np.array(
        [compared(*left_out[i][:3], other_rows[i][left_out[i][3]]) for i in range(len(X))]
    )
    starts = np.quantile(calibration, 0.9, axis=0)
    spreads = np.maximum(np.maximum(calibration - starts, 0).mean(axis=0) / 0.1, 0.02)

    def combined_score(pair):
        return np.max((pair - starts) / spreads - [0, np.log(3)], axis=-1)

    raw = combined_score(calibration)
    scores = []
    for x in queries:
        alone, soft, width, close = novelty_lengths(X, x)
        score = combined_score(np.array(compared(alone, soft, width, close)))
        if alone > isolation.max():
            score = raw.max() + 1 + np.log(alone / isolation.max())
        elif score > raw.max():
            score = raw.max() + (score - raw.max()) / (1 + score - raw.max())
        scores.append(score - np.median(raw))
    return raw - np.median(raw), np.array(scores)


def lengths_around(X, Y, x, placed):
    """Distances of the 1st, 5th and 15th row, and spreads of 5 and 15 images, with ties."""
    distances = np.linalg.norm(X - x, axis=1)
    order = np.argsort(distances, kind="stable")
    at = [distances[order[min(k, len(X)) - 1]] for k in (1, 5, 15)]
    spreads = [
        np.sqrt(((Y[distances <= limit * (1 + 1e-9)] - placed) ** 2).sum(axis=1).mean())
        for limit in at[1:]
    ]
    return np.array([*at, *spreads])


def boosted_steps(steps, target, n_steps, rounds, rate, least, rising):
    """Return sums of stumps, each the cut with the smallest sum of squares."""
    values = np.zeros((len(steps), n_steps))
    values[0] = target.mean()
    for _ in range(rounds):
        residuals = target - sum(values[f, steps[f]] for f in range(len(steps)))
        best = (np.sum(residuals**2), None)
        for f in range(len(steps)):
            for cut in range(n_steps - 1):
                left = steps[f] <= cut
                if min(left.sum(), (~left).sum()) < least:
                    continue
                low, high = residuals[left].mean(), residuals[~left].mean()
                squares = np.sum((residuals - np.where(left, low, high)) ** 2)
                if squares < best[0] - 1e-12 and (low <= high or not rising[f]):
                    best = squares, (f, cut, low, high)
        if best[1] is None:
            break
        f, cut, low, high = best[1]
        values[f] += rate * np.where(np.arange(n_steps) <= cut, low, high)
    return values


def convex_weights(errors):
    """Weights of least sum_i |sum_j w_j e_ij| on the simplex, by a general solver."""
    n_parts = len(errors)

    def total_length(weights):
        return np.linalg.norm(np.tensordot(weights, errors, 1), axis=1).sum()

    solution = optimize.minimize(
        total_length,
        np.full(n_parts, 1 / n_parts),
        method="SLSQP",
        bounds=[(0, 1)] * n_parts,
        constraints={"type": "eq", "fun": lambda weights: weights.sum() - 1},
        options={"ftol": 1e-12},
    )
    return solution.x / solution.x.sum()


def perplexity_shares(distances, perplexity):
    """Gaussian shares of neighbours whose entropy is the logarithm of the perplexity."""
    if perplexity >= len(distances) or np.ptp(distances) == 0:
        return np.full(len(distances), 1 / len(distances))
    squares = (distances**2 - distances[0] ** 2) / distances[-1] ** 2

    def shares(log_precision):
        p = np.exp(-np.exp(log_precision) * squares)
        return p / p.sum()

    def surplus(log_precision):
        p = shares(log_precision)
        return -(p * np.log(np.maximum(p, 1e-300))).sum() - np.log(perplexity)

    return shares(optimize.brentq(surplus, -12.0, 24.0, xtol=1e-13))


def spline_values(fraction):
    """Splines of the fifth degree around six nodes, two of them below, and their slopes."""
    spline = interpolate.BSpline.basis_element(np.arange(-3.0, 4.0), extrapolate=False)
    at = fraction - np.arange(-2.0, 4.0)
    return np.nan_to_num(spline(at)), np.nan_to_num(spline.derivative()(at))


def spread(Z, corner, step, shape):
    """Mass of images at the nodes around them."""
    mass = np.zeros(shape)
    for z in (Z - corner) / step:
        cell = np.floor(z).astype(int)
        across, along = (spline_values(part)[0] for part in z - cell)
        mass[cell[0] - 2 : cell[0] + 4, cell[1] - 2 : cell[1] + 4] += np.outer(across, along)
    return mass


def closeness(Z, y):
    """``sum_j 1 / (1 + |y - z_j|^2)`` and its slope."""
    w = 1 / (1 + ((y - Z) ** 2).sum(axis=1))
    return w.sum(), -2 * (w**2) @ (y - Z)


def neighbor_loss(X, Y, x, y, k, perplexity, c):
    """Return what a point x placed at y adds to the t-SNE loss, for a fixed sum over pairs."""
    indices, distances = neighbors(X, x, k)
    p = perplexity_shares(distances, min(perplexity, k / 3))
    w = 1 / (1 + (np.linalg.norm(Y - y, axis=1) / c) ** 2)
    pairs = 1 / (1 + (pairwise(Y, Y) / c) ** 2)
    total = pairs.sum() - len(Y)
    return -(p * np.log(w[indices])).sum() + len(Y) / total * w.sum()
