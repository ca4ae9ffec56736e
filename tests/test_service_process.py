"""The service as a process: killed, ended, and asked by clients that are slow, broken or greedy."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import httpx
import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the service needs outsample[serve]")

from click.testing import CliRunner

from outsample.cli import main
from outsample.service.json_rows import to_json
from outsample.service.write_ahead import WriteAhead
from service_tools import AUTHORISED, TOKEN, rows, saved

COMMAND = [sys.executable, "-c", "from outsample.cli import main; main()", "serve"]


class Process:
    """A service of its own, at a free port of this machine."""

    def __init__(self, model, *options):
        self.lines = []
        environment = os.environ | {"OUTSAMPLE_TOKEN": TOKEN}
        self.process = subprocess.Popen(
            [*COMMAND, str(model), "--port", "0", *options], stderr=subprocess.PIPE, env=environment
        )
        for line in self.process.stderr:
            self.lines.append(json.loads(line))
            if "listening" in self.lines[-1]:
                break
        else:
            raise AssertionError(f"it did not start: {self.lines}")
        self.url = self.lines[-1]["listening"]
        self.port = int(self.url.rpartition(":")[2])
        threading.Thread(target=self._drain, daemon=True).start()

    def _drain(self):
        for line in self.process.stderr:
            self.lines.append(json.loads(line))

    def place(self, X, timeout=30):
        return httpx.post(f"{self.url}/place", json={"rows": X.tolist()}, timeout=timeout)

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(30)

    def connect(self, data=b""):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        connection.sendall(data)
        return connection


class Forked:
    """A service in a child of a process that has imported all there is: it starts in a moment."""

    def __init__(self, model):
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["outsample.service.running", "outsample.cli"])
        log = model.with_name(f"{time.monotonic_ns()}.log")
        self.process = context.Process(target=serve_forked, args=(str(model), str(log)))
        self.process.start()
        self.lines = [{}]
        while "listening" not in self.lines[-1]:
            assert self.process.is_alive(), self.lines
            time.sleep(0.02)
            text = log.read_text() if log.exists() else ""
            self.lines = [{}, *map(json.loads, text.splitlines() if text.endswith("\n") else [])]
        self.url = self.lines[-1]["listening"]

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
        again = next(line for line in service.lines if "learned_again" in line)
        # What was under way when it was killed may have been written, or not.
        assert len(acknowledged) <= again["learned_again"] <= sent and not again["skipped"]
        left = int(rng.integers(1, 12))
        last_words = threading.Timer(rng.uniform(0, 0.01), service.end, [signal.SIGKILL])
        with httpx.Client(base_url=service.url, headers=AUTHORISED) as client:
            try:
                while True:
                    sent += 1
                    row = [float(sent), 0.5, 0.25]
                    answer = client.post("/learn", json={"rows": [row]})
                    if answer.status_code == 200:
                        acknowledged.append(float(sent))
                    left -= 1
                    if left == 0:
                        last_words.start()
            except httpx.TransportError:
                pass
        last_words.join()
    service = Forked(model)
    service.end(signal.SIGKILL)
    log = WriteAhead(f"{model}.learned", {"n_features": 3})
    found = [call[0, 0] for call in log.calls()]
    log.close()
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


def request(body, path="/place", length=None):
    length = len(body) if length is None else length
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {length}\r\n\r\n".encode() + body


def test_oversized_slow_and_broken_clients_hold_nobody_up(service):
    body = to_json({"rows": rows(20_000).tolist()})
    open_ones = [
        service.connect(),  # says nothing
        *(service.connect(b"POST /place HTT") for _ in range(20)),  # a head without an end
        *(service.connect(request(b'{"rows": [', length=1000)) for _ in range(20)),
        *(service.connect(request(body)) for _ in range(4)),  # does not read its answer
        service.connect(b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"),  # never reads
    ]
    for nonsense in (b"\x00" * 100, b"GET\r\n\r\n", b"POST / HTTP/9.9\r\n\r\n", b"\xff" * 70_000):
        open_ones.append(service.connect(nonsense))
    closed = service.connect(request(b'{"rows": [', length=1000))
    closed.close()
    for _ in range(20):
        assert service.place(rows(3)).status_code == 200
    large = service.connect(request(b"x" * 1000, length=10**9))
    assert b" 413 " in large.recv(1000)
    endless = request(b"", length=0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    piece = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    chunked = service.connect(endless)
    with pytest.raises(OSError):  # it hangs up while they still come
        for _ in range(10_000):
            chunked.sendall(piece)
            time.sleep(0.001)
    for connection in [*open_ones, large, chunked]:
        connection.close()
    assert service.place(rows(3)).status_code == 200
    assert service.process.poll() is None


def test_many_slow_clients_shut_nobody_out(service):
    """More than there are places for, each with a byte of its body; some of them are let go."""
    begun = request(b"{", length=1000)
    slow = [service.connect(begun) for _ in range(700)]
    for _ in range(20):
        assert service.place(rows(3)).status_code == 200
    time.sleep(1.1)  # now they can be called slow
    more = [service.connect(begun) for _ in range(10)]
    for _ in range(20):
        assert service.place(rows(3)).status_code == 200
    for connection in [*slow, *more]:
        connection.close()


def test_a_log_line_has_no_numbers_of_the_rows(service):
    assert service.place(np.array([[0.123456, 1, 2]])).status_code == 200
    time.sleep(0.2)
    told = [line for line in service.lines if line.get("rows") == 1][-1]
    assert set(told) == {"time", "method", "path", "status", "ms", "rows"}
    assert "123456" not in json.dumps(service.lines)


def test_what_is_under_way_is_finished_when_it_ends(tmp_path):
    service, answers = Process(saved(tmp_path), "--log-rows"), []
    X = rows(20_000)
    watching = service.connect(b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    asked = threading.Thread(target=lambda: answers.append(service.place(X)))
    asked.start()
    while not any(line.get("path") == "/place" for line in service.lines) and asked.is_alive():
        if httpx.get(f"{service.url}/metrics").text.find("under_way 2") > 0:
            break
    assert service.end() in (0, -signal.SIGTERM)
    asked.join()
    assert answers[0].status_code == 200 and answers[0].json()["n_rows"] == 20_000
    received = b""
    while piece := watching.recv(65536):
        received += piece
    assert b"event: status" in received
    assert any("values" in line for line in service.lines)


def refused(*arguments, **environment):
    result = CliRunner(env=environment).invoke(main, ["serve", *map(str, arguments)])
    return result.exit_code, result.stderr


def test_it_refuses_to_start_without_what_it_needs(tmp_path):
    model = saved(tmp_path)
    code, said = refused(model, "--host", "0.0.0.0", OUTSAMPLE_TOKEN=None)
    assert code == 2 and "can be reached by others: set OUTSAMPLE_TOKEN" in said
    assert refused(tmp_path / "none.outsample")[0] == 2
    code, said = refused(model, "--window", 100, OUTSAMPLE_TOKEN=None)
    assert code == 2 and "--window is about learning, which needs a token" in said
    (tmp_path / "small.outsample.learned").write_bytes(b"nonsense")
    code, said = refused(model, OUTSAMPLE_TOKEN=TOKEN)
    assert code == 3 and "small.outsample.learned: is no file of learned rows" in said
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, said = refused(model, "--no-learn", "--port", taken.getsockname()[1])
        assert code == 1 and "cannot listen at 127.0.0.1" in said
