"""The service as a process: killed, ended, reloaded, and asked by slow or broken clients."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import re
import shutil
import signal
import socket
import sqlite3
import sys
import threading
import time

import httpx
import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the service needs outsample[serve]")

from click.testing import CliRunner

from outsample.cli import main
from service_tools import AUTHORISED, TOKEN, Process, http_request, rows, saved

CHUNKED = http_request(b"", length=0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")


class Forked:
    """A service in a child of a process that has imported everything: it starts in a moment."""

    def __init__(self, model):
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["outsample.service.server", "outsample.cli"])
        log = model.with_name(f"{time.monotonic_ns()}.log")
        self.process = context.Process(target=serve_forked, args=(str(model), str(log)))
        self.process.start()
        self.lines = [{}]
        while not any("n_seen" in line for line in self.lines):
            assert self.process.is_alive(), self.lines
            time.sleep(0.02)
            text = log.read_text() if log.exists() else ""
            lines = text.splitlines() if text.endswith("\n") else []
            self.lines = [{}, *(json.loads(line) for line in lines if line.startswith("{"))]
        self.url = next(line["listening"] for line in self.lines if "listening" in line)

    def end(self, number):
        os.kill(self.process.pid, number)
        self.process.join(30)


def serve_forked(model, log):
    os.environ["OUTSAMPLE_TOKEN"] = TOKEN
    sys.stderr = open(log, "w")
    main(["serve", model, "--port", "0"])


def killed_while_learning(folder, times, seed=0):
    """Kill a service in the middle of learning, again and again; check all acknowledged rows."""
    model, rng = saved(folder), np.random.default_rng(seed)
    acknowledged, sent = [], 0
    for _ in range(times):
        service = Forked(model)
        state = next(line for line in service.lines if "n_seen" in line)
        # A row that was under way when the service was killed may have been written, or not.
        assert len(acknowledged) <= state["n_seen"] <= sent and not state["rejected_calls"]
        left = int(rng.integers(1, 12))
        kill = threading.Timer(rng.uniform(0, 0.01), service.end, [signal.SIGKILL])
        with httpx.Client(base_url=service.url, headers=AUTHORISED, timeout=30) as client:
            try:
                while True:
                    sent += 1
                    answer = client.post("/learn", json={"rows": [[float(sent), 0.5, 0.25]]})
                    if answer.status_code == 200:
                        acknowledged.append(float(sent))
                    left -= 1
                    if left == 0:
                        kill.start()
            except httpx.TransportError:
                pass
        kill.join()
    with sqlite3.connect(f"{model}.learned") as database:
        records = database.execute("SELECT rows FROM learned ORDER BY id").fetchall()
    found = [float(np.frombuffer(record[0])[0]) for record in records]
    assert found == sorted(set(found)) and set(acknowledged) <= set(found)
    return len(acknowledged)


def test_five_kills_lose_nothing(tmp_path):
    assert killed_while_learning(tmp_path, 5) >= 5


@pytest.mark.long
def test_fifty_kills_lose_nothing(tmp_path):
    assert killed_while_learning(tmp_path, 50, seed=1) >= 50


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    running = Process(saved(tmp_path_factory.mktemp("process")), "--max-bytes", "2000000")
    yield running
    running.end()


def test_oversized_slow_and_broken_clients_hold_nobody_up(service):
    body = json.dumps({"rows": rows(20_000).tolist()}).encode()
    events = f"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    connections = [
        service.connect(),  # sends nothing
        *(service.connect(b"POST /place HTT") for _ in range(20)),  # a head without an end
        *(service.connect(http_request(b'{"rows": [', length=1000)) for _ in range(20)),
        *(service.connect(http_request(body)) for _ in range(4)),  # does not read its answer
        service.connect(events.encode()),  # never reads
    ]
    for nonsense in (b"\x00" * 100, b"GET\r\n\r\n", b"POST / HTTP/9.9\r\n\r\n", b"\xff" * 70_000):
        connections.append(service.connect(nonsense))
    service.connect(http_request(b'{"rows": [', length=1000)).close()
    for _ in range(20):
        assert service.place(rows(3)).status_code == 200
    large = service.connect(http_request(b"x" * 1000, length=10**9))
    assert b" 413 " in large.recv(1000)
    chunked = service.connect(CHUNKED)
    with pytest.raises(OSError):  # the connection is closed while they still come
        for _ in range(10_000):
            chunked.sendall(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
            time.sleep(0.001)
    for connection in [*connections, large, chunked]:
        connection.close()
    assert service.place(rows(3)).status_code == 200
    assert service.process.poll() is None


def test_many_slow_clients_shut_nobody_out(service):
    """Far more than may wait for the model, each with one byte of its body."""
    slow = [service.connect(http_request(b"{", length=1000)) for _ in range(700)]
    for _ in range(20):
        assert service.place(rows(3)).status_code == 200
    for connection in slow:
        connection.close()


@pytest.mark.parametrize("where", ["head", "line", "trailer"])
def test_request_heads_are_limited(service, where):
    """88 MB were accepted."""
    start = {
        "head": b"POST /place HTTP/1.1\r\nHost: 127.0.0.1\r\n",
        "line": b"GET /",
        "trailer": CHUNKED + b"0\r\n",
    }[where]
    connection, answer = service.connect(start), b""
    part = b"a" * 1000 if where == "line" else b"X-A: " + b"a" * 1000 + b"\r\n"
    try:
        for _ in range(20_000):
            connection.sendall(part)
    except OSError:
        pass
    else:
        pytest.fail("20 MB of a request head were accepted")
    try:
        answer = connection.recv(1000)
    except OSError:  # reset after the answer
        pass
    assert not answer or b" 431 " in answer or b" 400 " in answer
    assert service.place(rows(1)).status_code == 200


@pytest.mark.parametrize(
    "lines",
    [
        "Content-Length: 21\r\nContent-Length: 4\r\n",
        "Content-Length: 21\r\nContent-Length: 21\r\n",
        "Content-Length: 21\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 21\r\n",
    ],
)
def test_ambiguous_lengths_are_rejected_idle_and_under_load(tmp_path_factory, service, lines):
    body = b'{"rows": [[1, 2, 3]]}'
    head = "POST /place HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    request = f"{head}Authorization: Bearer {TOKEN}\r\n{lines}\r\n".encode() + body
    assert service.connect(request).recv(1000).startswith(b"HTTP/1.1 400 ")


def test_a_full_service_answers_before_it_parses(tmp_path):
    """Whole plain requests get 429; ambiguous ones still get 400, in whatever state it is."""
    running = Process(saved(tmp_path), "--max-waiting", "1", "--no-learn")
    stop, seen = threading.Event(), set()

    def load():
        with httpx.Client(base_url=running.url, headers=AUTHORISED, timeout=60) as client:
            while not stop.is_set():
                seen.add(client.post("/place", json={"rows": rows(300).tolist()}).status_code)

    threads = [threading.Thread(target=load) for _ in range(6)]
    for thread in threads:
        thread.start()
    bad = http_request(b"{}", headers="Content-Length: 2\r\n")
    end = time.monotonic() + 60
    while seen != {200, 429} and time.monotonic() < end:
        time.sleep(0.01)
    answers = {running.connect(bad).recv(100)[:13] for _ in range(30)}
    stop.set()
    for thread in threads:
        thread.join()
    assert answers == {b"HTTP/1.1 400 "} and seen == {200, 429}
    text = running.client.get("/metrics").text
    assert 'outsample_requests_total{path="/place",status="429"}' in text
    running.end()


def test_a_slow_head_is_closed(tmp_path, monkeypatch):
    from outsample.service import connection
    from service_tools import Running, make_service

    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.5)
    running = Running(make_service(tmp_path))
    with socket.create_connection(("127.0.0.1", running.port), timeout=10) as slow:
        slow.sendall(b"POST /place HTTP/1.1\r\n")
        assert slow.recv(100) == b""
    running.end()


def test_a_log_line_has_an_id_and_an_address_and_no_values(service):
    answer = service.place(np.array([[0.123456, 1, 2]]), **{"X-Request-Id": "look-for-me"})
    assert answer.headers["x-request-id"] == "look-for-me"
    end = time.monotonic() + 10
    while not (found := [x for x in service.lines if x.get("request_id") == "look-for-me"]):
        assert time.monotonic() < end
        time.sleep(0.05)
    line = found[0]
    assert set(line) == {"time", "method", "path", "status", "ms", "rows", "client", "request_id"}
    assert (line["client"], line["status"], line["rows"]) == ("127.0.0.1", 200, 1)
    assert "123456" not in json.dumps(service.lines)


def test_requests_under_way_are_answered_when_it_ends(tmp_path):
    service, answers = Process(saved(tmp_path), "--log-rows"), []
    X = rows(20_000)
    events = f"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    watching = service.connect(events.encode())
    asking = threading.Thread(target=lambda: answers.append(service.place(X)))
    with httpx.Client(base_url=service.url, headers=AUTHORISED) as other:
        asking.start()
        while asking.is_alive():
            if "outsample_waiting_requests 1.0" in other.get("/metrics").text:
                break
    assert service.end() in (0, -signal.SIGTERM)
    asking.join()
    assert answers[0].status_code == 200 and answers[0].json()["n_rows"] == 20_000
    received = b""
    while part := watching.recv(65536):
        received += part
    assert b"event: status" in received
    assert any("values" in line for line in service.lines)


def test_it_listens_at_once_and_reports_the_progress_of_its_start(tmp_path):
    """Rows were learned again one by one before it listened: 114 s for 50,000 rows."""
    model = saved(tmp_path)
    first = Process(model)
    first.learn(rows(5))
    expected = first.place(rows(20, 9)).json()["p_value"]
    first.end()
    assert first.lines[-1].get("level") is None, first.lines[-1]
    again = Process(model)
    assert again.line_with("n_seen")["replayed_calls"] == 0  # the snapshot has them
    assert again.place(rows(20, 9)).json()["p_value"] == expected
    again.end(signal.SIGKILL)
    from outsample.files.learned_rows import LearnedRows

    with sqlite3.connect(f"{model}.learned") as database:
        about = {name: json.loads(text) for name, text in database.execute("SELECT * FROM about")}
    store = LearnedRows(f"{model}.learned", about["model"], 3, {}, {})
    store.add([(rows(1, seed), None) for seed in range(1500)])
    store.close()
    late = Process(model, ready=False)
    states = []
    while (answer := late.client.get("/ready")).status_code == 503:
        states.append(answer.json())
        rejected = late.place(rows(1))
        assert rejected.status_code in (200, 503)
        assert late.client.get("/health").status_code == 200
        assert late.client.get("/model").status_code == 200
    assert states and all(state["status"] == "starting" for state in states)
    assert states[0]["replayed"] < 1500  # it listens before all rows are learned again
    assert states[-1]["total"] == 1500 and states[-1]["replayed"] >= states[0]["replayed"]
    assert late.client.get("/model").json()["n_seen"] == 1505
    late.end()


def test_a_damaged_file_ends_the_service_with_a_reason(tmp_path):
    model = saved(tmp_path)
    first = Process(model)
    first.learn(rows(2))
    first.end(signal.SIGKILL)
    with sqlite3.connect(f"{model}.learned") as database:
        database.execute("UPDATE learned SET checksum = checksum + 1")
    code, reason = started(model, "--port", "0", OUTSAMPLE_TOKEN=TOKEN)
    assert code == 3 and "call 1 is damaged" in reason


def test_a_second_service_on_the_same_file_is_rejected(tmp_path):
    first = Process(saved(tmp_path))
    code, reason = started(saved(tmp_path), "--port", "0", OUTSAMPLE_TOKEN=TOKEN)
    assert code == 3 and "another service writes to it" in reason
    assert first.learn(rows(1)).status_code == 200
    first.end()


@pytest.mark.parametrize("way", ["signal", "request"])
def test_the_model_file_may_be_overwritten_under_load(tmp_path, way):
    """Copying a new file over the old one ended the service, or changed its answers."""
    model, other = saved(tmp_path), saved(tmp_path, 1, "other.outsample")
    service, stop, faults, digests = Process(model, "--no-learn"), threading.Event(), [], []
    X = rows(5)
    expected = {service.place(X).json()["digest"]: service.place(X).json()["p_value"]}

    def load():
        with httpx.Client(base_url=service.url, headers=AUTHORISED, timeout=30) as client:
            while not stop.is_set():
                answer = client.post("/place", json={"rows": X.tolist()})
                if answer.status_code != 200:
                    faults.append(answer.text)
                    continue
                told = answer.json()
                digests.append(told["digest"])
                if told["p_value"] != expected.setdefault(told["digest"], told["p_value"]):
                    faults.append(told)

    threads = [threading.Thread(target=load) for _ in range(3)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + 30
    while not digests and time.monotonic() < end:
        time.sleep(0.05)
    before = digests[-1]
    for content in (b"", other.read_bytes()[:5000], b"nonsense"):  # as an interrupted cp leaves it
        model.write_bytes(content)
        reload(service, way)
        assert service.place(X).json()["digest"] == before
    shutil.copyfile(other, model)
    reload(service, way)
    end = time.monotonic() + 30
    while service.place(X).json()["digest"] == before or set(digests) == {before}:
        assert time.monotonic() < end, service.lines[-3:]
        time.sleep(0.05)
    stop.set()
    for thread in threads:
        thread.join()
    assert not faults and len(expected) == 2 and set(digests) == set(expected)
    assert service.client.get("/model").json()["digest"] != before
    assert service.end() in (0, -signal.SIGTERM)


def reload(service, way):
    if way == "request":
        assert service.client.post("/reload").status_code in (200, 422)
        return
    n_lines = len(service.lines)
    service.process.send_signal(signal.SIGHUP)
    end = time.monotonic() + 30
    while not any(
        "stays" in line.get("message", "") or "reloaded" in line for line in service.lines[n_lines:]
    ):
        assert time.monotonic() < end and service.process.poll() is None
        time.sleep(0.02)


def test_several_workers_place_and_are_replaced_one_after_the_other(tmp_path):
    model = saved(tmp_path)
    service = Process(model, "--no-learn", "--workers", "2")
    X, before = rows(5), None

    def place():
        answer = httpx.post(f"{service.url}/place", json={"rows": X.tolist()}, headers=AUTHORISED,
                            timeout=60)  # fmt: skip
        assert answer.status_code == 200
        return answer.json()

    before = place()["digest"]
    for _ in range(20):
        place()
    text = service.client.get("/metrics").text
    (count,) = re.findall(r'outsample_rows_total{kind="placed"} (\S+)', text)
    assert float(count) == 105  # of all workers
    model.write_bytes(b"nonsense")
    assert service.client.post("/reload").status_code == 422
    shutil.copyfile(saved(tmp_path, 1, "other.outsample"), model)
    assert service.client.post("/reload").json()["changed"]
    service.client.close()
    end = time.monotonic() + 120
    digests = []
    while len(digests) < 20 or before in digests[-20:]:
        # A connection that is opened while its worker is replaced may be closed unanswered.
        with contextlib.suppress(httpx.RemoteProtocolError, httpx.ReadError):
            digests.append(place()["digest"])
        assert time.monotonic() < end
        time.sleep(0.05)
    assert service.end() in (0, -signal.SIGTERM)


def started(*arguments, **environment):
    result = CliRunner(env={"OUTSAMPLE_READ_TOKEN": None, **environment}).invoke(
        main, ["serve", *map(str, arguments)]
    )
    return result.exit_code, result.stderr


def test_it_does_not_start_without_what_it_needs(tmp_path):
    model = saved(tmp_path)
    code, reason = started(model, "--host", "0.0.0.0", OUTSAMPLE_TOKEN=None)
    assert code == 2 and "can be reached by others: set OUTSAMPLE_TOKEN" in reason
    code, reason = started(model, OUTSAMPLE_TOKEN="too short")
    assert code == 2 and "16 characters" in reason
    code, reason = started(model, "--workers", 2, OUTSAMPLE_TOKEN=TOKEN)
    assert code == 2 and "--workers needs --no-learn" in reason
    assert started(tmp_path / "none.outsample")[0] == 2
    code, reason = started(model, "--window", 100, OUTSAMPLE_TOKEN=None)
    assert code == 2 and "--window is about learning, which needs a token" in reason
    (tmp_path / "small.outsample.learned").write_bytes(b"nonsense")
    code, reason = started(model, OUTSAMPLE_TOKEN=TOKEN)
    assert code == 3 and "cannot be read as a file of learned rows" in reason
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, reason = started(model, "--no-learn", "--port", taken.getsockname()[1])
        assert code == 1 and "cannot listen at 127.0.0.1" in reason
