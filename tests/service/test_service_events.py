"""Arrivals are sent as they come, from where a watcher stopped; slow watchers delay nobody."""

from __future__ import annotations

import json
import time
import zlib

import httpx
import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the service needs outsample[serve]")

from outsample.service import arrivals
from outsample.service.arrivals import LEARNED, PLACED, Ring
from service_tools import AUTHORISED, Client, Running, fitted, make_service, rows


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    service = Running(make_service(tmp_path_factory.mktemp("events")))
    yield service
    service.end()


def read(running, last, n, arriving=()):
    """The first ``n`` events after ``last`` except status, while rows arrive."""
    found, query = [], "" if last is None else f"?after={last}"
    with httpx.stream(
        "GET", f"{running.url}/events{query}", headers=AUTHORISED, timeout=30
    ) as stream:
        lines = stream.iter_lines()
        assert parsed(lines)[0] == "status"
        for X in arriving:
            running.place(X)
        while len(found) < n:
            event = parsed(lines)
            found += [event] if event[0] != "status" else []
    return found


def parsed(lines):
    fields = {}
    for line in lines:
        if not line and "data" in fields:
            return fields.get("event"), fields.get("id"), json.loads(fields["data"])
        name, _, value = line.partition(": ")
        fields[name] = value
    raise AssertionError("the stream has ended")


def test_arrivals_are_sent_with_reasons_for_unusual_ones(running):
    X = np.vstack([rows(2), [[9.0, 9.0, 9.0]]])
    before = running.service.ring.next_id
    ((event, number, payload),) = read(running, None, 1, [X])
    assert event == "arrivals" and int(number) == before + 2
    assert payload["first_id"] == before and payload["kind"] == "placed"
    placed = fitted().place(X)
    np.testing.assert_array_equal(payload["p_value"], placed.p_value)
    np.testing.assert_allclose(payload["coordinates"], placed.coordinates, rtol=1e-6)
    reason = fitted().explain(X[2:])[0].main_reason
    assert payload["reasons"][str(before + 2)] == reason
    again = read(running, before, 1)[0][2]
    assert again["first_id"] == before + 1 and again["n_rows"] == 2


def test_a_watcher_goes_on_where_it_stopped(running):
    first = running.service.ring.next_id
    found = read(running, first - 1, 3, [rows(1), rows(2), rows(1)])
    assert [payload["first_id"] for _, _, payload in found] == [first, first + 1, first + 3]
    assert read(running, first, 1)[0][2]["first_id"] == first + 1


def test_long_requests_are_sent_in_parts(running, monkeypatch):
    monkeypatch.setattr(arrivals, "MAX_ROWS", 4)
    first = running.service.ring.next_id
    found = read(running, None, 3, [rows(10)])
    assert [payload["n_rows"] for _, _, payload in found] == [4, 4, 2]
    p = [value for _, _, payload in found for value in payload["p_value"]]
    assert p == fitted().place(rows(10)).p_value.tolist()
    assert int(found[-1][1]) == first + 9


def test_watchers_leave_nothing_behind(running):
    for _ in range(5):
        read(running, 0, 1, [rows(1)])
    end = time.monotonic() + 20
    while running.service.ring.watchers:
        assert time.monotonic() < end
        running.place(rows(1))
        time.sleep(0.05)


def test_a_watcher_that_falls_behind_is_told_what_is_gone(tmp_path):
    service = make_service(tmp_path)
    service.ring = Ring(max_rows=5)
    running = Running(service)
    for _ in range(4):
        running.place(rows(3))
    found = read(running, 0, 3)
    assert [event for event, _, _ in found] == ["gap", "arrivals", "arrivals"]
    assert [payload["n_rows"] for _, _, payload in found[1:]] == [2, 3]
    assert found[0][2] == {"first_id": 1, "n_rows": 7}
    running.end()


