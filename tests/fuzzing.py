"""Random cases for every public estimator, each generated from one number, and their checks.

`failure(draw(number))` is None or a description of the failure; ``python tests/fuzzing.py number``
runs a case again and prints it.
"""

from __future__ import annotations

import pickle
import re
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin

from laws.subjects import sparse_stays
from outsample import (
    Correlated,
    Diffusion,
    DiffusionMaps,
    Extended,
    GaussianDistance,
    GeometricHarmonics,
    InverseDistance,
    LaplacianPyramids,
    MultiscaleExtension,
    NoveltyDetector,
    NystroemExtension,
    PCAExtension,
    load,
    save,
)

# Sparse training points with dense queries, and the other way round.
MIXED = True


class FirstColumn(TransformerMixin, BaseEstimator):
    """An embedding that cannot fail: the first column of the points."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit_transform(self, X, y=None):
        return X[:, [0]].toarray() if sparse.issparse(X) else X[:, :1]


PAPER = {"order": 0, "loss": "squared"}
# Estimators by their names in a recipe.
MODELS: dict[str, Callable[[], Any]] = {
    "pca": lambda: PCAExtension(),
    "distance": lambda: PCAExtension(weighting="distance", n_neighbors=2, **PAPER),
    "inverse": lambda: PCAExtension(weighting=InverseDistance(3.0), n_neighbors=2, **PAPER),
    "gaussian distance": lambda: PCAExtension(weighting=GaussianDistance(0.5), order=0),
    "tangent": lambda: PCAExtension(weighting="tangent", **PAPER),
    "local tangent": lambda: PCAExtension(weighting="local_tangent", **PAPER),
    "split tangent": lambda: PCAExtension(weighting="split_tangent", **PAPER),
    "ball": lambda: PCAExtension(weighting="tangent", radius=0.5, tangent_radius=0.7, **PAPER),
    "order 1": lambda: PCAExtension(weighting="distance", order=1, loss="squared"),
    "order 2": lambda: PCAExtension(weighting="tangent", order=2, loss="absolute"),
    "absolute": lambda: PCAExtension(weighting="distance", order=0, loss="absolute"),
    "cosine": lambda: PCAExtension(metric="cosine"),
    "brute": lambda: PCAExtension(weighting="distance", index="brute"),
    "approximate": lambda: PCAExtension(weighting="distance", index="approximate"),
    "correlated": lambda: PCAExtension(weighting="correlated"),
    "linear": lambda: PCAExtension(weighting=Correlated("linear", 2.0, 0.0), order=1),
    "process": lambda: PCAExtension(weighting=Correlated("matern52", 2.0, 1e-6), **PAPER),
    "diffusion": lambda: PCAExtension(weighting="diffusion"),
    "diffusion length": lambda: PCAExtension(weighting=Diffusion(1.0)),
    "nystroem": lambda: NystroemExtension(),
    "nystroem 2": lambda: NystroemExtension(n_components=2, alpha=0.5),
    "harmonics": lambda: GeometricHarmonics(),
    "harmonics 1": lambda: GeometricHarmonics(bandwidth=1.0),
    "pyramids": lambda: LaplacianPyramids(),
    "pyramids tolerance": lambda: LaplacianPyramids(stop="tolerance", initial_scale=1.0),
    "multiscale": lambda: MultiscaleExtension(),
    "multiscale 1": lambda: MultiscaleExtension(initial_scale=1.0),
    "maps": lambda: DiffusionMaps(n_components=1),
    "maps 2": lambda: DiffusionMaps(n_components=2, t=0, alpha=0.5),
    "maps sparse": lambda: DiffusionMaps(n_components=2, n_neighbors=3),
    "maps 1": lambda: DiffusionMaps(n_components=1, bandwidth=1.0),
    "extended": lambda: Extended(FirstColumn()),
    "extended maps": lambda: Extended(DiffusionMaps(n_components=1), NystroemExtension()),
    "novelty": lambda: NoveltyDetector(),
    "novelty split": lambda: NoveltyDetector(calibration="split"),
    "novelty map": lambda: NoveltyDetector(),
    "novelty ball": lambda: NoveltyDetector(PCAExtension(radius=0.5)),
    "novelty extended": lambda: NoveltyDetector(Extended(FirstColumn())),
}
NO_IMAGES = ("maps", "extended", "novelty")
WITH_IMAGES = ("novelty map", "novelty ball")


def takes_images(name: str) -> bool:
    """Return whether a model is fitted to points and images, or to points alone."""
    return name in WITH_IMAGES or not name.startswith(NO_IMAGES)


TYPES = ("float64", "float64", "float64", "float32", "int64", "int8", "bool", "object")
CONTAINERS = ("array", "array", "list", "frame", "fortran", "strided", "read-only", "memmap")
FORMATS = ("csr", "csc", "coo")
SHAPES = (
    "normal", "normal", "uniform", "grid", "duplicates", "few places", "equal", "constant column",
    "collinear", "heavy tails", "shifted", "zeros",
)  # fmt: skip
IMAGES = ("smooth", "smooth", "noise", "constant", "grid", "shifted", "heavy tails", "labels")

# Messages that state what is wrong with the input; every other exception is a failure.
EXPECTED_MESSAGES = (
    r"Input (X|y) has an entry of size .* can be handled; scale it down\.",
    r"n_components is \d+, but \d+ points have at most \d+\.",
    r"n_neighbors is \d+, but must be an integer from 1 to \d+\.",
    r"Input X: row \d+ is all zeros; metric='cosine' needs a direction\.",
    r"Found array with \d+ sample\(s\) .* while a minimum of \d+ is required",
    r"index is 'approximate', but must be one of 'auto', 'brute' for sparse X",
    r"order is \d, but must be 0 or 'auto' for sparse X and for metric='cosine'",
    r"weighting='diffusion' uses all training points and needs dense X",
)
COMPILER = re.compile(r"numba|nopython|njit|typingerror|traceback|signature", re.IGNORECASE)


class Case(NamedTuple):
    """One case: the model, the sizes, and how points, images and queries look."""

    number: int
    model: str
    n: int
    D: int
    d: int
    q: int
    shape: str
    images: str
    X_size: float
    Y_size: float
    Q_size: float
    X_type: str
    Y_type: str
    Q_type: str
    X_container: str
    Y_container: str
    Q_container: str

    @property
    def recipe(self) -> str:
        """Return one line with the command that runs the case again, and its parameters."""
        drawn = ", ".join(f"{name}={value!r}" for name, value in self._asdict().items())
        return f"python tests/fuzzing.py {self.number}  # {drawn}"


def draw(number: int) -> Case:
    """Return the case of a number; models alternate, so that consecutive numbers cover all."""
    rng = np.random.default_rng(number)
    choose = rng.choice
    names = list(MODELS)
    model = names[number % len(names)]
    is_sparse = rng.random() < 0.2
    containers = [str(choose(CONTAINERS)) for _ in range(3)]
    mixed = MIXED and rng.random() < 0.5
    if is_sparse:
        containers[0] = str(choose(FORMATS))
    if is_sparse != mixed:
        containers[2] = str(choose(FORMATS))
    x_size = _size(rng)
    return Case(
        number, model, int(rng.integers(2, 61)), int(rng.integers(1, 9)), int(rng.integers(1, 5)),
        int(rng.integers(1, 8)), str(choose(SHAPES)), str(choose(IMAGES)),
        x_size, _size(rng), x_size if rng.random() < 0.6 else _size(rng),
        *(str(choose(TYPES)) for _ in range(3)), *containers,
    )  # fmt: skip


def _size(rng: np.random.Generator) -> float:
    """Return 1 or a power of ten from the whole range, including subnormal numbers."""
    kind = rng.random()
    if kind < 0.3:
        return 1.0
    low, high = ((-323.0, 300.0), (-323.0, -290.0), (150.0, 160.0), (-20.0, 20.0), (285.0, 300.0))[
        int(rng.integers(5))
    ]
    return float(10 ** rng.uniform(low, high))


def _points(case: Case, rng: np.random.Generator) -> np.ndarray:
    """Return points (n, D) of size 1."""
    n, D = case.n, case.D
    X = rng.normal(size=(n, D)) / 4
    match case.shape:
        case "uniform":
            X = rng.uniform(-1, 1, size=(n, D))
        case "grid":
            X = rng.integers(-2, 3, size=(n, D)) / 2
        case "duplicates":
            X[rng.integers(n, size=n // 2)] = X[0]
        case "few places":
            X = X[rng.integers(min(3, n), size=n)]
        case "equal":
            X[:] = X[0]
        case "constant column":
            X[:, rng.integers(D)] = 0.5
        case "collinear":
            X = rng.uniform(-1, 1, size=(n, 1)) * rng.uniform(-1, 1, size=D)
        case "heavy tails":
            X = np.exp(3 * rng.normal(size=(n, D)))
            X /= X.max()
        case "shifted":
            X = rng.uniform(-1, 1, size=D) + X * 10 ** rng.uniform(-16, -3)
        case "zeros":
            X[rng.random(X.shape) < 0.7] = 0.0
    return X


def _images(case: Case, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return images (n, d) or (n,) of size 1."""
    Y = np.sin(X @ rng.normal(size=(case.D, case.d))) / 2
    match case.images:
        case "noise":
            Y = rng.uniform(-1, 1, size=Y.shape)
        case "constant":
            Y[:] = Y[0]
        case "grid":
            Y = np.round(2 * Y) / 2
        case "shifted":
            Y = 0.7 + Y * 10 ** rng.uniform(-16, -3)
        case "heavy tails":
            Y = np.exp(3 * rng.normal(size=Y.shape))
            Y /= Y.max()
        case "labels":
            Y = Y[:, 0]
    return Y


