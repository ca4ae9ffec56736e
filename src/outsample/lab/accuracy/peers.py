"""Other ways to extend a map, behind one pair of methods: ``fit(X, Y)`` and ``predict(X)``.

They are what people use in place of this library. Each is given a fair chance: settings are the
usual ones or chosen on the training points, and where a method cannot take all points the row
says how many it took.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outsample import (
    GeometricHarmonics,
    LaplacianPyramids,
    MultiscaleExtension,
    NystroemExtension,
    PCAExtension,
)
from outsample.lab.demo import sphere_table as sphere

__all__ = ["KERNEL", "METHOD", "OURS", "PAPER", "PEER", "Extender", "extenders"]

Array = NDArray[np.float64]

METHOD = "PCAExtension()"
OURS, PAPER, KERNEL, PEER = "ours", "paper", "kernel", "peer"

TUNING_ROWS, LIKELIHOOD_ROWS = 1000, 500
"""Hyper-parameters are chosen on at most so many rows: kernel ridge, Gaussian process."""
KERNEL_ROWS = 2000
"""Our kernel methods are measured on maps of at most so many training points."""
PROCESS_ROWS = 4000
"""A Gaussian process of scikit-learn takes at most so many rows."""


class Extender(NamedTuple):
    """A line of the table before it is measured."""

    name: str
    family: str
    """`OURS`, `PAPER`, `KERNEL` (the other systems of the paper, as we have them) or `PEER`."""
    build: Callable[[], Any]
    """Return a new, unfitted extension."""
    note: str = ""
    """Settings and limits."""


class LocalRBF:
    """SciPy's radial basis functions over the 50 nearest training points."""

    def __init__(self, kernel: str, neighbors: int = 50) -> None:
        self.kernel, self.neighbors = kernel, neighbors

    def fit(self, X: Array, Y: Array) -> "LocalRBF":
        """Store the map."""
        from scipy.interpolate import RBFInterpolator

        neighbors = min(self.neighbors, len(X))
        # A linear term needs more neighbours than columns.
        degree = 1 if self.kernel == "thin_plate_spline" and X.shape[1] < neighbors // 2 else 0
        self.degree_ = degree
        self.interpolator_ = RBFInterpolator(
            X, Y, neighbors=neighbors, kernel=self.kernel, degree=degree
        )
        return self

    def predict(self, X: Array) -> Array:
        """Place new points."""
        return np.asarray(self.interpolator_(X))


class GaussianProcess:
    """Gaussian-process regression, the extension of Barkan, Weill and Averbuch (2016)."""

    def fit(self, X: Array, Y: Array) -> "GaussianProcess":
        """Choose length and noise by likelihood on some rows, then factor all it can take."""
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF, WhiteKernel

        order = np.random.default_rng(0).permutation(len(X))
        some, all_rows = order[:LIKELIHOOD_ROWS], order[:PROCESS_ROWS]
        length = np.sqrt(median_squared_distance(X))
        kernel = RBF(length, (1e-3 * length, 1e2 * length)) + WhiteKernel(1e-4, (1e-10, 1e1))
        tuned = GaussianProcessRegressor(kernel, normalize_y=True).fit(X[some], Y[some])
        self.process_ = GaussianProcessRegressor(tuned.kernel_, optimizer=None, normalize_y=True)
        self.process_.fit(X[all_rows], Y[all_rows])
        return self

    def predict(self, X: Array) -> Array:
        """Place new points."""
        return np.asarray(self.process_.predict(X)).reshape(len(X), -1)


