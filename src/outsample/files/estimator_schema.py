"""Schemas of the estimators: the kinds of their fitted attributes, and how these fit together.

Parameters need a kind only where they can be objects; `_check_parameters` of the estimator itself
checks their values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from outsample._validation import GENERATORS, TrainingRecord
from outsample.estimators.diffusion_maps import MIN_EIGENVALUE, DiffusionMaps
from outsample.estimators.extended import Extended, NotKept
from outsample.estimators.harmonics import GeometricHarmonics
from outsample.estimators.multiscale import MultiscaleExtension
from outsample.estimators.novelty_detector import NoveltyDetector
from outsample.estimators.novelty_model import NoveltyModel
from outsample.estimators.nystroem import NystroemExtension
from outsample.estimators.pca_extension import PCAExtension
from outsample.estimators.pca_parameters import constraints_for
from outsample.estimators.pyramids import Candidate, LaplacianPyramids
from outsample.files.kinds import (
    any_float,
    array,
    coefficients,
    column_names,
    coordinates,
    densities,
    either,
    integer,
    mapping,
    one_of,
    optional,
    points,
    row_numbers,
    separate,
    sequence,
    size,
)  # fmt: skip
from outsample.files.part_schema import (
    check_memory,
    positive_or_infinite,
    require_lengths,
    score,
    scores,
)
from outsample.files.placer_schema import PLACERS, WEIGHTINGS
from outsample.files.schema import bare, default_attributes, is_a, parameter, register
from outsample.files.scope import Kind, SchemaError, Scope
from outsample.files.transformer_schema import PREPARATION_FIELDS, check_prepared
from outsample.neighbors.duplicates import Duplicates
from outsample.placers.leave_one_out import LeftOut, Trial
from outsample.placers.map_model import MapModel
from outsample.preparation.prepared_model import PreparedModel
from outsample.spectral.bandwidth import Choice
from outsample.spectral.fixed_walk import FixedWalk
from outsample.spectral.local_walk import LocalWalk
from outsample.spectral.units import MapUnit, PointUnit
from outsample.streaming.extension import StreamingExtension
from outsample.streaming.memory import Memory

MAX_TRIALS = MAX_LEVELS = 4096
MAPS = (
    PCAExtension, NystroemExtension, GeometricHarmonics, LaplacianPyramids, MultiscaleExtension,
)  # fmt: skip
WITH_TABLES = (*MAPS, DiffusionMaps, Extended, NoveltyDetector, StreamingExtension)
ESTIMATORS = (*WITH_TABLES, PreparedModel)
# Estimators whose parameters are fitted estimators.
AROUND_FITTED = (StreamingExtension,)
OPTIONAL = ("feature_names_in_", "_sklearn_output_config")


# What is not saved, and what older files lack.


def _attributes(model: Any) -> dict[str, Any]:
    """Return the attributes of an estimator; `NotKept` replaces embeddings and generators."""
    attributes = default_attributes(model)
    for name, value in attributes.items():
        if isinstance(model, PreparedModel) and name in ("estimator", "prepare"):
            attributes[name] = value if isinstance(value, str) else clone(value, safe=False)
        is_embedding = name == "embedding" and type(value) is not DiffusionMaps
        is_fitted_embedding = name == "embedding_" and isinstance(model, Extended)
        is_generator = name == "random_state" and isinstance(value, GENERATORS)
        if is_embedding or is_fitted_embedding or is_generator:
            is_replaced = isinstance(value, NotKept)
            attributes[name] = value if is_replaced else NotKept(repr(value)[:500])
    return attributes


def upgrade(cls: type, attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of an estimator from a file of any version as this version has them."""
    if cls is StreamingExtension:
        return {"delay": 0} | attributes
    if "_fitted_sparse" not in attributes:
        return attributes
    # Files from before `TrainingRecord`.
    try:
        attributes = attributes.copy()
        n_rows, n_components = _n_training_rows(cls, attributes), attributes.get("n_components_")
        attributes["training_"] = TrainingRecord(
            n_rows,
            attributes.pop("_fitted_sparse"),
            attributes.pop("metric_", attributes.get("metric", "euclidean")),
            attributes.get("n_jobs"),
            attributes.pop("_n_features_out", n_components if cls is Extended else 0),
            attributes.pop("_map_size", 1.0),
            attributes.pop("_map_fits_float32", True),
        )
        if cls is PCAExtension:  # rows were those of distinct points
            left_out, distinct = attributes["left_out_"], attributes["distinct_"]
            attributes["left_out_"] = left_out._replace(rows=distinct.rows[left_out.rows])
    except (AttributeError, IndexError, KeyError) as error:
        raise ValueError(f"a {cls.__name__} is not valid ({error})") from None
    return attributes


