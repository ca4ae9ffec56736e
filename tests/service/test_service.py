"""The service places as the library does, takes valid requests, and explains the others."""

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

from outsample.service import access
from service_tools import (
    ARROW,
    AUTHORISED,
    NAMES,
    READER,
    Client,
    arrow_stream,
    fitted,
    make_service,
    rows,
)

JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("service")


@pytest.fixture(scope="module")
def client(folder):
    service = make_service(folder)
    yield Client(service)
    service.end()


def same(answer, placed):
    np.testing.assert_array_equal(answer["coordinates"], placed.coordinates)
    for name in ("error_bar", "abnormality", "p_value", "bound", "n_neighbors"):
        np.testing.assert_array_equal(answer[name], getattr(placed, name))


def test_json_answers_are_those_of_the_library(client):
    X = rows(7)
    answer = client.send("/place", X)
    assert answer.status_code == 200
    same(answer.json(), fitted().place(X))
    assert answer.json()["n_rows"] == 7
    digest = client.get("/model").json()["digest"]
    assert answer.json()["digest"] == answer.headers["x-model-digest"] == digest


def test_columns_are_matched_by_name(client):
    X = rows(4)
    body = {"rows": X[:, ::-1].tolist(), "columns": NAMES[::-1]}
    same(client.post("/place", json=body).json(), fitted().place(X))


def test_rows_may_be_records(client):
    X = rows(5)
    records = [dict(zip(NAMES, row, strict=True)) for row in X.tolist()]
    records[1] = dict(reversed(records[1].items()))
    same(client.post("/place", json={"rows": records}).json(), fitted().place(X))
    del records[3]["b"]
    answer = client.post("/place", json={"rows": records})
    assert answer.status_code == 422
    assert answer.json() == {"reason": "row 3 has no column 'b'", "row": 3, "column": "b"}


def test_arrow_in_and_out(client):
    X = rows(1000)
    body = arrow_stream(dict(zip(NAMES[::-1], X.T[::-1], strict=True)))
    answer = client.post("/place", content=body, headers={"Content-Type": ARROW})
    assert answer.headers["content-type"] == ARROW and answer.headers["x-first-id"]
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
    service = make_service(folder)
    client, sizes, calls = Client(service), [1, 1200, 3, 1, 60, 7], []
    place = service.model.answer

    def slow_place(X):
        calls.append(len(X))
        time.sleep(0.05)
        return place(X)

    service.model.answer = slow_place

    async def together():
        requests = [
            client.request("POST", "/place", json={"rows": rows(n, seed=n).tolist()}) for n in sizes
        ]
        return await asyncio.gather(*requests)

    for n, answer in zip(sizes, asyncio.run(together()), strict=True):
        same(answer.json(), fitted().place(rows(n, seed=n)))
    assert sum(calls) == sum(sizes) and len(calls) < len(sizes) + 2
    assert max(calls) < 1024  # a large request takes several turns
    service.end()


