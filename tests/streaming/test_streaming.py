"""A stream: the batch model of the same points, its calibration, its memory, its threads."""

from __future__ import annotations

import os
import pickle
import sys
import threading
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import outsample
from laws.subjects import sparse_stays
from outsample import (
    Blend,
    Correlated,
    InverseDistance,
    NeighborLoss,
    NoveltyDetector,
    PCAExtension,
    StreamingExtension,
)
from outsample.neighbors import growing_index as growing
from outsample.neighbors.growing_index import GrowingBackend, growing_index
from outsample.neighbors.index import NeighborIndex
from outsample.placers.local import LocalPlacer
from outsample.placers.map_model import MapModel
from outsample.points import in_metric
from outsample.records import Frames
from outsample.streaming import writer
from outsample.streaming.memory import REMOVED_FRACTION
from outsample.trust import calibration_window

PAPER = {"order": 0, "loss": "squared"}
BLEND = Blend(
    (
        LocalPlacer(InverseDistance(4.0), 5, 0, "absolute", 1),
        LocalPlacer(Correlated("matern52", 2.0, 1e-6), 9, 0, "squared", 1),
    ),
    (0.625, 0.375),
)
WAYS = {
    "distance": PCAExtension(weighting="distance", n_neighbors=7, **PAPER),
    "brute": PCAExtension(weighting="tangent", n_neighbors=7, index="brute", **PAPER),
    "local tangent": PCAExtension(weighting="local_tangent", n_neighbors=7, **PAPER),
    "ball": PCAExtension(weighting="local_tangent", radius=0.6, tangent_radius=0.5, **PAPER),
    "polynomial": PCAExtension(weighting="tangent", n_neighbors=12, order=1, loss="squared"),
    "blend": PCAExtension(weighting=BLEND),
    "process": PCAExtension(weighting="correlated", n_neighbors=150),
    "neighbor loss": PCAExtension(weighting=NeighborLoss(5.0)),
    "cosine": PCAExtension(weighting="distance", n_neighbors=7, metric="cosine", **PAPER),
}
BY_ORIGINALS = {"error_bar", "bound"}


def sheet(rng, n):
    flat = rng.normal(size=(n, 2))
    return np.column_stack([flat, np.sin(flat[:, 0])]) + 0.01 * rng.normal(size=(n, 3)), flat


def fitted(way, n=150, seed=0, **options):
    rng = np.random.default_rng(seed)
    X, Y = sheet(rng, n)
    return NoveltyDetector(clone(WAYS[way]), **options).fit(X, Y), rng


def same(one, other):
    for name, a, b in zip(one._fields, one, other, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=name)


def batch_model(stream):
    """Map and scores over all points of a stream by one plain index, with the same constants."""
    now = stream._now().model
    X = now.model.search.index.X
    frames = iter([Frames(*pair) for pair in zip(*[iter(_frame_columns(stream))] * 2, strict=True)])
    index = NeighborIndex(np.array(X), stream._core.index)
    search = now.original.search.__class__(
        index, now.original.search.radius, now.original.search.tangent_radius,
        now.original.search.least_framed,
    )  # fmt: skip
    Y = np.array(now.model.quality.Y)
    placer = now.original.fitted.regrow(now.original.search, index.X, Y, frames)
    model = MapModel(search, placer, now.model.quality._replace(X=index.X, Y=Y), None)
    novelty = now.novelty.__class__(index, now.novelty.training, model, None)
    return model, novelty


def _frame_columns(stream):
    now = stream._now().model
    columns = [part for frames in now.original_columns().frames for part in frames]
    neighbors = now.model.search.index.X.shape[0] - now.n_originals
    learned = [part[:neighbors] for frames in stream.memory_.frames for part in frames]
    return [np.concatenate(pair) for pair in zip(columns, learned, strict=True)]


