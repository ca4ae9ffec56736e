"""Other methods to extend a map, with ``fit(X, Y)`` and ``predict(X)``.

These are common alternatives to this library. Parameters are the defaults, or are tuned on the
training points; if a method cannot use all points, its row states how many it uses.
"""

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import RBFInterpolator
from scipy.spatial.distance import pdist
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import KNeighborsRegressor, NearestNeighbors

import outsample
from outsample_lab.accuracy.loo_map import loo_map
from outsample_lab.methods import WEIGHTINGS, paper_weights
from outsample_lab.paper import sphere_table as sphere

Array = NDArray[np.float64]
Place = Callable[[Array], Array]

METHOD = "PCAExtension()"
OURS, PAPER, KERNEL, PEER = "ours", "paper", "kernel", "peer"

TUNING_ROWS, LIKELIHOOD_ROWS = 1000, 500  # Sample sizes to tune kernel ridge, a Gaussian process
KERNEL_ROWS = 2000  # Largest training set for our kernel methods
PROCESS_ROWS = 4000  # Largest training set for the Gaussian process of scikit-learn


class Extender(NamedTuple):
    """A method to measure: its name, family and constructor."""

    name: str
    family: str  # `OURS`, `PAPER`, `KERNEL` (our version of the paper's other systems) or `PEER`
    build: Callable[[], Any]  # Return a new, unfitted extension
    note: str = ""  # Settings and limits


class Peer:
    """An extension defined by a function that takes a map and returns a placing function."""

    predict: Place

    def __init__(self, learn: Callable[[Array, Array], Place]) -> None:
        self.learn = learn

    def fit(self, X: Array, Y: Array) -> "Peer":
        """Fit to a map."""
        self.predict = self.learn(X, Y)
        return self


def local_rbf(X: Array, Y: Array, kernel: str, neighbors: int = 50) -> Place:
    """Return SciPy's radial basis functions over the 50 nearest training points."""
    neighbors = min(neighbors, len(X))
    # A linear term needs more neighbours than columns.
    degree = 1 if kernel == "thin_plate_spline" and X.shape[1] < neighbors // 2 else 0
    place: Place = RBFInterpolator(X, Y, neighbors=neighbors, kernel=kernel, degree=degree)
    return place


def gaussian_process(X: Array, Y: Array) -> Place:
    """Return Gaussian-process regression, the extension of Barkan, Weill and Averbuch (2016)."""
    # Length and noise are tuned by likelihood on a sample; then up to PROCESS_ROWS are factored.
    order = np.random.default_rng(0).permutation(len(X))
    sample, all_rows = order[:LIKELIHOOD_ROWS], order[:PROCESS_ROWS]
    length = np.sqrt(median_squared_distance(X))
    kernel = RBF(length, (1e-3 * length, 1e2 * length)) + WhiteKernel(1e-4, (1e-10, 1e1))
    tuned = GaussianProcessRegressor(kernel, normalize_y=True).fit(X[sample], Y[sample])
    process = GaussianProcessRegressor(tuned.kernel_, optimizer=None, normalize_y=True)
    process.fit(X[all_rows], Y[all_rows])
    return lambda new: np.asarray(process.predict(new)).reshape(len(new), -1)


