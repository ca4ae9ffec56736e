"""What was acknowledged is never lost: learned rows in SQLite, snapshots, full disks, reloading."""

from __future__ import annotations

import json
import shutil
import sqlite3
import struct
import zlib

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the service needs outsample[serve]")

from outsample import StreamingExtension, load, save
from outsample.files.learned_rows import LearnedRows
from outsample.files.old_learned_rows import LearnedFileError
from outsample.service import learning
from service_tools import ARROW, READER, Client, arrow_stream, fitted, make_service, rows, saved

NAME = "small.outsample.learned"


def learner(folder, **options):
    return make_service(folder, learns=True, **options)


def learned(client, X, key=None):
    return client.send("/learn", X, **({"Idempotency-Key": key} if key else {}))


def p_values(service, X=None):
    return service.model.answer(rows(30, 99) if X is None else X)["p_value"]


def test_learning_is_that_of_the_library_and_survives_a_restart(tmp_path):
    stream = StreamingExtension(fitted(), window=50)
    service = learner(tmp_path, window=50)
    client = Client(service)
    for seed in range(8):
        X = rows(20, seed)
        answer, expected = learned(client, X).json(), stream.learn(X)
        np.testing.assert_array_equal(answer["coordinates"], expected.placement.coordinates)
        np.testing.assert_array_equal(answer["p_value"], expected.placement.p_value)
        np.testing.assert_array_equal(answer["accepted"], expected.accepted)
    about = client.get("/model").json()
    assert about["learning"] and about["n_learned"] == stream.n_learned_ and about["n_seen"] == 160
    expected = stream.place(rows(30, 99)).p_value
    shutil.copytree(tmp_path, tmp_path / "killed")  # as a killed process leaves it
    service.end()
    for folder, n_replayed in ((tmp_path, 0), (tmp_path / "killed", 8)):
        again = learner(folder)
        assert again.learner.n_replayed == n_replayed
        np.testing.assert_array_equal(p_values(again), expected)
        again.end()


def test_settings_of_the_file_win_and_others_are_rejected(tmp_path):
    learner(tmp_path, window=50, guard=0.2).end()
    again = learner(tmp_path)
    assert (again.learner.stream.window, again.learner.stream.guard) == (50, 0.2)
    again.end()
    learner(tmp_path, window=50).end()
    with pytest.raises(LearnedFileError, match="window 50, not 60"):
        learner(tmp_path, window=60)
    with pytest.raises(LearnedFileError, match=r"guard 0.2, not 0.1"):
        learner(tmp_path, guard=0.1)


def test_an_idempotency_key_learns_once(tmp_path):
    service = learner(tmp_path)
    client = Client(service)
    first = learned(client, rows(3), "call-1").json()
    again = learned(client, rows(3), "call-1")
    assert again.status_code == 200 and again.json()["repeated"] is True
    assert "repeated" not in first and service.learner.stream.n_seen_ == 3
    other = learned(client, rows(4), "call-1")
    assert other.status_code == 422 and "other rows" in other.json()["reason"]
    assert learned(client, rows(3)).status_code == 200  # without a key, rows may come again
    assert service.learner.stream.n_seen_ == 6
    service.end()
    service = learner(tmp_path)  # keys are remembered with the rows
    assert learned(Client(service), rows(3), "call-1").json()["repeated"] is True
    assert service.learner.stream.n_seen_ == 6
    answers = service.learner.learn([(rows(1), "both"), (rows(1), "both")])
    assert ["repeated" in answer for answer in answers] == [False, True]
    service.end()


def test_learning_needs_a_token_that_allows_it(tmp_path):
    service = learner(tmp_path, read_tokens=[READER["Authorization"][7:]])
    assert learned(Client(service, headers={}), rows(1)).status_code == 401
    answer = learned(Client(service, headers=READER), rows(1))
    assert answer.status_code == 403 and "reading only" in answer.json()["reason"]
    assert Client(service, headers=READER).post("/reload").status_code == 403
    assert learned(Client(service), rows(1)).status_code == 200
    service.settings.tokens = []
    assert learned(Client(service), rows(1)).status_code == 403
    service.end()
    reading = make_service(tmp_path)
    assert "does not learn" in learned(Client(reading), rows(1)).json()["reason"]
    reading.end()


