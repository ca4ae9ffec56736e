"""Time of fits: with fixed parameters, with all defaults, and with many columns."""

from functools import partial
from typing import Any

import numpy as np
from scipy.spatial import cKDTree
from sklearn.neighbors import NearestNeighbors

from outsample import PCAExtension
from outsample_lab.power_law import late_slope
from outsample_lab.speed import made_up
from outsample_lab.speed.exact_search import K, fitted
from outsample_lab.speed.made_up import TRAFFIC, Array, Shape
from outsample_lab.speed.sizes import JOBS, Ground, absent
from outsample_lab.speed.speed_result import Curve, PartResult, Target
from outsample_lab.speed.stopwatch import Work, seconds_of, take_turns

EXTRA_SECONDS = 5.0  # Allowed for a fit of wide points in addition to its searches


def fixed_fits(ground: Ground) -> PartResult:
    """Time fits with fixed parameters against building the index and the searches needed."""
    sizes = ground.sizes
    data = made_up.cloud(TRAFFIC, sizes.fit, 10)
    build, search = "building a cKDTree", "building it and one search of all"

    def searched() -> None:
        cKDTree(data.X).query(data.X, K + 1, workers=JOBS)

    pairs = {"distance": build, "tangent": build, "order 1": build, "local_tangent": search}
    works: dict[str, Work] = {build: partial(cKDTree, data.X), search: searched}
    works |= {f"fit, {name}": partial(fitted, name, data) for name in pairs}
    where = f"n = {sizes.fit:,}, D = {TRAFFIC.D}, d = {TRAFFIC.d}"
    times = take_turns(where, works, sizes.repeats, 2 * sizes.budget)
    targets = [
        times.target(f"fit with fixed parameters, {name}, over {over}", 1.5, f"fit, {name}", over)
        for name, over in pairs.items()
    ]
    words = [made_up.words(TRAFFIC)]
    return PartResult("fits", "Fits with fixed parameters", words, targets, times.timings(), [])


def default_fits(ground: Ground) -> PartResult:
    """Time a fit with all defaults against fitting UMAP to the same points."""
    sizes, targets, timings = ground.sizes, [], []
    reason = absent("umap")
    for n, limit in zip(sizes.umap_fits, (0.3, 0.2, 0.1), strict=False):
        words = f"all defaults, n = {n:,}: fit, against fitting UMAP"
        if reason:
            targets.append(Target(words, limit, skipped=reason))
            continue
        ground.tell(sizes.umap_fits.index(n) / len(sizes.umap_fits), f"UMAP of {n:,} points")
        data = made_up.cloud(TRAFFIC, n, 10)
        theirs = partial(_umap, data.X)
        Y = np.asarray(theirs().embedding_, dtype=np.float64)  # compiles the kernels of UMAP
        ours = partial(PCAExtension(n_jobs=JOBS).fit, data.X, Y)
        small = made_up.cloud(TRAFFIC, 300, 10)
        PCAExtension(n_jobs=JOBS).fit(small.X, small.Y)
        works: dict[str, Work] = {"UMAP().fit": theirs, "PCAExtension().fit": ours}
        where = f"n = {n:,}, D = {TRAFFIC.D}, d = 2"
        times = take_turns(where, works, 3, sizes.budget, warm_up=False)
        targets.append(times.target(words, limit, "PCAExtension().fit", "UMAP().fit"))
        timings += times.timings()
    lines = [made_up.words(TRAFFIC), "The map was computed by UMAP from these points."]
    return PartResult("defaults", "Fits with all defaults", lines, targets, timings, [])


def _umap(X: Array) -> Any:
    import umap

    return umap.UMAP(n_jobs=JOBS).fit(X)


def wide_fits(ground: Ground) -> PartResult:
    """Time fits with all defaults for maps or points with many columns."""
    sizes = ground.sizes
    n_map, n_wide = sizes.wide
    small = made_up.cloud(TRAFFIC, 300, 10)
    PCAExtension(n_jobs=JOBS).fit(small.X, small.Y)
    by_map, by_points, searches = [], [], []
    for d in sizes.map_columns:
        ground.tell(0.0, f"map columns: {d}")
        data = made_up.cloud(Shape(TRAFFIC.D, d, TRAFFIC.latent), n_map, 10)
        by_map.append(seconds_of(partial(PCAExtension(n_jobs=JOBS).fit, data.X, data.Y)))
    for D in sizes.columns:
        ground.tell(0.5, f"columns of points: {D}")
        data = made_up.cloud(Shape(D, 2, 12), n_wide, 10)
        search = NearestNeighbors(n_neighbors=K + 1, algorithm="brute", n_jobs=JOBS).fit(data.X)
        search.kneighbors(data.X[:10])
        searches.append(seconds_of(partial(search.kneighbors, data.X)))
        by_points.append(seconds_of(partial(PCAExtension(n_jobs=JOBS).fit, data.X, data.Y)))
    narrow, many, wide = sizes.map_columns[0], sizes.map_columns[-1], sizes.columns[-1]
    targets = [
        Target(f"fit of d = {many}, n = {n_map:,}, over d = {narrow}", 3.0, by_map[-1] / by_map[0],
               note=f"{by_map[-1]:.1f} s and {by_map[0]:.1f} s"),
        Target(f"fit of D = {wide:,}, n = {n_wide:,}, over three searches and"
               f" {EXTRA_SECONDS:g} s", 1.0, by_points[-1] / (3 * searches[-1] + EXTRA_SECONDS),
               note=f"{by_points[-1]:.1f} s; a search takes {searches[-1]:.2f} s"),
    ]  # fmt: skip
    curves = [
        Curve("Fit with all defaults", "columns", "seconds", name, [float(c) for c in columns],
              seconds, late_slope(columns, seconds))
        for name, columns, seconds in (
            (f"of the map, n = {n_map:,}", sizes.map_columns, by_map),
            (f"of points, n = {n_wide:,}", sizes.columns, by_points),
            ("search of all rows", sizes.columns, searches),
        )
    ]  # fmt: skip
    words = ["Each fit is timed once, after a small one."]
    return PartResult("wide", "Many columns", words, targets, [], curves)