def _typed(values: np.ndarray, size: float, name: str, counts: bool) -> np.ndarray:
    """Return values times a size that the type can represent; integers are at most 100."""
    if name == "bool":
        return values > 0
    if name in ("int64", "int8"):
        return np.clip(np.round(values * (100 if counts else 3)), -100, 100).astype(name)
    if name == "float32":
        size = min(max(size, 1e-44), 1e38)
    with np.errstate(over="ignore", under="ignore"):
        values = np.clip(values * size, -1e300, 1e300)
        if name == "float32":
            return np.clip(values, -3e38, 3e38).astype(name)
    return values.astype(name)


def _contained(values: np.ndarray, container: str) -> Any:
    """Return the array in its container."""
    match container:
        case "list":
            return values.tolist()
        case "frame":
            return pd.DataFrame(values)
        case "fortran":
            return np.asfortranarray(values)
        case "strided":
            return np.repeat(values, 2, axis=0)[::2]
        case "read-only":
            values.flags.writeable = False
        case "memmap" if values.dtype != object:
            with tempfile.NamedTemporaryFile(suffix=".bin") as file:
                mapped = np.memmap(file.name, values.dtype, "w+", shape=values.shape)
            mapped[...] = values
            return mapped
        case "csr" | "csc" | "coo":
            numbers = values.astype(np.float64) if values.dtype == object else values
            return sparse.csr_array(np.atleast_2d(numbers)).asformat(container)
    return values


