"""Every estimator in each of its configurations, with one interface for the laws."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone

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
from outsample.placers.blend import Blend
from outsample.placers.local import LocalPlacer
from outsample.placers.neighbor_loss import NeighborLoss
from outsample.placers.two_levels import TwoLevels

PAPER = {"order": 0, "loss": "squared"}
LENGTHS = ("radius", "tangent_radius")


class GivenMap(BaseEstimator):
    """An embedding that returns its y, so that `Extended` has a known map."""

    def fit_transform(self, X, y=None):
        return y


class Subject(NamedTuple):
    """One estimator.

    `group` is its row in the table of gaps. `atol` is the tolerance of its coordinates on a rough
    map of size 1; it is larger where one linear system is solved for all points.
    """

    estimator: Any
    group: str
    atol: float
    is_sparse: bool = False
    is_cosine: bool = False

    @property
    def has_images(self) -> bool:
        return self.group not in ("diffusion map", "detector")

    @property
    def judges(self) -> bool:
        return self.group.startswith("detector")

    @property
    def places(self) -> bool:
        kernel = getattr(self.estimator, "extension", None) is not None and not isinstance(
            self.estimator.extension, PCAExtension
        )
        return self.has_images and self.group != "kernel" and not kernel


def inverse_cube(r):
    return r**-3.0


def weighted(weighting, n_neighbors=7, order=0, loss="squared", **parameters):
    return PCAExtension(
        weighting=weighting, n_neighbors=n_neighbors, order=order, loss=loss, **parameters
    )


def kriging(covariance, nugget=1e-6, order=0, loss="squared"):
    return weighted(Correlated(covariance, 2.0, nugget), 12, order, loss, tangent_dim=2)


def group(name, atol, **estimators):
    subjects = {key: Subject(estimator, name, atol) for key, estimator in estimators.items()}
    return {key.replace("_", " "): subject for key, subject in subjects.items()}


TANGENT = weighted("tangent")
BLEND = Blend(
    (
        LocalPlacer(InverseDistance(4.0), 5, 0, "absolute", 1),
        LocalPlacer(Correlated("matern52", 2.0, 1e-6), 9, 0, "squared", 1),
    ),
    (0.625, 0.375),
)
SUBJECTS: dict[str, Subject] = {
    **group("auto", 1e-6, defaults=PCAExtension()),
    **group(
        "scalar", 1e-8,
        distance=weighted("distance"),
        function=weighted(inverse_cube, 5),
        power=weighted(InverseDistance(4.0)),
        gaussian_distance=weighted(GaussianDistance(0.5)),
    ),
    **group(
        "tangent", 1e-8,
        tangent=TANGENT,
        local_tangent=weighted("local_tangent"),
        split_tangent=weighted("split_tangent"),
        ball=PCAExtension(weighting="tangent", radius=0.6, tangent_radius=0.4, **PAPER),
        ball_local=PCAExtension(weighting="local_tangent", radius=0.6, **PAPER),
        brute=weighted("tangent", index="brute"),
        approximate=weighted("tangent", index="approximate"),  # exact for so few points
    ),
    **group(
        "median", 1e-8,
        absolute=weighted("distance", loss="absolute"),
        absolute_tangent=weighted("tangent", loss="absolute"),
        gaussian_median=weighted(GaussianDistance(0.5), loss="absolute"),
    ),
    **group(
        "polynomial", 1e-6,
        order_1=weighted("distance", 9, 1, tangent_dim=2),
        order_1_tangent=weighted("tangent", 9, 1, tangent_dim=2),
        order_1_absolute=weighted("distance", 9, 1, "absolute", tangent_dim=2),
        gaussian_order_1=weighted(GaussianDistance(1.0), 9, 1, tangent_dim=2),
        correlated_order_1=kriging("matern52", order=1),
    ),
    # Ten terms from twenty neighbours: rounding errors reach 4e-6 even on smooth maps.
    "order 2": Subject(weighted("distance", 20, 2, tangent_dim=3), "polynomial", 1e-4),
    **group(
        "correlated", 1e-8,
        affine=kriging("affine", nugget=1e-2),
        linear=kriging("linear", nugget=0.0),
        matern52=kriging("matern52"),
        gaussian=kriging("gaussian"),
        correlated_absolute=kriging("linear", nugget=0.0, loss="absolute"),
    ),
    **group(
        "all points", 1e-6,
        process=kriging("matern52"),
        process_linear=kriging("linear", nugget=0.0),
        diffusion=PCAExtension(weighting=Diffusion(1.0)),
    ),
    **group(
        "blend", 1e-6,
        blend=PCAExtension(weighting=BLEND),
        blend_over_all=PCAExtension(
            weighting=Blend((Diffusion(1.0), *BLEND.parts), (0.5, 0.25, 0.25))
        ),
    ),
    **group(
        "two levels", 1e-6,
        two_levels=PCAExtension(
            weighting=TwoLevels("matern52", 2.0, 1e-6, n_landmarks=6, n_neighbors=9)
        ),
        two_levels_diffusion=PCAExtension(
            weighting=TwoLevels("diffusion", 2.0, 1e-9, n_landmarks=6, n_neighbors=9)
        ),
        two_levels_analytic=PCAExtension(
            weighting=TwoLevels("gaussian", 1.0, 1e-6, 0.5, n_neighbors=9)
        ),
    ),
    **group(
        "neighbor loss", 1e-4,
        neighbor_loss=PCAExtension(weighting=NeighborLoss(3.0, 0.5)),
    ),
    "cosine": Subject(weighted("distance", metric="cosine"), "scalar", 1e-8, is_cosine=True),
    "sparse": Subject(TANGENT, "tangent", 1e-8, is_sparse=True),
    **group(
        "extended", 1e-8,
        extended=Extended(GivenMap(), TANGENT),
    ),
    **group(
        "kernel", 1e-6,
        nystroem=NystroemExtension(),
        nystroem_few=NystroemExtension(n_components=12),
        harmonics=GeometricHarmonics(),
        pyramids=LaplacianPyramids(),
        pyramids_tolerance=LaplacianPyramids(stop="tolerance"),
        multiscale=MultiscaleExtension(),
        extended_nystroem=Extended(GivenMap(), NystroemExtension()),
    ),
    **group(
        "diffusion map", 1e-6,
        maps=DiffusionMaps(),
        maps_sparse=DiffusionMaps(n_neighbors=8),
    ),
    **group(
        "detector", 1e-5,
        detector=NoveltyDetector(),
        detector_split=NoveltyDetector(calibration="split"),
    ),
    **group(
        "detector with map", 1e-5,
        detector_map=NoveltyDetector(TANGENT),
        detector_split_map=NoveltyDetector(TANGENT, calibration="split"),
    ),
}  # fmt: skip


def as_points(name, X):
    """Return the points; for cosine distance with a column of ones, so that directions differ."""
    if SUBJECTS[name].is_cosine:
        return np.column_stack([X, np.ones(len(X))])
    return X


def sparse_stays():
    """Fit sparse points of few columns as those of many are fitted: as they are."""
    return patch("outsample._validation.MIN_SPARSE_COLUMNS", 0)


def as_container(name, X):
    return sparse.csr_matrix(X) if SUBJECTS[name].is_sparse else X


def fit(name, X, Y, **changes):
    """Return a fitted clone, its neighbourhoods and dimensions limited to the size of X."""
    subject = SUBJECTS[name]
    model = clone(subject.estimator)
    n, D = X.shape
    upper_limits = {"n_neighbors": n, "tangent_dim": D}
    if getattr(model, "calibration", None) == "split":
        upper_limits["n_neighbors"] = n // 2
    if subject.group == "correlated":
        upper_limits["n_neighbors"] = n - 1  # with all points it is a Gaussian process
    if subject.group == "diffusion map":
        upper_limits = {"n_neighbors": n - 1, "n_components": n - 1}
    parameters = model.get_params()
    # Of a detector with an extension inside, its own parameter counts first.
    names = {key.split("__")[-1]: key for key in reversed(parameters)}
    for parameter, largest in upper_limits.items():
        key = names.get(parameter)
        if key and isinstance(parameters[key], int):
            model.set_params(**{key: min(parameters[key], largest)})
    if name.startswith("process"):
        model.set_params(n_neighbors=n)
    for parameter, value in changes.items():
        assert parameter in names, f"{name} has no {parameter}"
        model.set_params(**{names[parameter]: value})
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The kernel falls")
        with sparse_stays() if subject.is_sparse else nullcontext():
            return model.fit(as_container(name, X), Y if subject.has_images else None)


def learned_rows(model, X):
    """Return the rows of X that the map was fitted on."""
    return getattr(model, "training_rows_", np.arange(len(X)))


def coordinates(name, model, Q):
    """Return the coordinates of queries."""
    Q = as_container(name, Q)
    return model.transform(Q) if hasattr(model, "transform") else model.place(Q).coordinates


def answers(name, model, Q):
    """Return all results for queries, by name: arrays with one row per query."""
    subject, Q = SUBJECTS[name], as_container(name, Q)
    results = {}
    if hasattr(model, "transform"):
        results["transform"] = model.transform(Q)
    if subject.places:
        results |= model.place(Q)._asdict()
    if subject.judges:
        results |= {"score": model.abnormality(Q), "p": model.p_values(Q)}
        results["label"] = model.predict(Q)
    return results


def main_result(name, model, Q):
    """Return coordinates; for a detector without a map, abnormality scores."""
    if SUBJECTS[name].group == "detector":
        return model.abnormality(as_container(name, Q))[:, None]
    return coordinates(name, model, Q)