@pytest.mark.parametrize(("way", "delay"), [*((way, 0) for way in WAYS), ("blend", 20)])
def test_a_stream_is_the_batch_model_of_its_points_to_the_bit(way, delay, monkeypatch):
    monkeypatch.setattr(growing, "MAX_SCANNED_ROWS", 30)  # a tree, and some rows beside it
    detector, rng = fitted(way)
    before = pickle.dumps(detector)
    stream = StreamingExtension(detector, window=200, delay=delay)
    Q = np.concatenate([sheet(rng, 12)[0], rng.normal(size=(3, 3)) * 4])
    same(stream.place(Q), detector.place(Q))
    first = sheet(rng, 90)[0]
    whole = stream.learn(first).placement
    step = stream._writer.step
    same(type(whole)(*(field[:step] for field in whole)), detector.place(first[:step]))
    for size in (1, 30, 7, 1):
        stream.learn(sheet(rng, size)[0])
    now = stream._now()
    backend = now.model.model.search.index._backend
    assert isinstance(backend, GrowingBackend) and backend.learned is not None
    model, novelty = batch_model(stream)
    asked = in_metric(Q, stream._core.metric)
    expected = novelty.place(asked, model, now.calibration, np.dtype(float))
    placed = stream.place(Q)
    for name in set(placed._fields) - BY_ORIGINALS:
        np.testing.assert_array_equal(getattr(placed, name), getattr(expected, name), err_msg=name)
    assert pickle.dumps(detector) == before
    assert stream.n_learned_ > 80
    assert (stream.memory_.n_waiting >= step) == (delay > 0)


@pytest.mark.parametrize("way", ["distance", "local tangent", "process", "ball"])
def test_batch_single_and_shuffled_agree_and_asking_changes_nothing(way):
    detector, rng = fitted(way)
    stream = StreamingExtension(detector, window=60)
    stream.learn(sheet(rng, 50)[0])
    Q = sheet(rng, 9)[0]
    before = pickle.dumps(stream)
    placed = stream.place(Q)
    for i in range(len(Q)):
        same(stream.place(Q[i : i + 1]), type(placed)(*(field[i : i + 1] for field in placed)))
    assert pickle.dumps(stream) == before
    again = pickle.loads(before)
    same(again.place(Q), placed)
    arrivals = sheet(rng, 30)[0]
    same(stream.learn(arrivals).placement, again.learn(arrivals).placement)
    same(stream.place(Q), again.place(Q))
    assert str(stream.drift_) == str(again.drift_)


def state(stream):
    """All that a stream would answer by, as arrays; and what it says of its age."""
    now = stream._now()
    parts = now.memory._replace(frames=(), tests=None)
    columns = now.memory.columns(now.calibration is not None)
    parts = [*columns.arrays(), *parts, now.calibration, now.model.model.search.index.X]
    arrays = [part.toarray() if sparse.issparse(part) else part for part in parts]
    return [*arrays, str(now.memory.tests), str(stream.drift_)]


def same_state(one, other):
    for a, b in zip(state(one), state(other), strict=True):
        np.testing.assert_array_equal(a, b)


def row_by_row(stream, arrivals):
    results = [stream.learn(arrivals[at : at + 1]) for at in range(arrivals.shape[0])]
    return joined_results(results)


def joined_results(results):
    placed = [result.placement for result in results]
    fields = [np.concatenate(field) for field in zip(*placed, strict=True)]
    return type(placed[0])(*fields), np.concatenate([result.accepted for result in results])


STREAMED = {
    "distance": (np.asarray, {"delay": 0}),
    "local tangent": (np.asarray, {"delay": 7}),
    "brute": (sparse.csr_matrix, {"delay": 3, "guard": 0.3}),
}


def stream_and_arrivals(way, n=110):
    """A stream that turns over twice, and arrivals on a grid: most have copies."""
    kind, options = STREAMED[way]
    rng = np.random.default_rng(0)
    X, Y = sheet(rng, 60)
    extension = clone(WAYS[way]).set_params(weighting="distance") if way == "brute" else WAYS[way]
    detector = NoveltyDetector(clone(extension)).fit(kind(np.round(X, 1)), Y)
    arrivals = np.round(sheet(rng, n)[0], 1)
    arrivals[60:75] += 9.0  # a run of strange ones
    arrivals[30:50] = arrivals[rng.integers(0, 30, 20)]
    return StreamingExtension(detector, window=40, **options), kind(arrivals)