def data(case: Case) -> tuple[Any, Any, Any]:
    """Return points, images and queries in their containers; some queries are points."""
    rng = np.random.default_rng((case.number, 1))
    points = _points(case, rng)
    images = _images(case, points, rng)
    queries = points[rng.integers(case.n, size=case.q)].copy()
    moved = rng.random(case.q) < 0.7
    queries[moved] += rng.normal(size=(int(moved.sum()), case.D)) * 10 ** rng.uniform(-9, 1)
    counts = rng.random() < 0.5
    X = _typed(points, case.X_size, case.X_type, counts)
    Y = _typed(images, case.Y_size, case.Y_type, counts)
    Q = _typed(queries, case.Q_size, case.Q_type, counts)
    return (
        _contained(X, case.X_container),
        _contained(Y, case.Y_container),
        _contained(Q, case.Q_container),
    )


def _rows(Q: Any, i: int) -> Any:
    """Return row i in the same kind of container."""
    if isinstance(Q, pd.DataFrame):
        return Q.iloc[i : i + 1]
    if sparse.issparse(Q):
        return Q.tocsr()[i : i + 1].asformat(Q.format)
    return Q[i : i + 1]


def answers(model: Any, Q: Any) -> dict[str, np.ndarray]:
    """Return all results of a model for queries, by name."""
    results = {}
    if hasattr(model, "transform"):
        results["transform"] = model.transform(Q)
    if isinstance(model, NoveltyDetector):
        results |= {"abnormality": model.abnormality(Q), "p": model.p_values(Q)}
        results["decision"] = model.decision_function(Q)
        results["predict"] = model.predict(Q)
        for explanation in model.explain(Q):
            str(explanation)
    can_place = getattr(model, "extension_", model) is not None and hasattr(model, "place")
    if can_place:
        results |= model.place(Q)._asdict()
    return results


