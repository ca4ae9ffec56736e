"""`outsample bench service`: timetables, what becomes of requests, what is written."""

import json
import socket
import threading

import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("fastapi", reason="the service needs outsample[serve]")
pytest.importorskip("pyarrow", reason="the service needs outsample[serve]")

from outsample.cli import main
from outsample_lab.serving.measures import recovery
from outsample_lab.serving.open_loop import OpenLoop, Outcome, http_request
from outsample_lab.serving.service_bench import SERVICE, restored_run, run_record
from outsample_lab.serving.service_process import ServiceProcess

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
BUSY = b"HTTP/1.1 429 No\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n"


class Answering:
    """Answers requests in a fixed order of answers, in two pieces; None hangs up."""

    def __init__(self, answers):
        self.answers, self.lock = iter(answers), threading.Lock()
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            try:
                one, _ = self.listening.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(one,), daemon=True).start()

    def serve(self, one):
        with one:
            while one.recv(1000):
                with self.lock:
                    answer = next(self.answers, OK)
                if answer is None:
                    return
                one.sendall(answer[:20])
                one.sendall(answer[20:])


def test_requests_are_counted_by_what_became_of_them():
    service = Answering([OK, BUSY, None, *[OK] * 3, BUSY])
    outcome = OpenLoop(service.port, http_request(b"{}"), 3).at_rate(100, 0.4)
    service.listening.close()
    assert len(outcome.status) == 40 and outcome.count(200) == 37 and outcome.count(429) == 2
    assert outcome.count(0) == 1 and sum(outcome.faults.values()) == 1
    assert np.isfinite(outcome.seconds).all() and (outcome.seconds > 0).all()
    assert outcome.lasted >= 0.39 and (outcome.late >= 0).all()
    assert 0 < outcome.quantile_of_service(0.5) <= outcome.quantile(0.99)
    assert 0 < outcome.quantile(0.5) <= outcome.quantile(0.99)
    assert np.isnan(outcome.quantile(0.5, 503))


def test_clients_ask_without_a_pause_for_a_time():
    service = Answering([])
    outcome = OpenLoop(service.port, http_request(b"{}")).without_pause(2, 0.2)
    service.listening.close()
    assert set(outcome.status) == {200} and outcome.lasted >= 0.2
    assert outcome.answered_per_second == len(outcome.status) / outcome.lasted


def test_recovery_is_the_end_of_the_last_bad_tenth_of_a_second():
    due = np.arange(100) * 0.02
    seconds, status = np.full(100, 0.001), np.full(100, 200)
    outcome = Outcome(due, seconds, status, {}, 2.0, 0 * due, 0 * due)
    assert recovery(outcome, 0.005) == 0
    status[7] = 429
    assert recovery(outcome, 0.005) == pytest.approx(0.2)
    seconds[26:30] = 0.1
    assert recovery(outcome, 0.005) == pytest.approx(0.6)


def test_a_service_that_does_not_start_is_told(tmp_path):
    with pytest.raises(RuntimeError, match="did not start"), ServiceProcess(tmp_path / "none"):
        pass


def test_a_quick_run_writes_its_figures_and_draws_them_again(tmp_path):
    call = CliRunner().invoke
    found = call(main, ["bench", "service", "--quick", "--out", f"{tmp_path}"])
    assert found.exit_code == 0, found.output
    told = json.loads((tmp_path / "service.json").read_text())
    assert run_record(restored_run(told)) == told
    assert len(told["targets"]) == 7 and len(told["loads"]) == 5 and told["quick"]
    assert all(target["found"] is not None for target in told["targets"])
    assert all(load["answered"] and not load["errors"] for load in told["loads"])
    again = SERVICE.draw_again(tmp_path / "again", tmp_path / "service.json")
    assert [title for title, _ in again.tables] == ["Loads", "Figures to reach"]
    page = (tmp_path / "service.html").read_text()
    assert "A service under load" in page and "A short run" in page