@cache
def learned_row_by_row(way):
    stream, arrivals = stream_and_arrivals(way)
    return stream, arrivals, *row_by_row(stream, arrivals)


@pytest.mark.parametrize("way", STREAMED)
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_cut_of_the_same_arrivals_gives_the_same_state(way, data, tmp_path_factory):
    """Calls of any length, saved and loaded between two of them: the state of row by row."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "STEPS_PER_WINDOW", 8)  # steps of five arrivals
        expected, arrivals, placed, accepted = learned_row_by_row(way)
        n = arrivals.shape[0]
        edges = sorted(data.draw(st.sets(st.integers(1, n - 1), max_size=12)))
        saved_at = data.draw(st.sampled_from([0, *edges]))
        stream, results = stream_and_arrivals(way)[0], []
        for start, stop in pairwise([0, *edges, n]):
            if start == saved_at:
                path = tmp_path_factory.mktemp("stream") / "stream.outsample"
                outsample.save(stream.start(), path)
                stream = outsample.load(path)
            results.append(stream.learn(arrivals[start:stop]))
        same_state(stream, expected)
        whole, taken = joined_results(results)
        np.testing.assert_array_equal(taken, accepted)
        same(whole, placed)
        same(stream.place(arrivals[:30]), expected.place(arrivals[:30]))
    assert 0 < accepted.sum() < n and expected.memory_.points.shape[0] <= 40


@pytest.mark.parametrize("has_scores", [True, False])
def test_one_call_and_row_by_row_give_the_same_state(has_scores):
    """With the steps that a user has; the window turns over."""
    detector, rng = fitted("distance")
    around = detector if has_scores else detector.extension_
    arrivals, Q = sheet(rng, 451)[0], sheet(rng, 20)[0]
    streams = [StreamingExtension(around, window=200) for _ in range(2)]
    whole = streams[0].learn(arrivals)
    placed, accepted = row_by_row(streams[1], arrivals)
    assert streams[0]._writer.step == 2
    same(whole.placement, placed)
    np.testing.assert_array_equal(whole.accepted, accepted)
    same_state(*streams)
    same(streams[0].place(Q), streams[1].place(Q))


def test_a_step_is_judged_by_what_was_known_before_it(monkeypatch):
    monkeypatch.setattr(writer, "STEPS_PER_WINDOW", 2)
    detector, rng = fitted("local tangent")
    arrivals = sheet(rng, 50)[0]
    stream = StreamingExtension(detector, window=50)
    placed = stream.place(arrivals)
    same(stream.learn(arrivals[:10]).placement, detector.place(arrivals[:10]))
    same(stream.place(arrivals), placed)
    assert stream.n_seen_ == 10 and stream.n_learned_ > 5
    same(stream.learn(arrivals[10:25]).placement, detector.place(arrivals[10:25]))
    assert (stream.place(arrivals).abnormality != placed.abnormality).any()


def test_a_call_that_is_interrupted_leaves_the_stream_as_it_was(monkeypatch):
    """Even where the oldest have left already and columns were written again."""
    detector, rng = fitted("distance")
    arrivals, Q = sheet(rng, 120)[0], sheet(rng, 9)[0]
    streams = [StreamingExtension(detector, window=30, guard=0.0, delay=0) for _ in range(2)]
    for stream in streams:
        stream.learn(arrivals[:25])
    before, original = streams[0].place(Q), writer.StreamWriter._grown
    calls = iter(range(40))

    def interrupted(self, now):
        if next(calls) == 39:
            raise KeyboardInterrupt
        return original(self, now)

    monkeypatch.setattr(writer.StreamWriter, "_grown", interrupted)
    with pytest.raises(KeyboardInterrupt):
        streams[0].learn(arrivals[25:])
    monkeypatch.undo()
    same(streams[0].place(Q), before)
    for stream in streams:
        stream.learn(arrivals[25:])
    same_state(*streams)
    same(streams[0].place(Q), streams[1].place(Q))


CHANGES = {"extension": None, "window": 300, "guard": 0.5, "delay": 3}


def test_every_parameter_is_tried():
    assert set(CHANGES) == set(StreamingExtension._get_param_names())


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("way", ["set_params", "attribute"])
def test_a_started_stream_rejects_other_parameters(name, way):
    detector, rng = fitted("distance")
    other = NoveltyDetector(clone(WAYS["distance"])).fit(np.eye(20, 5), np.eye(20, 2))
    value = other if name == "extension" else CHANGES[name]
    stream, Q = StreamingExtension(detector, window=200), sheet(rng, 5)[0]
    assert getattr(stream.set_params(**{name: value}), name) is value  # nothing has arrived yet
    stream = StreamingExtension(detector, window=200)
    before = stream.place(Q)
    with pytest.raises(ValueError, match=f"{name} cannot be changed"):
        stream.set_params(**{name: value}) if way == "set_params" else setattr(stream, name, value)
    stream.set_params(**{name: getattr(stream, name)})  # the same is no change
    same(stream.place(Q), before)
    again = pickle.loads(pickle.dumps(stream.start()))
    with pytest.raises(ValueError, match=f"{name} cannot be changed"):
        again.start().set_params(**{name: value})


def test_a_stream_whose_extension_was_fitted_again_says_so():
    detector, rng = fitted("distance")
    stream, Q = StreamingExtension(detector), sheet(rng, 5)[0]
    stream.learn(Q)
    detector.fit(np.eye(20, 5), np.eye(20, 2))
    for ask in (stream.place, stream.learn, lambda X: stream.drift_, lambda X: stream.n_seen_):
        with pytest.raises(ValueError, match="fitted again"):
            ask(Q)


def test_the_oldest_leave_and_the_original_map_stays():
    detector, rng = fitted("distance")
    window = 40
    stream = StreamingExtension(detector, window=window, guard=0.0, delay=0)
    first = sheet(rng, 1)[0]
    stream.learn(first)
    X = detector.extension_.model_.search.index.X
    for _ in range(30):
        stream.learn(sheet(rng, 7)[0])
        kept = stream._now().model.model.search.index.X
        assert len(kept) <= len(X) + window
        np.testing.assert_array_equal(kept[: len(X)], X)
        images = stream._now().model.model.quality.Y[len(X) :]
        np.testing.assert_array_equal(images, stream.memory_.images)
    assert len(kept) > len(X) + window - window // REMOVED_FRACTION - 7
    assert (stream.memory_.points != first).any(axis=1).all()
    assert (stream.memory_.seen_at[1:] > stream.memory_.seen_at[:-1]).all()
    stream.learn(sheet(rng, 500)[0])  # more than the window at once
    assert window - window // REMOVED_FRACTION <= len(stream.memory_.points) <= window
    assert len(stream.memory_.scores) == window
    np.testing.assert_array_equal(np.sort(stream.memory_.scores), stream._now().calibration)


def test_copies_are_no_neighbours_and_what_is_seen_again_stays():
    detector, rng = fitted("distance")
    stream = StreamingExtension(detector, window=40, guard=0.0)
    X = detector.extension_.model_.search.index.X
    regular = sheet(rng, 1)[0]
    learned = stream.learn(np.concatenate([X[:2], regular, regular]))
    np.testing.assert_array_equal(learned.accepted, [False, False, True, False])
    for _ in range(20):
        assert not stream.learn(regular).accepted.any()
        stream.learn(sheet(rng, 6)[0])
    assert (stream.memory_.points == regular).all(axis=1).sum() == 1
    assert stream.n_seen_ == 4 + 20 * 7
    placed = stream.place(np.concatenate([regular, X[:1]]))
    np.testing.assert_array_equal(placed.coordinates[0], learned.placement.coordinates[2])


def test_learned_points_help_the_score_and_leave_error_bars_and_bounds_alone():
    detector, rng = fitted("distance")
    stream = StreamingExtension(detector, window=300, guard=0.0)
    beside = np.array([3.5, 0.0, np.sin(3.5)]) + 0.05 * rng.normal(size=(80, 3))
    before = stream.place(beside[:1])
    stream.learn(beside[1:])
    after = stream.place(beside[:1])
    assert after.abnormality[0] < before.abnormality[0]
    assert after.p_value[0] > before.p_value[0]
    assert after.isolation[0] < before.isolation[0]
    assert after.error_bar[0] > 0.5 * before.error_bar[0]
    truth = np.array([[3.5, 0.0]])
    assert np.linalg.norm(after.coordinates - truth) <= after.bound[0] + 1


def test_without_a_detector_every_new_point_is_learned():
    rng = np.random.default_rng(0)
    X, Y = sheet(rng, 150)
    extension = clone(WAYS["local tangent"]).fit(X, Y)
    stream = StreamingExtension(extension, window=50)
    arrivals = sheet(rng, 30)[0]
    same(stream.place(arrivals), extension.place(arrivals))
    assert stream.learn(arrivals).accepted.all()
    assert not hasattr(stream.place(arrivals), "p_value")
    assert stream.drift_.outside < 0.2
    assert not stream.needs_refit_
    stream.learn(X[:40] + 9)
    assert stream.needs_refit_
    assert "beyond its points" in str(stream.drift_)


def test_sparse_points_are_learned_as_dense_ones_are():
    rng = np.random.default_rng(0)
    X, Y = rng.poisson(0.6, size=(120, 6)).astype(float), rng.normal(size=(120, 2))
    arrivals, Q = rng.poisson(0.8, size=(60, 6)).astype(float), rng.poisson(0.6, size=(9, 6))
    answers = []
    for kind in (np.asarray, sparse.csr_matrix):
        way = PCAExtension(weighting="distance", n_neighbors=5, index="brute", **PAPER)
        with sparse_stays():
            detector = NoveltyDetector(way).fit(kind(X), Y)
        stream = StreamingExtension(detector, window=30, guard=0.0)
        for part in np.array_split(arrivals, 6):
            stream.learn(kind(part))
        answers.append((stream.place(kind(Q.astype(float))), stream.n_learned_))
    assert answers[0][1] == answers[1][1] > 30
    for a, b in zip(answers[0][0], answers[1][0], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_float32_points_are_answered_in_float32():
    detector, rng = fitted("distance")
    stream = StreamingExtension(detector)
    arrivals = sheet(rng, 20)[0].astype(np.float32)
    assert stream.learn(arrivals).placement.coordinates.dtype == np.float32
    assert stream.place(arrivals).coordinates.dtype == np.float32
    assert stream.memory_.images.dtype == np.float64


def test_parts_of_an_index_find_what_one_index_finds():
    """Ties and copies among them: a grid, searched at its own points."""
    grid = np.stack(np.meshgrid(*[np.arange(6.0)] * 2), axis=-1).reshape(-1, 2)
    rng = np.random.default_rng(0)
    rows = np.concatenate([grid, grid[::2] + 0.5, grid[:9] * 2])
    Q = np.concatenate([grid, rng.random((20, 2)) * 6])
    whole = NeighborIndex(rows)
    for kind in ("kd_tree", "brute"):
        base = NeighborIndex(rows[:36], kind)
        tree = NeighborIndex(rows[36:50], kind)
        backend = GrowingBackend(base, rows, tree)
        grown = NeighborIndex(rows, kind, backend=backend)
        for index in (growing_index(base, rows), growing_index(base, rows, grown), grown):
            same(index.nearest(Q, 11), whole.nearest(Q, 11))
            same(index.nearest(Q, len(rows)), whole.nearest(Q, len(rows)))
            same(index.ball(Q, 1.5, 3), whole.ball(Q, 1.5, 3))


def test_readers_never_see_a_part_of_what_is_learned(reads=400, batches=60):
    """Answers of two threads while one learns: each is that of some state, whole."""
    detector, rng = fitted("distance")
    Q, arrivals = sheet(rng, 3)[0], sheet(rng, 4 * batches)[0].reshape(batches, 4, 3)
    once = StreamingExtension(detector, window=60)
    allowed = {_bytes(once.place(Q))}
    for part in arrivals:
        once.learn(part)
        allowed.add(_bytes(once.place(Q)))
    stream, torn, counts = StreamingExtension(detector, window=60), [], []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)

    def read():
        done = 0
        while done < reads // 2 or writer.is_alive():
            answer = _bytes(stream.place(Q))
            if answer not in allowed:
                torn.append(answer)
            done += 1
        counts.append(done)

    writer = threading.Thread(target=lambda: [stream.learn(part) for part in arrivals])
    readers = [threading.Thread(target=read) for _ in range(2)]
    try:
        for thread in (writer, *readers):
            thread.start()
        for thread in (writer, *readers):
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not torn
    assert sum(counts) >= reads
    assert _bytes(stream.place(Q)) == _bytes(once.place(Q))


@pytest.mark.long
def test_readers_never_see_a_part_in_a_hundred_thousand_reads():
    test_readers_never_see_a_part_of_what_is_learned(100_000, 2000)


def _bytes(placed):
    return b"".join(np.ascontiguousarray(field).tobytes() for field in placed)


def test_what_is_wrong_is_said():
    rng = np.random.default_rng(0)
    X, Y = sheet(rng, 60)
    detector = NoveltyDetector(clone(WAYS["distance"])).fit(X, Y)
    with pytest.raises(TypeError, match="must be a fitted NoveltyDetector"):
        StreamingExtension(3).place(X)
    with pytest.raises(NotFittedError):
        StreamingExtension(NoveltyDetector()).place(X)
    with pytest.raises(NotFittedError):
        clone(StreamingExtension(detector)).learn(X)
    with pytest.raises(ValueError, match="no map to learn"):
        StreamingExtension(NoveltyDetector().fit(X)).place(X)
    with pytest.raises(ValueError, match="window"):
        StreamingExtension(detector, window=3).place(X)
    with pytest.raises(ValueError, match="guard"):
        StreamingExtension(detector, guard=2.0).place(X)
    stream = StreamingExtension(detector)
    for bad in (X[:, :2], X * np.nan, X[0]):
        with pytest.raises(ValueError):
            stream.learn(bad)
    assert stream.n_seen_ == 0
    for bad in (-1, 5001, 0.5):
        with pytest.raises((TypeError, ValueError), match="delay"):
            StreamingExtension(detector, delay=bad).place(X)
    defaults = {"window": 10_000, "guard": 0.1, "delay": None}
    assert stream.get_params(deep=False) == {"extension": detector, **defaults}


def test_neighbours_wait_until_others_have_arrived():
    """Whatever the calls in which they come, and copies of those that wait are no new ones."""
    detector, rng = fitted("distance")
    arrivals, Q = sheet(rng, 60)[0], sheet(rng, 5)[0]
    stream = StreamingExtension(detector, window=100, guard=0.0, delay=25)
    one_by_one = StreamingExtension(detector, window=100, guard=0.0, delay=25)
    n = len(detector.extension_.model_.search.index.X)
    for at in range(60):
        assert one_by_one.learn(arrivals[at : at + 1]).accepted.all()
        kept = one_by_one._now().model.model.search.index.X
        np.testing.assert_array_equal(kept[n:], arrivals[: max(at + 1 - 25, 0)])
    assert stream.learn(arrivals[:20]).accepted.all()
    same(stream.place(Q)._replace(p_value=0), detector.place(Q)._replace(p_value=0))
    assert not stream.learn(arrivals[15:20]).accepted.any()
    stream.learn(arrivals[20:])
    assert stream.n_learned_ == one_by_one.n_learned_ == 60
    np.testing.assert_array_equal(stream.memory_.points, one_by_one.memory_.points)
    assert stream.memory_.n_waiting == 25 and one_by_one.memory_.n_waiting == 25
    same(pickle.loads(pickle.dumps(stream)).place(Q), stream.place(Q))
    for part in np.array_split(sheet(rng, 400)[0], 29):  # the oldest leave, the latest wait
        stream.learn(part)
        assert stream.memory_.n_waiting == 25
        waiting = stream.memory_.seen_at[-25:]
        np.testing.assert_array_equal(waiting, stream.n_seen_ - 25 + np.arange(1, 26))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_copies_are_found_among_rows_that_begin_alike(kind):
    rng = np.random.default_rng(0)
    rows, Q = rng.integers(0, 3, size=(2, 40, 4)).astype(float)
    Q[0], Q[1] = rows[3], -0.0 * rows[3]
    before = [np.concatenate([rows, Q[:at]]) for at in range(40)]
    expected = [(row != others).any(axis=1).all() for row, others in zip(Q, before, strict=True)]
    assert 0 < np.sum(expected) < 40
    np.testing.assert_array_equal(growing.are_new(kind(Q), kind(rows)), expected)
    assert growing.are_new(kind(Q[:1]), kind(rows[:0])).all()


def test_zeros_that_a_sparse_row_holds_make_no_difference():
    plain = sparse.csr_matrix([[0.0, 2.0, 0.0]])
    held = sparse.csr_matrix(([0.0, 2.0], np.array([0, 1], np.int64), [0, 2]), shape=(1, 3))
    assert not growing.are_new(held, plain).any()
    both = sparse.vstack([held, plain], format="csr")
    np.testing.assert_array_equal(growing.are_new(both, plain[:0]), [True, False])


def test_what_lasts_for_less_than_the_delay_stays_strange():
    """A quiet stretch of one kind, too little strange to be kept out one by one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    ways = PCAExtension(n_neighbors=10, weighting="distance", order=0, loss="squared")
    detector = NoveltyDetector(ways).fit(X, X[:, :2])
    beside = np.array([2.2, 2.2, 0.0]) + 0.05 * rng.normal(size=(200, 3))
    scores = {}
    for delay in (0, 250):
        stream = StreamingExtension(detector, window=1000, guard=0.01, delay=delay)
        found = [stream.learn(rows).placement.abnormality for rows in np.split(beside, 20)]
        scores[delay] = np.median(np.concatenate(found[10:]))
    assert scores[250] == pytest.approx(np.median(detector.abnormality(beside[100:])))
    assert scores[0] < scores[250] - 1


