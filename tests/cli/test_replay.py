"""`outsample replay`: rows into a running service, as they happened or faster."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from click.testing import CliRunner

from outsample.cli import main
from outsample.replay import feeding
from outsample.replay.feeding import Client, Recording, ServiceError, due_rows, feed
from outsample.replay.recordings import as_seconds, table_recording
from outsample_lab.stream.recordings import traffic_recording


class Service(BaseHTTPRequestHandler):
    """Answers as the service does; is busy for the first request of each path but /model."""

    protocol_version = "HTTP/1.1"
    busy, seen, refuse, keys, lose = True, [], False, [], False

    def do_GET(self):
        about = {"alpha": 0.01, "n_features": 2, "feature_names": ["a", "b"]}
        self.answer(200, about)

    def do_POST(self):
        told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        type(self).keys.append(self.headers.get("Idempotency-Key"))
        if type(self).lose:  # the rows are learned, but the answer does not arrive
            type(self).lose = False
            type(self).seen.append((self.path, self.headers.get("Authorization"), told))
            self.close_connection = True
            return self.connection.close()
        if type(self).busy:
            type(self).busy = False
            return self.answer(429, {"reason": "busy"}, {"Retry-After": "0"})
        if type(self).refuse:
            return self.answer(422, {"reason": "row 0, column 'a' is no number"})
        type(self).seen.append((self.path, self.headers.get("Authorization"), told))
        return self.answer(200, {"p_value": [0.001 if row[0] > 5 else 0.4 for row in told["rows"]]})

    def answer(self, status, told, headers=None):
        body = json.dumps(told).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def url():
    Service.busy, Service.seen, Service.refuse = True, [], False
    Service.keys, Service.lose = [], False
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_rows_arrive_once_in_order_although_the_service_was_busy(url):
    X = np.column_stack([np.arange(7.0), np.zeros(7)])
    fed = feed(Client(url, "secret"), Recording(["a", "b"], X, np.arange(7.0)), 0, "/learn", int)
    assert [row for _, _, told in Service.seen for row in told["rows"]] == X.tolist()
    assert {(path, token) for path, token, _ in Service.seen} == {("/learn", "Bearer secret")}
    assert (fed.n_rows, fed.n_unusual) == (7, 1)


def test_rows_are_sent_again_under_the_same_key(url):
    """After a timeout, /learn was sent again without one: the rows were learned twice."""
    Service.busy, Service.lose = False, True
    X = np.zeros((3, 2))
    feed(Client(url), Recording(["a", "b"], X, np.array([0.0, 0.0, 9.0])), 1e9, "/learn", int)
    pairs = zip(Service.keys, Service.seen, strict=True)
    sent = [(key, told["rows"]) for key, (_, _, told) in pairs]
    assert len(sent) == 2 and sent[0] == sent[1] and sent[0][0]


def test_rows_come_at_their_times(url, monkeypatch):
    slept, clock = [], [100.0]
    monkeypatch.setattr(feeding.time, "monotonic", lambda: clock[0])

    def sleep(seconds):
        slept.append(seconds)
        clock[0] += seconds

    monkeypatch.setattr(feeding.time, "sleep", sleep)
    Service.busy = False
    recording = Recording(None, np.zeros((3, 2)), np.array([0.0, 60.0, 180.0]))
    fed = feed(Client(url), recording, 60.0, "/place", int)
    assert slept == [0.0, 1.0, 2.0] and fed.seconds == 3.0
    assert all("columns" not in told for _, _, told in Service.seen)


def test_many_rows_at_once_are_cut():
    parts = list(due_rows(np.zeros(2500), 1.0))
    assert [(part.start, part.stop) for part in parts] == [(0, 1000), (1000, 2000), (2000, 2500)]


def test_what_the_service_refuses_and_no_service_at_all(url):
    Service.busy, Service.refuse = False, True
    with pytest.raises(ServiceError, match="422: row 0, column 'a'"):
        Client(url).post("/place", {"rows": [[1, 2]]})
    with pytest.raises(ServiceError, match="outsample serve"):
        Client("http://127.0.0.1:9").get("/model")
    with pytest.raises(ServiceError, match="is not the address"):
        Client("ftp://127.0.0.1")


def test_a_table_with_times_is_sorted_by_them(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("when,b,a,other\n1998-07-20T08:01,2,1,x\n1998-07-20 08:00,4,3,y\n")
    about = {"n_features": 2, "feature_names": ["a", "b"]}
    found = table_recording(str(path), "when", about)
    assert found.X.tolist() == [[3, 4], [1, 2]] and found.seconds.tolist() == [0, 60]
    with pytest.raises(ValueError, match="no column 'now'"):
        table_recording(str(path), "now", about)
    with pytest.raises(ValueError, match="lacks 1"):
        table_recording(str(path), "when", {"n_features": 1, "feature_names": ["c"]})


def test_times_that_are_none_are_told_by_row():
    assert as_seconds(np.array([3, 5]), "t").tolist() == [3, 5]
    with pytest.raises(ValueError, match="t, row 2: 'soon' is not a time"):
        as_seconds(np.array(["1998-07-20", "soon"], dtype=object), "t")
    with pytest.raises(ValueError, match="row 2 has no time"):
        as_seconds(np.array([1.0, np.nan]), "t")


def test_the_command(url, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("when,a,b\n0,1,1\n1,9,9\n")
    call = CliRunner().invoke
    given = ["replay", f"{path}", "--time", "when", "--url", url, "--speed", "0", "--json"]
    found = call(main, given)
    assert found.exit_code == 0, found.output
    told = json.loads(found.output)
    assert (told["n_rows"], told["n_unusual"]) == (2, 1)
    assert call(main, ["replay", f"{path}", "--url", url]).exit_code == 2
    assert call(main, ["replay", "--url", "http://127.0.0.1:9"]).exit_code == 1
    path.write_text("when,a,b\n0,1,1\nnever,9,9\n")
    found = call(main, ["replay", f"{path}", "--time", "when", "--url", url])
    assert found.exit_code == 3 and "never" in found.output


def test_made_up_traffic_stands_in():
    found = traffic_recording(None, "1998-07-22")
    assert found.columns[0] == "n_conn" and (np.diff(found.seconds) > 0).all()
