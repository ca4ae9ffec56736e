"""The service places as the library does, takes what is right, and says what is wrong."""

from __future__ import annotations

import asyncio
import json
import threading
import time

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the service needs outsample[serve]")
pytest.importorskip("pyarrow", reason="the service needs outsample[serve]")

import pyarrow as pa

from outsample.service.arrow_rows import ARROW, to_arrow
from outsample.service.limits import Limits
from service_tools import AUTHORISED, NAMES, Client, fitted, made, rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("service")


@pytest.fixture(scope="module")
def client(folder):
    service = made(folder)
    yield Client(service)
    service.end()


def same(told, placed):
    np.testing.assert_array_equal(told["coordinates"], placed.coordinates)
    for name in ("error_bar", "abnormality", "p_value", "bound", "n_neighbors"):
        np.testing.assert_array_equal(told[name], getattr(placed, name))


def test_json_answers_are_those_of_the_library(client):
    X = rows(7)
    answer = client.post("/place", json={"rows": X.tolist()})
    assert answer.status_code == 200
    same(answer.json(), fitted().place(X))
    assert answer.json()["n_rows"] == 7


def test_columns_go_by_name(client):
    X = rows(4)
    told = {"rows": X[:, ::-1].tolist(), "columns": NAMES[::-1]}
    same(client.post("/place", json=told).json(), fitted().place(X))


def test_arrow_goes_in_and_out(client):
    X = rows(1000)
    body = to_arrow(dict(zip(NAMES, X.T, strict=True)))
    answer = client.post("/place", content=body, headers={"Content-Type": ARROW})
    assert answer.headers["content-type"] == ARROW
    table = pa.ipc.open_stream(answer.content).read_all()
    assert table.column_names[:4] == ["x", "y", "error_bar", "abnormality"]
    placed = fitted().place(X)
    np.testing.assert_array_equal(table["y"], placed.coordinates[:, 1])
    np.testing.assert_array_equal(table["p_value"], placed.p_value)
    both = {"Content-Type": ARROW, "Accept": "application/json"}
    same(client.post("/place", content=body, headers=both).json(), placed)
    asked = client.post("/place", json={"rows": X.tolist()}, headers={"Accept": ARROW})
    assert pa.ipc.open_stream(asked.content).read_all() == table


def test_requests_that_wait_are_joined_and_get_their_own_answers(folder):
    service = made(folder, limits=Limits(round_rows=50))
    calls = []
    place = service.model.place
    service.model.place = lambda X: calls.append(len(X)) or place(X)
    client = Client(service)
    sizes = [1, 120, 3, 1, 60, 7]

    async def together():
        asked = [
            client.asked("POST", "/place", json={"rows": rows(n, seed=n).tolist()}) for n in sizes
        ]
        return await asyncio.gather(*asked)

    for n, answer in zip(sizes, asyncio.run(together()), strict=True):
        same(answer.json(), fitted().place(rows(n, seed=n)))
    assert max(calls) <= 50 and sum(calls) == sum(sizes)
    assert "outsample_joined_requests_total" in service.metrics.text()
    service.end()