def failure(case: Case) -> str | None:
    """Return what is wrong with a case, None if nothing is."""
    return outcome(case)[1]


def outcome(case: Case) -> tuple[bool, str | None]:
    """Return whether the case gave results and no error, and what is wrong, if anything."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        try:
            return True, _wrong(case)
        except (ValueError, TypeError, MemoryError) as error:
            return False, _unclear(error)
        except Exception as error:  # any other exception is a failure
            return False, f"{type(error).__name__}: {error}"


def _unclear(error: Exception) -> str | None:
    """Return the error, unless its message is one of `EXPECTED_MESSAGES`."""
    text = str(error)
    is_expected = any(re.search(pattern, text, re.DOTALL) for pattern in EXPECTED_MESSAGES)
    is_plain = type(error) in (ValueError, TypeError, MemoryError)
    if is_expected and is_plain and len(text) < 500 and not COMPILER.search(text):
        return None
    return f"{type(error).__name__}: {text[:300]}"


def _wrong(case: Case) -> str | None:
    X, Y, Q = data(case)
    model = MODELS[case.model]()
    if "process" in case.model:
        model.set_params(n_neighbors=case.n)
    with sparse_stays() if case.number % 2 else nullcontext():
        if takes_images(case.model):
            model.fit(X, Y)
        else:
            model.fit(X)
    before = pickle.dumps(model)
    results = answers(model, Q)
    if pickle.dumps(model) != before:
        return "a query changed the model"
    for name, values in results.items():
        if len(values) != case.q:
            return f"{name} has {len(values)} rows"
        if not np.isfinite(values).all():
            return f"{name} is not finite: {values!r}"
    for i in range(case.q):
        for name, values in answers(model, _rows(Q, i)).items():
            expected = results[name][i : i + 1]
            if values.dtype != expected.dtype or not np.array_equal(values, expected):
                return f"{name} of row {i} is {expected!r} in the batch, {values!r} alone"
    wrong = _wrong_coordinates(case, results) or _wrong_p_values(model, results)
    return wrong or _wrong_file(model, Q, results)


def _wrong_file(model: Any, Q: Any, results: dict[str, np.ndarray]) -> str | None:
    """Return how the results of a saved and loaded model differ, if they do."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.outsample"
        try:
            save(model, path)
        except TypeError as error:
            return None if "contains no code" in str(error) else str(error)
        for name, values in answers(load(path), Q).items():
            if values.dtype != results[name].dtype or not np.array_equal(values, results[name]):
                return f"{name} differs after loading"
    return None


def _wrong_coordinates(case: Case, results: dict[str, np.ndarray]) -> str | None:
    """Return what is wrong with the shape or dtype of the coordinates, if anything."""
    arrays = [results[name] for name in ("transform", "coordinates") if name in results]
    if len(arrays) == 2 and not np.array_equal(*arrays):
        return "transform and place differ"
    for values in arrays:
        columns = case.d if case.images != "labels" else 1
        if case.model.startswith(("maps", "extended", "novelty extended")):
            columns = 2 if case.model in ("maps 2", "maps sparse") else 1
        if values.shape != (case.q, columns):
            return f"coordinates have shape {values.shape}"
        if values.dtype not in (np.float64, np.float32):
            return f"coordinates are {values.dtype}"
        if values.dtype == np.float32 and case.Q_type != "float32":
            return "float32 for queries that are not"
    return None


def _wrong_p_values(model: Any, results: dict[str, np.ndarray]) -> str | None:
    if "p" not in results:
        return None
    p = results["p"]
    if p.min() < 1 / (len(model.scores_) + 1) or p.max() > 1:
        return f"p-values {p!r} are out of range"
    if "p_value" in results and not np.array_equal(p, results["p_value"]):
        return "p_values and place differ"
    return None


if __name__ == "__main__":
    for word in sys.argv[1:]:
        case = draw(int(word))
        print(case.recipe, outcome(case), sep="\n")
