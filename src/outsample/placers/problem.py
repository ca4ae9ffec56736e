"""The map to be extended, and what its placers share: one search of its rows, units, a sample."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from outsample.neighbors import local_pca
from outsample.neighbors.neighborhoods import Neighborhoods, Search
from outsample.neighbors.reduced_coordinates import ReducedCoordinates, reduce_columns
from outsample.neighbors.truncation import first_columns, first_rows, without_self
from outsample.points import Points, map_size
from outsample.records import Frames, Neighbors
from outsample.spectral import affinity

# Lengths are in units of the distance to this neighbour.
UNIT_NEIGHBOR = 15
# A search that placers share finds no fewer neighbours than this.
WIDE = 60
# Rows whose neighbours tell the unit, and those that tell the dimension.
UNIT_ROWS = 2000
DIMENSION_ROWS = 150
DIMENSION_NEIGHBORS = 16
# A sample has no fewer rows, however large their balls are.
MIN_SAMPLE_ROWS = 64
# With many columns, the distances of all pairs of no more points than this are kept.
KEPT_ROWS = 4096


class Problem:
    """Points X (n, D), their images Y (n, d), and how neighbourhoods are found.

    ``curvature`` is the paper's c, None where it is to be estimated; ``size`` the root mean square
    size of the map, which is that of all rows where X has no duplicates. ``max_neighbors`` is the
    largest neighbourhood that will be asked for, set before the first search if it is known.
    """

    def __init__(
        self,
        search: Search,
        Y: np.ndarray,
        curvature: float | None,
        n_jobs: int | None,
        size: float | None = None,
    ) -> None:
        self.search, self.Y, self.curvature, self.n_jobs = search, Y, curvature, n_jobs
        self.size = map_size(Y) if size is None else size
        self.X: Points = search.index.X
        self.max_neighbors = 1
        self._is_shared = False
        self._rows = np.empty(0, dtype=np.int64)
        self._found: Neighbors | None = None
        self._others: Neighbors
        self._Q: Points
        self._reduced: ReducedCoordinates | None = None
        self._all: Neighbors | None = None

    @property
    def n(self) -> int:
        """Training points."""
        return len(self.Y)

    def sample(self, count: int) -> np.ndarray:
        """Training rows, the same every time, fewer being a part of more.

        So many as asked for, or there are, or have balls that fit into memory.
        """
        return self._order[: min(count, max(MIN_SAMPLE_ROWS, self._most_rows))]

    @cached_property
    def _order(self) -> np.ndarray:
        return np.random.default_rng(0).permutation(self.n)

    @cached_property
    def _most_rows(self) -> int:
        return self.search.max_rows(self.X)

    def share_search(self, rows: np.ndarray, is_wide: bool) -> None:
        """Search once for all candidates; ``is_wide`` if many of them are tried on the rows."""
        self._is_shared = is_wide
        self.nearest(rows, 1)

    def left_out(self, rows: np.ndarray, k: int) -> Neighborhoods:
        """Neighbourhoods of training rows without themselves."""
        if self.search.radius is not None:
            return self.search.around(self.X[rows], k, rows)
        self._search(rows, k + 2)
        others = first_rows(self._others, len(rows))
        near = self.search.narrowed(self._Q[: len(rows)], others, k, rows)
        near.reduced = self._reduced.first(len(rows)) if self._reduced else None
        return near

    def nearest(self, rows: np.ndarray, k: int) -> Neighbors:
        """Return the k nearest of training rows, themselves included, or all there are."""
        return first_columns(self._search(rows, k), min(k, self.n))

    def frames(self, k: int) -> Frames:
        """Frames (n, d, d) of the neighbourhoods of every training point: searched once."""
        if self.search.radius is None:
            return local_pca.image_frames(self.Y, *self._training(k).framed, self.n_jobs)
        return Frames(
            *self.search.map_chunks(
                lambda rows: local_pca.image_frames(
                    self.Y, *self.search.around(rows, k).framed, self.n_jobs
                ),
                self.X,
            )
        )

    def _training(self, k: int) -> Neighborhoods:
        """Neighbourhoods of every training point, itself included."""
        if self._all is None or len(self._all.indices) < self.n * min(k + 1, self.n):
            self._all = self.search.nearest(self.X, max(self.max_neighbors, k) + 2)
        return self.search.narrowed(self.X, self._all, k)

    def _search(self, rows: np.ndarray, width: int) -> Neighbors:
        """At least ``width`` nearest of rows, from a search that all samples share."""
        found = self._found
        known = found is not None and np.array_equal(self._rows[: len(rows)], rows)
        if found is None or not known or len(found.indices) < len(self._rows) * min(width, self.n):
            # The judge looks at no fewer than the dimension does: one search for both.
            least = WIDE if self._is_shared else DIMENSION_NEIGHBORS
            width = max(least, self.max_neighbors, width - 2) + 2
            self._rows, self._Q = rows, self.X[rows]
            self._found = found = self.search.nearest(self._Q, width)
            self._others = without_self(found, rows)
            self._reduced = None
            if self._is_shared and self._kept_distances is not None:
                self._reduced = reduce_columns(self._kept_distances, self.Y, self._others)
        return first_rows(found, len(rows))

    @cached_property
    def unit(self) -> float:
        """Median distance of training rows to their 15th neighbour; never 0."""
        near = self.left_out(self.sample(UNIT_ROWS), min(self.n - 1, UNIT_NEIGHBOR)).near
        units = local_units(near)
        return float(np.median(units[units > 0])) if (units > 0).any() else 1.0

    @cached_property
    def dimension(self) -> int:
        """Dimension of the manifold of the points, by local PCA on a few rows."""
        near = self.nearest(self.sample(DIMENSION_ROWS), DIMENSION_NEIGHBORS)
        return local_pca.ambient_dimension(self.X, near)

    def part(self, rows: np.ndarray) -> Part:
        """Return the map on some of its points, with the unit of the whole."""
        kept = self._kept_distances
        apart = None if kept is None else kept[np.ix_(rows, rows)]
        return Part(self.X[rows], self.Y[rows], self.unit, self.n_jobs, apart)

    def distances(self) -> np.ndarray:
        """Distances (n, n) of all points, in an array that the caller may overwrite."""
        if self._kept_distances is not None:
            return self._kept_distances.copy()
        return affinity.distances(self.X, n_jobs=self.n_jobs)

    @cached_property
    def _kept_distances(self) -> np.ndarray | None:
        """Distances (n, n) of points with many columns, found once."""
        wide = isinstance(self.X, np.ndarray) and self.X.shape[1] >= affinity.PRODUCT_COLUMNS
        if not wide or self.n > KEPT_ROWS:
            return None
        return affinity.distances(self.X, n_jobs=self.n_jobs)


class Part:
    """A part of a map, for placers over all points to be tried on; its distances are kept."""

    def __init__(
        self,
        X: Points,
        Y: np.ndarray,
        unit: float,
        n_jobs: int | None,
        apart: np.ndarray | None = None,
    ) -> None:
        self.X, self.Y, self.unit, self.n_jobs, self._apart = X, Y, unit, n_jobs, apart

    def distances(self) -> np.ndarray:
        """Distances of all points, in an array that the caller may overwrite."""
        if self._apart is None:
            self._apart = affinity.distances(self.X, n_jobs=self.n_jobs)
        return self._apart.copy()


def local_units(near: Neighbors) -> np.ndarray:
    """Distance (q,) to the 15th neighbour, the last if there are fewer; 0 only if all coincide."""
    at = np.minimum(near.indptr[:-1] + UNIT_NEIGHBOR, near.indptr[1:]) - 1
    units = near.distances[at]
    return np.where(units > 0, units, near.distances[near.indptr[1:] - 1])