def kernel_ridge(X: Array, Y: Array) -> Place:
    """Return kernel ridge regression; width and penalty by leave-one-out on a sample."""
    mean = Y.mean(axis=0)
    rows = np.random.default_rng(0).permutation(len(X))[:TUNING_ROWS]
    unit = median_squared_distance(X)
    trials = [
        (error, factor / unit, penalty)
        for factor in (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
        for error, penalty in ridge_errors(X[rows], Y[rows] - mean, factor / unit)
    ]
    _, gamma, alpha = min(trials)
    ridge = KernelRidge(kernel="rbf", gamma=gamma, alpha=alpha).fit(X, Y - mean)
    return lambda new: np.asarray(ridge.predict(new)) + mean


def ridge_errors(X: Array, Y: Array, gamma: float) -> list[tuple[float, float]]:
    """Return the leave-one-out error of kernel ridge regression for each penalty.

    The residual of a point left out is ``(A^-1 y)_i / (A^-1)_ii`` with ``A = K + alpha I``, so one
    eigen-decomposition serves every penalty.
    """
    values, vectors = np.linalg.eigh(rbf_kernel(X, gamma=gamma))
    projected, errors = vectors.T @ Y, []
    for penalty in (1e-10, 1e-8, 1e-6, 1e-4, 1e-2):
        inverse = 1.0 / (np.maximum(values, 0.0) + penalty)
        diagonal = (vectors**2) @ inverse
        residuals = (vectors @ (inverse[:, None] * projected)) / diagonal[:, None]
        errors.append((float((residuals**2).sum(axis=1).mean()), penalty))
    return errors


def barycentric(X: Array, Y: Array, n_neighbors: int = 10, reg: float = 1e-3) -> Place:
    """Return the barycentric extension: weights that reconstruct a point from its neighbours."""
    # What ``transform`` of scikit-learn's locally linear embedding does.
    index = NearestNeighbors(n_neighbors=n_neighbors).fit(X)

    def place(new: Array) -> Array:
        near = index.kneighbors(new, return_distance=False)
        offsets = X[near] - new[:, None]
        gram = offsets @ offsets.transpose(0, 2, 1)
        trace = np.trace(gram, axis1=1, axis2=2)
        ridge = reg * np.where(trace > 0, trace, 1.0)
        gram[:, range(n_neighbors), range(n_neighbors)] += ridge[:, None]
        weights = np.linalg.solve(gram, np.ones((*gram.shape[:2], 1)))[..., 0]
        weights /= weights.sum(axis=1, keepdims=True)
        return np.einsum("qk,qkd->qd", weights, Y[near])

    return place


def by_opentsne(X: Array, Y: Array) -> Place:
    """Return a placement by openTSNE's optimisation on a fixed map."""
    from openTSNE import TSNEEmbedding
    from openTSNE.affinity import PerplexityBasedNN

    affinities = PerplexityBasedNN(X, perplexity=30, random_state=0)
    embedding = TSNEEmbedding(Y.copy(), affinities, random_state=0)

    def place(new: Array) -> Array:
        placed = np.asarray(embedding.transform(new))
        # Placing shifts the map; the shift is undone.
        return placed + (Y.mean(axis=0) - np.asarray(embedding).mean(axis=0))

    return place


def by_umap(X: Array, Y: Array) -> Place:
    """Return a placement by umap-learn's optimisation on a fixed map."""
    import umap

    # One epoch from a random start, because only the graph of the fit is used.
    reducer: Any = umap.UMAP(random_state=0, n_jobs=1, init="random", n_epochs=1)
    reducer.fit(X)
    reducer.n_epochs = None  # its own number of epochs for placing
    reducer.embedding_ = Y.astype(np.float32)
    return lambda new: np.asarray(reducer.transform(new), dtype=np.float64)


def by_kernel_method(X: Array, Y: Array, method: Callable[[], Any]) -> Place:
    """Return one of our kernel methods, whose cost is cubic in the number of points."""
    if len(X) > KERNEL_ROWS:
        raise ValueError(f"left out above {KERNEL_ROWS} training points: O(n^3)")
    place: Place = method().fit(X, Y).transform
    return place


def missing(X: Array, Y: Array, package: str) -> Place:
    """Raise an error for a library that is not installed."""
    raise ImportError(f"{package} is not installed: pip install outsample-lab[bench]")


def extenders(kind: str, step: float | None = None) -> list[Extender]:
    """Return the methods for a map: ours, the paper's weightings, our kernels, others."""
    # `kind` is the method of the map: t-SNE and UMAP have their own transform. `step` is that of
    # the sphere's grid, on which the paper's radii depend.
    available = [Extender(METHOD, OURS, outsample.PCAExtension, "all defaults")]
    settings: dict[str, Any] = {"n_neighbors": 15} if step is None else sphere.radii(step)
    near = "15 neighbours" if step is None else "radii 2.3 h and 1.5 h, c = 2"
    note = f"order 0, squared loss, {near}"
    for weighting in WEIGHTINGS:
        paper = partial(paper_weights, weighting, **settings)
        available.append(Extender(f"paper: {weighting}", PAPER, paper, note))
    kernels = {
        "Nystroem": outsample.NystroemExtension,
        "geometric harmonics": outsample.GeometricHarmonics,
        "Laplacian pyramids": outsample.LaplacianPyramids,
        "MSE": outsample.MultiscaleExtension,
    }
    for name, method in kernels.items():
        note = f"ours, all defaults; up to {KERNEL_ROWS} points"
        available.append(Extender(name, KERNEL, _peer(by_kernel_method, method=method), note))
    for k in (5, 15):
        nearest = partial(KNeighborsRegressor, n_neighbors=k, weights="distance")
        available.append(Extender(f"{k}-NN", PEER, nearest, "inverse-distance weights"))
    available += [
        Extender("RBF thin plate", PEER, _peer(local_rbf, kernel="thin_plate_spline"),
                 "SciPy, 50 neighbours; linear term if columns are fewer than half"),
        Extender("RBF linear", PEER, _peer(local_rbf, kernel="linear"), "SciPy, 50 neighbours"),
        Extender("Gaussian process", PEER, _peer(gaussian_process),
                 f"RBF + white kernel; tuned on up to {LIKELIHOOD_ROWS} rows,"
                 f" fitted to up to {PROCESS_ROWS}"),
        Extender("kernel ridge", PEER, _peer(kernel_ridge),
                 f"RBF kernel, tuned on up to {TUNING_ROWS} rows"),
        Extender("LLE weights", PEER, _peer(barycentric), "barycentric, 10 neighbours"),
    ]  # fmt: skip
    own = {"tsne": ("openTSNE", "openTSNE", by_opentsne), "umap": ("umap-learn", "umap", by_umap)}
    if kind in own:
        package, module, learn = own[kind]
        note = "its own transform, given the frozen map"
        build = _peer(learn) if find_spec(module) else _peer(missing, package=package)
        available.append(Extender(f"{package}, own transform", PEER, build, note))
    if kind == "tsne":
        note = "minimises the loss of one additional point, perplexity 30, others fixed"
        available.append(Extender("LOO-map", PEER, _peer(loo_map), note))
    return available


def median_squared_distance(X: Array) -> float:
    """Return the median squared distance between at most 1000 points."""
    rows = np.random.default_rng(0).permutation(len(X))[:1000]
    return float(np.median(pdist(X[rows], "sqeuclidean")))


def _peer(learn: Callable[..., Place], **parameters: Any) -> Callable[[], Peer]:
    return partial(Peer, partial(learn, **parameters))
