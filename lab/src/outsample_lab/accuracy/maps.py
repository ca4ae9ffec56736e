"""The maps of the benchmark, and how points are held out.

A map is computed from *all* points; then the coordinates of some points are held out, so that their
true positions are known. On the paper's sphere the map is a formula, and new points are generated.
Data are computed here or are part of scikit-learn, except MNIST, which is read from a file.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.spatial.distance import pdist, squareform
from sklearn import datasets as sklearn_datasets
from sklearn.decomposition import PCA
from sklearn.manifold import Isomap, LocallyLinearEmbedding

from outsample.comparison.holdout import Case
from outsample.demo.digits import load_digits, tsne
from outsample_lab.sphere import random_angles, sphere, sphere_map

Array = NDArray[np.float64]
Pair = tuple[Array, Array]  # Points and images
Points = Callable[[Path | None], Array]  # Takes the folder of data
MNIST_FILE = "embedding/mnist.npz"
MNIST_ROWS = 10_000
SPHERE = "sphere"  # The kind of the paper's example: errors are not divided by the map's size


class Unavailable(Exception):
    """Raised if a map cannot be computed here."""


def data_file(folder: Path | None, name: str) -> Path:
    """Return the path of a file in the data folder; raise Unavailable if it is missing."""
    path = Path(name) if folder is None else folder / name
    if folder is None or not path.is_file():
        raise Unavailable(f"no file {path}; name its folder with --data")
    return path


class MapSpec(NamedTuple):
    """A map of the benchmark: how it is computed, and its target error."""

    name: str  # For the command line and the file of results
    title: str
    kind: str  # The method that made the map: ``"tsne"``, ``"umap"``, ... or `SPHERE`.
    target: float | None  # Mean error to reach; None: that of the best peer
    make: Callable[[Path | None], Pair]  # Takes the folder of data
    minutes: float  # Rough cost of map and rows, for the time left


def cases(spec: MapSpec, X: Array, Y: Array, seeds: Sequence[int] = (0, 1, 2)) -> list[Case]:
    """Return splits of a map with a fifth of its points held out, one per seed.

    The sphere has random new points instead, 100 for each of 8 seeds, as in the paper.
    """
    if spec.kind == SPHERE:
        draws = 8
        new = np.concatenate([random_angles(100, seed) for seed in range(draws)])
        return [Case(X, Y, new, sphere_map(new), draws)]
    splits = []
    for seed in seeds:
        order = np.random.default_rng(seed).permutation(len(X))
        hidden, training = np.split(order, [len(X) // 5])
        splits.append(Case(X[training], Y[training], X[hidden], Y[hidden]))
    return splits


def diffusion_map(X: Array, n_components: int = 5) -> Array:
    r"""Return the diffusion map with the density divided out, shape (n, n_components), dense.

    Kernel :math:`\exp(-|x - y|^2 / \epsilon)`, :math:`\epsilon` a third of the median squared
    distance, :math:`\alpha = 1`; right eigenvectors of the Markov matrix times eigenvalues,
    without the constant one. The largest entry of each coordinate is positive.

    >>> line = diffusion_map(np.linspace(0, 1, 40)[:, None], 1)[:, 0]  # a segment keeps its order
    >>> bool((np.diff(line) > 0).all() or (np.diff(line) < 0).all())
    True
    """
    squared = pdist(X, "sqeuclidean")
    kernel = squareform(np.exp(-3 * squared / np.median(squared)))
    np.fill_diagonal(kernel, 1.0)
    density = kernel.sum(axis=1)
    kernel /= density[:, None]
    kernel /= density
    root = np.sqrt(kernel.sum(axis=1))
    kernel /= root[:, None]  # symmetric, with the eigenvalues of the Markov matrix
    kernel /= root
    n = len(X)
    values, vectors = eigh(kernel, subset_by_index=[n - n_components - 1, n - 1], overwrite_a=True)
    values, vectors = values[::-1], vectors[:, ::-1]
    Y = (vectors[:, 1:] / vectors[:, :1]) * values[1:]
    largest = Y[np.abs(Y).argmax(axis=0), np.arange(n_components)]
    return np.asarray(Y * np.sign(largest), dtype=np.float64)


def _sphere(n_per_axis: int, folder: Path | None) -> Pair:
    return sphere(n_per_axis)[:2]


def _digits(folder: Path | None) -> Array:
    return load_digits().X


def _sheet(name: str, folder: Path | None) -> Array:
    """Return the swiss roll or the s-curve, 5000 points."""
    return np.asarray(getattr(sklearn_datasets, f"make_{name}")(5000, random_state=0)[0])


def _mnist(folder: Path | None) -> Array:
    return _cached_mnist(data_file(folder, MNIST_FILE))


@lru_cache(maxsize=1)
def _cached_mnist(path: Path) -> Array:
    return mnist_points(path, MNIST_ROWS)  # cached, because four maps use them


def mnist_points(path: Path, n: int) -> Array:
    """Return at most n random images as 50 principal components."""
    with np.load(path, allow_pickle=False) as file:
        images = file["X_train"]
    rows = np.random.default_rng(0).choice(len(images), min(n, len(images)), replace=False)
    pixels = images[rows].reshape(len(rows), -1) / 255.0
    n_components = min(50, *pixels.shape)
    return np.asarray(PCA(n_components, random_state=0).fit_transform(pixels))


def _umap(X: Array) -> Array:
    if find_spec("umap") is None:
        raise Unavailable("umap-learn is not installed: pip install outsample-lab[bench]")
    import umap

    reducer: Any = umap.UMAP(random_state=0, n_jobs=1)
    return np.asarray(reducer.fit_transform(X), dtype=np.float64)


def _isomap(X: Array, **parameters: int) -> Array:
    return np.asarray(Isomap(**parameters).fit_transform(X))


def _lle(X: Array) -> Array:
    return np.asarray(LocallyLinearEmbedding(n_neighbors=12, random_state=0).fit_transform(X))


_isomap_15, _isomap_10 = partial(_isomap, n_neighbors=15), partial(_isomap, n_neighbors=10)
_isomap_5d = partial(_isomap, n_components=5)
_swiss, _s_curve = partial(_sheet, "swiss_roll"), partial(_sheet, "s_curve")


def _made(points: Points, embed: Callable[[Array], Array], folder: Path | None) -> Pair:
    X = points(folder)
    return X, embed(X)


def _map(
    name: str, title: str, kind: str, target: float | None, points: Points,
    embed: Callable[[Array], Array], minutes: float,
) -> MapSpec:  # fmt: skip
    return MapSpec(name, title, kind, target, partial(_made, points, embed), minutes)


# The maps, from the fastest to the slowest.
MAPS: tuple[MapSpec, ...] = (
    MapSpec("sphere-900", "sphere, 900", SPHERE, 1e-5, partial(_sphere, 30), 0.15),
    MapSpec("sphere-2500", "sphere, 2500", SPHERE, 3e-6, partial(_sphere, 50), 0.2),
    _map("digits-tsne", "digits t-SNE", "tsne", 0.0255, _digits, tsne, 0.35),
    _map("digits-umap", "digits UMAP", "umap", 0.0135, _digits, _umap, 0.6),
    _map("digits-isomap", "digits Isomap", "isomap", 0.081, _digits, _isomap, 0.3),
    _map("digits-isomap-5d", "digits Isomap 5-D", "isomap", 0.105, _digits, _isomap_5d, 0.3),
    _map(
        "digits-diffusion", "digits diffusion 5-D", "diffusion", 0.017, _digits, diffusion_map, 0.4
    ),
    _map("swiss-isomap", "swiss roll Isomap", "isomap", 0.0033, _swiss, _isomap_15, 0.45),
    _map("swiss-lle", "swiss roll LLE", "lle", 0.0001, _swiss, _lle, 0.4),
    _map("s-isomap", "s-curve Isomap", "isomap", 0.0031, _s_curve, _isomap_15, 0.45),
    _map("mnist-tsne", "MNIST t-SNE", "tsne", None, _mnist, tsne, 2.5),
    _map("mnist-umap", "MNIST UMAP", "umap", None, _mnist, _umap, 3.5),
    _map("mnist-isomap", "MNIST Isomap", "isomap", None, _mnist, _isomap_10, 3.0),
    _map("mnist-diffusion", "MNIST diffusion 5-D", "diffusion", None, _mnist, diffusion_map, 3.0),
)
QUICK = ("sphere-900", "digits-isomap", "digits-diffusion")  # Maps of the short run
