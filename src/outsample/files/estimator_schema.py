"""Which estimators a model file may hold: their parameters, what they learnt, and what fits it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from outsample._validation import GENERATORS
from outsample.estimators.diffusion_maps import DiffusionMaps
from outsample.estimators.extended import Extended, NotKept
from outsample.estimators.harmonics import GeometricHarmonics
from outsample.estimators.multiscale import MultiscaleExtension
from outsample.estimators.novelty_detector import NoveltyDetector
from outsample.estimators.novelty_model import NoveltyModel
from outsample.estimators.nystroem import NystroemExtension
from outsample.estimators.pca_extension import PCAExtension
from outsample.estimators.pca_parameters import given_parameters
from outsample.estimators.pyramids import Candidate, LaplacianPyramids
from outsample.files import kinds
from outsample.files.kinds import (
    LARGEST_SCORE,
    Kind,
    Misfit,
    Scope,
    any_float,
    array,
    densities,
    flag,
    images,
    listed,
    one_of,
    optional,
    points,
    real,
    rows_of,
    size,
    whole,
)  # fmt: skip
from outsample.files.placer_schema import PLACERS, WEIGHTINGS
from outsample.files.schema import FIELDS, LAWS, is_a, part_fits, positive
from outsample.files.trust_schema import WALKS
from outsample.kernel.bandwidth import Choice
from outsample.kernel.fixed_walk import FixedWalk
from outsample.kernel.units import MapUnit, PointUnit
from outsample.neighbors.distinct import Distinct
from outsample.placers.map_model import MapModel
from outsample.placers.trials import LeftOut, Trial

MOST_TRIALS, MOST_LEVELS = 4096, 4096
ABSENT = object()

MAPS = (
    PCAExtension, NystroemExtension, GeometricHarmonics, LaplacianPyramids, MultiscaleExtension,
)  # fmt: skip
ESTIMATORS = (*MAPS, DiffusionMaps, Extended, NoveltyDetector)


def parameter(value: Any, scope: Scope) -> None:
    """Refuse what no parameter may be; the estimator itself says which of the rest it takes."""
    if value is None or isinstance(value, bool | int | float | str | np.generic):
        return
    is_a(*WEIGHTINGS, *PLACERS)(value, scope)


def maybe(kind: Kind) -> Kind:
    """Of a kind, or not there at all."""

    def check(value: Any, scope: Scope) -> None:
        if value is not ABSENT:
            kind(value, scope)

    return check


def output_config(value: Any, scope: Scope) -> None:
    """Refuse what ``set_output`` does not note."""
    choices = None, "default", "pandas", "polars"
    if type(value) is not dict or not set(value) <= {"transform"}:
        raise Misfit(f"is {kinds.shown(value)}, but must say how transform answers")
    one_of(*choices)(value.get("transform"), scope)


def is_sparse(value: Any, scope: Scope) -> None:
    """Tell whether points were sparse."""
    flag(value, scope)
    scope.agree_sparse(value)


seen = {
    "n_features_in_": size("D"),
    "feature_names_in_": maybe(kinds.words),
    "_fitted_sparse": is_sparse,
    "_sklearn_output_config": maybe(output_config),
}
image = {
    **seen,
    "_n_features_out": size("d"),
    "_map_size": positive,
    "_map_fits_float32": flag,
}
units = {**image, "unit_": is_a(PointUnit), "map_unit_": is_a(MapUnit), "points_": points("n")}
expansion = {
    **units,
    "selection_": listed(is_a(Choice), MOST_TRIALS),
    "epsilon_": positive,
    "bandwidth_": any_float,
    "eigenvalues_": array("e"),
    "n_components_": size("e"),
    "coefficients_": images("n", "d"),
    "condition_": any_float,
}
levels = {"inner_scales_": array("l", least=0, above=True), "errors_": array("l", least=0)}
# What was learnt, by estimator; what else an estimator has are its parameters.
LEARNT: dict[type, dict[str, Kind]] = {
    PCAExtension: {
        **image,
        "embedding_": images("n", "d"),
        "distinct_": is_a(Distinct),
        "model_": is_a(MapModel),
        "selection_": listed(is_a(Trial), MOST_TRIALS),
        "left_out_": is_a(LeftOut),
        "loo_error_": any_float,
    },
    NystroemExtension: {**expansion, "weights_": densities("n")},
    GeometricHarmonics: expansion,
    LaplacianPyramids: {
        **units,
        **levels,
        "selection_": listed(is_a(Candidate), MOST_TRIALS),
        "scales_": array("l", least=0, most=np.inf),
        "residuals_": images("l", "n", "d"),
    },
    MultiscaleExtension: {
        **units,
        **levels,
        "scales_": array("l", least=0, most=np.inf),
        "sampled_": listed(rows_of(None, below="n"), MOST_LEVELS),
        "coefficients_": listed(images(None, "d"), MOST_LEVELS),
    },
    DiffusionMaps: {
        **seen,
        "n_components_": size("c"),
        "embedding_": images("n", "c"),
        "eigenvalues_": array("c"),
        "spectrum_": array(None),
        "unit_": is_a(PointUnit),
        "walk_": is_a(*WALKS),
        "bandwidth_": any_float,
        "n_neighbors_": optional(whole(1)),
        "n_parts_": whole(1),
    },
    Extended: {
        **seen,
        "embedding_": is_a(NotKept),
        "extension_": is_a(*MAPS),
        "n_components_": size("d"),
        "_map_size": positive,
        "_map_fits_float32": flag,
    },
    NoveltyDetector: {
        **seen,
        "training_rows_": array("n", dtype=np.int64, least=0),
        "extension_": optional(is_a(PCAExtension, Extended)),
        "metric_": one_of("euclidean", "cosine"),
        "distinct_": is_a(Distinct),
        "model_": is_a(NoveltyModel),
        "scores_": array(None, least=-LARGEST_SCORE, most=LARGEST_SCORE, rising=True),
        "offset_": real(-LARGEST_SCORE, LARGEST_SCORE),
    },
}
# What an estimator may hold as a parameter, where it is an estimator.
HOLDS: dict[tuple[type, str], tuple[type, ...]] = {
    (Extended, "extension"): MAPS,
    (Extended, "embedding"): (DiffusionMaps, NotKept),
    (NoveltyDetector, "extension"): (PCAExtension, Extended),
    (NoveltyDetector, "random_state"): (NotKept,),
    (MultiscaleExtension, "random_state"): (NotKept,),
}


def bare(cls: type, parts: dict[str, Any]) -> Any:
    """Make an estimator of its parts, parameters and what was learnt."""
    model: Any = object.__new__(cls)
    vars(model).update(parts)
    return model


def parameters_of(cls: type) -> list[str]:
    """Names of the parameters of an estimator."""
    return cls._get_param_names()  # type: ignore[attr-defined]


def is_fitted(model: BaseEstimator) -> bool:
    """Whether an estimator has learnt anything."""
    return "n_features_in_" in vars(model)


def estimator_parts(model: BaseEstimator) -> dict[str, Any]:
    """Parameters of an estimator and what it learnt, but for what no file keeps."""
    held = vars(model)
    parts = {name: held[name] for name in parameters_of(type(model))}
    if is_fitted(model):
        parts |= {name: held[name] for name in LEARNT[type(model)] if name in held}
    for name, value in parts.items():
        foreign = name == "embedding" and type(value) is not DiffusionMaps
        fitted = name == "embedding_" and isinstance(model, Extended)
        if foreign or fitted or (name == "random_state" and isinstance(value, GENERATORS)):
            parts[name] = value if isinstance(value, NotKept) else NotKept(repr(value)[:500])
    return parts


def estimator_fits(model: BaseEstimator, scope: Scope) -> None:
    """Refuse an estimator whose parameters or learnt state do not fit."""
    cls, held = type(model), vars(model)
    names, learnt = set(parameters_of(cls)), LEARNT[cls]
    for name in names:
        value = held.get(name, ABSENT)
        is_held = isinstance(value, BaseEstimator | NotKept)
        kind = is_a(*HOLDS.get((cls, name), ())) if is_held else parameter
        part_fits(name, kind, value, Scope())
    if set(held) == names:
        return
    if not set(held) <= names | set(learnt):
        raise Misfit(f".{min(set(held) - names - set(learnt))} is unknown")
    for name, kind in learnt.items():
        part_fits(name, kind, held.get(name, ABSENT), scope)
    if cls in STATES:
        STATES[cls](model, scope)
    if cls is not Extended:  # which has no parameters but estimators
        _take(model, lambda probe: probe._check_parameters())


def _take(model: BaseEstimator, check: Callable[[Any], Any]) -> None:
    """Refuse parameters that the estimator itself refuses, but for generators not kept."""
    parts = vars(model).copy()
    if isinstance(parts.get("random_state"), NotKept):
        parts["random_state"] = 0
    probe = bare(type(model), parts)
    try:
        check(probe)
    except (TypeError, ValueError, AttributeError) as error:
        raise Misfit(f" has parameters that do not fit ({error})") from None


def _extension(model: PCAExtension, scope: Scope) -> None:
    n, m, d = (scope.size(letter) for letter in "nmd")
    _take(model, lambda probe: given_parameters(probe, n, m, d, bool(scope.is_sparse)))


def _multiscale(model: MultiscaleExtension, scope: Scope) -> None:
    sampled, coefficients = map(len, model.sampled_), map(len, model.coefficients_)
    if [*sampled] != [*coefficients] or len(model.sampled_) != scope.size("l"):
        raise Misfit(".coefficients_ do not fit the sampled rows")


def _diffusion(model: DiffusionMaps, scope: Scope) -> None:
    if isinstance(model.walk_, FixedWalk):
        scope.agree("m", scope.size("n"))


def _detector(model: NoveltyDetector, scope: Scope) -> None:
    known, found = model._map, model.model_.model
    if found is not known or (known is not None and model.model_.index is not known.search.index):
        raise Misfit(".model_ is not that of its extension")
    if not len(model.scores_):
        raise Misfit(".scores_ are missing")


STATES: dict[type, Any] = {
    PCAExtension: _extension,
    MultiscaleExtension: _multiscale,
    DiffusionMaps: _diffusion,
    NoveltyDetector: _detector,
}
FIELDS |= {cls: {} for cls in ESTIMATORS}
LAWS |= {cls: estimator_fits for cls in ESTIMATORS}
CLASSES = {cls.__name__: cls for cls in FIELDS}