def test_rows_are_checked_before_they_are_committed(tmp_path):
    """A NaN by Arrow made a restart impossible."""
    service = learner(tmp_path)
    bad = arrow_stream({"a": [np.nan], "b": [1.0], "c": [1.0]})
    answer = Client(service).post("/learn", content=bad, headers={"Content-Type": ARROW})
    assert answer.status_code == 422 and service.learner.rows.count_after(0) == 0
    service.end()


@pytest.mark.parametrize("error", [ValueError("rejected by the model"), MemoryError()])
def test_a_call_that_fails_is_not_kept(tmp_path, monkeypatch, error):
    service = learner(tmp_path)

    def fail(X):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(service.learner.stream, "learn", fail)
        answer = learned(Client(service), rows(2))
    assert answer.status_code == (422 if isinstance(error, ValueError) else 500)
    assert service.learner.rows.count_after(0) == 0
    assert learned(Client(service), rows(3)).status_code == 200
    service.end()
    again = learner(tmp_path)
    assert again.learner.stream.n_seen_ == 3
    again.end()


def test_replay_skips_rejected_calls_and_nothing_else(tmp_path, monkeypatch):
    service = learner(tmp_path)
    service.learner.rows.add([(rows(2), None), (rows(3), None)])  # killed before they were learned
    service.end()
    real = StreamingExtension.learn

    def rejecting(self, X):
        if len(X) == 2:
            raise ValueError("rejected")
        return real(self, X)

    def failing(self, X):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(StreamingExtension, "learn", failing)
        with pytest.raises(MemoryError):
            learner(tmp_path)
    monkeypatch.setattr(StreamingExtension, "learn", rejecting)
    again = learner(tmp_path)
    assert (again.learner.n_replayed, again.learner.n_skipped) == (1, 1)
    assert again.learner.stream.n_seen_ == 3
    again.end()


def test_damaged_rows_are_an_error_wherever_they_are(tmp_path):
    service = learner(tmp_path)
    service.learner.rows.add([(rows(2, seed), None) for seed in range(5)])
    service.learner.rows.close()  # as if killed
    path = tmp_path / NAME
    for number in (1, 5):
        shutil.copy(path, tmp_path / "kept")
        with sqlite3.connect(path) as database:
            database.execute("UPDATE learned SET rows = zeroblob(48) WHERE id = ?", (number,))
        database.close()
        with pytest.raises(LearnedFileError, match=f"call {number} is damaged") as error:
            learner(tmp_path)
        assert str(path) in str(error.value)
        shutil.copy(tmp_path / "kept", path)
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(LearnedFileError, match="cannot be read"):
        learner(tmp_path)
    path.write_bytes(b"nonsense" * 100)
    with pytest.raises(LearnedFileError, match="cannot be read"):
        learner(tmp_path)


def test_another_model_is_rejected(tmp_path):
    learner(tmp_path).end()
    model = saved(tmp_path)
    model.unlink()
    save(fitted(1), model)
    with pytest.raises(LearnedFileError, match="was begun with model"):
        learner(tmp_path)


def test_a_second_service_does_not_touch_the_file(tmp_path):
    first = learner(tmp_path)
    learned(Client(first), rows(3))
    with pytest.raises(LearnedFileError, match="another service writes to it"):
        learner(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / NAME)
    with pytest.raises(LearnedFileError, match="another service writes to it"):
        learner(tmp_path, learned=str(tmp_path / "link"))
    assert learned(Client(first), rows(3, 2)).status_code == 200
    with sqlite3.connect(f"file:{tmp_path / NAME}?mode=ro", uri=True) as reader:  # inspection
        assert reader.execute("SELECT COUNT(*) FROM learned").fetchone() == (2,)
        with sqlite3.connect(tmp_path / "backup") as backup:
            reader.backup(backup)
    first.end()
    again = learner(tmp_path, learned=str(tmp_path / "backup"))
    assert again.learner.stream.n_seen_ == 6
    again.end()


def test_on_a_full_disk_learning_is_rejected_and_placing_goes_on(tmp_path):
    service = learner(tmp_path)
    client = Client(service)
    assert learned(client, rows(3)).status_code == 200
    database = service.learner.rows.database
    (n_pages,) = database.execute("PRAGMA page_count").fetchone()
    database.execute(f"PRAGMA max_page_count = {n_pages}")
    answer = learned(client, rows(5000))
    assert answer.status_code == 507 and "disk is full" in answer.json()["reason"]
    assert client.send("/place", rows(2)).status_code == 200
    assert service.learner.stream.n_seen_ == 3
    database.execute("PRAGMA max_page_count = 1000000")
    assert learned(client, rows(5)).status_code == 200
    service.end()
    again = learner(tmp_path)
    assert again.learner.stream.n_seen_ == 8
    again.end()