def test_too_many_watchers_are_rejected(running, monkeypatch):
    monkeypatch.setattr("outsample.service.app.MAX_LISTENERS", 0)
    answer = httpx.get(f"{running.url}/events", headers=AUTHORISED)
    assert answer.status_code == 503 and answer.headers["retry-after"] == "10"


def test_what_was_learned_is_assessed_soon(tmp_path):
    running = Running(make_service(tmp_path, learns=True))
    with httpx.stream("GET", f"{running.url}/events", headers=AUTHORISED, timeout=30) as stream:
        lines = stream.iter_lines()
        assert parsed(lines)[2]["n_seen"] == 0
        running.learn(rows(20))
        while True:
            event, _, payload = parsed(lines)
            if event == "status" and "20 arrivals" in payload["drift"]:
                break
    running.end()


def test_the_ring_is_bounded_in_rows_and_bytes():
    ring = Ring(max_rows=10)
    assert ring.arrival(1) is None and ring.after(0, 5) is None
    for n in (4, 4, 4, 4):
        X = np.arange(ring.next_id, ring.next_id + n, dtype=float)[:, None]
        ring.add(PLACED, X, {"coordinates": np.hstack([X, X])})
    assert (ring.first_id, ring.next_id, ring.capacity) == (7, 17, 10)
    assert ring.arrival(6) is None and ring.arrival(17) is None
    assert ring.arrival(7).rows.tolist() == [[7.0]] and "accepted" not in ring.arrival(7).answer
    assert ring.after(16, 5) is None
    assert ring.after(0, 5).rows.tolist() == [[7.0], [8.0]]
    assert ring.after(8, 3).answer["coordinates"].tolist() == [[9.0] * 2, [10.0] * 2, [11.0] * 2]
    X = np.arange(17.0, 42.0)[:, None]
    ring.add(LEARNED, X, {"coordinates": np.hstack([X, X]), "accepted": np.ones(25, bool)})
    assert (ring.first_id, ring.next_id) == (32, 42)
    assert ring.after(0, 99).rows.ravel().tolist() == list(range(32, 42))
    assert ring.arrival(41).answer["accepted"].tolist() == [True]
    ring.clear()
    assert ring.after(0, 99) is None and ring.next_id == 42
    assert Ring(max_bytes=100).add(PLACED, np.zeros((3, 20)), {}) == 1


def test_an_arrival_in_detail(running):
    client, X = Client(running.service), rows(1, seed=5)
    number = running.place(X)["first_id"]
    details = httpx.get(f"{running.url}/point/{number}", headers=AUTHORISED).json()
    near = fitted().kneighbors(X, 10)
    assert [neighbor["row"] for neighbor in details["neighbors"]] == near.indices[0].tolist()
    assert details["neighbors"][0]["columns"] == {"id": f"point {near.indices[0][0]}"}
    assert details["values"] == dict(zip("abc", X[0].tolist(), strict=True))
    assert details["main_reason"] in details["reasons"]
    for number, status in (("0", 404), ("999999", 404), ("x", 422), ("-1", 422), ("1e3", 422)):
        assert client.get(f"/point/{number}").status_code == status


def test_the_map_is_packed_as_on_the_report_page(running):
    answer = httpx.get(f"{running.url}/map", headers=AUTHORISED)
    body = zlib.decompress(answer.content)
    size = int.from_bytes(body[:4], "little")
    head = json.loads(body[4 : 4 + size])
    assert head["axes"] == ["x", "y"] and head["training"]["count"] == 200
    part = head["training"]["coordinates"][0]
    raw = body[4 + size + part["at"] :][: part["bytes"]]
    values = np.frombuffer(np.frombuffer(raw, np.uint8).reshape(4, -1).T.tobytes(), np.float32)
    x = values * head["half"][0] + head["middle"][0]
    np.testing.assert_allclose(x, fitted().extension_.embedding_[:, 0], atol=1e-5)
