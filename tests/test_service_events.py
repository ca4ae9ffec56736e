"""Arrivals are told as they come, from where a watcher stopped; slow watchers hold nobody up."""

from __future__ import annotations

import asyncio
import json
import zlib

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the service needs outsample[serve]")

from outsample.service import events as telling
from outsample.service.arrivals import LEARNED, PLACED, Ring
from outsample.service.events import events, last_seen
from service_tools import Client, fitted, learner, made, rows


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    service = made(tmp_path_factory.mktemp("events"))
    yield Client(service)
    service.end()


def read(service, last, n, arriving=()):
    """The first ``n`` messages after ``last`` but the first status, while rows arrive."""

    async def reading():
        service.ring.loop = asyncio.get_running_loop()
        stream, found = events(service, last), []
        assert b"event: status" in await anext(stream)
        for X in arriving:
            await service.place(X)
        async with asyncio.timeout(10):
            while len(found) < n:
                found.append(parsed(await anext(stream)))
        await stream.aclose()
        return found

    return asyncio.run(reading())


def parsed(message):
    parts = dict(line.split(": ", 1) for line in message.decode().strip().split("\n"))
    return parts.get("event"), parts.get("id"), json.loads(parts.get("data", "null"))


def test_arrivals_are_told_with_reasons_for_strange_ones(client):
    service = client.service
    X = np.vstack([rows(2), [[9.0, 9.0, 9.0]]])
    before = service.ring.next_id
    ((event, number, told),) = read(service, None, 1, [X])
    assert event == "arrivals" and int(number) == before + 2
    assert told["first_id"] == before and told["kind"] == "placed"
    placed = fitted().place(X)
    np.testing.assert_array_equal(told["p_value"], placed.p_value)
    np.testing.assert_allclose(told["coordinates"], placed.coordinates, rtol=1e-6)
    reason = fitted().explain(X[2:])[0].main_reason
    assert told["reasons"][str(before + 2)] == reason
    again = read(service, before, 1)[0][2]
    assert again["first_id"] == before + 1 and again["n_rows"] == 2


def test_a_watcher_goes_on_where_it_stopped(client):
    service = client.service
    first = service.ring.next_id
    told = read(service, first - 1, 3, [rows(1), rows(2), rows(1)])
    assert [one[2]["first_id"] for one in told] == [first, first + 1, first + 3]
    assert read(service, first, 1)[0][2]["first_id"] == first + 1


def test_long_requests_are_told_in_parts(client, monkeypatch):
    monkeypatch.setattr(telling, "MOST_ROWS", 4)
    first = client.service.ring.next_id
    told = read(client.service, None, 3, [rows(10)])
    assert [one[2]["n_rows"] for one in told] == [4, 4, 2]
    p = [value for one in told for value in one[2]["p_value"]]
    assert p == fitted().place(rows(10)).p_value.tolist()
    assert int(told[-1][1]) == first + 9


def test_who_falls_behind_is_told_what_is_gone(tmp_path):
    service = made(tmp_path)
    service.ring = Ring(most_rows=5)
    told = read(service, 0, 3, [rows(3)] * 4)
    assert [one[0] for one in told] == ["gap", "arrivals", "arrivals"]
    assert [one[2]["n_rows"] for one in told[1:]] == [2, 3]
    assert told[0][2] == {"first_id": 1, "n_rows": 7}
    assert not service.ring.watchers
    service.end()


def test_silence_is_filled_and_the_end_ends_all(tmp_path, monkeypatch):
    monkeypatch.setattr(telling, "KEEP_ALIVE", 0.05)
    service = made(tmp_path)

    async def reading():
        stream = events(service, None)
        await anext(stream)
        assert await anext(stream) == b": alive\n\n"
        service.begin_ending()
        return [message async for message in stream]

    assert asyncio.run(reading()) == []
    service.end()


def test_what_was_learned_is_judged_soon(tmp_path, monkeypatch):
    monkeypatch.setattr(telling, "STATUS_EVERY", 0.05)
    monkeypatch.setattr("outsample.service.learning.REFRESH_SECONDS", 0.05)
    service = learner(tmp_path)

    async def reading():
        service.ring.loop = asyncio.get_running_loop()
        stream = events(service, None)
        assert parsed((await anext(stream)).split(b"\n\n")[1])[2]["n_seen"] == 0
        await service.learn(rows(20))
        async with asyncio.timeout(10):  # less than it is silent for
            while True:
                event, _, told = parsed(await anext(stream))
                if event == "status" and "20 arrivals" in told["drift"]:
                    return

    asyncio.run(reading())
    service.end()


def test_the_ring_is_bounded_in_rows_and_bytes():
    ring = Ring(most_rows=10)
    assert ring.one(1) is None and ring.after(0, 5) is None
    for n in (4, 4, 4, 4):
        X = np.arange(ring.next_id, ring.next_id + n, dtype=float)[:, None]
        ring.add(PLACED, X, {"coordinates": np.hstack([X, X])})
    assert (ring.first_id, ring.next_id, ring.capacity) == (7, 17, 10)
    assert ring.one(6) is None and ring.one(17) is None
    assert ring.one(7).rows.tolist() == [[7.0]] and "accepted" not in ring.one(7).answer
    assert ring.after(16, 5) is None
    assert ring.after(0, 5).rows.tolist() == [[7.0], [8.0]]
    assert ring.after(8, 3).answer["coordinates"].tolist() == [[9.0] * 2, [10.0] * 2, [11.0] * 2]
    X = np.arange(17.0, 42.0)[:, None]
    ring.add(LEARNED, X, {"coordinates": np.hstack([X, X]), "accepted": np.ones(25, bool)})
    assert (ring.first_id, ring.next_id) == (32, 42)
    assert ring.after(0, 99).rows.ravel().tolist() == list(range(32, 42))
    assert ring.one(41).answer["accepted"].tolist() == [True]
    assert Ring(most_bytes=100).add(PLACED, np.zeros((3, 20)), {}) == 1


def test_ids_that_are_none_begin_now():
    assert [last_seen(*given) for given in ((None, "7"), ("3", "7"), ("-1", None), ("x", "2"))] == [
        7, 3, None, None,
    ]  # fmt: skip
    assert last_seen("9" * 30, None) is None


def test_one_arrival_closely(client):
    X = rows(1, seed=5)
    number = client.post("/place", json={"rows": X.tolist()}).json()["first_id"]
    told = client.get(f"/point/{number}").json()
    near = fitted().kneighbors(X, 10)
    assert [one["row"] for one in told["neighbors"]] == near.indices[0].tolist()
    assert told["neighbors"][0]["columns"] == {"id": f"point {near.indices[0][0]}"}
    assert told["values"] == dict(zip("abc", X[0].tolist(), strict=True))
    assert told["main_reason"] in told["reasons"]
    for wrong in ("0", "999999", "x", "-1", "1e3"):
        assert client.get(f"/point/{wrong}").status_code == 404


def test_the_map_is_packed_as_on_the_report_page(client):
    body = zlib.decompress(client.get("/map").content)
    size = int.from_bytes(body[:4], "little")
    told = json.loads(body[4 : 4 + size])
    assert told["axes"] == ["x", "y"] and told["training"]["count"] == 200
    part = told["training"]["coordinates"][0]
    raw = body[4 + size + part["at"] :][: part["bytes"]]
    values = np.frombuffer(np.frombuffer(raw, np.uint8).reshape(4, -1).T.tobytes(), np.float32)
    x = values * told["half"][0] + told["middle"][0]
    np.testing.assert_allclose(x, fitted().extension_.embedding_[:, 0], atol=1e-5)