def test_only_the_calls_after_a_snapshot_are_replayed(tmp_path, monkeypatch):
    monkeypatch.setattr(learning, "SNAPSHOT_CALLS", 5)
    monkeypatch.setattr(learning, "SNAPSHOT_PAUSE", 0)
    service = learner(tmp_path)
    client = Client(service)
    for seed in range(12):
        learned(client, rows(20, seed), f"key-{seed}")
        service.learner._wait_for_snapshot()
    expected = p_values(service)
    service.learner.rows.close()  # as if killed
    assert len(list(tmp_path.glob("*.learned.snapshot-*.outsample"))) == 1
    latest = tmp_path / f"{NAME}.latest.outsample"
    assert load(latest).n_seen_ == 200  # for replicas
    again = learner(tmp_path)
    assert again.learner.n_replayed == 2
    np.testing.assert_array_equal(p_values(again), expected)
    assert learned(Client(again), rows(20, 3), "key-3").json()["repeated"] is True
    again.learner.rows.close()
    (snapshot,) = tmp_path.glob("*.learned.snapshot-*.outsample")
    snapshot.write_bytes(b"damaged")  # all calls are still there
    again = learner(tmp_path)
    assert again.learner.n_replayed == 12
    np.testing.assert_array_equal(p_values(again), expected)
    again.end()


def test_large_calls_are_in_a_snapshot_soon(tmp_path, monkeypatch):
    monkeypatch.setattr(learning, "SNAPSHOT_ROWS", 100)
    service = learner(tmp_path)
    learned(Client(service), rows(99))
    assert service.learner.saving is None
    learned(Client(service), rows(1))
    service.learner._wait_for_snapshot()
    assert service.learner.snapshot_id == 2
    service.end()


def test_a_large_file_is_pruned_and_needs_its_snapshot(tmp_path, monkeypatch):
    monkeypatch.setattr(learning, "PRUNE_BYTES", 0)
    service = learner(tmp_path)
    client = Client(service)
    for seed in range(4):
        learned(client, rows(20, seed))
    expected = p_values(service)
    service.end()
    again = learner(tmp_path)
    assert again.learner.rows.count_after(0) == 0 and again.learner.stream.n_seen_ == 80
    learned(Client(again), rows(1))
    again.learner.rows.close()
    again = learner(tmp_path)
    assert again.learner.n_replayed == 1
    again.end()
    assert len(expected) == 30
    for snapshot in tmp_path.glob("*.learned.snapshot-*.outsample"):
        snapshot.unlink()
    with pytest.raises(LearnedFileError, match="missing or was changed"):
        learner(tmp_path)


def test_no_room_for_a_snapshot_is_no_harm(tmp_path, monkeypatch):
    def full(*arguments, **options):
        raise OSError("no space left")

    monkeypatch.setattr(learning, "save", full)
    service = learner(tmp_path)
    assert learned(Client(service), rows(3)).status_code == 200
    service.end()
    again = learner(tmp_path)
    assert again.learner.n_replayed == 1 and again.learner.stream.n_seen_ == 3
    again.end()


def test_a_stream_in_a_file_goes_on_learning(tmp_path):
    stream = StreamingExtension(fitted(), window=30)
    stream.learn(rows(5))
    save(stream, tmp_path / "small.outsample", map_names=["x", "y"])
    service = learner(tmp_path)
    assert service.status()["n_seen"] == 5 and service.learner.stream.window == 30
    learned(Client(service), rows(2))
    service.end()
    again = learner(tmp_path)
    assert again.status()["n_seen"] == 7
    again.end()
    (tmp_path / NAME).unlink()
    with pytest.raises(ValueError, match="settings of its own"):
        learner(tmp_path, window=40)


