"""Which estimators a model file may hold: their parameters, and what fits what they learnt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from outsample._validation import GENERATORS, TrainingRecord
from outsample.estimators.diffusion_maps import LEAST_EIGENVALUE, DiffusionMaps
from outsample.estimators.extended import Extended, NotKept
from outsample.estimators.multiscale import MultiscaleExtension
from outsample.estimators.novelty_detector import NoveltyDetector
from outsample.estimators.pca_extension import PCAExtension
from outsample.estimators.pca_parameters import given_parameters
from outsample.estimators.pyramids import LaplacianPyramids
from outsample.files.kinds import Misfit, Scope
from outsample.files.learned_schema import ESTIMATORS, LEARNT, MAPS
from outsample.files.placer_schema import PLACERS, WEIGHTINGS
from outsample.files.schema import FIELDS, LAWS, is_a, part_fits
from outsample.files.stream_schema import memory_fits
from outsample.spectral.fixed_walk import FixedWalk
from outsample.streaming.extension import StreamingExtension

# Learnt only if there was something to learn.
OPTIONAL = {"feature_names_in_", "_sklearn_output_config"}


def parameter(value: Any, scope: Scope) -> None:
    """Refuse what no parameter may be; the estimator itself says which of the rest it takes."""
    if value is None or isinstance(value, bool | int | float | str | np.generic):
        return
    is_a(*WEIGHTINGS, *PLACERS)(value, scope)


# Estimators whose parameters are fitted ones.
AROUND_FITTED = (StreamingExtension,)
# Parameters that files from before there were any lack, and what these meant.
LATER: dict[type, dict[str, Any]] = {StreamingExtension: {"delay": 0}}
# What an estimator may hold as a parameter, where it is an estimator.
HOLDS: dict[tuple[type, str], tuple[type, ...]] = {
    (Extended, "extension"): MAPS,
    (Extended, "embedding"): (DiffusionMaps, NotKept),
    (NoveltyDetector, "extension"): (PCAExtension, Extended),
    (NoveltyDetector, "random_state"): (NotKept,),
    (StreamingExtension, "extension"): (NoveltyDetector, PCAExtension),
    (MultiscaleExtension, "random_state"): (NotKept,),
}


def bare(cls: type, parts: dict[str, Any]) -> Any:
    """Make an estimator of its parts, parameters and what was learnt."""
    model: Any = object.__new__(cls)
    vars(model).update(parts)
    return model


def with_record(cls: type, parts: dict[str, Any]) -> dict[str, Any]:
    """Parts of a fitted estimator; those of files from before `TrainingRecord` get theirs."""
    if "_fitted_sparse" not in parts:
        return parts
    parts = parts.copy()
    try:
        map_columns = parts.pop("_n_features_out", parts["n_components_"] if cls is Extended else 0)
        parts["training_"] = TrainingRecord(
            _rows_before_record(cls, parts),
            parts.pop("_fitted_sparse"),
            parts.pop("metric_", parts.get("metric", "euclidean")),
            parts.get("n_jobs"),
            map_columns,
            parts.pop("_map_size", 1.0),
            parts.pop("_map_fits_float32", True),
        )
        if cls is PCAExtension:  # rows were those of distinct points
            left_out, distinct = parts["left_out_"], parts["distinct_"]
            parts["left_out_"] = left_out._replace(rows=distinct.rows[left_out.rows])
    except (AttributeError, IndexError, KeyError) as error:
        raise ValueError(f"a {cls.__name__} is not what it should be ({error})") from None
    return parts


def _rows_before_record(cls: type, parts: dict[str, Any]) -> int:
    """Rows that were fitted, from arrays of files that do not contain their number."""
    if cls is Extended:
        return parts["extension_"].training_.n_rows
    if cls is NoveltyDetector:
        is_split = parts["calibration"] == "split"
        return len(parts["training_rows_"]) + is_split * len(parts["scores_"])
    return int(parts["embedding_" if "embedding_" in parts else "points_"].shape[0])


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


def are_all_learnt(cls: type, names: set[str]) -> None:
    """Refuse what an estimator cannot have learnt, and what it lacks."""
    wrong = names - set(LEARNT[cls]) | set(LEARNT[cls]) - names - OPTIONAL
    if wrong:
        raise Misfit(f".{min(wrong)} is unknown or missing")


def parameters_fit(cls: type, given: dict[str, Any]) -> None:
    """Refuse parameters that are not those of an estimator, or that none can have."""
    wrong = set(given) ^ set(parameters_of(cls))
    if wrong:
        raise Misfit(f".{min(wrong)} is unknown or missing")
    for name, value in given.items():
        is_held = isinstance(value, BaseEstimator | NotKept)
        kind = is_a(*HOLDS.get((cls, name), ())) if is_held else parameter
        part_fits(name, kind, value, Scope())


def estimator_fits(model: BaseEstimator, scope: Scope) -> None:
    """Refuse an estimator whose parameters or learnt state do not fit."""
    cls, held = type(model), vars(model)
    names = set(parameters_of(cls))
    parameters_fit(cls, {name: held[name] for name in names & set(held)})
    if set(held) == names:
        return
    are_all_learnt(cls, set(held) - names)
    for name, kind in LEARNT[cls].items():
        if name in held:
            part_fits(name, kind, held[name], scope)
    if cls not in (NoveltyDetector, StreamingExtension):  # they may learn from a part of the rows
        scope.agree("n", model.training_.n_rows)
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


def _pyramids(model: LaplacianPyramids, scope: Scope) -> None:
    held = model.inner_scales_, model.scales_, model.errors_, model.residuals_
    if len({len(one) for one in held}) > 1:
        raise Misfit(".residuals_ do not fit the scales")


def _multiscale(model: MultiscaleExtension, scope: Scope) -> None:
    held = model.inner_scales_, model.scales_, model.errors_, model.sampled_
    if len({len(one) for one in held}) > 1:
        raise Misfit(".sampled_ do not fit the scales")
    if [*map(len, model.sampled_)] != [*map(len, model.coefficients_)]:
        raise Misfit(".coefficients_ do not fit the sampled rows")


def _diffusion(model: DiffusionMaps, scope: Scope) -> None:
    values = model.eigenvalues_
    if ((values > 0) & (values <= LEAST_EIGENVALUE)).any():
        raise Misfit(".eigenvalues_ are too small to be extended")
    if isinstance(model.walk_, FixedWalk):
        scope.agree("m", scope.size("n"))


def _detector(model: NoveltyDetector, scope: Scope) -> None:
    if model.training_rows_.max() >= model.training_.n_rows:
        raise Misfit(".training_rows_ are beyond the rows that were fitted")
    known, found = model._map, model.model_.model
    if found is not known or (known is not None and model.model_.index is not known.search.index):
        raise Misfit(".model_ is not that of its extension")
    if not len(model.scores_):
        raise Misfit(".scores_ are missing")


def _stream(model: StreamingExtension, scope: Scope) -> None:
    extension = model.extension
    if not isinstance(extension, NoveltyDetector | PCAExtension) or not is_fitted(extension):
        raise Misfit(".extension is not fitted")
    if isinstance(extension, NoveltyDetector) and extension._map is None:
        raise Misfit(".extension has no map")
    _take(model, lambda probe: probe._check_parameters())
    memory_fits(model, scope)


STATES: dict[type, Any] = {
    PCAExtension: _extension,
    LaplacianPyramids: _pyramids,
    MultiscaleExtension: _multiscale,
    DiffusionMaps: _diffusion,
    NoveltyDetector: _detector,
    StreamingExtension: _stream,
}
FIELDS |= {cls: {} for cls in ESTIMATORS}
LAWS |= {cls: estimator_fits for cls in ESTIMATORS}
# Names in files for classes that have been renamed since.
STORED_NAMES = {"QualityEstimator": "Judge"}
CLASSES = {STORED_NAMES.get(cls.__name__, cls.__name__): cls for cls in FIELDS}
