"""Which learnt maps, error bars, scores and walks a model file may hold, and what fits them."""

from __future__ import annotations

import numpy as np

from outsample.estimators.novelty_model import NoveltyModel
from outsample.files.kinds import (
    LARGEST_SCORE,
    Kind,
    Misfit,
    Scope,
    any_float,
    array,
    densities,
    images,
    jobs,
    one_of,
    optional,
    pair,
    points,
    real,
    rows_of,
    terms,
    whole,
)  # fmt: skip
from outsample.files.placer_schema import FITTED, PLACERS
from outsample.files.schema import FIELDS, LAWS, counts_fit, is_a, not_negative, positive
from outsample.neighbors.duplicates import Distinct
from outsample.neighbors.index import NeighborIndex
from outsample.neighbors.neighborhoods import Search
from outsample.placers.blend import FittedBlend
from outsample.placers.leave_one_out import LeftOut, Trial
from outsample.placers.map_model import MapModel
from outsample.spectral.fixed_walk import FixedWalk
from outsample.spectral.local_walk import LocalWalk
from outsample.trust.abnormality import Distances, Tail, TrainingScores
from outsample.trust.error_bars import ErrorBars
from outsample.trust.error_scale import ErrorScale
from outsample.trust.quality import QualityEstimator

by_point = array("m", least=0)
score = real(-LARGEST_SCORE, LARGEST_SCORE)


def scores(letter: str) -> Kind:
    """Abnormalities, and the logarithms that they are made of."""
    return array(letter, least=-LARGEST_SCORE, most=LARGEST_SCORE)


FIELDS |= {
    ErrorScale: {"cuts": array(5, None, most=np.inf), "values": array(5, None)},
    ErrorBars: {
        "scale": is_a(ErrorScale),
        "shift": real(-np.inf),
        "knots": array(None, rising=True),
        "least": array(None, least=-np.inf),
        "largest": not_negative,
        "factor": not_negative,
        "floor": not_negative,
        "slope": not_negative,
        "farthest": not_negative,
        "widest": not_negative,
    },
    QualityEstimator: {
        "X": points("m"),
        "Y": images("m", "d"),
        "error_bars": is_a(ErrorBars),
        "lipschitz": not_negative,
        "manifold_dim": whole(0, 2**31),
    },
    MapModel: {
        "search": is_a(Search),
        "fitted": is_a(*FITTED, FittedBlend),
        "judge": is_a(QualityEstimator),
        "n_jobs": jobs,
    },
    Trial: {
        "placer": is_a(*PLACERS), "error": any_float, "seconds": not_negative, "n_rows": whole(1),
    },
    LeftOut: {
        "rows": rows_of("s", below="n"),
        "near": one_of(None),
        "coordinates": terms("s", "d"),
    },
    Distances: {"nearest_distance": by_point, "plane_distance": by_point, "width": by_point},
    Tail: {"start": score, "spread": real(1e-9, LARGEST_SCORE)},
    TrainingScores: {
        "distances": is_a(Distances),
        "counts": array("m", dtype=np.int64, least=1),
        "widths": scores("m"),
        "relative_distance": by_point,
        "scores": scores("n"),
        "unit": positive,
        "farthest": positive,
        "tails": pair(is_a(Tail), is_a(Tail)),
        "middle": score,
        "highest": score,
        "radius": real(0, np.inf, above=True),
        "full_ball": score,
    },
    NoveltyModel: {
        "index": is_a(NeighborIndex),
        "training": is_a(TrainingScores),
        "model": optional(is_a(MapModel)),
        "n_jobs": jobs,
        "metric": one_of("euclidean", "cosine"),
    },
    # Walks.
    LocalWalk: {
        "index": is_a(NeighborIndex),
        "distinct": is_a(Distinct),
        "k": whole(1, "m"),
        "scales": by_point,
        "typical": positive,
        "dimension": positive,
        "weights": densities("m"),
        "unit": real(1e-3, 1e3),
        "n_parts": whole(1, "m"),
        "n_jobs": jobs,
    },
    FixedWalk: {
        "points": points("m"),
        "epsilon": real(0, np.inf, above=True),
        "weights": densities("m"),
        "index": optional(is_a(NeighborIndex)),
        "reach": array(None, least=0),
        "k": optional(whole(1, "m")),
        "n_parts": whole(1, "m"),
        "n_jobs": jobs,
    },
}  # fmt: skip



WALKS = (LocalWalk, FixedWalk)


def _scale(value: ErrorScale, scope: Scope) -> None:
    steps, cuts = value.values.shape[1], value.cuts
    if steps and steps != cuts.shape[1] + 1:
        raise Misfit(".values do not fit the cuts")
    if (cuts[:, 1:] < cuts[:, :-1]).any():
        raise Misfit(".cuts fall")


def _bars(value: ErrorBars, scope: Scope) -> None:
    if len(value.knots) != len(value.least) or (value.scale.values.size and not len(value.knots)):
        raise Misfit(".knots do not fit what is least at them")


def _fixed(value: FixedWalk, scope: Scope) -> None:
    if (value.k is None) != (value.index is None) or value.k == scope.size("m"):
        raise Misfit(".k does not fit the points")
    if value.index is not None and len(value.reach) != scope.size("m"):
        raise Misfit(".reach does not fit the points")


LAWS |= {TrainingScores: counts_fit, ErrorScale: _scale, ErrorBars: _bars, FixedWalk: _fixed}
