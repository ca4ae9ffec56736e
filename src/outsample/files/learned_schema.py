"""What the estimators of a model file have learnt, field by field."""

from __future__ import annotations

from typing import Any

import numpy as np

from outsample._validation import TrainingRecord
from outsample.estimators.diffusion_maps import DiffusionMaps
from outsample.estimators.extended import Extended, NotKept
from outsample.estimators.harmonics import GeometricHarmonics
from outsample.estimators.multiscale import MultiscaleExtension
from outsample.estimators.novelty_detector import NoveltyDetector
from outsample.estimators.novelty_model import NoveltyModel
from outsample.estimators.nystroem import NystroemExtension
from outsample.estimators.pca_extension import PCAExtension
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
    terms,
    whole,
)  # fmt: skip
from outsample.files.schema import FIELDS, is_a, positive
from outsample.files.trust_schema import WALKS
from outsample.neighbors.duplicates import Distinct
from outsample.placers.leave_one_out import LeftOut, Trial
from outsample.placers.map_model import MapModel
from outsample.spectral.bandwidth import Choice
from outsample.spectral.units import MapUnit, PointUnit
from outsample.streaming.extension import StreamingExtension
from outsample.streaming.memory import Memory

MOST_TRIALS, MOST_LEVELS = 4096, 4096
MAPS = (
    PCAExtension, NystroemExtension, GeometricHarmonics, LaplacianPyramids, MultiscaleExtension,
)  # fmt: skip
ESTIMATORS = (*MAPS, DiffusionMaps, Extended, NoveltyDetector, StreamingExtension)


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


FIELDS[TrainingRecord] = {
    "n_rows": whole(1),
    "is_sparse": is_sparse,
    "metric": one_of("euclidean", "cosine"),
    "n_jobs": kinds.jobs,
    "map_columns": whole(),
    "map_size": positive,
    "fits_float32": flag,
}


def record(*, has_map: bool) -> Kind:
    """Return what accepts the record of a fit, with a map or without."""

    def check(value: Any, scope: Scope) -> None:
        is_a(TrainingRecord)(value, scope)
        if has_map:
            scope.agree("d", value.map_columns)
        elif value.map_columns:
            raise Misfit(".map_columns are those of no map")

    return check


seen = {
    "n_features_in_": size("D"),
    "feature_names_in_": kinds.words,
    "training_": record(has_map=False),
    "_sklearn_output_config": output_config,
}
image = {**seen, "training_": record(has_map=True)}
units = {**image, "unit_": is_a(PointUnit), "map_unit_": is_a(MapUnit), "points_": points("n")}
expansion = {
    **units,
    "selection_": listed(is_a(Choice), MOST_TRIALS),
    "epsilon_": real(0, np.inf, above=True),
    "bandwidth_": any_float,
    "eigenvalues_": array("e"),
    "n_components_": size("e"),
    "coefficients_": terms("n", "d"),
    "condition_": any_float,
}
levels = {
    "inner_scales_": array(None, least=0, above=True),
    "scales_": array(None, least=0, most=np.inf),
    "errors_": array(None, least=0),
}
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
        "residuals_": terms(None, "n", "d"),
    },
    MultiscaleExtension: {
        **units,
        **levels,
        "sampled_": listed(rows_of(None, below="n"), MOST_LEVELS),
        "coefficients_": listed(terms(None, "d"), MOST_LEVELS),
    },
    DiffusionMaps: {
        **seen,
        "n_components_": size("c"),
        "embedding_": images("n", "c"),
        "eigenvalues_": array("c", least=0, most=2),
        "spectrum_": array(None, least=0, most=2),
        "unit_": is_a(PointUnit),
        "walk_": is_a(*WALKS),
        "bandwidth_": any_float,
        "n_neighbors_": optional(whole(1)),
        "n_parts_": whole(1),
    },
    Extended: {
        **image,
        "embedding_": is_a(NotKept),
        "extension_": is_a(*MAPS),
        "n_components_": size("d"),
    },
    NoveltyDetector: {
        **seen,
        "training_rows_": array("n", dtype=np.int64, least=0),
        "extension_": optional(is_a(PCAExtension, Extended)),
        "distinct_": is_a(Distinct),
        "model_": is_a(NoveltyModel),
        "scores_": array(None, least=-LARGEST_SCORE, most=LARGEST_SCORE, rising=True),
        "offset_": real(-LARGEST_SCORE, LARGEST_SCORE),
    },
    StreamingExtension: {
        "n_features_in_": size("D"),
        "feature_names_in_": kinds.words,
        "memory_": is_a(Memory),
    },
}
