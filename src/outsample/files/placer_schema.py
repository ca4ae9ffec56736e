"""Which placers a model file may hold, and what fits them."""

from __future__ import annotations

from typing import Any

from outsample._validation import LARGEST_VALUE
from outsample.files.kinds import (
    Misfit,
    Scope,
    array,
    densities,
    images,
    jobs,
    listed,
    one_of,
    optional,
    points,
    rows_of,
    setting,
    terms,
    whole,
)  # fmt: skip
from outsample.files.schema import FIELDS, LAWS, dense, is_a, not_negative, positive, scale
from outsample.placers import (
    blend,
    diffusion,
    kriging,
    landmark_diffusion,
    landmark_process,
    local,
    neighbor_loss,
    repulsion_field,
    tangent,
    two_levels,
    weighting,
)
from outsample.records import Frames

# Parts of a blend, at most.
MOST_PARTS = 64
curvature = positive
length = setting(0, LARGEST_VALUE, above=True)

FIELDS |= {
    weighting.InverseDistance: {"power": setting(0, 1000, above=True)},
    weighting.GaussianDistance: {"length": length},
    tangent.Tangent: {},
    tangent.LocalTangent: {},
    tangent.SplitTangent: {},
    kriging.Correlated: {
        "covariance": one_of(*kriging.KINDS), "length": length, "nugget": setting(0, 1e300),
    },
    kriging.GaussianProcess: {"weighting": is_a(kriging.Correlated)},
    diffusion.Diffusion: {"length": length, "ridge": setting(0, 1)},
    neighbor_loss.NeighborLoss: {"perplexity": setting(0, 1e9, above=True), "length": length},
    two_levels.TwoLevels: {
        "covariance": one_of(*two_levels.FIRST_LEVELS), "length": length,
        "nugget": setting(0, 1e300), "shorter": optional(length),
        "n_landmarks": whole(1, 2**31), "n_neighbors": whole(1, 2**31),
    },
}  # fmt: skip
WEIGHTINGS = (
    weighting.InverseDistance, weighting.GaussianDistance, tangent.Tangent, tangent.LocalTangent,
    tangent.SplitTangent, kriging.Correlated,
)  # fmt: skip
FIELDS[local.LocalPlacer] = {
    "weighting": is_a(*WEIGHTINGS),
    "n_neighbors": whole(1, 2**31),
    "order": one_of(0, 1, 2),
    "loss": one_of("squared", "absolute"),
    "tangent_dim": whole(1, 2**31),
}
SINGLE = (
    local.LocalPlacer, kriging.GaussianProcess, diffusion.Diffusion, neighbor_loss.NeighborLoss,
    two_levels.TwoLevels,
)  # fmt: skip
FIELDS[blend.Blend] = {
    "parts": listed(is_a(*SINGLE), MOST_PARTS, tuple, 1),
    "shares": listed(setting(0, 1, above=True), MOST_PARTS, tuple, 1),
}
PLACERS = (*SINGLE, blend.Blend)