def test_a_new_model_is_served_without_a_break(tmp_path):
    service = learner(tmp_path)
    client, model = Client(service), saved(tmp_path)
    learned(client, rows(20))
    old = client.send("/place", rows(3)).json()
    assert client.post("/reload").json() == {"digest": old["digest"], "changed": False}
    model.write_bytes(b"nonsense")
    bad = client.post("/reload")
    assert bad.status_code == 422 and "before stays" in bad.json()["reason"]
    wide = np.random.default_rng(0).normal(size=(50, 4))
    save(type(fitted())(type(fitted().extension)(n_neighbors=5)).fit(wide, wide[:, :2]), model)
    bad = client.post("/reload")
    assert bad.status_code == 422 and "other columns" in bad.json()["reason"]
    again = client.send("/place", rows(3)).json()
    assert again["p_value"] == old["p_value"] and again["digest"] == old["digest"]
    model.write_bytes(saved(tmp_path, 1, "new.outsample").read_bytes())  # as cp does
    assert client.send("/place", rows(3)).json()["coordinates"] == old["coordinates"]
    answer = client.post("/reload").json()
    new = client.send("/place", rows(3))
    assert answer["changed"] and new.json()["digest"] == answer["digest"] != old["digest"]
    np.testing.assert_array_equal(new.json()["p_value"], fitted(1).place(rows(3)).p_value)
    about = client.get("/model").json()
    assert about["digest"] == answer["digest"] and about["n_seen"] == 0
    learned(client, rows(4))
    service.learner.rows.close()  # as if killed: the file belongs to the new model
    again = learner(tmp_path)
    assert again.learner.stream.n_seen_ == 4
    again.end()


def old_file(path, calls, model, snapshot=None, **settings):
    """Write a file as earlier versions did."""
    about = {"model": model, "n_features": 3, **settings}
    about = {"about": about, "snapshot": snapshot, "first": 1}
    text = json.dumps(about).encode()
    data = struct.pack("<8sII", b"OSLEARN1", len(text), zlib.crc32(text)) + text
    ends = []
    for number, X in enumerate(calls, 1):
        payload = struct.pack("<I", len(X)) + X.astype("<f8").tobytes()
        head = struct.pack("<4sQII", b"\xf1REC", number, len(payload), zlib.crc32(payload))
        data += head + struct.pack("<I", zlib.crc32(head)) + payload
        ends.append(len(data))
    path.write_bytes(data)
    return ends


def test_an_old_file_is_imported_once(tmp_path):
    digest = make_service(tmp_path).model.digest
    calls, path = [rows(2, 1), rows(3, 2), rows(1, 3)], tmp_path / NAME
    ends = old_file(path, calls, digest, window=50)
    whole = path.read_bytes()
    for cut, n_seen in ((len(whole), 6), (len(whole) - 1, 5), (ends[1] + 3, 5)):
        path.write_bytes(whole[:cut] + bytes(8) * (cut == ends[1] + 3))
        service = learner(tmp_path)
        assert service.learner.stream.n_seen_ == n_seen and service.learner.stream.window == 50
        learned(Client(service), rows(1))
        service.end()
        again = learner(tmp_path)
        assert again.learner.stream.n_seen_ == n_seen + 1
        again.end()
        assert (tmp_path / f"{NAME}.old").read_bytes()[:cut] == whole[:cut]
        path.unlink()
    damaged = bytearray(whole)
    damaged[-1] ^= 1  # complete, but not what was written
    path.write_bytes(damaged)
    with pytest.raises(LearnedFileError, match=f"damaged at byte {ends[1]}"):
        learner(tmp_path)
    assert path.read_bytes() == bytes(damaged)
    damaged = bytearray(whole)
    damaged[ends[0] + 2] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(LearnedFileError, match=f"damaged at byte {ends[0]}"):
        learner(tmp_path)
    old_file(path, calls, "another")
    with pytest.raises(LearnedFileError, match="was begun with model 'another'"):
        learner(tmp_path)


def test_an_old_file_with_a_snapshot_is_imported(tmp_path):
    from outsample.files.model_file import identity

    service = make_service(tmp_path)
    stream = StreamingExtension(fitted())
    stream.learn(rows(7))
    kept = tmp_path / f"{NAME}.4.outsample"
    save(stream, kept)
    snapshot = {"file": kept.name, "digest": identity(kept)}
    old_file(tmp_path / NAME, [rows(2)], service.model.digest, snapshot)
    service = learner(tmp_path)
    assert service.learner.stream.n_seen_ == 9
    service.learner.rows.close()
    kept.unlink()
    with pytest.raises(LearnedFileError, match="missing or was changed"):
        learner(tmp_path)


def test_a_file_that_was_never_begun_is_new(tmp_path):
    (tmp_path / NAME).write_bytes(b"")
    store = LearnedRows(tmp_path / NAME, "digest", 3, {}, {"window": 20, "guard": 0.1})
    assert store.settings == {"window": 20, "guard": 0.1} and store.count_after(0) == 0
    store.close()
