"""Results of every estimator on many small cases, for `test_recording.py`.

``python tests/recording.py`` writes ``tests/data/recording.npz``, the results that the code must
reproduce. Record again only after a change that is meant to change results, and state in the commit
which cases changed and why.
"""

from __future__ import annotations

import platform
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

import outsample
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
)

FILE = Path(__file__).parent / "data" / "recording.npz"
Answers = dict[str, np.ndarray]
NAMES = {
    "InverseDistance(power=2.0)": "distance",
    "Tangent()": "tangent",
    "LocalTangent()": "local_tangent",
    "SplitTangent()": "split_tangent",
}


def machine() -> str:
    """Return what bit-identical results depend on: the processor and the library versions."""
    import numba
    import scipy
    import sklearn

    processor = platform.machine()
    try:
        with open("/proc/cpuinfo") as lines:
            processor += "".join(line for line in lines if line.startswith(("model name", "flags")))
    except OSError:
        processor += platform.processor()
    versions = [np.__version__, scipy.__version__, sklearn.__version__, numba.__version__]
    return " ".join([str(hash_of(processor)), *versions])


def hash_of(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()[:16]


# The maps.


def sphere(n_per_axis: int = 20) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    axis = np.linspace(0.0, np.pi, n_per_axis)
    X = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    Q = np.random.default_rng(1).uniform(0, np.pi, (12, 2))
    phi, theta = X.T
    Y = np.column_stack([np.sin(phi) * np.cos(theta), np.sin(phi) * np.sin(theta), np.cos(phi)])
    return X, Y, np.vstack([Q, X[7:8], [[9.0, -9.0]]])


def roll(n: int = 300) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(2)
    angle, height = random.uniform(4.5, 14, n + 12), random.uniform(0, 20, n + 12)
    X = np.column_stack([angle * np.cos(angle), height, angle * np.sin(angle)])
    Y = np.column_stack([angle**2 / 2, height])
    return X[:n], Y[:n], np.vstack([X[n:], X[:1], X[:1] + 100])


def torn(n: int = 300) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    X = random.normal(size=(n + 12, 5))
    side = np.sign(X[:, :1]) * np.array([[10.0, 3.0]])
    Y = np.column_stack([X[:, 1], X[:, 2] ** 2]) + side + 0.05 * random.normal(size=(n + 12, 2))
    return X[:n], Y[:n], np.vstack([X[n:], X[3:4], X[3:4] * 50])


def digits(n: int = 250) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    X = load_digits().data
    ramp = np.arange(64.0)
    Y = np.column_stack([(X * np.sin(ramp)).sum(axis=1), (X * np.cos(ramp / 3)).sum(axis=1) ** 2])
    return X[:n], Y[:n], np.vstack([X[n : n + 12], X[:1], 10 * X[1:2]])


def copies() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, Y, Q = torn(60)
    return np.vstack([X, X[:20], X[:20]]), np.vstack([Y, Y[:20] + 1, Y[:20] + 2]), Q


def counts(n: int = 300) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X = np.random.default_rng(4).poisson(1.0, (n + 12, 6)).astype(float)
    Y = np.column_stack([X[:, 0] + X[:, 1], X[:, 2] - X[:, 3]])
    return X[:n], Y[:n], np.vstack([X[n:], X[:1] + 0.25, X[:1] * 30])


# Recorded results of an estimator.


def words(weighting: Any) -> str:
    """Return the same text for a weighting given by name or as an object."""
    if isinstance(weighting, str):
        return weighting
    function = getattr(weighting, "function", weighting)
    if hasattr(function, "__name__"):
        return f"function {function.__name__}"
    return NAMES.get(repr(weighting), repr(weighting))


def trial_words(placer: Any) -> str:
    return f"{words(placer.weighting)} {placer.order} {placer.loss}"


class Case(NamedTuple):
    """A function that returns a fitted estimator with queries, and one that returns its results."""

    fit: Callable[[], tuple[Any, Any]]
    answers: Callable[[Any, Any], Answers]

    def __call__(self) -> Answers:
        return self.answers(*self.fit())


def extended(fitted: PCAExtension, Q: Any) -> Answers:
    """Return placement, transform, settings and selection table of a `PCAExtension`."""
    answers = {f"place.{k}": v for k, v in fitted.place(Q)._asdict().items()}
    answers["transform"] = fitted.transform(Q)
    answers["one"] = fitted.transform(Q[2:3])
    settings = words(fitted.weighting_), fitted.n_neighbors_, fitted.order_, fitted.loss_
    answers["chosen"] = np.array(" ".join(map(str, settings)))
    numbers = [fitted.loo_error_, fitted.lipschitz_, fitted.manifold_dim_, fitted.curvature_]
    answers["numbers"] = np.array(numbers, dtype=float)
    answers["tried"] = np.array([trial_words(trial.placer) for trial in fitted.selection_])
    answers["errors"] = np.array([[trial.error, trial.n_rows] for trial in fitted.selection_])
    return answers


def transformed(*names: str) -> Callable[[Any, Any], Answers]:
    """Return a function that records coordinates and the named fitted attributes."""

    def answers(fitted: Any, Q: Any) -> Answers:
        values = {"transform": fitted.transform(Q)}
        return values | {name: np.asarray(getattr(fitted, name), dtype=float) for name in names}

    return answers


def fitted_to(estimator: Any, X: Any, Y: Any, Q: Any) -> tuple[Any, Any]:
    """Fit an estimator, without Y if there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return (estimator.fit(X) if Y is None else estimator.fit(X, Y)), Q


def judged(fitted: NoveltyDetector, Q: Any) -> Answers:
    """Return scores, p-values, labels and reasons of a detector, and its placement if any."""
    explanations = fitted.explain(Q)
    answers = {
        "abnormality": fitted.abnormality(Q),
        "p_values": fitted.p_values(Q),
        "predict": fitted.predict(Q),
        "scores": fitted.scores_[::7],
        "offset": np.array(fitted.offset_),
        "reasons": np.array([np.ravel(list(item.reasons.values())) for item in explanations]),
        "rows": np.array([item.neighbors for item in explanations]),
    }
    if fitted.extension_ is not None:
        placed = fitted.place(Q)._asdict()
        answers |= {f"place.{name}": value for name, value in placed.items()}
    return answers


def inverse_cube(r: np.ndarray) -> np.ndarray:
    return 1 / np.maximum(r, 1e-9) ** 3


def cases() -> dict[str, Case]:
    """Return every case by name; each call creates its data again."""
    cases_by_name: dict[str, Case] = {}

    def add(name: str, data: Callable[[], Any], **parameters: Any) -> None:
        cases_by_name[name] = Case(lambda: fitted_to(PCAExtension(**parameters), *data()), extended)

    paper = {"order": 0, "loss": "squared"}
    for weighting in ("distance", "tangent", "split_tangent", "local_tangent"):
        add(f"sphere {weighting} ball", sphere, weighting=weighting, radius=0.4, **paper)
        add(f"roll {weighting}", roll, weighting=weighting, n_neighbors=10, **paper)
        add(f"torn {weighting} absolute", torn, weighting=weighting, n_neighbors=8, order=0,
            loss="absolute")  # fmt: skip
    add("roll local_tangent open", roll, weighting="local_tangent", **paper)
    small = {"weighting": "tangent", "tangent_radius": 0.25}
    add("sphere tangent eps1", sphere, radius=0.4, **small, **paper)
    add("roll split curvature", roll, weighting="split_tangent", tangent_dim=1, curvature=2.0,
        n_neighbors=9, **paper)  # fmt: skip
    for order in (1, 2):
        for loss in ("squared", "absolute"):
            add(f"roll order {order} {loss}", roll, weighting="tangent", order=order, loss=loss,
                n_neighbors=20, tangent_dim=2)  # fmt: skip
    add("sphere order open", sphere, weighting="distance", order=2)
    add("torn power", torn, weighting=InverseDistance(6.0), n_neighbors=7, **paper)
    add("torn gaussian", torn, weighting=GaussianDistance(0.35), order=0, loss="absolute")
    add("torn function", torn, weighting=inverse_cube, n_neighbors=6, lipschitz=3.0, **paper)
    for kind in ("linear", "matern52", "gaussian"):
        add(f"roll correlated {kind}", roll, weighting=Correlated(kind, 4.0, 1e-6), n_neighbors=20)
        add(f"roll process {kind}", roll, weighting=Correlated(kind, 4.0, 1e-6), n_neighbors=300)
    add("roll correlated drift", roll, weighting=Correlated("linear", 1.0, 0.0), n_neighbors=20,
        order=1, tangent_dim=2, loss="squared")  # fmt: skip
    add("torn correlated consensus", torn, weighting=Correlated("linear", 1.0, 0.0),
        n_neighbors=20, order=0, loss="absolute")  # fmt: skip
    add("torn correlated named", torn, weighting="correlated")
    add("roll diffusion", roll, weighting=Diffusion(2.0))
    add("roll diffusion named", roll, weighting="diffusion")
    for name, data in (("sphere", sphere), ("roll", roll), ("torn", torn), ("digits", digits)):
        add(f"{name} auto", data)
    add("roll auto larger", lambda: roll(1200))
    add("torn auto larger", lambda: torn(1500))
    add("roll auto two threads", roll, n_jobs=2)
    add("roll auto ball", roll, radius=3.0)
    add("copies auto", copies)
    add("counts auto", counts)
    add("digits cosine", digits, metric="cosine", weighting="distance", n_neighbors=6, **paper)
    add("digits cosine auto", digits, metric="cosine")
    add("digits brute", digits, index="brute", weighting="tangent", n_neighbors=9, **paper)

    def converted(data: Callable[[], Any], change: Callable[[Any], Any]) -> Callable[[], Any]:
        def make() -> Any:
            X, Y, Q = data()
            return change(X), Y, change(Q)

        return make

    narrow = converted(roll, lambda X: X.astype(np.float32))

    def with_empty_columns(X: Any) -> Any:
        """Return sparse points with enough columns to stay sparse."""
        points = sparse.csr_matrix(X)
        points.resize(len(X), 100)
        return points

    thin = converted(digits, with_empty_columns)
    add("roll float32", narrow, weighting="tangent", n_neighbors=10, **paper)
    add("roll float32 auto", narrow)
    add("digits sparse", thin, weighting="distance", n_neighbors=6, **paper)
    add("digits sparse auto", thin)
    add("digits sparse correlated", thin, weighting=Correlated("linear"), n_neighbors=10)

    for name, data in (("roll", roll), ("digits", digits)):
        for extension, listed in (
            (NystroemExtension(), ("bandwidth_", "eigenvalues_")),
            (NystroemExtension(n_components=9, bandwidth=50.0), ("condition_",)),
            (GeometricHarmonics(), ("bandwidth_", "condition_")),
            (LaplacianPyramids(), ("scales_", "errors_")),
            (LaplacianPyramids(stop="tolerance"), ("scales_", "errors_")),
            (MultiscaleExtension(), ("scales_", "errors_")),
        ):
            cases_by_name[f"{name} {extension!r}"] = Case(
                lambda e=extension, d=data: fitted_to(e, *d()), transformed(*listed)
            )
    cases_by_name["digits sparse Nystroem"] = Case(
        lambda: fitted_to(NystroemExtension(), *thin()), transformed()
    )
    for name, data in (("sphere", sphere), ("torn", torn)):
        for maps in (DiffusionMaps(n_components=3), DiffusionMaps(n_neighbors=20, t=2)):
            cases_by_name[f"{name} {maps!r}"] = Case(
                lambda m=maps, d=data: fitted_to(m, d()[0], None, d()[2]),
                transformed("embedding_", "eigenvalues_", "bandwidth_"),
            )

    def isomap() -> tuple[Any, Any]:
        from sklearn.manifold import Isomap

        X, _, Q = roll()
        with threadpool_limits(1):  # Isomap's result depends on the number of threads
            return fitted_to(Extended(Isomap(n_neighbors=8, eigen_solver="dense")), X, None, Q)

    cases_by_name["roll Extended Isomap"] = Case(isomap, transformed())
    fixed = PCAExtension(weighting="tangent", n_neighbors=8, **paper)
    ball = PCAExtension(weighting="distance", radius=3.0, **paper)
    angle = PCAExtension(metric="cosine", weighting="distance", n_neighbors=6, **paper)
    for name, data, detector, has_map in (
        ("torn plain", torn, NoveltyDetector(), False),
        ("roll plain", roll, NoveltyDetector(), False),
        ("counts plain", counts, NoveltyDetector(), False),
        ("digits sparse", thin, NoveltyDetector(), False),
        ("digits cosine", digits, NoveltyDetector(angle), False),
        ("torn split", torn, NoveltyDetector(calibration="split"), False),
        ("torn map", torn, NoveltyDetector(fixed), True),
        ("torn split map", torn, NoveltyDetector(fixed, calibration="split"), True),
        ("roll ball map", roll, NoveltyDetector(ball), True),
        ("roll auto map", roll, NoveltyDetector(), True),
        ("roll float32 map", narrow, NoveltyDetector(fixed), True),
        ("digits cosine map", digits, NoveltyDetector(angle), True),
    ):

        def fit(data: Any = data, detector: Any = detector, has_map: bool = has_map) -> Any:
            X, Y, Q = data()
            return fitted_to(detector, X, Y if has_map else None, Q)

        cases_by_name[f"detector {name}"] = Case(fit, judged)
    return cases_by_name


def main() -> None:
    answers = {"machine": np.array(machine()), "version": np.array(outsample.__version__)}
    for name, case in cases().items():
        print(name, file=sys.stderr)
        answers |= {f"{name}/{part}": value for part, value in case().items()}
    FILE.parent.mkdir(exist_ok=True)
    np.savez_compressed(FILE, **answers)
    print(f"{len(cases())} cases, {FILE.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