@pytest.mark.long
def test_a_million_points_are_learned_in_bounded_memory():
    """Memory after a million arrivals is that after a hundred thousand."""
    detector, rng = fitted("distance", 1000)
    stream = StreamingExtension(detector, window=10_000)
    sizes = []
    for at in range(200):
        stream.learn(sheet(rng, 5000)[0])
        if at in (19, 199):
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            sizes.append(pages * os.sysconf("SC_PAGE_SIZE"))
    assert stream.n_seen_ == 1_000_000 and stream.n_learned_ > 950_000
    assert len(stream.memory_.points) <= 10_000
    assert sizes[1] - sizes[0] < 2**26
    print(sizes)


def test_a_run_of_strange_arrivals_refreshes_the_calibration_once():
    """Or an hour of a flood would make the next one look usual."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 3))
    ways = PCAExtension(n_neighbors=10, weighting="distance", order=0, loss="squared")
    stream = StreamingExtension(NoveltyDetector(ways).fit(X, X[:, :2]), window=500)
    flood = 9 + 0.1 * rng.normal(size=(30, 3))
    for rows in np.split(flood, 3):
        assert (stream.learn(rows).placement.p_value <= 0.01).all()
    assert stream.memory_.n_scored == 1 and stream.memory_.in_a_row == 30
    stream.learn(rng.normal(size=(50, 3)))
    assert stream.memory_.in_a_row == 0
    assert (stream.place(flood).p_value <= 0.01).all()


def test_a_run_without_an_end_is_the_new_usual():
    counts, run = calibration_window.refreshing(np.ones(300, bool), 0)
    assert counts.sum() == 1 + 300 - calibration_window.MAX_RUN and run == 300
    parts, row = [], 0
    strange = np.random.default_rng(0).random(1000) < 0.7
    for part in np.split(strange, [1, 2, 50, 400]):
        counts, row = calibration_window.refreshing(part, row)
        parts.append(counts)
    whole, last = calibration_window.refreshing(strange, 0)
    assert (np.concatenate(parts) == whole).all() and row == last
