"""Search libraries that propose neighbours: built from normalised rows, asked by ``query``.

What they propose is refined in `neighbors.index`, so that a backend may round as it likes but has
to say by how much. A new one is a class here and a line in `index.INDEXES`.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree

from outsample._parallel import thread_count
from outsample.points import Points, row_norms

# Normalised training coordinates are far below this; a query beyond it is only compared directly.
FAR_AWAY = 1e100

# The fewest and the most rows (q,) that a ball may hold.
Bracket = tuple[np.ndarray, np.ndarray]


class Backend(Protocol):
    """Proposes the nearest rows of normalised queries."""

    def query(self, Q: Points, k: int, n_jobs: int | None) -> np.ndarray:
        """Rows (q, k) that are about the nearest."""

    def square_error(self, Q: Points, distances: np.ndarray) -> np.ndarray:
        """Bound (q,) of the rounding in the squares of such distances (q,)."""

    def ball_sizes(self, Q: Points, radius: float, n_jobs: int | None) -> Bracket | None:
        """Fewest and most rows within the radius; None if it cannot tell."""


class Tree:
    """SciPy's k-d tree: best while the data's own dimension is low."""

    def __init__(self, X: Points) -> None:
        self.tree = cKDTree(X)
        self.rounding = (X.shape[1] + 8) * 2.0**-50

    def query(self, Q: Points, k: int, n_jobs: int | None) -> np.ndarray:
        """Rows (q, k)."""
        found = self.tree.query(Q, k=np.arange(1, k + 1), workers=thread_count(n_jobs))
        return found[1]

    def square_error(self, Q: Points, distances: np.ndarray) -> np.ndarray:
        """Bound (q,), relative to the square."""
        return self.rounding * distances**2

    def ball_sizes(self, Q: Points, radius: float, n_jobs: int | None) -> Bracket:
        """Sizes for a radius a little smaller, and a little larger."""
        Q = np.clip(Q, -FAR_AWAY, FAR_AWAY)
        options = {"return_length": True, "workers": thread_count(n_jobs)}
        least = self.tree.query_ball_point(Q, radius * (1 - 1e-9), **options)
        return least, self.tree.query_ball_point(Q, radius * (1 + 1e-9), **options)


class Products:
    """Distances by matrix products, through scikit-learn: best for images and the like."""

    def __init__(self, X: Points) -> None:
        from sklearn.neighbors import NearestNeighbors

        # |x|^2 - 2xy + |y|^2 cancels less near the origin; sparse rows stay where they are.
        self.center = None if sparse.issparse(X) else X.mean(axis=0)
        centered = self._centered(X)
        self.search = NearestNeighbors(algorithm="brute").fit(centered)
        self.reach = float(row_norms(centered).max())
        self.rounding = (X.shape[1] + 8) * 2.0**-50

    def query(self, Q: Points, k: int, n_jobs: int | None) -> np.ndarray:
        """Rows (q, k), on all cores as scikit-learn does."""
        return self.search.kneighbors(self._centered(Q), k, return_distance=False)

    def square_error(self, Q: Points, distances: np.ndarray) -> np.ndarray:
        """Bound (q,), relative to the squares of the coordinates, which cancel."""
        size = row_norms(self._centered(Q)) + self.reach
        return self.rounding * (size**2 + distances * (1 + size))

    def ball_sizes(self, Q: Points, radius: float, n_jobs: int | None) -> None:
        """Nothing: counting is left to the exact scan."""

    def _centered(self, X: Points) -> Points:
        return X if self.center is None else X - self.center