class TunedKernelRidge:
    """Kernel ridge regression, its width and penalty by leave-one-out on some rows."""

    def fit(self, X: Array, Y: Array) -> "TunedKernelRidge":
        """Choose on some rows, solve with all."""
        from sklearn.kernel_ridge import KernelRidge

        self.mean_ = Y.mean(axis=0)
        some = np.random.default_rng(0).permutation(len(X))[:TUNING_ROWS]
        unit = median_squared_distance(X)
        trials = [
            (error, factor / unit, penalty)
            for factor in (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
            for error, penalty in ridge_errors(X[some], Y[some] - self.mean_, factor / unit)
        ]
        _, gamma, alpha = min(trials)
        self.ridge_ = KernelRidge(kernel="rbf", gamma=gamma, alpha=alpha)
        self.ridge_.fit(X, Y - self.mean_)
        return self

    def predict(self, X: Array) -> Array:
        """Place new points."""
        return np.asarray(self.ridge_.predict(X)) + self.mean_


def ridge_errors(X: Array, Y: Array, gamma: float) -> list[tuple[float, float]]:
    """Return leave-one-out errors of kernel ridge regression, each with its penalty.

    The residual of a point left out is ``(A^-1 y)_i / (A^-1)_ii`` with ``A = K + alpha I``, so one
    eigen-decomposition serves every penalty.
    """
    from sklearn.metrics.pairwise import rbf_kernel

    values, vectors = np.linalg.eigh(rbf_kernel(X, gamma=gamma))
    projected, found = vectors.T @ Y, []
    for penalty in (1e-10, 1e-8, 1e-6, 1e-4, 1e-2):
        inverse = 1.0 / (np.maximum(values, 0.0) + penalty)
        diagonal = (vectors**2) @ inverse
        residuals = (vectors @ (inverse[:, None] * projected)) / diagonal[:, None]
        found.append((float((residuals**2).sum(axis=1).mean()), penalty))
    return found


class Barycentric:
    """Weights that rebuild a point from its neighbours, used on their images.

    What ``transform`` of scikit-learn's locally linear embedding does.
    """

    def __init__(self, n_neighbors: int = 10, reg: float = 1e-3) -> None:
        self.n_neighbors, self.reg = n_neighbors, reg

    def fit(self, X: Array, Y: Array) -> "Barycentric":
        """Store the map."""
        from sklearn.neighbors import NearestNeighbors

        self.X_, self.Y_ = X, Y
        self.index_ = NearestNeighbors(n_neighbors=self.n_neighbors).fit(X)
        return self

    def predict(self, X: Array) -> Array:
        """Place new points."""
        near = self.index_.kneighbors(X, return_distance=False)
        offsets = self.X_[near] - X[:, None]
        gram = offsets @ offsets.transpose(0, 2, 1)
        trace = np.trace(gram, axis1=1, axis2=2)
        ridge = self.reg * np.where(trace > 0, trace, 1.0)
        gram[:, range(self.n_neighbors), range(self.n_neighbors)] += ridge[:, None]
        weights = np.linalg.solve(gram, np.ones((*gram.shape[:2], 1)))[..., 0]
        weights /= weights.sum(axis=1, keepdims=True)
        return np.einsum("qk,qkd->qd", weights, self.Y_[near])


class OpenTSNETransform:
    """The optimisation by which openTSNE places points, on the map as it is given."""

    def fit(self, X: Array, Y: Array) -> "OpenTSNETransform":
        """Wrap the map without a step of optimisation."""
        from openTSNE import TSNEEmbedding
        from openTSNE.affinity import PerplexityBasedNN

        affinities = PerplexityBasedNN(X, perplexity=30, random_state=0)
        self.Y_ = Y
        self.embedding_ = TSNEEmbedding(Y.copy(), affinities, random_state=0)
        return self

    def predict(self, X: Array) -> Array:
        """Place new points, and undo the shift of the map that comes with it."""
        placed = np.asarray(self.embedding_.transform(X))
        shift = self.Y_.mean(axis=0) - np.asarray(self.embedding_).mean(axis=0)
        return placed + shift


class UMAPTransform:
    """The optimisation by which umap-learn places points, on the map as it is given."""

    def fit(self, X: Array, Y: Array) -> "UMAPTransform":
        """Fit the graph, then put the map in the place of its own."""
        import umap

        # One epoch from a random start: of the fit only the graph is wanted.
        self.reducer_: Any = umap.UMAP(random_state=0, n_jobs=1, init="random", n_epochs=1)
        self.reducer_.fit(X)
        self.reducer_.n_epochs = None  # its own number of epochs for placing
        self.reducer_.embedding_ = Y.astype(np.float32)
        return self

    def predict(self, X: Array) -> Array:
        """Place new points."""
        return np.asarray(self.reducer_.transform(X), dtype=np.float64)


class UpTo:
    """One of our kernel methods, whose cost grows with the cube of the number of points."""

    def __init__(self, extension: Any) -> None:
        self.extension = extension

    def fit(self, X: Array, Y: Array) -> "UpTo":
        """Fit, or say that it would take too long."""
        if len(X) > KERNEL_ROWS:
            raise ValueError(f"left out above {KERNEL_ROWS} training points: O(n^3)")
        self.extension.fit(X, Y)
        return self

    def predict(self, X: Array) -> Array:
        """Place new points."""
        return np.asarray(self.extension.transform(X))


class Missing:
    """Stands for a library that is not installed."""

    def __init__(self, package: str) -> None:
        self.package = package

    def fit(self, X: Array, Y: Array) -> "Missing":
        """Say what is missing."""
        raise ImportError(f"{self.package} is not installed: pip install outsample[bench]")


def extenders(kind: str, step: float | None = None) -> list[Extender]:
    """Return a map's lines: ours with all defaults, the paper's weightings, our kernels, others.

    `kind` made the map: t-SNE and UMAP maps have placements of their own. `step` is that of the
    sphere's grid, on which the paper's radii depend.
    """
    from sklearn.neighbors import KNeighborsRegressor

    found = [Extender(METHOD, OURS, PCAExtension, "all defaults")]
    for weighting in sphere.WEIGHTINGS:
        fixed = {"weighting": weighting, "order": 0, "loss": "squared", "n_neighbors": 15}
        note = "order 0, squared loss, 15 neighbours"
        if step is not None:
            radii = {"radius": 2.3 * step, "tangent_radius": 1.5 * step, "curvature": 2}
            fixed = {key: fixed[key] for key in ("weighting", "order", "loss")} | radii
            note = "order 0, squared loss, radii 2.3 h and 1.5 h, c = 2"
        found.append(Extender(f"paper: {weighting}", PAPER, _bind(PCAExtension, **fixed), note))
    kernels = {
        "Nystroem": NystroemExtension,
        "geometric harmonics": GeometricHarmonics,
        "Laplacian pyramids": LaplacianPyramids,
        "MSE": MultiscaleExtension,
    }
    for name, method in kernels.items():
        build = _bind(lambda method: UpTo(method()), method=method)
        found.append(
            Extender(name, KERNEL, build, f"ours, all defaults; up to {KERNEL_ROWS} points")
        )
    for k in (5, 15):
        build = _bind(KNeighborsRegressor, n_neighbors=k, weights="distance")
        found.append(Extender(f"{k}-NN", PEER, build, "inverse-distance weights"))
    found += [
        Extender("RBF thin plate", PEER, _bind(LocalRBF, kernel="thin_plate_spline"),
                 "SciPy, 50 neighbours; linear term if columns are fewer than half"),
        Extender("RBF linear", PEER, _bind(LocalRBF, kernel="linear"), "SciPy, 50 neighbours"),
        Extender("Gaussian process", PEER, GaussianProcess,
                 f"RBF + white kernel; tuned on up to {LIKELIHOOD_ROWS} rows,"
                 f" fitted to up to {PROCESS_ROWS}"),
        Extender("kernel ridge", PEER, TunedKernelRidge,
                 f"RBF kernel, tuned on up to {TUNING_ROWS} rows"),
        Extender("LLE weights", PEER, Barycentric, "barycentric, 10 neighbours"),
    ]  # fmt: skip
    own = {
        "tsne": ("openTSNE", "openTSNE", OpenTSNETransform),
        "umap": ("umap-learn", "umap", UMAPTransform),
    }
    if kind in own:
        package, module, transform = own[kind]
        note = "its own transform, given the frozen map"
        build = transform if find_spec(module) else _bind(Missing, package=package)
        found.append(Extender(f"{package}, own transform", PEER, build, note))
    return found


def median_squared_distance(X: Array) -> float:
    """Return the median squared distance of two points, on at most 1000 of them."""
    from scipy.spatial.distance import pdist

    some = np.random.default_rng(0).permutation(len(X))[:1000]
    return float(np.median(pdist(X[some], "sqeuclidean")))


def _bind(make: Callable[..., Any], **parameters: Any) -> Callable[[], Any]:
    return lambda: make(**parameters)