# Fitted weightings and placers.
learnt = {"X": points("m"), "Y": images("m", "d"), "n_jobs": jobs}
FIELDS |= {
    weighting.FittedPower: {**learnt, "power": setting(0, 1000, above=True)},
    weighting.FittedGaussian: {**learnt, "length": length},
    tangent.FittedTangent: {**learnt, "curvature": curvature},
    tangent.FittedLocalTangent: {**learnt, "curvature": curvature, "frames": is_a(Frames)},
    tangent.FittedSplitTangent: {**learnt, "curvature": curvature, "tangent_dim": whole(1, "d")},
    kriging.FittedKriging: {**learnt, "settings": is_a(kriging.Correlated)},
}
FITTED_WEIGHTINGS = {
    weighting.InverseDistance: weighting.FittedPower,
    weighting.GaussianDistance: weighting.FittedGaussian,
    tangent.Tangent: tangent.FittedTangent,
    tangent.LocalTangent: tangent.FittedLocalTangent,
    tangent.SplitTangent: tangent.FittedSplitTangent,
    kriging.Correlated: kriging.FittedKriging,
}
over_all = {**learnt, "left_out": terms(None, "d"), "unit": positive}
landmarks = {"unit": positive, "landmarks": rows_of(None, below="m")}
FIELDS |= {
    local.FittedLocal: {
        "weighting": is_a(*FITTED_WEIGHTINGS.values()),
        "X": points("m"),
        "placer": is_a(local.LocalPlacer),
    },
    kriging.FittedProcess: {
        **over_all,
        "placer": is_a(kriging.GaussianProcess),
        "mean": terms("d"),
        "coefficients": terms("m", "d"),
    },
    diffusion.FittedDiffusion: {
        **over_all,
        "placer": is_a(diffusion.Diffusion),
        "inverse_densities": densities("m"),
        "lift": terms("m", "d"),
        "center": terms("d"),
        "reach": not_negative,
    },
    neighbor_loss.FittedNeighborLoss: {
        **learnt,
        "placer": is_a(neighbor_loss.NeighborLoss),
        "Z": images("m", "d"),
        "unit": positive,
        "crowd": array("m", least=0),
        "field": optional(is_a(repulsion_field.RepulsionField)),
    },
    repulsion_field.RepulsionField: {
        "corner": images(2),
        "step": positive,
        "coefficients": terms(None, None),
    },
    landmark_process.ProcessLevel: {
        **landmarks,
        "covariance": one_of("matern52", "gaussian"),
        "coefficients": terms(None, "d"),
    },
    landmark_diffusion.DiffusionLevel: {
        **landmarks,
        "inverse_densities": densities(None),
        "images": terms(None, "d"),
        "lift": terms(None, "d"),
        "reach": not_negative,
    },
    two_levels.FittedTwoLevels: {
        **learnt,
        "left_out": terms(None, "d"),
        "placer": is_a(two_levels.TwoLevels),
        "center": terms("d"),
        "scale": scale,
        "level": is_a(landmark_process.ProcessLevel, landmark_diffusion.DiffusionLevel),
        "residuals": terms("m", "d"),
    },
}
FITTED = (
    local.FittedLocal, kriging.FittedProcess, diffusion.FittedDiffusion,
    neighbor_loss.FittedNeighborLoss, two_levels.FittedTwoLevels,
)  # fmt: skip
FIELDS[blend.FittedBlend] = {
    "parts": listed(is_a(*FITTED), MOST_PARTS, tuple, 1),
    "placer": is_a(blend.Blend),
}


def _local(value: local.FittedLocal, scope: Scope) -> None:
    if type(value.weighting) is not FITTED_WEIGHTINGS[type(value.placer.weighting)]:
        raise Misfit(".weighting is not that of its placer")
    if value.placer.order > 0:
        dense(scope, "a polynomial")


def _blend(value: blend.Blend, scope: Scope) -> None:
    if len(value.parts) != len(value.shares) or abs(sum(value.shares) - 1) > 1e-9:
        raise Misfit(".shares do not fit the parts")


def _fitted_blend(value: blend.FittedBlend, scope: Scope) -> None:
    if tuple(part.placer for part in value.parts) != value.placer.parts:
        raise Misfit(".parts are not those of its placer")


def _landmarks(value: Any, scope: Scope) -> None:
    for name in ("coefficients", "inverse_densities", "images", "lift"):
        if len(getattr(value, name, value.landmarks)) != len(value.landmarks):
            raise Misfit(f".{name} do not fit the landmarks")


def _neighbor_loss(value: neighbor_loss.FittedNeighborLoss, scope: Scope) -> None:
    if value.field is not None and scope.size("d") != 2:
        raise Misfit(".field is of the plane, but the map is not")


def _over_all(value: Any, scope: Scope) -> None:
    dense(scope, "a placer over all points")


LAWS |= {
    local.FittedLocal: _local,
    blend.Blend: _blend,
    blend.FittedBlend: _fitted_blend,
    kriging.FittedProcess: _over_all,
    diffusion.FittedDiffusion: _over_all,
    neighbor_loss.FittedNeighborLoss: _neighbor_loss,
    landmark_process.ProcessLevel: _landmarks,
    landmark_diffusion.DiffusionLevel: _landmarks,
}