BAD = {
    "no JSON": (b"{", "not valid JSON"),
    "nothing": (b"", "not valid JSON"),
    "not an object": (b"[]", "object"),
    "no rows": (b"{}", "rows"),
    "empty": (b'{"rows": []}', "at least 1"),
    "flat": (b'{"rows": [1, 2, 3]}', "row 0 is not a list"),
    "a number": (b'{"rows": 3}', "'rows': is not a list"),
    "empty row": (b'{"rows": [[]]}', "row 0 has no numbers"),
    "ragged": (b'{"rows": [[1, 2, 3], [1, 2]]}', "row 1 has 2 numbers, but row 0 has 3"),
    "text": (b'{"rows": [[1, 2, 3], [1, "2", 3]]}', "row 1, column 1 is not a number"),
    "null": (b'{"rows": [[1, null, 3]]}', "row 0, column 1 is not a number"),
    "true": (b'{"rows": [[1, 2.5, true]]}', "row 0, column 2 is not a number"),
    "nested": (b'{"rows": [[1, 2, [3]]]}', "row 0, column 2"),
    "nested all": (b'{"rows": [[[1], [2], [3]]]}', "row 0, column 0"),
    "NaN": (b'{"rows": [[1, 2, 3], [1, NaN, 3]]}', "row 1, column 1 is not finite"),
    "infinity": (b'{"rows": [[1, -Infinity, 3]]}', "row 0, column 1 is not finite"),
    "huge": (b'{"rows": [[1, 1e999, 3]]}', "row 0, column 1 is not finite"),
    "large": (b'{"rows": [[1, 1e305, 3]]}', "'b' is 1e+305, but is too large"),
    "digits": (b'{"rows": [[' + b"9" * 1000 + b"]]}", "row 0, column 0 is not finite"),
    "deep": (b'{"rows": ' + b"[" * 5000 + b"]" * 5000 + b"}", "recursion limit"),
    "bytes": (b"\xff\xfe", "not valid JSON"),
    "wide": (b'{"rows": [[1, 2, 3, 4]]}', "has 4 columns for the model's 3 features"),
    "unknown key": (b'{"rows": [[1, 2, 3]], "row": 1}', "'row'"),
    "columns no list": (b'{"rows": [[1, 2, 3]], "columns": "abc"}', "'columns': is not a list"),
    "columns short": (b'{"rows": [[1, 2, 3]], "columns": ["a"]}', "1 columns are named"),
    "columns missing": (b'{"rows": [[1, 2, 3]], "columns": ["a", "b", "d"]}', "3 features: 'c'"),
    "columns twice": (b'{"rows": [[1, 2, 3, 4]], "columns": ["a", "b", "c", "a"]}', "'a' occ"),
    "columns more": (b'{"rows": [[1, 2, 3, 4]], "columns": ["a", "b", "c", "d"]}', "'d' is not"),
    "record text": (b'{"rows": [{"a": 1, "b": "x", "c": 2}]}', "row 0, column 'b' is not a number"),
    "record empty": (b'{"rows": [{}]}', "row 0 has no column 'a'"),
    "record more": (b'{"rows": [{"a": 1, "b": 1, "c": 1}, {"a": 1, "b": 1, "c": 1, "d": 1}]}',
                    "row 1 has an unknown column 'd'"),
    "mixed": (b'{"rows": [{"a": 1, "b": 1, "c": 1}, [1, 2, 3]]}', "row 1 is not an object"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_json_is_rejected_with_a_reason(client, name):
    body, reason = BAD[name]
    answer = client.post("/place", content=body, headers=JSON)
    assert answer.status_code == 422
    assert reason in answer.json()["reason"]


def test_bad_arrow_values_are_named_by_row_and_column(client):
    X = rows(3)
    X[2, 1] = np.inf
    body = arrow_stream(dict(zip(NAMES, X.T, strict=True)))
    answer = client.post("/place", content=body, headers={"Content-Type": ARROW})
    told = answer.json()
    assert (answer.status_code, told["row"], told["column"]) == (422, 2, "b")
    table = pa.table({"a": [1.0, None], "b": [1.0, 2.0], "c": [1.0, 2.0]})
    words = pa.array(["x"]).dictionary_encode()
    dictionary = pa.table({"a": [1.0], "b": [1.0], "c": words})
    for bad, reason in (
        (arrow_stream(table), "row 1, column 'a' is null"),
        (arrow_stream({"a": ["x"], "b": [1], "c": [2]}), "'a' is string"),
        (arrow_stream(dictionary), "'c' is dictionary"),
        (arrow_stream(table.slice(0, 0)), "no rows"),
        (arrow_stream(pa.table({})), "lacks 3"),
        (body[: len(body) // 2], "not an Arrow stream"),
        (b"nonsense", "not an Arrow stream"),
        (b"", "not an Arrow stream"),
    ):
        answer = client.post("/place", content=bad, headers={"Content-Type": ARROW})
        assert answer.status_code == 422 and reason in answer.json()["reason"], reason


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_compressed_arrow_is_rejected_before_it_is_decoded(client, compression):
    """A body of 44 KB took 1.4 GB."""
    options = pa.ipc.IpcWriteOptions(compression=compression)
    body = arrow_stream({name: np.zeros(4_000_000) for name in NAMES}, options=options)
    assert len(body) < 1_000_000
    before = pa.total_allocated_bytes()
    peak = pa.default_memory_pool().max_memory()
    answer = client.post("/place", content=body, headers={"Content-Type": ARROW})
    assert answer.status_code == 422 and "without compression" in answer.json()["reason"]
    assert pa.total_allocated_bytes() - before < 2**20
    assert pa.default_memory_pool().max_memory() <= max(peak, before + 2**21)


def test_many_columns_are_rejected_by_name_before_they_are_decoded(client):
    body = arrow_stream({f"c{at}": [1.0] for at in range(5000)})
    answer = client.post("/place", content=body, headers={"Content-Type": ARROW})
    assert answer.status_code == 422 and "features: 'a'" in answer.json()["reason"]


def test_damaged_arrow_streams_are_rejected_and_nothing_worse(client):
    body = bytearray(arrow_stream(dict(zip(NAMES, rows(20).T, strict=True))))
    rng = np.random.default_rng(0)
    for _ in range(150):
        bad = bytearray(body)
        for at in rng.integers(0, len(bad), rng.integers(1, 6)):
            bad[at] = rng.integers(256)
        answer = client.post("/place", content=bytes(bad), headers={"Content-Type": ARROW})
        assert answer.status_code in (200, 422)


def test_requests_that_are_too_large_are_rejected(folder):
    service = make_service(folder, max_rows=5, max_bytes=1000)
    client = Client(service)
    answer = client.send("/place", rows(6))
    assert answer.status_code == 422 and "at most 5" in answer.json()["reason"]
    long = json.dumps({"rows": rows(100).tolist()}).encode()
    assert client.post("/place", content=long, headers=JSON).status_code == 413

    async def parts():
        for at in range(0, len(long), 100):
            yield long[at : at + 100]

    assert client.post("/place", content=parts(), headers=JSON).status_code == 413
    assert service.held_bytes == 0
    text = {"Content-Type": "text/csv"}
    assert client.post("/place", content=b"a,b", headers=text).status_code == 415
    assert client.post("/place", content=b'{"rows": [[1, 2, 3]]}').status_code == 415
    service.end()


def test_json_has_its_own_limit_and_arrow_takes_more(client):
    X = rows(80_000)
    body = json.dumps({"rows": X.tolist()}).encode()
    answer = client.post("/place", content=body, headers=JSON)
    assert answer.status_code == 413 and "send Arrow instead" in answer.json()["reason"]
    limits = client.get("/model").json()["limits"]
    assert limits["json_bytes"] == 2**22 < len(body) < limits["body_bytes"]


def test_full_queues_and_lost_time_are_rejected(folder):
    service = make_service(folder, max_waiting=2, timeout=0.5)
    go, place = threading.Event(), service.model.answer
    service.model.answer = lambda X: go.wait(10) and place(X)
    client = Client(service)

    async def many():
        body = {"rows": rows(1).tolist()}
        requests = [client.request("POST", "/place", json=body) for _ in range(6)]
        return await asyncio.gather(*requests)

    answers = asyncio.run(many())
    assert sorted(answer.status_code for answer in answers) == [429] * 4 + [503] * 2
    assert all(answer.headers["retry-after"] == "1" for answer in answers)
    go.set()
    end = time.monotonic() + 20
    while client.send("/place", rows(1)).status_code != 200:
        assert time.monotonic() < end
    assert service.gates["/place"].n_inside == 0
    service.end()


def test_a_fault_is_reported_without_its_traceback(folder):
    service = make_service(folder)

    def broken(X):
        raise RuntimeError("secret")

    service.model.answer = broken
    answer = Client(service).send("/place", rows(1))
    assert answer.status_code == 500 and "secret" not in answer.text
    assert answer.json()["reason"] and answer.headers["x-request-id"]
    assert "nosniff" in answer.headers["x-content-type-options"]
    service.end()


def test_everybody_needs_the_token_if_there_is_one(folder, monkeypatch):
    """A proxy on the same machine looks like a client on the same machine."""
    monkeypatch.setattr(access, "WRONG_TOKEN_SECONDS", 0.01)
    second = "the-token-after-the-next-rotation"
    service = make_service(folder, tokens=[AUTHORISED["Authorization"][7:], second],
                           read_tokens=[READER["Authorization"][7:]])  # fmt: skip
    for where in ({}, {"client": "10.0.0.1"}, {"host": "a.example"}):
        client = Client(service, **where, headers={})
        assert client.send("/place", rows(1)).status_code == 401
        assert client.send("/place", rows(1), Authorization="Bearer wrong").status_code == 401
        assert client.send("/place", rows(1), Authorization="Basic eDp5").status_code == 401
        for header in (AUTHORISED, READER, {"Authorization": f"Bearer {second}"}):
            assert client.send("/place", rows(1), **header).status_code == 200
        for path in ("/model", "/metrics", "/events", "/map", "/openapi.json", "/v2", "/point/1"):
            assert client.get(path).status_code == 401, path
        for path in ("/health", "/ready", "/v2/health/live", "/", "/page/live.js", "/style.css"):
            assert client.get(path).status_code == 200, path
    service.end()


def test_without_a_token_only_this_machine_is_served(folder):
    service = make_service(folder, tokens=[])
    assert Client(service, headers={}).send("/place", rows(1)).status_code == 200
    assert Client(service, host="[::1]", headers={}).get("/model").status_code == 200
    for where in ({"client": "10.0.0.1"}, {"host": "a.example"}):
        assert Client(service, **where, headers={}).get("/model").status_code == 403
    service.end()


def test_wrong_tokens_are_slowed_and_bounded(folder, monkeypatch):
    monkeypatch.setattr(access, "WRONG_TOKEN_SECONDS", 0.5)
    monkeypatch.setattr(access, "MAX_WRONG_TOKENS", 3)
    service = make_service(folder, max_waiting=4)
    client = Client(service)

    async def guess():
        wrong = {"Authorization": "Bearer a-wrong-token-of-a-good-length"}
        body, start = {"rows": rows(1).tolist()}, time.monotonic()
        requests = [client.request("POST", "/place", json=body, headers=wrong) for _ in range(6)]
        guesses = asyncio.gather(*requests)
        await asyncio.sleep(0.1)
        honest = await client.request("POST", "/place", json=body)  # does not wait behind them
        return await guesses, honest, time.monotonic() - start

    answers, honest, seconds = asyncio.run(guess())
    assert honest.status_code == 200 and seconds >= 0.5
    assert sorted(answer.status_code for answer in answers) == [401] * 3 + [429] * 3
    service.end()


def test_tokens_are_stripped_and_long_enough(monkeypatch):
    monkeypatch.setenv("OUTSAMPLE_TOKEN", "  0123456789abcdef,fedcba9876543210\n")
    assert access.read_tokens("OUTSAMPLE_TOKEN") == ["0123456789abcdef", "fedcba9876543210"]
    for bad, reason in (("short", "16 characters"), ("x" * 16 + "," + "y" * 15, "16"),
                        (" ".join(["z" * 20] * 3), "at most 2")):  # fmt: skip
        monkeypatch.setenv("OUTSAMPLE_TOKEN", bad)
        with pytest.raises(ValueError, match=reason):
            access.read_tokens("OUTSAMPLE_TOKEN")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "http://127.0.0.1:8000"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
    ],
)
def test_pages_of_other_sites_cannot_send_rows(folder, headers, status):
    service = make_service(folder, tokens=[])
    client = Client(service, headers={})
    assert client.send("/place", rows(1), **headers).status_code == status
    tensor = {"name": "rows", "shape": [1, 3], "datatype": "FP64", "data": [1, 2, 3]}
    path = "/v2/models/small/infer"
    answer = client.post(path, json={"inputs": [tensor]}, headers=headers)
    assert answer.status_code == status
    plain = json.dumps({"inputs": [tensor]}).encode()
    assert client.post(path, content=plain).status_code == 415  # no Content-Type
    text = {"Content-Type": "text/plain"}
    assert client.post(path, content=plain, headers=text).status_code == 415
    service.end()


def test_requests_have_an_id(client):
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    answer = client.get("/model", headers={"X-Request-Id": "mine-7", "traceparent": trace})
    assert answer.headers["x-request-id"] == "mine-7" and answer.headers["traceparent"] == trace
    ids = {client.get("/model").headers["x-request-id"] for _ in range(3)}
    assert len(ids) == 3
    bad = client.get("/model", headers={"X-Request-Id": "x y\t", "traceparent": "00-zz"})
    assert bad.headers["x-request-id"] != "x y\t" and "traceparent" not in bad.headers


def test_what_it_reports_about_itself(client):
    about = client.get("/model").json()
    assert about["feature_names"] == NAMES and about["map_names"] == ["x", "y"]
    assert (about["name"], about["n_points"], about["alpha"]) == ("small", 200, 0.05)
    assert about["learning"] is False and "drift" not in about
    assert client.get("/ready").json() == {"status": "ready"}
    assert client.get("/nothing").json() == {"reason": "there is nothing at this path"}
    assert client.get("/place").status_code == 405
    assert asyncio.run(client.request("HEAD", "/health")).status_code == 200
    page = client.get("/")
    assert "unsafe" not in page.headers["content-security-policy"]
    again = client.get("/")  # answered with the headers, and the ids, of all earlier requests
    assert len(again.headers.raw) == len(page.headers.raw)
    assert len(again.headers.get_list("x-request-id")) == 1
    text = client.get("/metrics").text
    assert 'outsample_requests_total{path="/place",status="422"}' in text
    assert 'outsample_request_seconds_bucket{le="+Inf",path="/place"}' in text