def _n_training_rows(cls: type, attributes: dict[str, Any]) -> int:
    if cls is Extended:
        return attributes["extension_"].training_.n_rows
    if cls is NoveltyDetector:
        n_calibration = len(attributes["scores_"]) if attributes["calibration"] == "split" else 0
        return len(attributes["training_rows_"]) + n_calibration
    return int(attributes["embedding_" if "embedding_" in attributes else "points_"].shape[0])


# Whole estimators.


def _check_with(model: Any, check: Callable[[Any], Any]) -> None:
    """Call a check of the estimator itself on a copy, with a seed where a generator was."""
    attributes = vars(model).copy()
    if isinstance(attributes.get("random_state"), NotKept):
        attributes["random_state"] = 0
    try:
        check(bare(type(model), attributes))
    except (TypeError, ValueError, AttributeError) as error:
        raise SchemaError(f" has parameters that are not valid ({error})") from None


def _check_own_parameters(model: Any, scope: Scope) -> None:
    _check_with(model, lambda copy: copy._check_parameters())


def _check_map(model: Any, scope: Scope) -> None:
    scope.set_size("n", model.training_.n_rows)
    _check_own_parameters(model, scope)


def _check_extended(model: Extended, scope: Scope) -> None:
    scope.set_size("n", model.training_.n_rows)


def _check_pca_extension(model: PCAExtension, scope: Scope) -> None:
    _check_map(model, scope)
    n, m, d = (scope.size(letter) for letter in "nmd")
    _check_with(model, lambda copy: constraints_for(copy, n, m, d, bool(scope.is_sparse)))


def _check_pyramids(model: LaplacianPyramids, scope: Scope) -> None:
    _check_map(model, scope)
    require_lengths(model, "scales_ errors_ residuals_", len(model.inner_scales_))


def _check_multiscale(model: MultiscaleExtension, scope: Scope) -> None:
    _check_map(model, scope)
    require_lengths(model, "scales_ errors_ sampled_", len(model.inner_scales_))
    if [*map(len, model.sampled_)] != [*map(len, model.coefficients_)]:
        raise SchemaError(".coefficients_ do not have one row per sampled row")


def _check_diffusion_maps(model: DiffusionMaps, scope: Scope) -> None:
    _check_map(model, scope)
    eigenvalues = model.eigenvalues_
    if ((eigenvalues > 0) & (eigenvalues <= MIN_EIGENVALUE)).any():
        raise SchemaError(".eigenvalues_ are too small to be extended")
    if isinstance(model.walk_, FixedWalk):
        scope.set_size("m", scope.size("n"))


def _check_detector(model: NoveltyDetector, scope: Scope) -> None:
    _check_own_parameters(model, scope)
    if model.training_rows_.max() >= model.training_.n_rows:
        raise SchemaError(".training_rows_ are beyond the rows of the training data")
    fitted_map, novelty = model._map, model.model_
    if novelty.model is not fitted_map or (
        fitted_map is not None and novelty.index is not fitted_map.search.index
    ):
        raise SchemaError(".model_ is not that of its extension")
    if not len(model.scores_):
        raise SchemaError(".scores_ are missing")


def _check_stream(model: StreamingExtension, scope: Scope) -> None:
    extension = model.extension
    if not hasattr(extension, "n_features_in_"):
        raise SchemaError(".extension is not fitted")
    has_scores = isinstance(extension, NoveltyDetector)
    if has_scores and extension._map is None:
        raise SchemaError(".extension has no map")
    _check_own_parameters(model, scope)
    core, memory = model._core, model.memory_
    n, d = core.embedding_.shape
    scope.set_size("n", len(extension.training_rows_) if has_scores else n)
    scope.set_size("d", d)
    scope.set_size("D", extension.n_features_in_)
    if sparse.issparse(memory.points) != sparse.issparse(core.model_.search.index.X):
        raise SchemaError(".memory_.points must be sparse like the other points, or dense")
    n_frames = len(core.model_.fitted.kept_frames())
    check_memory(memory, n_frames, d, int(model.window), has_scores, scope)


