"""What was acknowledged is never lost: the write-ahead file, killed services, full disks."""

from __future__ import annotations

import errno
import os

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the service needs outsample[serve]")

from outsample import StreamingExtension, load, save
from outsample.files.estimator_schema import ESTIMATORS
from outsample.service import write_ahead
from outsample.service.learning import can_learn, open_learning
from outsample.service.write_ahead import LearnedFileError, WriteAhead
from service_tools import AUTHORISED, Client, fitted, learner, made, rows

needs_saving = pytest.mark.skipif(
    StreamingExtension not in ESTIMATORS, reason="model files do not hold streams yet"
)
ABOUT = {"model": "one", "n_features": 3}


def written(path, calls):
    log = WriteAhead(path, ABOUT)
    assert list(log.calls()) == []
    ends = []
    for group in calls:
        log.append(group)
        ends.append(log.end)
    log.close()
    return ends


def read(path, about=ABOUT):
    log = WriteAhead(path, about)
    try:
        return list(log.calls()), log
    finally:
        log.close()


def same(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_rows_come_back_call_by_call(tmp_path):
    groups = [[rows(2)], [rows(1, 2), rows(3, 3)], [rows(5, 4)]]
    written(tmp_path / "log", groups)
    found, log = read(tmp_path / "log")
    same(found, [call for group in groups for call in group])
    assert log.number == 4 and log.n_dropped == 0


def test_a_torn_last_record_is_dropped_wherever_it_is_torn(tmp_path):
    path, groups = tmp_path / "log", [[rows(1)], [rows(2, 2)], [rows(1, 3)]]
    ends = written(path, groups)
    whole = path.read_bytes()
    for size in range(ends[0], len(whole)):
        path.write_bytes(whole[:size])
        found, log = read(path)
        kept = sum(end <= size for end in ends)
        same(found, [call for group in groups[:kept] for call in group])
        assert path.stat().st_size == ends[kept - 1] == size - log.n_dropped
    path.write_bytes(whole[: ends[1]] + bytes(len(whole) - ends[1]))  # room, but no data
    assert len(read(path)[0]) == 2
    log = WriteAhead(path, ABOUT)
    list(log.calls())
    log.append([rows(4, 9)])
    log.close()
    same(read(path)[0], [rows(1), rows(2, 2), rows(4, 9)])


def test_damage_in_the_middle_is_refused_by_its_place(tmp_path):
    path = tmp_path / "log"
    ends = written(path, [[rows(1)], [rows(2, 2)], [rows(1, 3)]])
    whole = path.read_bytes()
    begin = ends[0] - (ends[2] - ends[1])
    for at in range(ends[1]):
        bad = bytearray(whole)
        bad[at] ^= 1 << (at % 8)
        path.write_bytes(bad)
        where = 0 if at < begin else begin if at < ends[0] else ends[0]
        said = "is no file of learned rows|at byte 0|begun with" if at < begin else f"byte {where},"
        with pytest.raises(LearnedFileError, match=said) as error:
            read(path)
        assert str(path) in str(error.value)
        assert path.read_bytes() == bytes(bad)


def test_another_model_or_nonsense_is_refused(tmp_path):
    written(tmp_path / "log", [[rows(1)]])
    with pytest.raises(LearnedFileError, match="begun with model 'one', not 'two'"):
        read(tmp_path / "log", ABOUT | {"model": "two"})
    for nonsense in (b"", b"OSLEARN1", b"x" * 100):
        (tmp_path / "other").write_bytes(nonsense)
        with pytest.raises(LearnedFileError, match="no file of learned rows"):
            read(tmp_path / "other")


def test_two_services_do_not_share_a_file(tmp_path):
    first = WriteAhead(tmp_path / "log", ABOUT)
    with pytest.raises(LearnedFileError, match="another service"):
        WriteAhead(tmp_path / "log", ABOUT)
    first.close()
    WriteAhead(tmp_path / "log", ABOUT).close()


def full(*arguments):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("failing", ["write", "fsync"])
def test_after_a_failed_write_the_file_is_as_before(tmp_path, monkeypatch, failing):
    log = WriteAhead(tmp_path / "log", ABOUT)
    log.append([rows(1)])
    real, calls = getattr(os, failing), []

    def partly(descriptor, *data):
        calls.append(1)
        if len(calls) > 1:
            return real(descriptor, *data)
        if data:
            real(descriptor, data[0][:10])
        return full()

    monkeypatch.setattr(write_ahead.os, failing, partly)
    with pytest.raises(OSError, match="No space"):
        log.append([rows(2)])
    assert (tmp_path / "log").stat().st_size == log.end
    log.append([rows(3)])
    log.close()
    same(read(tmp_path / "log")[0], [rows(1), rows(3)])


def test_a_file_that_cannot_be_put_right_is_not_written_to(tmp_path, monkeypatch):
    log = WriteAhead(tmp_path / "log", ABOUT)
    with monkeypatch.context() as patch:
        patch.setattr(write_ahead.os, "write", full)
        patch.setattr(write_ahead.os, "ftruncate", full)
        with pytest.raises(OSError):
            log.append([rows(1)])
    with pytest.raises(OSError, match="put right"):
        log.append([rows(1)])


def learned(client, X):
    return client.post("/learn", json={"rows": X.tolist()}, headers=AUTHORISED)


def test_learning_is_that_of_the_library_and_comes_back(tmp_path):
    stream = StreamingExtension(fitted(), window=50)
    service = learner(tmp_path, window=50)
    client = Client(service)
    for seed in range(8):
        X = rows(20, seed)
        answer, expected = learned(client, X).json(), stream.learn(X)
        np.testing.assert_array_equal(answer["coordinates"], expected.placement.coordinates)
        np.testing.assert_array_equal(answer["p_value"], expected.placement.p_value)
        np.testing.assert_array_equal(answer["accepted"], expected.accepted)
    told = client.get("/model").json()
    assert told["learning"] and told["n_learned"] == stream.n_learned_ and told["n_seen"] == 160
    service.end()
    again = learner(tmp_path, window=50)
    assert again.learning.n_replayed == 160
    np.testing.assert_array_equal(
        again.model.place(rows(30, 99)).p_value, stream.place(rows(30, 99)).p_value
    )
    again.end()
    with pytest.raises(LearnedFileError, match="window 50, not 60"):
        learner(tmp_path, window=60)


def test_learning_needs_the_token_even_here(tmp_path):
    service = learner(tmp_path)
    client, told = Client(service), {"rows": rows(1).tolist()}
    assert client.post("/learn", json=told).status_code == 401
    assert learned(client, rows(1)).status_code == 200
    service.token = None
    assert client.post("/learn", json=told, headers=AUTHORISED).status_code == 403
    service.end()
    reading = made(tmp_path)
    assert "does not learn" in learned(Client(reading), rows(1)).json()["reason"]
    reading.end()


def test_on_a_full_disk_learning_is_refused_and_placing_goes_on(tmp_path, monkeypatch):
    service = learner(tmp_path)
    client = Client(service)
    assert learned(client, rows(3)).status_code == 200
    with monkeypatch.context() as patch:
        patch.setattr(write_ahead.os, "write", full)
        answer = learned(client, rows(4))
        assert answer.status_code == 507 and "disk is full" in answer.json()["reason"]
        assert client.post("/place", json={"rows": rows(2).tolist()}).status_code == 200
    assert service.learning.stream.n_seen_ == 3
    assert learned(client, rows(5)).status_code == 200
    service.end()
    again = learner(tmp_path)
    assert again.learning.stream.n_seen_ == 8
    again.end()


@needs_saving
def test_a_large_file_is_begun_anew_from_a_snapshot(tmp_path, monkeypatch):
    service = learner(tmp_path)
    service.learning.compact_bytes = 2000
    client, path = Client(service), service.learning.log.path
    for seed in range(8):
        learned(client, rows(20, seed))
    expected = service.model.place(rows(30, 99))
    service.end()
    assert path.stat().st_size < 2000
    kept = list(tmp_path.glob("*.learned.*.outsample"))
    assert len(kept) == 1
    again = learner(tmp_path)
    assert again.learning.stream.n_seen_ == 160
    found = again.model.place(rows(30, 99))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    again.end()
    other = StreamingExtension(fitted())
    other.learn(rows(2))
    save(other, kept[0])
    with pytest.raises(LearnedFileError, match="missing or another"):
        learner(tmp_path)


def test_no_room_for_a_snapshot_is_no_harm(tmp_path, monkeypatch):
    from outsample.service import learning

    service = learner(tmp_path)
    service.learning.compact_bytes = 100
    monkeypatch.setattr(learning, "save", full)
    client = Client(service)
    assert learned(client, rows(3)).status_code == 200
    service.end()
    assert service.learning.compact_bytes == 2 * service.learning.log.n_bytes
    again = learner(tmp_path)
    assert again.learning.stream.n_seen_ == 3
    again.end()


@needs_saving
def test_a_stream_in_a_file_goes_on_learning(tmp_path):
    stream = StreamingExtension(fitted(), window=30)
    stream.learn(rows(5))
    save(stream, tmp_path / "stream.outsample")
    model = load(tmp_path / "stream.outsample")
    assert can_learn(model) and not can_learn(object())
    learning = open_learning(model, tmp_path / "log", "digest", {})
    assert learning.told["n_seen"] == 5
    learning.log.close()
    with pytest.raises(ValueError, match="a window and a guard of its own"):
        open_learning(model, tmp_path / "log", "digest", {"window": 40})
