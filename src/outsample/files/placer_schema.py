"""Schemas of weightings and placers, as parameters and fitted, and of the maps that use them."""

from __future__ import annotations

from typing import Any

from outsample._validation import LARGEST_VALUE
from outsample.files.kinds import (
    any_float,
    array,
    coefficients,
    coordinates,
    densities,
    integer,
    n_jobs,
    number,
    one_of,
    optional,
    points,
    row_numbers,
    sequence,
)
from outsample.files.part_schema import (
    MAX_BLEND_PARTS,
    MAX_COUNT,
    not_negative,
    positive,
    require_dense,
    require_lengths,
    scale,
)
from outsample.files.schema import is_a, register
from outsample.files.scope import SchemaError, Scope
from outsample.neighbors.neighborhoods import Search
from outsample.placers import (
    blend,
    diffusion,
    kriging,
    landmarks,
    local,
    neighbor_loss,
    repulsion_field,
    tangent,
    two_levels,
    weighting,
)
from outsample.placers.leave_one_out import LeftOut, Trial
from outsample.placers.map_model import MapModel
from outsample.records import Frames
from outsample.trust.quality import QualityEstimator


def _check_local(value: local.FittedLocal, scope: Scope) -> None:
    if type(value.weighting) is not WEIGHTINGS[type(value.placer.weighting)]:
        raise SchemaError(".weighting is not that of its placer")
    if value.placer.order > 0:
        require_dense(scope, "a polynomial")


def _check_blend(value: blend.Blend, scope: Scope) -> None:
    if len(value.parts) != len(value.shares) or abs(sum(value.shares) - 1) > 1e-9:
        raise SchemaError(".shares must be one share per part that sum to 1")


def _check_fitted_blend(value: blend.FittedBlend, scope: Scope) -> None:
    if tuple(part.placer for part in value.parts) != value.placer.parts:
        raise SchemaError(".parts are not those of its placer")


def _check_all_points(value: Any, scope: Scope) -> None:
    require_dense(scope, "an all-points model")


def _check_landmarks(value: Any, scope: Scope) -> None:
    require_lengths(value, "coefficients inverse_densities images lift", len(value.landmarks))


def _check_neighbor_loss(value: neighbor_loss.FittedNeighborLoss, scope: Scope) -> None:
    if value.field is not None and scope.size("d") != 2:
        raise SchemaError(".field is two-dimensional, but the map is not")


power = number(0, 1000, open_low=True)
length = number(0, LARGEST_VALUE, open_low=True)
nugget = number(0, 1e300)
WEIGHTINGS: dict[type, type] = {
    weighting.InverseDistance: weighting.FittedPower,
    weighting.GaussianDistance: weighting.FittedGaussian,
    tangent.Tangent: tangent.FittedTangent,
    tangent.LocalTangent: tangent.FittedLocalTangent,
    tangent.SplitTangent: tangent.FittedSplitTangent,
    kriging.Correlated: kriging.FittedKriging,
}
SINGLE_PLACERS: dict[type, type] = {
    local.LocalPlacer: local.FittedLocal,
    kriging.GaussianProcess: kriging.FittedProcess,
    diffusion.Diffusion: diffusion.FittedDiffusion,
    neighbor_loss.NeighborLoss: neighbor_loss.FittedNeighborLoss,
    two_levels.TwoLevels: two_levels.FittedTwoLevels,
}
PLACERS = (*SINGLE_PLACERS, blend.Blend)

# fmt: off
register(weighting.InverseDistance, {"power": power})
register(weighting.GaussianDistance, {"length": length})
register(tangent.Tangent, {})
register(tangent.LocalTangent, {})
register(tangent.SplitTangent, {})
register(kriging.Correlated, {
    "covariance": one_of(*kriging.COVARIANCE_KINDS), "length": length, "nugget": nugget,
})
register(kriging.GaussianProcess, {"weighting": is_a(kriging.Correlated)})
register(diffusion.Diffusion, {"length": length, "ridge": number(0, 1)})
register(neighbor_loss.NeighborLoss, {
    "perplexity": number(0, 1e9, open_low=True), "length": length,
})
register(two_levels.TwoLevels, {
    "covariance": one_of(*two_levels.FIRST_LEVELS), "length": length, "nugget": nugget,
    "shorter": optional(length), "n_landmarks": integer(1, MAX_COUNT),
    "n_neighbors": integer(1, MAX_COUNT),
})
register(local.LocalPlacer, {
    "weighting": is_a(*WEIGHTINGS), "n_neighbors": integer(1, MAX_COUNT), "order": one_of(0, 1, 2),
    "loss": one_of("squared", "absolute"), "tangent_dim": integer(1, MAX_COUNT),
})
register(blend.Blend, {
    "parts": sequence(is_a(*SINGLE_PLACERS), MAX_BLEND_PARTS, tuple, 1),
    "shares": sequence(number(0, 1, open_low=True), MAX_BLEND_PARTS, tuple, 1),
}, _check_blend)

