"""Schemas of searches, units, error bars, abnormality scores, random walks and streams.

Each `register` is a table of the fields of a class; `kinds` has the meaning of the letters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from outsample._validation import LARGEST_VALUE, TrainingRecord
from outsample.estimators.extended import NotKept
from outsample.estimators.novelty_model import NoveltyModel
from outsample.estimators.pyramids import Candidate
from outsample.files.kinds import (
    LARGEST_SCORE,
    any_float,
    array,
    boolean,
    coordinates,
    densities,
    integer,
    n_jobs,
    number,
    one_of,
    optional,
    points,
    real,
    record,
    row_numbers,
    sequence,
    string,
)
from outsample.files.schema import is_a, register
from outsample.files.scope import Kind, SchemaError, Scope
from outsample.neighbors.approximate import WIDTHS
from outsample.neighbors.duplicates import Duplicates
from outsample.neighbors.index import KINDS, NeighborIndex
from outsample.neighbors.neighborhoods import Search
from outsample.placers.map_model import MapModel
from outsample.records import Frames
from outsample.spectral.bandwidth import Choice
from outsample.spectral.fixed_walk import FixedWalk
from outsample.spectral.local_walk import LocalWalk
from outsample.spectral.units import MapUnit, PointUnit
from outsample.streaming.drift_tests import BETS, MEAN_RUN, DriftTests, RateTest, RunTest
from outsample.streaming.memory import Memory
from outsample.trust.abnormality import Distances, Tail, TrainingScores
from outsample.trust.error_bars import ErrorBars
from outsample.trust.error_scale import ErrorScale
from outsample.trust.quality import QualityEstimator

MAX_COUNT = 2**31
MAX_BLEND_PARTS = 64
positive = real(0, open_low=True)
not_negative = real(0)
scale = real(2.0**-1000, 2.0**1000)
positive_or_infinite = real(0, np.inf, open_low=True)
score = real(-LARGEST_SCORE, LARGEST_SCORE)
metric = one_of("euclidean", "cosine")


def scores(letter: str | None, *, ascending: bool = False) -> Kind:
    """Accept arrays of abnormality scores, and of the logarithms that they consist of."""
    return array(letter, low=-LARGEST_SCORE, high=LARGEST_SCORE, ascending=ascending)


def require_dense(scope: Scope, name: str) -> None:
    """Raise if points are sparse."""
    if scope.is_sparse:
        raise SchemaError(f"is not valid: {name} does not support sparse points")


def require_lengths(value: Any, names: str, expected: int) -> None:
    """Raise unless the arrays or lists with these names, if there are any, have one length."""
    for name in names.split():
        if hasattr(value, name) and len(getattr(value, name)) != expected:
            raise SchemaError(f".{name} has {len(getattr(value, name))} rows, not {expected}")


# Points, searches and units.


def _check_counts(value: Any, scope: Scope) -> None:
    counts, n = value.counts, scope.size("n")
    if counts.max() > n or counts.sum() != n:
        raise SchemaError(".counts do not sum to the number of rows")


def _check_distinct(value: Duplicates, scope: Scope) -> None:
    _check_counts(value, scope)
    if scope.size("m") < 2:
        raise SchemaError(".rows are fewer than two")
    if value.groups.max() >= scope.size("m"):
        raise SchemaError(".groups are beyond the distinct points")


def _check_index(value: NeighborIndex, scope: Scope) -> None:
    if value.kind != "brute":
        require_dense(scope, "this index")
    width = value.width
    is_valid = {"kd_tree": width < 100, "brute": width == 0, "codes": width > 0}
    if not is_valid[value.kind]:
        raise SchemaError(".width is not valid for the kind")


def _index_attributes(index: NeighborIndex) -> dict[str, Any]:
    names = ("X", "kind", "n_jobs", "width", "recall") if index.width else ("X", "kind", "n_jobs")
    return {name: getattr(index, name) for name in names}


def _build_index(X: Any, kind: Any, n_jobs: Any, width: Any = 0, recall: Any = 1.0) -> Any:
    """Build an index of points that are at least arrays; their values are checked later."""
    is_dense = type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2 and X.size
    if not (is_dense or sparse.issparse(X)) or not isinstance(kind, str) or kind not in KINDS:
        raise ValueError("it has no points or an unknown kind")
    return NeighborIndex(X, kind, n_jobs, width, recall)


# fmt: off
register(NotKept, {"words": string})
register(TrainingRecord, {
    "n_rows": integer(1), "is_sparse": boolean, "metric": metric, "n_jobs": n_jobs,
    "map_columns": integer(), "map_size": positive, "fits_float32": boolean,
}, lambda value, scope: scope.set_sparse(value.is_sparse))
register(Duplicates, {
    "groups": row_numbers("n", below="n"), "rows": row_numbers("m", below="n"),
    "counts": array("m", dtype=np.int64, low=1),
}, _check_distinct, stored_name="Distinct")
register(NeighborIndex, {
    "X": points("m"), "kind": one_of(*KINDS), "n_jobs": n_jobs,
    "width": integer(0, max(max(widths) for widths in WIDTHS.values())), "recall": real(0, 1),
}, _check_index, take_apart=_index_attributes, build=_build_index)
register(Search, {
    "index": is_a(NeighborIndex), "radius": optional(positive),
    "tangent_radius": optional(positive), "least_framed": integer(1, "m"),
})
register(Frames, {
    "axes": array("m", "d", "d", low=-1.001, high=1.001),
    "spread": array("m", "d", low=0, high=LARGEST_VALUE),
})
register(PointUnit, {"scale": scale})
register(MapUnit, {"center": coordinates("d"), "scale": scale})
register(Choice, {"bandwidth": any_float, "error": any_float})
register(Candidate, {
    "initial_scale": any_float, "ratio": number(1, 1e300), "levels": integer(), "error": any_float,
})


# Error bars.


def _check_error_scale(value: ErrorScale, scope: Scope) -> None:
    n_steps, cuts = value.values.shape[1], value.cuts
    if n_steps and n_steps != cuts.shape[1] + 1:
        raise SchemaError(".values must have one column more than .cuts")
    if (cuts[:, 1:] < cuts[:, :-1]).any():
        raise SchemaError(".cuts decrease")


def _check_error_bars(value: ErrorBars, scope: Scope) -> None:
    require_lengths(value, "knots", len(value.least))
    if value.scale.values.size and not len(value.knots):
        raise SchemaError(".knots are missing")


lengths = array("m", low=0)
register(ErrorScale, {
    "cuts": array(5, None, high=np.inf), "values": array(5, None),
}, _check_error_scale)
register(ErrorBars, {
    "scale": is_a(ErrorScale), "shift": real(-np.inf), "knots": array(None, ascending=True),
    "least": array(None, low=-np.inf),
    **dict.fromkeys(("largest", "factor", "floor", "slope", "farthest", "widest"), not_negative),
}, _check_error_bars)
register(QualityEstimator, {
    "X": points("m"), "Y": coordinates("m", "d"), "error_bars": is_a(ErrorBars),
    "lipschitz": not_negative, "manifold_dim": integer(0, MAX_COUNT),
}, stored_name="Judge")


# Abnormality scores.

register(Distances, {"nearest_distance": lengths, "plane_distance": lengths, "width": lengths})
register(Tail, {"start": score, "spread": real(1e-9, LARGEST_SCORE)})
register(TrainingScores, {
    "distances": is_a(Distances), "counts": array("m", dtype=np.int64, low=1),
    "widths": scores("m"), "relative_distance": lengths, "scores": scores("n"), "unit": positive,
    "farthest": positive, "tails": record(is_a(Tail), is_a(Tail)), "middle": score,
    "highest": score, "radius": positive_or_infinite, "full_ball": score,
}, _check_counts)
register(NoveltyModel, {
    "index": is_a(NeighborIndex), "training": is_a(TrainingScores),
    "model": optional(is_a(MapModel)), "n_jobs": n_jobs, "metric": metric,
})


# Random walks of diffusion maps.


def _check_fixed_walk(value: FixedWalk, scope: Scope) -> None:
    if (value.k is None) != (value.index is None) or value.k == scope.size("m"):
        raise SchemaError(".k is not valid for the points")
    if value.index is not None:
        require_lengths(value, "reach", scope.size("m"))


register(LocalWalk, {
    "index": is_a(NeighborIndex), "distinct": is_a(Duplicates), "k": integer(1, "m"),
    "scales": lengths, "typical": positive, "dimension": positive, "weights": densities("m"),
    "unit": real(1e-3, 1e3), "n_parts": integer(1, "m"), "n_jobs": n_jobs,
})
register(FixedWalk, {
    "points": points("m"), "epsilon": positive_or_infinite, "weights": densities("m"),
    "index": optional(is_a(NeighborIndex)), "reach": array(None, low=0),
    "k": optional(integer(1, "m")), "n_parts": integer(1, "m"), "n_jobs": n_jobs,
}, _check_fixed_walk)


# Streams. A memory can be empty, so that its sizes have no letters: `check_memory` compares them.


def _memory_frames(value: Any, scope: Scope) -> None:
    if type(value) is not Frames:
        raise SchemaError("are not Frames")
    array(None, None, None, low=-1.001, high=1.001)(value.axes, scope)
    array(None, None, low=0)(value.spread, scope)


register(RateTest, dict.fromkeys(("n_seen", "n_strange", "alarm_at"), integer()))
register(RunTest, {
    "sums": sequence(real(0, MEAN_RUN * len(BETS)), len(BETS), tuple, len(BETS)),
    **dict.fromkeys(("n_seen", "n_alarms", "alarm_at"), integer()),
})
register(DriftTests, {
    "evidence": is_a(RateTest), "original": is_a(RunTest), "recent": is_a(RunTest),
})
register(Memory, {
    "points": points(None, None), "images": coordinates(None, None),
    "frames": sequence(_memory_frames, MAX_BLEND_PARTS, tuple), "widths": scores(None),
    "gaps": array(None, low=0), "seen_at": array(None, dtype=np.int64, low=1),
    "scores": scores(None), "distances": array(None, low=0),
    "n_seen": integer(), "n_scored": integer(), "n_learned": integer(), "in_a_row": integer(),
    "n_waiting": integer(), "n_new_scores": integer(),
    "tests": is_a(DriftTests),
})


def check_memory(
    memory: Memory, n_frames: int, d: int, window: int, has_scores: bool, scope: Scope
) -> None:
    """Raise unless the parts of a stream's memory fit together and fit its model."""
    if len(memory.frames) != n_frames:
        raise SchemaError(".memory_.frames are not those of its placer")
    n_learned, n_seen = memory.points.shape[0], memory.n_seen
    n_scored, n_scores = (n_learned, n_seen) if has_scores else (0, 0)
    shapes = {
        "points": (n_learned, scope.size("D")),
        "images": (n_learned, d),
        "widths": (n_scored,),
        "gaps": (n_learned,),
        "seen_at": (n_learned,),
        "scores": (min(memory.n_scored, window + memory.n_new_scores) if has_scores else 0,),
        "distances": (min(n_seen, window),),
    }
    for name, shape in shapes.items():
        if getattr(memory, name).shape != shape:
            raise SchemaError(f".memory_.{name} does not have the shape {shape}")
    for frames in memory.frames:
        if frames.axes.shape != (n_learned, d, d) or frames.spread.shape != (n_learned, d):
            raise SchemaError(".memory_.frames do not have one row per learned point")
    waiting = memory.seen_at[max(n_learned - memory.n_waiting, 0) :]
    tests = memory.tests
    problems = {
        "seen_at is later than the last arrival":
            n_learned and memory.seen_at.max() > n_seen,
        "points are more than arrived":
            n_learned > min(window, memory.n_learned) or memory.n_learned > n_seen,
        "n_waiting does not agree with the points":
            memory.n_waiting > n_learned or (np.diff(waiting) <= 0).any(),
        "n_new_scores is larger than the number of scores":
            memory.n_new_scores > min(memory.n_scored, window),
        "n_scored is larger than the number of arrivals":
            memory.n_scored > n_scores or memory.in_a_row > n_scores,
        "tests have another number of arrivals":
            any(test.n_seen != n_scores or test.alarm_at > n_scores for test in tests)
            or tests.evidence.n_strange > n_scores,
    }  # fmt: skip
    for problem, is_present in problems.items():
        if is_present:
            raise SchemaError(f".memory_.{problem}")
