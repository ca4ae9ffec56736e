"""The map to be extended, with the search, units and samples that its placers share."""

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
# A search that placers share finds at least this many neighbours.
WIDE_NEIGHBORS = 60
# Rows from whose neighbours the unit and the dimension are estimated.
UNIT_ROWS = 2000
DIMENSION_ROWS = 150
DIMENSION_NEIGHBORS = 16
# A sample has at least this many rows, however large their balls are.
MIN_SAMPLE_ROWS = 64
# With many columns, the distances of all pairs are kept for at most this many points.
MAX_KEPT_DISTANCES_ROWS = 4096


class Problem:
    """Points X (n, D), their images Y (n, d), and the search for neighbourhoods.

    ``curvature`` is the paper's c, None if it is to be estimated; ``size`` the root mean square
    size of the map of all rows, including duplicates. ``max_neighbors`` is the largest
    neighbourhood that will be requested, set before the first search if possible.
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
        # The shared search: rows, their points, and neighbours with and without the row itself.
        self._rows = np.empty(0, dtype=np.int64)
        self._Q: Points
        self._wide: Neighbors | None = None
        self._wide_left_out: Neighbors
        self._reduced: ReducedCoordinates | None = None
        self._training_neighbors: Neighbors | None = None

    @property
    def n(self) -> int:
        """Number of training points."""
        return len(self.Y)

    def sample(self, count: int) -> np.ndarray:
        """Return ``count`` training rows, the same in every call; smaller samples are subsets.

        Fewer if there are fewer, or if their balls would not fit into memory.
        """
        return self._order[: min(count, max(MIN_SAMPLE_ROWS, self._max_rows))]

    @cached_property
    def _order(self) -> np.ndarray:
        return np.random.default_rng(0).permutation(self.n)

    @cached_property
    def _max_rows(self) -> int:
        return self.search.max_rows(self.X)

    def share_search(self, rows: np.ndarray, is_wide: bool) -> None:
        """Search once for all candidates; ``is_wide`` if several of them are tried on the rows."""
        self._is_shared = is_wide
        self.nearest(rows, 1)

    def left_out(self, rows: np.ndarray, k: int) -> Neighborhoods:
        """Return the neighbourhoods of training rows without themselves."""
        if self.search.radius is not None:
            return self.search.around(self.X[rows], k, rows)
        self._search(rows, k + 2)
        wide = first_rows(self._wide_left_out, len(rows))
        neighborhoods = self.search.narrowed(self._Q[: len(rows)], wide, k, rows)
        neighborhoods.reduced = self._reduced.first(len(rows)) if self._reduced else None
        return neighborhoods

    def nearest(self, rows: np.ndarray, k: int) -> Neighbors:
        """Return the k nearest points of training rows, including themselves, or all points."""
        return first_columns(self._search(rows, k), min(k, self.n))

    def frames(self, k: int) -> Frames:
        """Return the frames (n, d, d) of the neighbourhoods of all training points."""
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
        """Return the neighbourhoods of all training points, including themselves."""
        wide = self._training_neighbors
        if wide is None or len(wide.indices) < self.n * min(k + 1, self.n):
            wide = self.search.nearest(self.X, max(self.max_neighbors, k) + 2)
            self._training_neighbors = wide
        return self.search.narrowed(self.X, wide, k)

    def _search(self, rows: np.ndarray, width: int) -> Neighbors:
        """Return at least ``width`` nearest points of rows, from the search that samples share."""
        wide = self._wide
        has_rows = wide is not None and np.array_equal(self._rows[: len(rows)], rows)
        min_size = len(self._rows) * min(width, self.n)
        if wide is None or not has_rows or len(wide.indices) < min_size:
            # Error bars use at most as many neighbours as the dimension: one search for both.
            min_width = WIDE_NEIGHBORS if self._is_shared else DIMENSION_NEIGHBORS
            width = max(min_width, self.max_neighbors, width - 2) + 2
            self._rows, self._Q = rows, self.X[rows]
            self._wide = wide = self.search.nearest(self._Q, width)
            self._wide_left_out = without_self(wide, rows)
            self._reduced = None
            if self._is_shared and self._kept_distances is not None:
                self._reduced = reduce_columns(self._kept_distances, self.Y, self._wide_left_out)
        return first_rows(wide, len(rows))

    @cached_property
    def unit(self) -> float:
        """Median distance of training rows to their 15th neighbour; never 0."""
        neighborhoods = self.left_out(self.sample(UNIT_ROWS), min(self.n - 1, UNIT_NEIGHBOR))
        units = local_units(neighborhoods.near)
        return float(np.median(units[units > 0])) if (units > 0).any() else 1.0

    @cached_property
    def dimension(self) -> int:
        """Dimension of the manifold of the points, by local PCA on a sample of rows."""
        neighbors = self.nearest(self.sample(DIMENSION_ROWS), DIMENSION_NEIGHBORS)
        return local_pca.ambient_dimension(self.X, neighbors)

    def part(self, rows: np.ndarray) -> Part:
        """Return the map of these rows, with the unit of the whole map."""
        kept = self._kept_distances
        distances = None if kept is None else kept[np.ix_(rows, rows)]
        return Part(self.X[rows], self.Y[rows], self.unit, self.n_jobs, distances)

    def distances(self) -> np.ndarray:
        """Return the distances (n, n) of all points, in an array that the caller may overwrite."""
        if self._kept_distances is not None:
            return self._kept_distances.copy()
        return affinity.distances(self.X, n_jobs=self.n_jobs)

    @cached_property
    def _kept_distances(self) -> np.ndarray | None:
        """Distances (n, n) of points with many columns, computed once."""
        is_wide = isinstance(self.X, np.ndarray) and self.X.shape[1] >= affinity.PRODUCT_COLUMNS
        if not is_wide or self.n > MAX_KEPT_DISTANCES_ROWS:
            return None
        return affinity.distances(self.X, n_jobs=self.n_jobs)


class Part:
    """A part of a map, on which all-points models are tried; its distances are kept."""

    def __init__(
        self,
        X: Points,
        Y: np.ndarray,
        unit: float,
        n_jobs: int | None,
        distances: np.ndarray | None = None,
    ) -> None:
        self.X, self.Y, self.unit, self.n_jobs, self._distances = X, Y, unit, n_jobs, distances

    def distances(self) -> np.ndarray:
        """Return the distances of all points, in an array that the caller may overwrite."""
        if self._distances is None:
            self._distances = affinity.distances(self.X, n_jobs=self.n_jobs)
        return self._distances.copy()


def local_units(neighbors: Neighbors) -> np.ndarray:
    """Return the distance (q,) to the 15th neighbour, or to the last; 0 only if all coincide."""
    ends = neighbors.indptr[1:]
    units = neighbors.distances[np.minimum(neighbors.indptr[:-1] + UNIT_NEIGHBOR, ends) - 1]
    return np.where(units > 0, units, neighbors.distances[ends - 1])