map_data = {"X": points("m"), "Y": coordinates("m", "d"), "n_jobs": n_jobs}
all_points = {**map_data, "left_out": coefficients(None, "d"), "unit": positive}
of_landmarks = {"unit": positive, "landmarks": row_numbers(None, below="m")}
register(weighting.FittedPower, {**map_data, "power": power})
register(weighting.FittedGaussian, {**map_data, "length": length})
register(tangent.FittedTangent, {**map_data, "curvature": positive})
register(tangent.FittedLocalTangent, {**map_data, "curvature": positive, "frames": is_a(Frames)})
register(tangent.FittedSplitTangent, {
    **map_data, "curvature": positive, "tangent_dim": integer(1, "d"),
})
register(kriging.FittedKriging, {**map_data, "settings": is_a(kriging.Correlated)})
register(local.FittedLocal, {
    "weighting": is_a(*WEIGHTINGS.values()), "X": points("m"), "placer": is_a(local.LocalPlacer),
}, _check_local)
register(kriging.FittedProcess, {
    **all_points, "placer": is_a(kriging.GaussianProcess), "mean": coefficients("d"),
    "coefficients": coefficients("m", "d"),
}, _check_all_points)
register(diffusion.FittedDiffusion, {
    **all_points, "placer": is_a(diffusion.Diffusion), "inverse_densities": densities("m"),
    "lift": coefficients("m", "d"), "center": coefficients("d"), "reach": not_negative,
}, _check_all_points)
register(repulsion_field.RepulsionField, {
    "corner": coordinates(2), "step": positive, "coefficients": coefficients(None, None),
})
register(neighbor_loss.FittedNeighborLoss, {
    **map_data, "placer": is_a(neighbor_loss.NeighborLoss), "Z": coordinates("m", "d"),
    "unit": positive, "crowd": array("m", low=0),
    "field": optional(is_a(repulsion_field.RepulsionField)),
}, _check_neighbor_loss)
register(landmarks.ProcessLevel, {
    **of_landmarks, "covariance": one_of("matern52", "gaussian"),
    "coefficients": coefficients(None, "d"),
}, _check_landmarks)
register(landmarks.DiffusionLevel, {
    **of_landmarks, "inverse_densities": densities(None), "images": coefficients(None, "d"),
    "lift": coefficients(None, "d"), "reach": not_negative,
}, _check_landmarks)
register(two_levels.FittedTwoLevels, {
    **map_data, "left_out": coefficients(None, "d"), "placer": is_a(two_levels.TwoLevels),
    "center": coefficients("d"), "scale": scale,
    "level": is_a(landmarks.ProcessLevel, landmarks.DiffusionLevel),
    "residuals": coefficients("m", "d"),
})
register(blend.FittedBlend, {
    "parts": sequence(is_a(*SINGLE_PLACERS.values()), MAX_BLEND_PARTS, tuple, 1),
    "placer": is_a(blend.Blend),
}, _check_fitted_blend)
register(MapModel, {
    "search": is_a(Search), "fitted": is_a(*SINGLE_PLACERS.values(), blend.FittedBlend),
    "quality": is_a(QualityEstimator), "n_jobs": n_jobs,
}, stored_fields={"quality": "judge"})
register(Trial, {
    "placer": is_a(*PLACERS), "error": any_float, "seconds": not_negative, "n_rows": integer(1),
})
register(LeftOut, {
    "rows": row_numbers("s", below="n"), "near": one_of(None),
    "coordinates": coefficients("s", "d"),
})
