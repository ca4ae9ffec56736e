"""Which memories of streams a model file may hold, and what fits them.

What is remembered may be nothing at all, so that sizes are compared here and have no letters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from outsample.estimators.novelty_detector import NoveltyDetector
from outsample.files.kinds import (
    LARGEST_SCORE,
    Misfit,
    Scope,
    array,
    images,
    listed,
    real,
    whole,
)  # fmt: skip
from outsample.files.schema import FIELDS, is_a
from outsample.records import Frames
from outsample.streaming.drift_tests import BETS, MEAN_RUN, DriftTests, RateTest, RunTest
from outsample.streaming.extension import StreamingExtension
from outsample.streaming.memory import Memory

MOST_FRAMES = 64


def learned_points(value: Any, scope: Scope) -> None:
    """Refuse what are no points, dense or sparse; there may be none."""
    if sparse.issparse(value):
        images(None)(value.data, scope)
        return
    images(None, None)(value, scope)
    if not value.flags.c_contiguous:
        raise Misfit("is not in the order of its rows")


def learned_frames(value: Any, scope: Scope) -> None:
    """Refuse what are no frames, one record a part of a blend."""
    if type(value) is not tuple or len(value) > MOST_FRAMES:
        raise Misfit("must be a few frames")
    for one in value:
        if type(one) is not Frames:
            raise Misfit("must be frames")
        array(None, None, None, least=-1.001, most=1.001)(one.axes, scope)
        array(None, None, least=0)(one.spread, scope)


scores = array(None, least=-LARGEST_SCORE, most=LARGEST_SCORE)
lengths = array(None, least=0)
FIELDS |= {
    RateTest: {"n_seen": whole(), "n_strange": whole(), "alarm_at": whole()},
    RunTest: {
        "sums": listed(real(0, MEAN_RUN * len(BETS)), len(BETS), tuple, len(BETS)),
        "n_seen": whole(),
        "n_alarms": whole(),
        "alarm_at": whole(),
    },
    DriftTests: {
        "evidence": is_a(RateTest), "original": is_a(RunTest), "recent": is_a(RunTest),
    },
    Memory: {
        "points": learned_points,
        "images": images(None, None),
        "frames": learned_frames,
        "widths": scores,
        "gaps": lengths,
        "seen_at": array(None, dtype=np.int64, least=1),
        "scores": scores,
        "distances": lengths,
        "n_seen": whole(),
        "n_scored": whole(),
        "n_learned": whole(),
        "in_a_row": whole(),
        "tests": is_a(DriftTests),
        "n_waiting": whole(),
        "n_new_scores": whole(),
    },
}  # fmt: skip


def memory_fits(model: StreamingExtension, scope: Scope) -> None:
    """Refuse a memory that is not one of the model that the stream is around."""
    extension, memory, core = model.extension, model.memory_, model._core
    has_scores = isinstance(extension, NoveltyDetector)
    n = len(extension.training_rows_ if has_scores else core.embedding_)
    d = core.embedding_.shape[1]
    for letter, size in {"D": extension.n_features_in_, "d": d, "n": n}.items():
        scope.agree(letter, size)
    known = core.model_.fitted.kept_frames()
    if len(memory.frames) != len(known):
        raise Misfit(".memory_.frames are not those of its placer")
    learned, D = memory.points.shape[0], scope.size("D")
    window, scored = int(model.window), learned if has_scores else 0
    recent = min(memory.n_seen, window)
    shapes = {
        "points": (learned, D),
        "images": (learned, d),
        "widths": (scored,),
        "gaps": (learned,),
        "seen_at": (learned,),
        "scores": (min(memory.n_scored, window + memory.n_new_scores) if has_scores else 0,),
        "distances": (recent,),
    }
    for name, shape in shapes.items():
        if getattr(memory, name).shape != shape:
            raise Misfit(f".memory_.{name} does not fit the others")
    for frames in memory.frames:
        if frames.axes.shape != (learned, d, d) or frames.spread.shape != (learned, d):
            raise Misfit(".memory_.frames do not fit the others")
    if sparse.issparse(memory.points) != sparse.issparse(core.model_.search.index.X):
        raise Misfit(".memory_.points are sparse where others are not, or the other way round")
    if learned and memory.seen_at.max() > memory.n_seen:
        raise Misfit(".memory_.seen_at is later than now")
    if not learned <= min(window, memory.n_learned) or memory.n_learned > memory.n_seen:
        raise Misfit(".memory_ has more points than arrived")
    waiting = memory.seen_at[max(learned - memory.n_waiting, 0) :]
    if memory.n_waiting > learned or (np.diff(waiting) <= 0).any():
        raise Misfit(".memory_.n_waiting does not fit the others")
    if memory.n_new_scores > min(memory.n_scored, window):
        raise Misfit(".memory_.n_new_scores does not fit the others")
    most = memory.n_seen if has_scores else 0
    if memory.n_scored > most or memory.in_a_row > most:
        raise Misfit(".memory_ has more scores than arrivals")
    tests, counted = memory.tests, memory.n_seen if has_scores else 0
    if any(test.n_seen != counted or test.alarm_at > counted for test in tests):
        raise Misfit(".memory_.tests have not seen what arrived")
    if tests.evidence.n_strange > counted:
        raise Misfit(".memory_.tests have seen more than arrived")
