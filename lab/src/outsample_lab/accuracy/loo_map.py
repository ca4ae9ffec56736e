"""The leave-one-out map of t-SNE: the loss of one new point, all others fixed.

The idea of Z. Liu, R. Ma and Y. Zhong ("Assessing and improving reliability of neighbor embedding
methods: a map-continuity perspective", 2025), implemented from the loss of t-SNE: a new point
hardly moves the others, so it is placed where its own terms of the loss are smallest. Plain NumPy
in the units of t-SNE; `outsample.placers.neighbor_loss` is our scale-free version.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist, pdist
from sklearn.neighbors import NearestNeighbors

Array = NDArray[np.float64]
Place = Callable[[Array], Array]
PERPLEXITY = 30.0  # scikit-learn's
STARTS = 3  # The mean image by affinity, and the images of the two nearest neighbours
STEPS = 60
CHUNK = 500


def loo_map(X: Array, Y: Array, perplexity: float = PERPLEXITY) -> Place:
    r"""Return a function that places points y where their loss is smallest.

    The loss is ``sum_j -p_j log w_j + (n + 1) w_j / Z``, with w_j = 1 / (1 + |y - y_j|^2).

    These are the terms of t-SNE's loss that a point (n + 1) adds: p its affinities to its
    neighbours, of the perplexity of the map; Z the sum of w over all pairs of the map, frozen.
    Each step minimises a quadratic bound of the attraction and adds the repulsion; the result is
    the best of several starts.
    """
    k = min(int(3 * perplexity), len(X))
    index = NearestNeighbors(n_neighbors=k).fit(X)
    repulsion = (len(X) + 1) / (2 * (1 / (1 + pdist(Y, "sqeuclidean"))).sum())

    def place(new: Array) -> Array:
        return np.concatenate([_placed(new[at : at + CHUNK]) for at in range(0, len(new), CHUNK)])

    def _placed(new: Array) -> Array:
        distances, near = index.kneighbors(new)
        p = affinities(distances**2, min(perplexity, k / 3))
        best, least = np.empty((len(new), Y.shape[1])), np.full(len(new), np.inf)
        for start in range(STARTS):
            y = np.einsum("qk,qkd->qd", p, Y[near]) if start == 0 else Y[near[:, start - 1]]
            for _ in range(STEPS):
                pull = p / (1 + ((y[:, None] - Y[near]) ** 2).sum(axis=2))
                w = 1 / (1 + cdist(y, Y, "sqeuclidean"))
                push = repulsion * (w**2).sum(axis=1)[:, None] * y - repulsion * (w**2) @ Y
                y = (np.einsum("qk,qkd->qd", pull, Y[near]) + push) / pull.sum(axis=1)[:, None]
            away = 1 + ((y[:, None] - Y[near]) ** 2).sum(axis=2)
            loss = (p * np.log(away)).sum(axis=1)
            loss += repulsion * (1 / (1 + cdist(y, Y, "sqeuclidean"))).sum(axis=1)
            better = loss < least
            best[better], least[better] = y[better], loss[better]
        return best

    return place


def affinities(squared: Array, perplexity: float) -> Array:
    """Return t-SNE's affinities (q, k) of neighbours from squared distances and perplexity.

    >>> bool(np.allclose(affinities(np.ones((1, 9)), 3.0), 1 / 9))
    True
    """
    squared = squared - squared[:, :1]
    low, high = np.full((len(squared), 1), -60.0), np.full((len(squared), 1), 60.0)
    for _ in range(60):  # bisection for the logarithm of the precision
        middle = (low + high) / 2
        p = np.exp(-squared * np.exp(middle))
        p /= p.sum(axis=1, keepdims=True)
        entropy = -(p * np.log(np.maximum(p, 1e-300))).sum(axis=1, keepdims=True)
        wide = entropy > np.log(perplexity)
        low, high = np.where(wide, middle, low), np.where(wide, high, middle)
    return p