def _training(*, has_map: bool) -> Kind:
    """Accept the record of a fit, with a map or without."""

    def check(value: Any, scope: Scope) -> None:
        is_a(TrainingRecord)(value, scope)
        if has_map:
            scope.set_size("d", value.map_columns)
        elif value.map_columns:
            raise SchemaError(".map_columns must be 0 without a map")

    return check


def _register(cls: type, check: Kind, fields: dict[str, Kind]) -> None:
    build = lambda **attributes: bare(cls, upgrade(cls, attributes))  # noqa: E731
    register(cls, fields, check, optional=OPTIONAL, take_apart=_attributes, build=build)


columns = {"n_features_in_": size("D"), "feature_names_in_": column_names}
output_config = mapping(one_of(None, "default", "pandas", "polars"), one_of("transform"))
fitted = {**columns, "training_": _training(has_map=False), "_sklearn_output_config": output_config}
with_map = {**fitted, "training_": _training(has_map=True)}
random_state = either(is_a(NotKept), parameter)
scaled = {**with_map, "unit_": is_a(PointUnit), "map_unit_": is_a(MapUnit), "points_": points("n")}
expansion = {
    **scaled,
    "selection_": sequence(is_a(Choice), MAX_TRIALS),
    "epsilon_": positive_or_infinite,
    "bandwidth_": any_float,
    "eigenvalues_": array("e"),
    "n_components_": size("e"),
    "coefficients_": coefficients("n", "d"),
    "condition_": any_float,
}
levels = {
    "inner_scales_": array(None, low=0, open_low=True),
    "scales_": array(None, low=0, high=np.inf),
    "errors_": array(None, low=0),
}
# fmt: off
_register(PCAExtension, _check_pca_extension, {
    **with_map, "weighting": either(parameter, is_a(*WEIGHTINGS, *PLACERS)),
    "embedding_": coordinates("n", "d"), "distinct_": is_a(Duplicates), "model_": is_a(MapModel),
    "selection_": sequence(is_a(Trial), MAX_TRIALS), "left_out_": is_a(LeftOut),
    "loo_error_": any_float,
})
_register(NystroemExtension, _check_map, {**expansion, "weights_": densities("n")})
_register(GeometricHarmonics, _check_map, expansion)
_register(LaplacianPyramids, _check_pyramids, {
    **scaled, **levels, "selection_": sequence(is_a(Candidate), MAX_TRIALS),
    "residuals_": coefficients(None, "n", "d"),
})
_register(MultiscaleExtension, _check_multiscale, {
    **scaled, **levels, "random_state": random_state,
    "sampled_": sequence(row_numbers(None, below="n"), MAX_LEVELS),
    "coefficients_": sequence(coefficients(None, "d"), MAX_LEVELS),
})
_register(DiffusionMaps, _check_diffusion_maps, {
    **fitted, "n_components_": size("c"), "embedding_": coordinates("n", "c"),
    "eigenvalues_": array("c", low=0, high=2), "spectrum_": array(None, low=0, high=2),
    "unit_": is_a(PointUnit), "walk_": is_a(LocalWalk, FixedWalk), "bandwidth_": any_float,
    "n_neighbors_": optional(integer(1)), "n_parts_": integer(1),
})
_register(Extended, _check_extended, {
    **with_map, "extension": optional(is_a(*MAPS)), "embedding": is_a(DiffusionMaps, NotKept),
    "embedding_": is_a(NotKept), "extension_": is_a(*MAPS), "n_components_": size("d"),
})
_register(NoveltyDetector, _check_detector, {
    **fitted, "extension": optional(is_a(PCAExtension, Extended)), "random_state": random_state,
    "training_rows_": array("n", dtype=np.int64, low=0),
    "extension_": optional(is_a(PCAExtension, Extended)), "distinct_": is_a(Duplicates),
    "model_": is_a(NoveltyModel), "scores_": scores(None, ascending=True), "offset_": score,
})
_register(StreamingExtension, _check_stream, {
    **columns, "extension": is_a(NoveltyDetector, PCAExtension), "memory_": is_a(Memory),
})
_register(PreparedModel, check_prepared, {
    **fitted, "training_": is_a(TrainingRecord), "folds": integer(2),
    "estimator": is_a(*WITH_TABLES), "estimator_": separate(is_a(*WITH_TABLES)),
    **PREPARATION_FIELDS,
})