BAD = {
    "no JSON": (b"{", "no JSON"),
    "nothing": (b"", "no JSON"),
    "not an object": (b"[]", "object"),
    "no rows": (b"{}", "rows"),
    "empty": (b'{"rows": []}', "empty"),
    "flat": (b'{"rows": [1, 2, 3]}', "row 0 is no list"),
    "a number": (b'{"rows": 3}', "list of lists"),
    "empty row": (b'{"rows": [[]]}', "row 0 has no numbers"),
    "ragged": (b'{"rows": [[1, 2, 3], [1, 2]]}', "row 1 has 2 numbers"),
    "text": (b'{"rows": [[1, 2, 3], [1, "2", 3]]}', "row 1, column 1 is a text"),
    "null": (b'{"rows": [[1, null, 3]]}', "row 0, column 1 is null"),
    "true": (b'{"rows": [[1, 2.5, true]]}', "row 0, column 2 is true or false"),
    "nested": (b'{"rows": [[1, 2, [3]]]}', "row 0, column 2"),
    "nested all": (b'{"rows": [[[1], [2], [3]]]}', "row 0, column 0"),
    "NaN": (b'{"rows": [[1, 2, 3], [1, NaN, 3]]}', "row 1, column 1 is nan"),
    "infinity": (b'{"rows": [[1, -Infinity, 3]]}', "row 0, column 1 is -inf"),
    "huge": (b'{"rows": [[1, 1e999, 3]]}', "infinity"),
    "large": (b'{"rows": [[1, 1e305, 3]]}', "'b' is 1e+305, but is too large"),
    "digits": (b'{"rows": [[' + b"9" * 1000 + b"]]}", "infinity"),
    "deep": (b'{"rows": ' + b"[" * 5000 + b"]" * 5000 + b"}", "depth"),
    "bytes": (b"\xff\xfe", "no JSON"),
    "wide": (b'{"rows": [[1, 2, 3, 4]]}', "rows have 4 columns, but the model takes 3"),
    "unknown key": (b'{"rows": [[1, 2, 3]], "row": 1}', "'row'"),
    "columns no list": (b'{"rows": [[1, 2, 3]], "columns": "abc"}', "list of names"),
    "columns short": (b'{"rows": [[1, 2, 3]], "columns": ["a"]}', "1 columns are named"),
    "columns missing": (b'{"rows": [[1, 2, 3]], "columns": ["a", "b", "d"]}', "missing: 'c'"),
    "columns twice": (b'{"rows": [[1, 2, 3, 4]], "columns": ["a", "b", "c", "a"]}', "'a' is there"),
    "columns more": (b'{"rows": [[1, 2, 3, 4]], "columns": ["a", "b", "c", "d"]}', "'d' is there"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_json_is_refused_with_a_reason(client, name):
    body, reason = BAD[name]
    answer = client.post("/place", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert reason in answer.json()["reason"]


def test_bad_numbers_are_told_by_row_and_column(client):
    X = rows(3)
    X[2, 1] = np.inf
    body = to_arrow(dict(zip(NAMES, X.T, strict=True)))
    answer = client.post("/place", content=body, headers={"Content-Type": ARROW})
    told = answer.json()
    assert (answer.status_code, told["row"], told["column"]) == (422, 2, "b")
    table = pa.table({"a": [1.0, None], "b": [1.0, 2.0], "c": [1.0, 2.0]})
    for bad, said in (
        (stream_of(table), "row 1, column 'a' is null"),
        (stream_of(pa.table({"a": ["x"], "b": [1], "c": [2]})), "'a' is string"),
        (stream_of(table.slice(0, 0)), "no rows"),
        (stream_of(pa.table({})), "no columns"),
        (body[: len(body) // 2], "no Arrow stream"),
        (b"nonsense", "no Arrow stream"),
        (b"", "no Arrow stream"),
    ):
        answer = client.post("/place", content=bad, headers={"Content-Type": ARROW})
        assert answer.status_code == 422 and said in answer.json()["reason"], said


def stream_of(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def test_damaged_arrow_streams_are_refused_and_nothing_worse(client):
    body = bytearray(to_arrow(dict(zip(NAMES, rows(20).T, strict=True))))
    rng = np.random.default_rng(0)
    for _ in range(150):
        bad = bytes(damaged(body, rng))
        answer = client.post("/place", content=bad, headers={"Content-Type": ARROW})
        assert answer.status_code in (200, 422)


def damaged(body, rng):
    bad = bytearray(body)
    for at in rng.integers(0, len(bad), rng.integers(1, 6)):
        bad[at] = rng.integers(256)
    return bad


def test_what_is_too_much_is_refused(folder):
    service = made(folder, limits=Limits(rows=5, body_bytes=1000))
    client = Client(service)
    answer = client.post("/place", json={"rows": rows(6).tolist()})
    assert answer.status_code == 422 and "at most 5" in answer.json()["reason"]
    long = json.dumps({"rows": rows(100).tolist()}).encode()
    headers = {"Content-Type": "application/json"}
    assert client.post("/place", content=long, headers=headers).status_code == 413

    async def pieces():
        for at in range(0, len(long), 100):
            yield long[at : at + 100]

    assert client.post("/place", content=pieces(), headers=headers).status_code == 413
    text = {"Content-Type": "text/csv"}
    assert client.post("/place", content=b"a,b", headers=text).status_code == 415
    service.end()


@pytest.mark.parametrize(
    ("limits", "reasons"),
    [
        (Limits(waiting=2, seconds=0.5), {"requests wait": 4, "no answer within": 2}),
        (Limits(concurrent=3, seconds=0.5), {"are under way": 3, "no answer within": 3}),
    ],
)
def test_full_queues_and_lost_time_are_refused(folder, limits, reasons):
    service = made(folder, limits=limits)
    go, place = threading.Event(), service.model.place
    service.model.place = lambda X: go.wait(10) and place(X)
    client = Client(service)

    async def many():
        asked = [client.asked("POST", "/place", json={"rows": rows(1).tolist()}) for _ in range(6)]
        return await asyncio.gather(*asked)

    answers = asyncio.run(many())
    for reason, number in reasons.items():
        told = [answer for answer in answers if reason in answer.json()["reason"]]
        assert [one.status_code for one in told] == [429 if "wait" in reason else 503] * number
    assert all(answer.headers["retry-after"] == "1" for answer in answers)
    go.set()
    deadline = time.monotonic() + 20  # the model is still busy with what nobody waits for
    while client.post("/place", json={"rows": rows(1).tolist()}).status_code != 200:
        assert time.monotonic() < deadline
    service.end()


def test_a_fault_is_told_without_its_traceback(folder):
    service = made(folder)

    def broken(X):
        raise RuntimeError("secret")

    service.model.place = broken
    answer = Client(service).post("/place", json={"rows": rows(1).tolist()})
    assert answer.status_code == 500 and "secret" not in answer.text
    assert answer.json()["reason"]
    service.end()


def test_others_need_the_token(folder):
    service = made(folder)
    told = {"rows": rows(1).tolist()}
    for client in (Client(service, client="10.0.0.1"), Client(service, host="a.example")):
        assert client.post("/place", json=told).status_code == 401
        wrong = {"Authorization": "Bearer no"}
        assert client.post("/place", json=told, headers=wrong).status_code == 401
        assert client.post("/place", json=told, headers=AUTHORISED).status_code == 200
        assert client.get("/model").status_code == 401
        assert client.get("/health").status_code == 200
        assert client.get("/").status_code == 200
    assert Client(service, host="[::1]").get("/model").status_code == 200
    service.token = None
    assert Client(service, client="10.0.0.1").get("/model").status_code == 403
    service.end()


def test_what_it_says_of_itself(client):
    told = client.get("/model").json()
    assert told["feature_names"] == NAMES and told["map_names"] == ["x", "y"]
    assert (told["name"], told["n_points"], told["alpha"]) == ("small", 200, 0.05)
    assert client.get("/ready").json() == {"status": "ready"}
    assert client.get("/nothing").json() == {"reason": "there is nothing at this path"}
    assert client.get("/place").status_code == 405
    page = client.get("/")
    assert "unsafe" not in page.headers["content-security-policy"]
    text = client.get("/metrics").text
    assert 'outsample_requests_total{path="/place",status="422"}' in text
    assert 'outsample_request_seconds_bucket{path="/place",le="+Inf"}' in text
