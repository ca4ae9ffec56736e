"""Time of placing by exact search, relative to bare searches of other libraries."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.interpolate import RBFInterpolator
from scipy.spatial import cKDTree
from sklearn.neighbors import KNeighborsRegressor, NearestNeighbors

from outsample import Correlated, PCAExtension
from outsample.neighbors.approximate import load_faiss
from outsample_lab.accuracy.maps import MNIST_FILE, Unavailable, data_file, mnist_points
from outsample_lab.speed import made_up
from outsample_lab.speed.made_up import IMAGES, TRAFFIC, Cloud, Shape
from outsample_lab.speed.sizes import JOBS, Ground, absent
from outsample_lab.speed.speed_result import PartResult, Target
from outsample_lab.speed.stopwatch import Work, take_turns

K, WIDE = 15, 50  # Neighbours, and those of radial basis functions
TREE, PRODUCTS, FLAT = "bare cKDTree", "bare brute force of scikit-learn", "bare faiss, flat"
SEARCHES = (TREE, PRODUCTS, FLAT)
REGRESSOR, BASIS = "KNeighborsRegressor", "RBFInterpolator, linear"
SETTINGS: dict[str, dict[str, Any]] = {
    "distance": {"weighting": "distance", "order": 0, "loss": "squared"},
    "tangent": {"weighting": "tangent", "order": 0, "loss": "squared"},
    "local_tangent": {"weighting": "local_tangent", "order": 0, "loss": "squared"},
    "order 1": {"weighting": "distance", "order": 1, "loss": "squared"},
    "absolute": {"weighting": "distance", "order": 0, "loss": "absolute"},
}
MAX_RATIO_TO_TREE = {
    "distance": 1.10, "tangent": 1.15, "local_tangent": 1.20, "order 1": 1.5, "absolute": 1.5,
}  # fmt: skip
MAX_RATIO_TO_PRODUCTS = {"distance": 1.10, "order 1": 1.5}


def fitted(name: str, data: Cloud, **parameters: Any) -> PCAExtension:
    """Return an extension with one of the settings, fitted to synthetic points."""
    settings = {"n_neighbors": K, "n_jobs": JOBS} | SETTINGS[name] | parameters
    return PCAExtension(**settings).fit(data.X, data.Y)


def bare_searches(data: Cloud, jobs: int = JOBS) -> dict[str, Callable[[Any], Any]]:
    """Return the search functions of other libraries by name."""
    searches: dict[str, Callable[[Any], Any]] = {
        TREE: partial(cKDTree(data.X).query, k=K, workers=jobs),
        PRODUCTS: NearestNeighbors(n_neighbors=K, algorithm="brute", n_jobs=jobs)
        .fit(data.X).kneighbors,
    }  # fmt: skip
    if not absent("faiss"):
        faiss = load_faiss()
        faiss.omp_set_num_threads(jobs)
        flat = faiss.IndexFlatL2(data.X.shape[1])
        flat.add(np.ascontiguousarray(data.X, dtype=np.float32))
        searches[FLAT] = lambda Q: flat.search(np.ascontiguousarray(Q, dtype=np.float32), K)
    return searches


def setting(shape: Shape, n: int, rows: int) -> str:
    """Return a description of what was timed."""
    return f"n = {n:,}, D = {shape.D}, d = {shape.d}, {rows:,} rows"


def over_the_search(ground: Ground) -> PartResult:
    """Time our methods of placing against the search that each needs."""
    sizes = ground.sizes
    targets, timings = [], []
    grounds = [("D = 14", TREE, MAX_RATIO_TO_TREE), ("D = 50", PRODUCTS, MAX_RATIO_TO_PRODUCTS)]
    clouds = [made_up.cloud(shape, sizes.exact, sizes.batch) for shape in (TRAFFIC, IMAGES)]
    words = [made_up.words(shape) for shape in (TRAFFIC, IMAGES)]
    try:
        clouds.append(_mnist(ground))
        grounds.append(("MNIST, D = 50", PRODUCTS, MAX_RATIO_TO_PRODUCTS))
        words.append("MNIST: random images as 50 principal components; the map is the first two.")
    except Unavailable as fault:
        words.append(f"MNIST was skipped: {fault}.")
    for at, (data, (name, bare, limits)) in enumerate(zip(clouds, grounds, strict=True)):
        ground.tell(at / len(clouds), name)
        works: dict[str, Work] = {bare: partial(bare_searches(data)[bare], data.Q)}
        works |= {key: partial(fitted(key, data).transform, data.Q) for key in limits}
        where = f"{name}, d = {data.Y.shape[1]}, n = {len(data.X):,}, {len(data.Q):,} rows"
        times = take_turns(where, works, sizes.repeats, sizes.budget)
        timings += times.timings()
        targets += [
            times.target(f"exact, {name}: {setting_name}, over {bare}", ratio, setting_name, bare)
            for setting_name, ratio in limits.items()
        ]
    return PartResult("exact", "Placing over the bare search", words, targets, timings, [])


def _mnist(ground: Ground) -> Cloud:
    rows = ground.sizes.exact + ground.sizes.batch
    X = mnist_points(data_file(ground.folder, MNIST_FILE), rows)
    new, training = np.split(X, [len(X) // 6])
    return Cloud(training, training[:, :2], new, new[:, :2])


def against_regressors(ground: Ground) -> PartResult:
    """Time placing against weighted neighbours and radial basis functions."""
    sizes = ground.sizes
    targets: list[Target] = []
    timings = []
    for at, (shape, nearest, basis) in enumerate(((TRAFFIC, 0.35, 0.5), (IMAGES, 1.05, 0.15))):
        ground.tell(at / 2, f"regressors: D = {shape.D}")
        data = made_up.cloud(shape, sizes.exact, sizes.batch)
        regressor = KNeighborsRegressor(K, weights="distance", n_jobs=JOBS).fit(data.X, data.Y)
        linear = Correlated("linear", 1.0, 0.0)
        ours = PCAExtension(
            n_neighbors=WIDE, weighting=linear, order=0, loss="squared", n_jobs=JOBS
        ).fit(data.X, data.Y)
        peer = RBFInterpolator(data.X, data.Y, neighbors=WIDE, kernel="linear")
        where = setting(shape, sizes.exact, sizes.batch)
        works: dict[str, Work] = {
            REGRESSOR: partial(regressor.predict, data.Q),
            "distance": partial(fitted("distance", data).transform, data.Q),
        }
        times = take_turns(where, works, sizes.repeats, sizes.budget)
        words = f"exact, D = {shape.D}: distance, against {REGRESSOR}"
        targets.append(times.target(words, nearest, "distance", REGRESSOR))
        timings += times.timings()
        correlated = f"correlated, {WIDE} neighbours"
        works = {BASIS: partial(peer, data.Q), correlated: partial(ours.transform, data.Q)}
        times = take_turns(where, works, sizes.repeats, sizes.budget)
        errors = data.error(ours.transform(data.Q)), data.error(peer(data.Q))
        note = f"errors {errors[0]:.4g} and {errors[1]:.4g} of the size of the map"
        words = f"{correlated}, D = {shape.D}, against RBFInterpolator"
        targets += [
            times.target(words, basis, correlated, BASIS),
            Target(f"{words}: error", 1.01, errors[0] / errors[1], note=note),
        ]
        timings += times.timings()
    words = "Accuracy counts as equal if the error is at most 1.01 times that of the other method."
    return PartResult("regressors", "Compared with regressors", [words], targets, timings, [])
